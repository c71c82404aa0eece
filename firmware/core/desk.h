/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Commands: what is answered, what changes, and what is left to do. It knows nothing of lines, clocks and pins. */
#ifndef DESK_H
#define DESK_H

#include "frame.h"
#include "matcher.h"

/* How a run ended. */
struct stopped {
	uint32_t run;
	enum ended why;
	enum fault fault;
	uint8_t mask;
	uint64_t triggers, at;
	struct tally tallies[RESPONDERS];
};

struct desk {
	uint64_t values[SETTINGS + 1];
	bool is_identified;
	uint32_t running;	/* the run that goes on; 0 where none does */
	uint32_t last;		/* the run that was started last */
	uint32_t held;		/* times of the train */
	uint64_t shortest;	/* between two of them; 2^64 - 1 where there are not two */
	uint64_t train[TRAIN_MOST];
	bool has_stopped;
	struct stopped stopped;
};

/* What is to be done beside sending the answer. */
enum deed {
	DEED_NONE,	/* nothing */
	DEED_TELL,	/* say once more how the last run ended, after the answer */
	DEED_RESIZE,	/* batches have another size or age from now on */
	DEED_START,	/* start the run `running`, a train where `is_train` */
	DEED_STOP,	/* raise nothing more */
	DEED_TEST,	/* test yourself: the answer is the result */
};

struct answer {
	bool is_there;
	enum deed deed;
	bool is_train;
	uint16_t number;
};

void desk_begin(struct desk *d);
/* Takes a frame. The answer, where there is one, lies in `w`. */
struct answer desk_take(struct desk *d, const struct frame *frame, struct writer *w);
void desk_stopped(struct desk *d, const struct stopped *stopped);
void desk_disconnected(struct desk *d);

void write_stopped(struct writer *w, uint16_t number, const struct stopped *stopped);
void write_tallies(struct writer *w, uint8_t mask, const struct tally *tallies);
void write_self_test(struct writer *w, uint16_t number, const uint64_t words[4]);
/* A refusal without a setting and limits; `value` is what was asked for, or a fault's number. */
void write_refused(struct writer *w, uint16_t number, enum why why, uint8_t kind, uint64_t value);

#endif
