// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Process 1 of an emulated board (board.sh): loads the driver, whose lines are in the device tree, answers as task, and
 * says after each trigger what levels the lines have. "trigger" on the console asks for one.
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/ioctl.h>

#include "../rig/programs/guest.h"
#include "onset_port.h"

#define LINES "/debug/gpio"
#define TRIGGERS 4
/* One for each of the seven lines that the chip has beside the trigger's. */
#define PARAMETERS "trigger=gpio responders=hardirq,threaded_irq,tasklet,work,work_highpri,kthread,task"

/* The lines of the driver, as the kernel tells of them. */
static void say_lines(const char *when)
{
	FILE *lines = fopen(LINES, "r");
	char line[256];

	need(lines != NULL, LINES);
	printf("lines %s\n", when);
	while (fgets(line, sizeof(line), lines))
		if (strstr(line, "onset "))
			printf("%s", line);
	fclose(lines);
}

static void answer(void)
{
	int fd = open(ONSET_DEVICE, O_RDWR | O_CLOEXEC);
	__u64 taken;

	need(fd >= 0, ONSET_DEVICE);
	while (read(fd, &taken, sizeof(taken)) == sizeof(taken))
		ioctl(fd, ONSET_ANSWER);
	_exit(1);
}

int main(void)
{
	char when[32];
	int number;

	prepare();
	mkdir("/debug", 0755);
	need(!mount("debug", "/debug", "debugfs", 0, NULL), "/debug");
	need(!load_module("onset_port", PARAMETERS), "the driver");
	if (!fork())
		answer();
	sleep(1);
	say_lines("at first");
	for (number = 1; number <= TRIGGERS; number++) {
		printf("trigger %d\n", number);
		/* The button that stands for the line is down for 0.1 s, some time after it was asked for. */
		sleep(3);
		snprintf(when, sizeof(when), "after %d", number);
		say_lines(when);
	}
	need(unload_module("onset_port") == EAGAIN, "the task holds the driver");
	printf("all done\n");
	reboot(RB_POWER_OFF);
}
