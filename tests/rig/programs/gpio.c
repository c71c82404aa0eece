// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Process 1 of a guest that loads the driver with GPIO lines, good and bad, and says on the console how that went and
 * who uses the lines then.
 */
#define _GNU_SOURCE
#include <linux/gpio.h>
#include <sys/ioctl.h>

#include "guest.h"

#define CHIP "/dev/gpiochip0"
/* The chip of the rig, with these parameters of the driver beside it. */
#define ON_CHIP "trigger=gpio chip=onset-rig responders=hardirq,task "

static int load(const char *parameters)
{
	return load_module("onset_port", parameters);
}

static void unload(const char *name)
{
	need(!unload_module(name), name);
}

/* Takes a line of the chip as an output, as a program would, until the descriptor is closed. */
static int take(unsigned int line)
{
	struct gpio_v2_line_request request = {
		.offsets = { line }, .num_lines = 1, .consumer = "a program",
		.config = { .flags = GPIO_V2_LINE_FLAG_OUTPUT },
	};
	int chip = open(CHIP, O_RDWR | O_CLOEXEC);

	need(chip >= 0, CHIP);
	need(!ioctl(chip, GPIO_V2_GET_LINE_IOCTL, &request), "the line");
	close(chip);
	return request.fd;
}

/* Says who uses the lines of the chip: "lines after WHAT: NUMBER USER, ...". */
static void say_users(const char *what)
{
	int chip = open(CHIP, O_RDWR | O_CLOEXEC);
	struct gpiochip_info about;
	unsigned int line;

	need(chip >= 0, CHIP);
	need(!ioctl(chip, GPIO_GET_CHIPINFO_IOCTL, &about), "the chip");
	printf("lines after %s:", what);
	for (line = 0; line < about.lines; line++) {
		struct gpio_v2_line_info info = { .offset = line };

		need(!ioctl(chip, GPIO_V2_GET_LINEINFO_IOCTL, &info), "the line");
		if (info.flags & GPIO_V2_LINE_FLAG_USED)
			printf(" %u %s,", line, info.consumer);
	}
	printf(" no more\n");
	close(chip);
}

static void try_what_is_refused(void)
{
	int taken;

	load("trigger=gpio");
	load(ON_CHIP "trigger_line=11 answer_lines=0,7");

	need(!load_module("onset_rig_gpio", "sleeps=1"), "the chip");
	load(ON_CHIP "trigger_line=11 answer_lines=0,7");
	unload("onset_rig_gpio");

	need(!load_module("onset_rig_gpio", ""), "the chip");
	load(ON_CHIP "trigger_line=11 answer_lines=0,99");
	load(ON_CHIP "trigger_line=99 answer_lines=0,7");
	load(ON_CHIP "trigger_line=3 answer_lines=0,7");
	load(ON_CHIP "trigger_line=11 answer_lines=0,11");
	load(ON_CHIP "trigger_line=11 answer_lines=5,5");
	load(ON_CHIP "trigger_line=11 answer_lines=4");
	load(ON_CHIP "trigger_line=11");
	load("trigger=gpio chip=elsewhere trigger_line=11 answer_lines=0");
	taken = take(7);
	load(ON_CHIP "trigger_line=11 answer_lines=0,7");
	say_users("a refusal");
	close(taken);
}

static void try_names(void)
{
	/* More lines than responders, and not in the order of the pins. */
	need(!load(ON_CHIP "trigger_line=11 answer_lines=6,2,1"), "the lines");
	say_users("loading");
	printf("the chip under the driver: %s\n", strerror(unload_module("onset_rig_gpio")));
	unload("onset_port");
	say_users("unloading");
	close(take(6));
}

static void try_a_node(void)
{
	need(!load_module("onset_lines", ""), "the node");
	need(!load("trigger=gpio responders=hardirq,task"), "the lines of the node");
	say_users("the node");
	unload("onset_port");
	say_users("the driver went");
	need(!load("trigger=gpio responders=task"), "the lines of the node");
	say_users("the node again");
	/* The device goes while the driver has it. */
	unload("onset_lines");
	say_users("the node went");
	unload("onset_port");
	/* Named lines count, also where a device has others. */
	need(!load_module("onset_lines", ""), "the node");
	need(!load(ON_CHIP "trigger_line=11 answer_lines=3,4"), "named lines beside a node");
	say_users("both");
	unload("onset_port");
	unload("onset_lines");
}

int main(void)
{
	int again;

	prepare();
	try_what_is_refused();
	try_names();
	/* The test gives it to kernels whose gpiolib knows software nodes. */
	if (!access("/onset_lines.ko", F_OK))
		try_a_node();
	for (again = 0; again < 20; again++) {
		need(!load(ON_CHIP "trigger_line=11 answer_lines=0,7"), "again");
		unload("onset_port");
	}
	unload("onset_rig_gpio");
	printf("all done\n");
	reboot(RB_AUTOBOOT);
}
