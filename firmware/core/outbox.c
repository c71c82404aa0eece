// SPDX-License-Identifier: GPL-2.0-or-later
#include "outbox.h"

uint32_t outbox_room(const struct outbox *o)
{
	return OUTBOX_BYTES - (o->head - o->tail);
}

void outbox_put(struct outbox *o, const uint8_t *bytes, uint32_t count)
{
	if (count > outbox_room(o))
		return;
	for (uint32_t at = o->head % OUTBOX_BYTES, i = 0; i < count; i++) {
		o->bytes[at] = bytes[i];
		at = at + 1 == OUTBOX_BYTES ? 0 : at + 1;
	}
	o->head += count;
}

uint32_t outbox_peek(const struct outbox *o, const uint8_t **bytes, uint32_t most)
{
	uint32_t at = o->tail % OUTBOX_BYTES, held = o->head - o->tail;

	*bytes = o->bytes + at;
	if (held > OUTBOX_BYTES - at)
		held = OUTBOX_BYTES - at;
	return held < most ? held : most;
}

void outbox_taken(struct outbox *o, uint32_t count)
{
	o->tail += count;
}

void outbox_clear(struct outbox *o)
{
	o->tail = o->head;
}
