// SPDX-License-Identifier: GPL-2.0-or-later
// A control loop of 1 ms that reports its cycles (docs/own-program.md). Build: gcc -O2 examples/cycles.c
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>

struct cycle { uint64_t number, release_ns, start_ns, end_ns; };
struct page { _Atomic uint64_t written; uint64_t capacity, reserved[6]; struct cycle cycles[]; };

static uint64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

int main(void)
{
	const uint64_t period = 1000000;
	int file = atoi(getenv("ONSET_CYCLES"));
	struct page *page = mmap(NULL, 64 + 8192 * 32, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

	mlockall(MCL_CURRENT | MCL_FUTURE);
	for (uint64_t number = 0, release = now() + period;; number++, release += period) {
		struct timespec until = { release / 1000000000, release % 1000000000 };
		uint64_t written = atomic_load(&page->written), start;

		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
		start = now();
		/* The work comes here. */
		page->cycles[written % page->capacity] = (struct cycle){ number, release, start, now() };
		atomic_store_explicit(&page->written, written + 1, memory_order_release);
	}
}
