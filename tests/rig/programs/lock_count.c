// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * To be preloaded into QEMU: counts how often its vCPU's thread takes a lock, in the file that LOCK_COUNT names, which
 * has eight bytes. QEMU takes some whenever the vCPU leaves the guest's code. The vCPU's thread is one that jumps.
 *
 * With LOCK_COUNT_JUMPS, what QEMU leaves the code by is the C library's own function, whatever another library has in
 * its place.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdlib.h>
#include <sys/mman.h>

typedef void jump_fn(sigjmp_buf env, int value);
typedef int lock_fn(pthread_mutex_t *mutex);

static unsigned long *count;
static lock_fn *lock;
static jump_fn *jump;
static __thread int is_vcpu;

__attribute__((constructor)) static void begin(void)
{
	const char *name = "__longjmp_chk";
	int file = open(getenv("LOCK_COUNT"), O_RDWR);

	if (file >= 0)
		count = mmap(NULL, sizeof(*count), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
	if (count == MAP_FAILED || !count)
		abort();
	jump = (jump_fn *)dlsym(RTLD_NEXT, name);
	if (getenv("LOCK_COUNT_JUMPS"))
		jump = (jump_fn *)dlsym(dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD), name);
}

int pthread_mutex_lock(pthread_mutex_t *mutex)
{
	if (!lock)
		lock = (lock_fn *)dlsym(RTLD_NEXT, "pthread_mutex_lock");
	if (is_vcpu)
		__atomic_fetch_add(count, 1, __ATOMIC_RELAXED);
	return lock(mutex);
}

void __longjmp_chk(sigjmp_buf env, int value)
{
	is_vcpu = 1;
	jump(env, value);
	__builtin_unreachable();
}
