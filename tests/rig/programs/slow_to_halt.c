// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * To be preloaded into QEMU: makes the moment a millisecond long in which its vCPU has halted and its clock does not
 * yet include what was executed before. On a busy host that happens by itself, whenever the vCPU's thread is preempted
 * there.
 *
 * QEMU leaves the execution of the guest by a jump, on the vCPU's thread only; glibc has two names for it. The file
 * that SLOW_TO_HALT names is made when it has done so.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef void jump_fn(sigjmp_buf env, int value);

static void jump_late(const char *name, sigjmp_buf env, int value)
{
	struct timespec millisecond = { .tv_nsec = 1000000 };
	jump_fn *jump = (jump_fn *)dlsym(RTLD_NEXT, name);

	if (syscall(SYS_gettid) != getpid()) {
		static int told;

		if (!told)
			close(open(getenv("SLOW_TO_HALT"), O_CREAT | O_WRONLY, 0600));
		told = 1;
		nanosleep(&millisecond, NULL);
	}
	jump(env, value);
}

void siglongjmp(sigjmp_buf env, int value)
{
	jump_late("siglongjmp", env, value);
	__builtin_unreachable();
}

void __longjmp_chk(sigjmp_buf env, int value)
{
	jump_late("__longjmp_chk", env, value);
	__builtin_unreachable();
}
