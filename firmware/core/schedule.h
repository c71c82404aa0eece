/* SPDX-License-Identifier: GPL-2.0-or-later */
/* When triggers come: docs/generator-protocol.md, "When triggers come". The same seed gives the same instants. */
#ifndef SCHEDULE_H
#define SCHEDULE_H

#include "protocol.h"

struct schedule {
	bool is_train;
	uint64_t period, jitter, seed, phase, count;
	const uint64_t *train;
	/* phase + next · period, kept so that no instant needs a division or a long product */
	uint64_t next, base;
	bool overflowed;
};

enum due { DUE, DUE_NONE, DUE_BEYOND };

/* The displacement of trigger n. */
uint64_t displacement(uint64_t seed, uint64_t n, uint64_t jitter);
/* The instant of trigger `next`. DUE_NONE after the last one, DUE_BEYOND where it would be after 2^64 - 1 ticks. */
enum due schedule_due(const struct schedule *s, uint64_t *due);
/* Goes on to the next trigger. */
void schedule_advance(struct schedule *s);

#endif
