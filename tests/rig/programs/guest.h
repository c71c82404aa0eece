/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What process 1 of a guest for tests needs: devices, a console to speak to, and modules, which lie in the root as
 * NAME.ko. To be included once, after _GNU_SOURCE was defined.
 */
#ifndef GUEST_H
#define GUEST_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void need(int fine, const char *what)
{
	if (fine)
		return;
	printf("failed: %s: %s\n", what, strerror(errno));
	reboot(RB_AUTOBOOT);
}

static void prepare(void)
{
	mkdir("/dev", 0755);
	mkdir("/sys", 0755);
	need(!mount("dev", "/dev", "devtmpfs", 0, NULL), "/dev");
	need(!mount("sys", "/sys", "sysfs", 0, NULL), "/sys");
	need(freopen("/dev/console", "w", stdout) != NULL, "console");
	setlinebuf(stdout);
}

/* Says how it went; gives 0 or the error's number. */
static int load_module(const char *name, const char *parameters)
{
	char path[64];
	int fd, err;

	snprintf(path, sizeof(path), "/%s.ko", name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	need(fd >= 0, path);
	err = syscall(SYS_finit_module, fd, parameters, 0) ? errno : 0;
	close(fd);
	printf("load %s: %s\n", parameters, err ? strerror(err) : "done");
	return err;
}

/* Gives 0 or the error's number; EAGAIN while something holds the module. */
static int unload_module(const char *name)
{
	return syscall(SYS_delete_module, name, O_NONBLOCK) ? errno : 0;
}

#endif /* GUEST_H */
