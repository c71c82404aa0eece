/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames in a stream of bytes: reading them as they come, and writing one. No frame has a zero byte, and a zero byte
 * ends it (consistent overhead byte stuffing).
 */
#ifndef FRAME_H
#define FRAME_H

#include "protocol.h"

struct deframer {
	uint8_t body[FRAME_MAX];
	uint32_t length;	/* bytes of the frame that have come; FRAME_MAX + 1: too many */
	uint8_t left;		/* bytes until the one that says how far the next zero is */
	bool zero;		/* whether a zero is due there */
	bool begun;		/* whether anything has come since the last zero byte */
	uint32_t damaged;	/* how often bytes between two zero bytes were no frame */
};

struct frame {
	uint8_t version, kind;
	uint16_t number;
	const uint8_t *payload;
	uint32_t length;
};

/* Before anything else. */
void frame_begin(void);

/* Takes a byte. True at the end of a frame, which then lies in `frame` until the next byte. */
bool deframer_take(struct deframer *d, uint8_t byte, struct frame *frame);

/* A frame that is being written. */
struct writer {
	uint8_t out[STUFFED_MAX];
	uint32_t written, code, crc, length;
};

void writer_begin(struct writer *w, uint8_t kind, uint16_t number);
void put_u8(struct writer *w, uint8_t value);
void put_u16(struct writer *w, uint16_t value);
void put_u32(struct writer *w, uint32_t value);
void put_u64(struct writer *w, uint64_t value);
void put_zeros(struct writer *w, uint32_t count);
/* Ends the frame: `written` bytes of `out` are what goes into the stream. */
void writer_end(struct writer *w);

uint32_t get_u32(const uint8_t *bytes);
uint64_t get_u64(const uint8_t *bytes);

#endif
