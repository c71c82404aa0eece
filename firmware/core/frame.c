// SPDX-License-Identifier: GPL-2.0-or-later
#include "frame.h"

#define HEADER		4u
#define CHECKSUM	4u

/* CRC-32 of IEEE 802.3, reflected, a byte at a time: entry n is what n does in eight steps. frame_begin makes it. */
static uint32_t crc_table[256];

void frame_begin(void)
{
	for (uint32_t n = 0; n < 256; n++) {
		crc_table[n] = n;
		for (int bit = 0; bit < 8; bit++)
			crc_table[n] = crc_table[n] & 1 ? crc_table[n] >> 1 ^ 0xedb88320 : crc_table[n] >> 1;
	}
}

static inline uint32_t crc_of(uint32_t crc, uint8_t byte)
{
	return crc >> 8 ^ crc_table[(uint8_t)crc ^ byte];
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

/*
 * Puts bytes of a number, the lowest first. The places are held here: a byte that is stored may be anywhere in `w`, so
 * the compiler would load them anew for each.
 */
static void stuff(struct writer *w, uint64_t value, uint32_t bytes)
{
	uint32_t word = (uint32_t)value, crc = w->crc, written = w->written, code = w->code;
	uint8_t *out = w->out;

	/* No message is longer; one that were would be cut, and its reader would find that out. */
	if (w->length + bytes > FRAME_MAX)
		return;
	w->length += bytes;
	for (uint32_t i = 0; i < bytes; i++, word >>= 8) {
		uint8_t byte;

		if (i == 4)
			word = (uint32_t)(value >> 32);
		byte = (uint8_t)word;
		crc = crc_of(crc, byte);
		if (byte)
			out[written++] = byte;
		if (!byte || written - code == 0xff) {
			out[code] = (uint8_t)(written - code);
			code = written++;
		}
	}
	w->crc = crc;
	w->written = written;
	w->code = code;
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
	stuff(w, value, 1);
}

void put_u16(struct writer *w, uint16_t value)
{
	stuff(w, value, 2);
}

void put_u32(struct writer *w, uint32_t value)
{
	stuff(w, value, 4);
}

void put_u64(struct writer *w, uint64_t value)
{
	stuff(w, value, 8);
}

void put_zeros(struct writer *w, uint32_t count)
{
	while (count--)
		put_u8(w, 0);
}

void writer_end(struct writer *w)
{
	stuff(w, ~w->crc, 4);
	w->out[w->code] = (uint8_t)(w->written - w->code);
	/* What follows the last block is the zero byte that ends the frame. */
	w->out[w->written++] = 0;
}
