// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * To be preloaded into QEMU: lets QEMU fork itself only while fewer than NO_FORK copies of it are alive, as a machine
 * with little memory would.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/types.h>
#include <unistd.h>

#define COPIES_MAX 64

typedef pid_t fork_fn(void);

/* The copies that may be alive, of this process and of its copies. */
static pid_t *copies;

__attribute__((constructor)) static void begin(void)
{
	size_t size = COPIES_MAX * sizeof(*copies);

	copies = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (copies == MAP_FAILED)
		abort();
}

pid_t fork(void)
{
	fork_fn *real = (fork_fn *)dlsym(RTLD_NEXT, "fork");
	int room = atoi(getenv("NO_FORK"));
	pid_t copy;

	for (int i = 0; i < room && i < COPIES_MAX; i++) {
		if (copies[i] && kill(copies[i], 0) == 0)
			continue;
		copy = real();
		if (copy > 0)
			copies[i] = copy;
		return copy;
	}
	errno = ENOMEM;
	return -1;
}
