// SPDX-License-Identifier: GPL-2.0-or-later
#include "frame.h"

#define HEADER		4u
#define CHECKSUM	4u

/* CRC-32 of IEEE 802.3, reflected, four bits at a time: entry n is what n does in four steps. */
static const uint32_t crc_nibble[16] = {
	0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
	0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c,
};

static uint32_t crc_of(uint32_t crc, uint8_t byte)
{
	crc ^= byte;
	crc = crc >> 4 ^ crc_nibble[crc & 15];
	return crc >> 4 ^ crc_nibble[crc & 15];
}

uint32_t get_u32(const uint8_t *bytes)
{
	return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

uint64_t get_u64(const uint8_t *bytes)
{
	return get_u32(bytes) | (uint64_t)get_u32(bytes + 4) << 32;
}

static void keep(struct deframer *d, uint8_t byte)
{
	if (d->length < FRAME_MAX)
		d->body[d->length++] = byte;
	else
		d->length = FRAME_MAX + 1;
}

static bool is_whole(const struct deframer *d)
{
	uint32_t crc = UINT32_MAX, i;

	if (d->left || d->length > FRAME_MAX || d->length < HEADER + CHECKSUM)
		return false;
	for (i = 0; i < d->length - CHECKSUM; i++)
		crc = crc_of(crc, d->body[i]);
	return ~crc == get_u32(d->body + i);
}

bool deframer_take(struct deframer *d, uint8_t byte, struct frame *frame)
{
	if (!byte) {
		if (!d->begun)
			return false;
		d->begun = false;
		if (!is_whole(d)) {
			d->damaged++;
			return false;
		}
		frame->version = d->body[0];
		frame->kind = d->body[1];
		frame->number = (uint16_t)(d->body[2] | d->body[3] << 8);
		frame->payload = d->body + HEADER;
		frame->length = d->length - HEADER - CHECKSUM;
		return true;
	}
	if (!d->begun) {
		d->begun = true;
		d->length = 0;
		d->left = 0;
		d->zero = false;
	}
	if (d->left) {
		d->left--;
		keep(d, byte);
		return false;
	}
	if (d->zero)
		keep(d, 0);
	d->left = (uint8_t)(byte - 1);
	d->zero = byte != 0xff;
	return false;
}

static void close_block(struct writer *w, uint8_t ahead)
{
	w->out[w->code] = ahead;
	w->code = w->written++;
}

static void stuff(struct writer *w, uint8_t byte)
{
	uint32_t ahead;

	/* No message is longer; one that were would be cut, and its reader would find that out. */
	if (w->length == FRAME_MAX)
		return;
	w->length++;
	if (byte)
		w->out[w->written++] = byte;
	ahead = w->written - w->code;
	if (!byte || ahead == 0xff)
		close_block(w, (uint8_t)ahead);
}

void writer_begin(struct writer *w, uint8_t kind, uint16_t number)
{
	w->written = 1;
	w->code = 0;
	w->crc = UINT32_MAX;
	w->length = 0;
	put_u8(w, VERSION);
	put_u8(w, kind);
	put_u16(w, number);
}

void put_u8(struct writer *w, uint8_t value)
{
	w->crc = crc_of(w->crc, value);
	stuff(w, value);
}

void put_u16(struct writer *w, uint16_t value)
{
	put_u8(w, (uint8_t)value);
	put_u8(w, (uint8_t)(value >> 8));
}

void put_u32(struct writer *w, uint32_t value)
{
	put_u16(w, (uint16_t)value);
	put_u16(w, (uint16_t)(value >> 16));
}

void put_u64(struct writer *w, uint64_t value)
{
	put_u32(w, (uint32_t)value);
	put_u32(w, (uint32_t)(value >> 32));
}

void put_zeros(struct writer *w, uint32_t count)
{
	while (count--)
		put_u8(w, 0);
}

void writer_end(struct writer *w)
{
	uint32_t crc = ~w->crc;

	for (int i = 0; i < 4; i++, crc >>= 8)
		stuff(w, (uint8_t)crc);
	close_block(w, (uint8_t)(w->written - w->code));
	w->out[w->code] = 0;
}
