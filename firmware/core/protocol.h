/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The numbers of the generator protocol, as docs/generator-protocol.md has them. Times are in ticks of 8 ns.
 */
#ifndef PROTOCOL_H
#define PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VERSION		2
#define FRAME_MAX	1536
#define STUFFED_MAX	1544
#define BATCH_MAX	22
#define TRAIN_PIECE	126
/* Pins of the protocol, and those that the board has. Each is its responder's number: the board captures these. */
#define PINS_TOLD	16
#define RESPONDERS	8
#define NOBODY		0xff
#define LATENCY_END	(1ull << 56)
#define FOREVER		UINT64_MAX

enum kind {
	IDENTIFY = 0x01, SET = 0x02, TRAIN = 0x03, START = 0x04, STOP = 0x05, TEST = 0x06,
	IDENTITY = 0x81, ACCEPTED = 0x82, REFUSED = 0x83, STARTED = 0x84, STOPPED = 0x85, SELF_TEST = 0x86, BATCH = 0x87,
	KIND_OF_GENERATOR = 0x80, KIND_OPTIONAL = 0x40,
};

enum why {
	WHY_VERSION = 1, WHY_UNIDENTIFIED, WHY_UNKNOWN_COMMAND, WHY_MALFORMED, WHY_UNKNOWN_SETTING, WHY_OUTSIDE,
	WHY_NOT_A_STEP, WHY_RUNNING, WHY_NOT_RUNNING, WHY_NO_TRAIN, WHY_PLACE, WHY_ORDER, WHY_UNSUPPORTED, WHY_FAULT,
};

enum setting {
	PERIOD = 1, HIGH, BATCH_SIZE, COUNT, JITTER, SEED, PHASE, MEASURED, GRACE, AGE,
	SETTINGS = 10,
};

enum ended { ENDED_ASKED = 1, ENDED_COMPLETE, ENDED_FAULT, ENDED_CLOCK };

/* This generator's own numbers of faults: firmware/README.md says what each means. */
enum fault {
	FAULT_NONE = 0,
	FAULT_NO_LOOP = 1,	/* a self-test saw no edge come back */
	FAULT_LINE = 2,		/* the line did not rise where the schedule has it */
	FAULT_DRY = 3,		/* the schedule came too late to the part that raises the line */
	FAULT_CAPTURE = 4,	/* more edges came than were taken */
};

/* A counter of 125 MHz: 8 ns a tick. Pins are looked at every second tick. */
#define TICK_NANOS	8u
#define TICKS_A_MICRO	125u
#define RESOLUTION	2u
/* A crystal of the board: 30 parts in a million. */
#define ACCURACY_PPB	30000u
/* 100 kHz: what the processor can plan and match, README.md has the figures. */
#define GAP		1250u
/* A level stays for three ticks at the least: the instructions of src/programs.h. */
#define LEVEL_LEAST	3u
/* A year. Instants stay far below 2^64 ticks, so that a sum of two has room. */
#define LONGEST		(31536000ull * 125000000ull)
#define TRAIN_MOST	8192u

#endif
