/* SPDX-License-Identifier: GPL-2.0-or-later */
/* One run: what was raised, what was answered, batches, and how it ends. A self-test is a run without responders. */
#ifndef RUN_H
#define RUN_H

#include "desk.h"
#include "outbox.h"
#include "plan.h"

struct run {
	bool is_going, is_test;
	uint32_t number;
	struct plan plan;
	struct matcher matcher;
	uint64_t overrun;	/* instants at which nothing was raised */
	uint32_t level;		/* of all pins, after the last sample */
	bool has_zero;
	uint64_t zero;		/* the start, in the time of the board; before the first edge about that */
	uint64_t heard;		/* the last known instant, ticks since the start */
	uint64_t grace;
	/* The end: set when nothing is raised any more. */
	bool is_ending;
	enum ended why;
	enum fault fault;
	uint64_t end, halted;
	bool is_halted;
	/* The batch that is held. */
	uint64_t first, since, age;
	uint32_t size, held;
	struct measurement measurements[BATCH_MAX];
	/* Of a self-test. */
	uint64_t seen, late, offset_least, offset_most, loops;
};

void run_begin(struct run *r, const struct desk *desk, bool is_train);
void run_begin_test(struct run *r);
void run_resize(struct run *r, const struct desk *desk, struct outbox *o, struct writer *w);
void run_stop(struct run *r);
/* Takes samples, plans, sends batches. True when the run has ended, and everything it measured is sent or counted. */
bool run_turn(struct run *r, struct outbox *o, struct writer *w);
void run_stopped(const struct run *r, struct stopped *stopped);

#endif
