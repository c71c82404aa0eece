/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Numbers and layouts that the driver shares with the rest of onset. Made by
 * cargo run -p onset-wire --example header >driver/onset_wire.h
 * from crates/wire; what is changed here by hand fails a test there.
 */
#ifndef ONSET_WIRE_H
#define ONSET_WIRE_H

#include <linux/ioctl.h>
#include <linux/types.h>

/* The responders, each numbered by the pin that it toggles. */
enum onset_responder {
	ONSET_HARDIRQ = 0,
	ONSET_THREADED_IRQ = 1,
	ONSET_TASKLET = 2,
	ONSET_BH_WORK = 3,
	ONSET_WORK = 4,
	ONSET_WORK_HIGHPRI = 5,
	ONSET_KTHREAD = 6,
	ONSET_TASK = 7,
	ONSET_TASKLET_HI = 8,
	ONSET_TIMER_SOFTIRQ = 9,
	ONSET_WAITQUEUE = 10,
	ONSET_RESPONDERS
};

/* So many data pins has a parallel port; the responders from this number on have none. */
#define ONSET_DATA_PINS	8

/* What a record reports. */
enum onset_kind {
	/* The latency of one answer. */
	ONSET_SAMPLE = 5,
	/* Triggers that gave no sample, since the last such record. */
	ONSET_LOSS = 6,
};

/* Why a trigger gave no sample. */
enum onset_loss {
	ONSET_UNANSWERED = 0,
	ONSET_SUPERSEDED = 1,
	ONSET_SPURIOUS = 2,
	ONSET_TAINTED = 3,
	ONSET_DROPPED = 4,
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

/* The parallel port of the rig, and of most machines that have one. */
#define ONSET_PORT	0x378
#define ONSET_PORT_IRQ	7

/* The label of the rig's GPIO chip, which is that port and the register below. */
#define ONSET_CHIP	"onset-rig"

/* The rig has a second data register, for the pins from ONSET_DATA_PINS on. */
#define ONSET_HIGHER_PORT	0x4f48

/* Where the rig says that it is there, and as what this reads. */
#define ONSET_MARK_PORT	0x4f4e
#define ONSET_PRESENT	0x4f

/* The device that disturbs: its register, and the most timers that it asks for. */
#define ONSET_DISTURBANCE_PORT	0x4f44
#define ONSET_DISTURBANCE_TIMERS	64

/* The driver's devices, and what they are asked. */
#define ONSET_DEVICE	"/dev/onset"
#define ONSET_SAMPLES	"/dev/onset-samples"
#define ONSET_ANSWER	_IO('O', 0x70)
#define ONSET_STOP	_IO('O', 0x71)

#endif /* ONSET_WIRE_H */
