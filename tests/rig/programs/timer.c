// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Process 1 of a guest that measures itself with the driver's timer. Says on the console what was refused, and
 * writes the records of each of its runs to QEMU's debug port, a record of zeros after each run.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/reboot.h>
#include <time.h>
#include <unistd.h>

#include "guest.h"
#include "onset_port.h"

#define DEBUG_PORT 0xe9
#define PERIOD "/sys/module/onset_port/parameters/period_ns"

static struct onset_record records[400000];

static int load(const char *parameters)
{
	return load_module("onset_port", parameters);
}

static void unload(void)
{
	need(!unload_module("onset_port"), "unload");
}

static void pause_ms(long ms)
{
	struct timespec time = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&time, NULL);
}

/* As crates/agent/src/responder.rs: returns when the task is about to block. */
static pid_t start_task(void)
{
	struct sched_param priority = { .sched_priority = 80 };
	int ready[2], fd;
	__u64 taken;
	pid_t task;

	need(!pipe(ready), "pipe");
	task = fork();
	if (task) {
		close(ready[1]);
		need(!read(ready[0], &taken, 1), "the task's end of the pipe");
		return task;
	}
	need(!mlockall(MCL_CURRENT | MCL_FUTURE), "mlockall");
	need(!sched_setscheduler(0, SCHED_FIFO, &priority), "SCHED_FIFO");
	fd = open(ONSET_DEVICE, O_RDWR);
	need(fd >= 0, ONSET_DEVICE);
	close(ready[1]);
	for (;;)
		if (read(fd, &taken, sizeof(taken)) == sizeof(taken))
			ioctl(fd, ONSET_ANSWER);
}

static int open_samples(void)
{
	int fd = open(ONSET_SAMPLES, O_RDONLY | O_CLOEXEC);

	need(fd >= 0, ONSET_SAMPLES);
	return fd;
}

/* Reads until trigger `last` was answered by the hard handler, or to the end; returns the place after. */
static size_t read_until(int fd, size_t at, __u64 last)
{
	for (;;) {
		ssize_t size = read(fd, records + at, sizeof(records) - at * sizeof(*records));
		size_t i = at;

		need(size >= 0 && size % sizeof(*records) == 0, "read");
		if (!size)
			return at;
		for (at += size / sizeof(*records); i < at; i++)
			if (records[i].kind == ONSET_SAMPLE && !records[i].pin && records[i].number >= last)
				last = 0;
		if (!last)
			return at;
	}
}

/* The end of a run: the rest of its records, and all of them to the host. */
static void end(int fd, size_t at)
{
	need(!ioctl(fd, ONSET_STOP), "ONSET_STOP");
	pause_ms(50);
	at = read_until(fd, at, ~0ULL);
	need(read(fd, records, sizeof(*records)) == 0, "the end stays the end");
	memset(records + at, 0, sizeof(*records));
	outsb(DEBUG_PORT, records, (at + 1) * sizeof(*records));
	close(fd);
}

static void set_period(const char *ns)
{
	int fd = open(PERIOD, O_WRONLY | O_CLOEXEC);

	need(write(fd, ns, strlen(ns)) == (ssize_t)strlen(ns), PERIOD);
	close(fd);
}

static void try_the_device(void)
{
	int fd = open_samples(), flags = fcntl(fd, F_GETFL), err;
	struct pollfd samples = { .fd = fd, .events = POLLIN };

	err = open(ONSET_SAMPLES, O_RDONLY) < 0 ? errno : 0;
	printf("second open: %s\n", strerror(err));
	err = read(fd, records, sizeof(*records) - 1) < 0 ? errno : 0;
	printf("half a record: %s\n", strerror(err));
	fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	printf("poll before the first trigger: %d\n", poll(&samples, 1, 0));
	err = read(fd, records, sizeof(*records)) < 0 ? errno : 0;
	printf("read before the first trigger: %s\n", strerror(err));
	printf("poll with time: %d\n", poll(&samples, 1, 1000));
	printf("read with time: %zd\n", read(fd, records, sizeof(*records)));
	/* Without ONSET_STOP, while the timer runs. */
	close(fd);
}

int main(void)
{
	pid_t task;
	int fd;

	prepare();
	need(!ioperm(DEBUG_PORT, 1, 1), "ioperm");

	load("trigger=wire");
	load("trigger=timer period_ns=19999");
	load("trigger=timer period_ns=1000000001");
	load("trigger=timer cpu=1");
	load("trigger=timer threaded=Y");
	load("trigger=timer disturbance_irq=5");
	load("responders=hardirq,tasklet_hi,waitqueue");
	need(!load("trigger=timer"), "trigger=timer");

	task = start_task();
	try_the_device();
	/* What booting left behind comes to an end. */
	pause_ms(1000);
	/* 1000 triggers, and everyone has the time to answer. */
	fd = open_samples();
	end(fd, read_until(fd, 0, 999));

	/* Triggers come faster than anyone but the hard handler can answer, and nobody answers for task. */
	kill(task, SIGSTOP);
	set_period("20000");
	fd = open_samples();
	end(fd, read_until(fd, 0, 999));

	/* Nobody reads until the ring is full. */
	fd = open_samples();
	pause_ms(400);
	end(fd, 0);

	/* The module goes while its responders are at work. */
	kill(task, SIGKILL);
	while (unload_module("onset_port") == EAGAIN)
		pause_ms(1);
	for (int i = 0; i < 20; i++) {
		/* In turn those of a parallel port, and those that it has no pin for. */
		need(!load(i % 2 ? "trigger=timer period_ns=20000" :
			   "trigger=timer period_ns=20000 responders=hardirq,tasklet_hi,timer_softirq,waitqueue"),
		     "load again");
		fd = open_samples();
		pause_ms(1);
		close(fd);
		unload();
	}
	printf("all done\n");
	reboot(RB_AUTOBOOT);
}
