// SPDX-License-Identifier: GPL-2.0-or-later
#include "schedule.h"

/* The output function of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014). */
static uint64_t mix(uint64_t x)
{
	uint64_t z = x + 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	return z ^ z >> 31;
}

/* The upper 64 of the 128 bits of a · b. */
static uint64_t high_half(uint64_t a, uint64_t b)
{
	uint32_t a0 = (uint32_t)a, a1 = (uint32_t)(a >> 32), b0 = (uint32_t)b, b1 = (uint32_t)(b >> 32);
	uint64_t middle = ((uint64_t)a0 * b0 >> 32) + (uint64_t)a1 * b0;
	uint64_t carry = (uint32_t)middle + (uint64_t)a0 * b1;

	return (uint64_t)a1 * b1 + (middle >> 32) + (carry >> 32);
}

uint64_t displacement(uint64_t seed, uint64_t n, uint64_t jitter)
{
	uint64_t random = mix(seed ^ mix(n));

	/* jitter + 1 is 2^64 for the largest jitter: the product's upper half is then the number itself. */
	return jitter == UINT64_MAX ? random : high_half(random, jitter + 1);
}

enum due schedule_due(const struct schedule *s, uint64_t *due)
{
	if (s->next >= s->count)
		return DUE_NONE;
	if (s->is_train) {
		*due = s->train[s->next];
		return DUE;
	}
	if (s->overflowed)
		return DUE_BEYOND;
	*due = s->base;
	if (!s->jitter)
		return DUE;
	return __builtin_add_overflow(s->base, displacement(s->seed, s->next, s->jitter), due) ? DUE_BEYOND : DUE;
}

void schedule_advance(struct schedule *s)
{
	s->next++;
	if (__builtin_add_overflow(s->base, s->period, &s->base))
		s->overflowed = true;
}
