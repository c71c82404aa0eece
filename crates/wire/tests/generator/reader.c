// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads the frames of golden/generator.txt and prints what golden/generator-read.txt says. Written from
 * docs/generator-protocol.md alone, as a host or a generator in C would be: nothing is allocated.
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define FRAME_MAX	1536
#define BATCH_MAX	22
#define VERSION		2
#define PINS		16

static const char *const responders[] = {
	"hardirq", "threaded_irq", "tasklet", "bh_work", "work", "work_highpri", "kthread", "task",
	"tasklet_hi", "timer_softirq", "waitqueue",
};

#define RESPONDERS	(int)(sizeof(responders) / sizeof(responders[0]))

static const char *const settings[] = {
	"none", "period", "high", "batch", "count", "jitter", "seed", "phase", "responders", "grace", "age",
};

#define SETTINGS	10

/* What is left of a payload. A read beyond the end makes it bad. */
struct payload {
	const uint8_t *at, *end;
	int bad;
};

static uint64_t number(struct payload *p, int bytes)
{
	uint64_t value = 0;
	int i;

	if (p->end - p->at < bytes) {
		p->bad = 1;
		return 0;
	}
	for (i = 0; i < bytes; i++)
		value |= (uint64_t)*p->at++ << 8 * i;
	return value;
}

static void zeros(struct payload *p, int bytes)
{
	while (bytes--)
		if (number(p, 1))
			p->bad = 1;
}

/* A set of responders, none of which is unknown. */
static uint64_t set(struct payload *p)
{
	uint64_t mask = number(p, 2);

	if (mask >> RESPONDERS)
		p->bad = 1;
	return mask;
}

static const char *setting(struct payload *p)
{
	uint64_t which = number(p, 1);

	if (which <= SETTINGS)
		return settings[which];
	p->bad = 1;
	return "";
}

/* What is said goes here first: a frame that turns out to be malformed says nothing. */
static char text[16384];
static size_t length;

#define say(...) (length += (size_t)snprintf(text + length, sizeof(text) - length, __VA_ARGS__))

static void say_range(struct payload *p)
{
	uint64_t least = number(p, 8), most = number(p, 8), step = number(p, 8);

	say(" %" PRIu64 "..%" PRIu64 "/%" PRIu64, least, most, step);
}

static void say_tallies(struct payload *p, unsigned int mask)
{
	int responder, i;

	for (responder = 0; responder < RESPONDERS; responder++) {
		if (!(mask >> responder & 1))
			continue;
		say(" %s=%" PRIu64, responders[responder], number(p, 8));
		for (i = 0; i < 6; i++)
			say(",%" PRIu64, number(p, 8));
	}
}

static void train(struct payload *p)
{
	const char *between = "";

	say(" first=%" PRIu64 " times=", number(p, 4));
	zeros(p, 4);
	while (p->at < p->end && !p->bad) {
		say("%s%" PRIu64, between, number(p, 8));
		between = ",";
	}
}

static void identity(struct payload *p)
{
	uint64_t clock = number(p, 1), running, nanos, per, accuracy, held, resolution, gap;
	int i;

	zeros(p, 3);
	running = number(p, 4);
	nanos = number(p, 4);
	per = number(p, 4);
	accuracy = number(p, 4);
	held = number(p, 4);
	resolution = number(p, 8);
	say(" clock=%" PRIu64 " running=%" PRIu64 " tick=%" PRIu64 "/%" PRIu64, clock, running, nanos, per);
	if (accuracy == 0xffffffff)
		say(" accuracy=unknown");
	else
		say(" accuracy=%" PRIu64, accuracy);
	say(" held=%" PRIu64 " resolution=%" PRIu64 " pins=", held, resolution);
	for (i = 0; i < PINS; i++) {
		uint64_t responder = number(p, 1);

		if (responder >= RESPONDERS && responder != 0xff)
			p->bad = 1;
		else
			say("%s%s", i ? "," : "", responder == 0xff ? "none" : responders[responder]);
	}
	gap = number(p, 8);
	say(" gap=%" PRIu64 " train=%" PRIu64, gap, number(p, 4));
	zeros(p, 4);
	say(" name=\"");
	for (i = 0; i < 32; i++) {
		char letter = (char)number(p, 1);

		if (letter)
			say("%c", letter);
	}
	say("\"");
	for (i = 1; i <= SETTINGS; i++) {
		say(" %s=%" PRIu64, settings[i], number(p, 8));
		say_range(p);
	}
}

static void refused(struct payload *p)
{
	uint64_t why = number(p, 1), command = number(p, 1);
	const char *which = setting(p);

	zeros(p, 5);
	say(" why=%" PRIu64 " command=0x%02" PRIx64 " %s=%" PRIu64, why, command, which, number(p, 8));
	say_range(p);
}

static void started(struct payload *p)
{
	uint64_t run = number(p, 4), timing = number(p, 1);
	int i;

	zeros(p, 3);
	say(" run=%" PRIu64 " timing=%" PRIu64 " train=%" PRIu64, run, timing, number(p, 4));
	zeros(p, 4);
	for (i = 1; i <= SETTINGS; i++)
		say(" %s=%" PRIu64, settings[i], number(p, 8));
}

static void stopped(struct payload *p)
{
	uint64_t run = number(p, 4), ended = number(p, 1), mask, fault, triggers;

	zeros(p, 1);
	mask = set(p);
	fault = number(p, 2);
	zeros(p, 6);
	triggers = number(p, 8);
	say(" run=%" PRIu64 " ended=%" PRIu64 " fault=%" PRIu64, run, ended, fault);
	say(" triggers=%" PRIu64 " at=%" PRIu64, triggers, number(p, 8));
	say_tallies(p, (unsigned int)mask);
}

static void batch(struct payload *p)
{
	uint64_t run = number(p, 4), mask = set(p), count = number(p, 1), first, triggers;

	if (count > BATCH_MAX)
		p->bad = 1;
	zeros(p, 1);
	first = number(p, 8);
	triggers = number(p, 8);
	say(" run=%" PRIu64 " first=%" PRIu64, run, first);
	say(" triggers=%" PRIu64 " at=%" PRIu64, triggers, number(p, 8));
	say_tallies(p, (unsigned int)mask);
	while (count-- && !p->bad) {
		uint64_t trigger = number(p, 8), at = number(p, 8), latency = number(p, 7), by = number(p, 1);

		if (by >= RESPONDERS || !(mask >> by & 1))
			p->bad = 1;
		else
			say(" %" PRIu64 "/%" PRIu64 "/%s/%" PRIu64, trigger, at, responders[by], latency);
	}
}

static void read_payload(unsigned int kind, struct payload *p)
{
	uint64_t first;
	const char *which;

	switch (kind) {
	case 0x01:
		first = number(p, 1);
		say(" oldest=%" PRIu64 " newest=%" PRIu64, first, number(p, 1));
		break;
	case 0x02:
		which = setting(p);
		zeros(p, 7);
		say(" %s=%" PRIu64, which, number(p, 8));
		break;
	case 0x03:
		train(p);
		break;
	case 0x04:
		say(" timing=%" PRIu64, number(p, 1));
		break;
	case 0x81:
		identity(p);
		break;
	case 0x82:
		first = number(p, 1);
		which = setting(p);
		zeros(p, 6);
		say(" command=0x%02" PRIx64 " %s=%" PRIu64, first, which, number(p, 8));
		break;
	case 0x83:
		refused(p);
		break;
	case 0x84:
		started(p);
		break;
	case 0x85:
		stopped(p);
		break;
	case 0x86:
		say(" triggers=%" PRIu64, number(p, 8));
		say(" offset=%" PRIu64, number(p, 8));
		say(" jitter=%" PRIu64, number(p, 8));
		say(" late=%" PRIu64, number(p, 8));
		break;
	case 0x87:
		batch(p);
		break;
	}
}

static const char *name_of(unsigned int kind)
{
	static const char *const commands[] = {"identify", "set", "train", "start", "stop", "test"};
	static const char *const reports[] = {
		"identity", "accepted", "refused", "started", "stopped", "self-test", "batch",
	};

	if (kind >= 0x01 && kind <= 0x06)
		return commands[kind - 0x01];
	if (kind >= 0x81 && kind <= 0x87)
		return reports[kind - 0x81];
	return NULL;
}

/* version:u8 kind:u8 number:u16 payload, whose checksum is right. */
static void read_frame(const uint8_t *frame, size_t bytes)
{
	struct payload p = {frame, frame + bytes, 0};
	unsigned int version = (unsigned int)number(&p, 1), kind = (unsigned int)number(&p, 1);
	unsigned int which = (unsigned int)number(&p, 2);
	const char *name = name_of(kind);

	length = 0;
	if (version != VERSION && kind != 0x01 && kind != 0x83) {
		say("version %u", version);
		return;
	}
	if (!name) {
		say(kind & 0x40 ? "passed over 0x%02x" : "unknown 0x%02x", kind);
		return;
	}
	say("%s %u", name, which);
	read_payload(kind, &p);
	if (p.bad || p.at != p.end) {
		length = 0;
		say("malformed 0x%02x", kind);
	}
}

/* The state of whoever reads a stream byte by byte. */
struct stream {
	uint8_t frame[FRAME_MAX];
	size_t bytes;		/* of the frame that have come; FRAME_MAX + 1: too many */
	unsigned int left;	/* until the byte that says how far the next zero is */
	int zero;		/* whether a zero is due there */
	int begun;		/* whether anything has come since the last delimiter */
};

static void keep(struct stream *s, uint8_t byte)
{
	if (s->bytes < FRAME_MAX)
		s->frame[s->bytes++] = byte;
	else
		s->bytes = FRAME_MAX + 1;
}

static uint32_t checksum(const uint8_t *bytes, size_t count)
{
	uint32_t crc = 0xffffffff;
	int bit;

	while (count--) {
		crc ^= *bytes++;
		for (bit = 0; bit < 8; bit++)
			crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
	}
	return ~crc;
}

static int is_frame(const struct stream *s)
{
	struct payload p;

	if (s->left || s->bytes > FRAME_MAX || s->bytes < 8)
		return 0;
	p.at = s->frame + s->bytes - 4;
	p.end = p.at + 4;
	return number(&p, 4) == checksum(s->frame, s->bytes - 4);
}

/* Takes a byte: 1 at the end of a frame, -1 at the end of what is none, otherwise 0. */
static int take(struct stream *s, uint8_t byte)
{
	if (!byte) {
		if (!s->begun)
			return 0;
		s->begun = 0;
		return is_frame(s) ? 1 : -1;
	}
	if (!s->begun) {
		s->begun = 1;
		s->bytes = 0;
		s->left = 0;
		s->zero = 0;
	}
	if (s->left) {
		s->left--;
		keep(s, byte);
		return 0;
	}
	if (s->zero)
		keep(s, 0);
	s->left = byte - 1;
	s->zero = byte != 0xff;
	return 0;
}

int main(void)
{
	static char line[8192];

	while (fgets(line, sizeof(line), stdin)) {
		char *hex = strstr(line, ": ");
		struct stream s = {{0}, 0, 0, 0, 0};
		const char *between = "";
		unsigned int byte, damaged = 0;

		if (!hex)
			return 1;
		printf("%.*s: ", (int)(hex - line), line);
		for (hex += 2; sscanf(hex, "%2x", &byte) == 1; hex += 2) {
			int end = take(&s, (uint8_t)byte);

			damaged += end < 0;
			if (end <= 0)
				continue;
			read_frame(s.frame, s.bytes - 4);
			printf("%s%s", between, text);
			between = "; ";
		}
		if (damaged)
			printf("%sdamaged %u", between, damaged);
		printf("\n");
	}
	return 0;
}
