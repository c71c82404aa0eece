/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the protocol's side needs of the board. src/ has it for an RP2040, test/host.c plays it. All times are ticks of
 * 8 ns since board_prepare, of one crystal.
 */
#ifndef BOARD_H
#define BOARD_H

#include "protocol.h"

#define LEVEL_ANSWERS	0xffu		/* bit n is the answer pin of responder n, of RESPONDERS */
#define LEVEL_LINE	(1u << 8)	/* the line's own level, as its pad has it */
#define LEVEL_LOOP	(1u << 9)	/* what comes back of the line on the loop pin */

/* The pins changed. */
struct sample {
	uint64_t at;
	uint32_t level;
};

/* Once, before everything else. */
void board_begin(void);
/* Makes the line low and idle, forgets what was captured, and begins anew. The level of all pins then. */
uint32_t board_prepare(void);
/* A level of the line, for as many ticks; LEVEL_LEAST or more, and at most SEGMENT_MOST. There has to be room. */
void board_put(bool is_high, uint32_t ticks);
uint32_t board_room(void);
/* Begins with what was put. */
void board_go(void);
/* The line becomes low at once, and what was put is forgotten. */
void board_halt(void);
/* Whether the line came to the end of what was put; it then stayed low. */
bool board_ran_dry(void);

/* The next sample, in the order of time. */
bool board_sample(struct sample *sample);
/* Whether so many samples wait that no more should be caused. */
bool board_is_behind(void);
/* Whether samples were lost. */
bool board_overran(void);

uint64_t board_now(void);

#define SEGMENT_MOST	(1u << 31)

#endif
