/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a process needs to be the `task` responder of onset_port, and to read
 * its samples; and the device of the virtual rig that disturbs.
 */
#ifndef ONSET_PORT_H
#define ONSET_PORT_H

#include <linux/ioctl.h>
#include <linux/types.h>

/*
 * read() of ONSET_DEVICE waits for the next trigger and gives the number
 * of triggers taken since the module was loaded, as a 64-bit unsigned
 * integer in host byte order. ONSET_ANSWER is the answer. poll() reports
 * POLLIN when read() would not wait. One open file at a time.
 */
#define ONSET_DEVICE	"/dev/onset"

/*
 * Answers for `task`, once for all the triggers taken and not yet answered;
 * does nothing when there is none. No argument; returns 0.
 */
#define ONSET_ANSWER	_IO('O', 0x70)

/*
 * With trigger=timer. The timer runs from open() to close() or ONSET_STOP.
 * read() gives as many whole records as fit and there are, and waits for
 * one. One open file at a time.
 */
#define ONSET_SAMPLES	"/dev/onset-samples"

/*
 * Stops the timer. After it read() gives what is left, then the triggers
 * that are not answered by then, and then 0: give the responders time in
 * between. No argument; returns 0.
 */
#define ONSET_STOP	_IO('O', 0x71)

/* What a record reports. The numbers go on from those of the generator's. */
enum onset_kind {
	/* The latency of one answer. */
	ONSET_SAMPLE = 5,
	/* Triggers that gave no sample, since the last such record. */
	ONSET_LOSS = 6,
};

/* Why a trigger gave no sample; crates/sample/src/answers.rs. */
enum onset_loss {
	ONSET_UNANSWERED,
	ONSET_SUPERSEDED,
	/* Cannot be here: a responder with nothing to answer does not. */
	ONSET_SPURIOUS,
	ONSET_TAINTED,
	/* Nobody read for so long that the ring was full. */
	ONSET_DROPPED,
	ONSET_LOSSES
};

/* 32 bytes, little endian. */
struct onset_record {
	__u8 kind;		/* enum onset_kind */
	__u8 loss;		/* enum onset_loss; 0 for a sample */
	__le16 reserved;	/* 0 */
	__le32 pin;		/* whose: the number of the responder */
	__le64 number;		/* of the trigger, from 0; of a loss how many */
	__le64 due_ns;		/* CLOCK_MONOTONIC; 0 for a loss */
	__le64 latency_ns;	/* from then to the answer; 0 for a loss */
};

/*
 * The register of the rig's second device, 8 bits. Reading it acknowledges the
 * device's interrupt and gives how many timers to start, all of them to expire
 * ONSET_DISTURBANCE_BURST_NS later; 0 also when there was no interrupt. "OD".
 */
#define ONSET_DISTURBANCE_PORT		0x4f44
#define ONSET_DISTURBANCE_TIMERS	64
#define ONSET_DISTURBANCE_BURST_NS	20000

#endif /* ONSET_PORT_H */
