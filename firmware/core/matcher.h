/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From triggers and edges to measurements and losses: docs/generator-protocol.md, "What is measured, and what is lost".
 * The rule is that of crates/sample/src/answers.rs.
 */
#ifndef MATCHER_H
#define MATCHER_H

#include "protocol.h"

struct tally {
	uint64_t measured, unanswered, superseded, spurious, tainted, dropped, overrun;
};

struct trigger {
	bool is_there;
	uint64_t number;	/* in the schedule */
	uint64_t at;		/* when it was due, ticks since the start */
	uint64_t seen;		/* when the line's own edge was seen, in the time of the capture */
};

struct measurement {
	uint64_t number, at, latency;
	uint8_t responder;
};

/* What one responder has not answered: the index of the first such trigger, and that trigger where it was raised. */
struct wait {
	uint64_t first;
	struct trigger trigger;
};

struct matcher {
	uint8_t mask;		/* whose answers are measured */
	uint64_t raised;	/* triggers that were raised; those that came too late are not among them */
	uint64_t taken;		/* triggers that the hard handler has taken */
	struct trigger untaken;	/* trigger `taken`, where it was raised */
	struct wait waits[RESPONDERS];
	struct tally tallies[RESPONDERS];
};

void matcher_begin(struct matcher *m, uint8_t mask);
void matcher_raise(struct matcher *m, const struct trigger *trigger);
/* A responder's pin changed at `seen`. True where that makes a measurement; it is not yet counted. */
bool matcher_edge(struct matcher *m, uint8_t responder, uint64_t seen, struct measurement *measurement);
bool matcher_is_complete(const struct matcher *m);
/* The run has ended: what waits has no answer. */
void matcher_end(struct matcher *m);

#endif
