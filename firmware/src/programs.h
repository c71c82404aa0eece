/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the state machines of PIO0 execute, one instruction a cycle of 8 ns (datasheet 3.4 has the encodings). Three
 * machines begin in the same cycle. None ever waits for the processor. No instruction has a delay.
 *
 * LOOK looks at the pins every second cycle, at a change goes on doing so while it tells the six looks around it, and
 * raises the link for three cycles. COUNT counts every second cycle, and tells its count when it sees the link. So the
 * count belongs to the first of the six looks, by a number of cycles that is always the same: both loops have an even
 * number of cycles on every way through them. From the link's rise to COUNT's look these are the pad and two flip-flops
 * against metastability (3.5.6.3), 3 cycles and a part of one; the link is visible for three looks' time, of which one
 * is COUNT's. LINE raises the line, in a program that knows nothing of the others.
 */
#ifndef PROGRAMS_H
#define PROGRAMS_H

#include <stdint.h>

#define LOOK	0u
#define COUNTER	1u
#define LINE	2u

/* Ten pins from here on: eight answers, the line itself, the loop. All other pads are deaf, but for the link's. */
#define PIN_ANSWERS	2u
#define PIN_LINE	10u
#define PIN_LOOP	11u
#define LOOK_PINS	10u
/* The pin of the board's LED: nothing else is there to be disturbed. */
#define PIN_LINK	25u

#define LINK	0x1000u		/* side-set 1 in LOOK: the link is high in this cycle */

#define LOOK_CHANGED	0u
#define LOOK_BEGIN	10u
#define LOOK_END	11u
#define COUNT_HIT	12u
#define COUNT_BEGIN	14u
#define COUNT_END	15u
#define LINE_BEGIN	16u
#define LINE_END	18u

static const uint16_t programs[] = {
	/*
	 * LOOK. X is what was seen last and told, Y the newest look. Cycle 0 is that of the look that found a change.
	 * cycle   looks in cycles 2, 4, 6, 8, 10 and then 12, which is the loop's own: no cycle in between is missed.
	 */
	[0] = 0x400a | LINK,	/*  2  changed: in pins, 10	second look */
	[1] = 0x404a | LINK,	/*  3  in y, 10			first look */
	[2] = 0x400a | LINK,	/*  4  in pins, 10		third look; 30 bits go to the FIFO: 2nd, 1st, 3rd */
	[3] = 0xa042,		/*  5  nop */
	[4] = 0x400a,		/*  6  in pins, 10		fourth look */
	[5] = 0xa042,		/*  7  nop */
	[6] = 0x400a,		/*  8  in pins, 10		fifth look */
	[7] = 0xa042,		/*  9  nop */
	[8] = 0xa020,		/* 10  mov x, pins		sixth look; the link is low again, also behind its pad */
	[9] = 0x402a,		/* 11  in x, 10			30 bits go to the FIFO: 4th, 5th, 6th */
	[10] = 0xa040,		/*  0  loop: mov y, pins	a look */
	[11] = 0x00a0,		/*  1  jmp x != y, changed	else loop (wraps) */

	/* COUNT. X counts down from 2^32 - 1, once in two cycles, but once in the four of a hit. */
	[12] = 0xa0c1,		/*  1  hit: mov isr, x */
	[13] = 0x8000,		/*  2  push noblock		a full FIFO is noted in FDEBUG, and the count goes on */
	[14] = 0x004f,		/*  1 or 3  loop: jmp x--, look	goes on at 0 too: look is the next */
	[15] = 0x00cc,		/*  0  look: jmp pin, hit	else loop (wraps) */

	/* LINE. Each word is a level and how long it lasts: 1 + 1 + (31 bits + 1) cycles. */
	[16] = 0x6001,		/*  1  out pins, 1		the level; waits here while there is no word */
	[17] = 0x603f,		/*  1  out x, 31 */
	[18] = 0x0052,		/*  x + 1  stay: jmp x--, stay	then on to the next word (wraps) */
};

/* Cycles that a level lasts beyond the 31 bits. */
#define LINE_CYCLES	3u

/* Instructions that the processor has a machine execute before it begins. */
#define JUMP(place)	(place)
#define MOV_X_PINS	0xa020u
#define MOV_X_ONES	0xa02bu
#define MOV_ISR_X	0xa0c1u
#define MOV_PINS_ZERO	0xa003u
#define SET_PINDIRS_OUT	0xe081u
#define PUSH_NOBLOCK	0x8000u
#define PULL_NOBLOCK	0x8080u
#define OUT_NULL_32	0x6060u

#endif
