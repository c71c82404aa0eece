/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Frames on their way to the host: a ring of bytes. Nobody waits for the host. */
#ifndef OUTBOX_H
#define OUTBOX_H

#include "frame.h"

#define OUTBOX_BYTES	32768u

struct outbox {
	uint8_t bytes[OUTBOX_BYTES];
	uint32_t head, tail;	/* bytes ever put and taken, modulo 2^32 */
	uint16_t told;		/* frames so far that answer nothing, also those that were thrown away */
};

/*
 * Room that batches leave free: two answers with what is told beside them, and how a run ended. A command is heard only
 * where there is room for two of the largest frames, so that an answer and `stopped` are never thrown away.
 */
#define ROOM_TO_HEAR	(2 * STUFFED_MAX)
#define ROOM_BESIDE_BATCH	(3 * STUFFED_MAX)

uint32_t outbox_room(const struct outbox *o);
void outbox_put(struct outbox *o, const uint8_t *bytes, uint32_t count);
/* Up to `most` bytes that lie one behind the other, and how many. */
uint32_t outbox_peek(const struct outbox *o, const uint8_t **bytes, uint32_t most);
void outbox_taken(struct outbox *o, uint32_t count);
void outbox_clear(struct outbox *o);

#endif
