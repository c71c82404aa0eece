// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The protocol's side of the firmware on this machine, with the sanitizers of gcc and a board that is played.
 *
 * host frames < LINES      each line a stream in hexadecimal: its frames, as they are read and as they are written anew
 * host schedule PHASE PERIOD JITTER SEED COUNT    the instants
 * host levels PHASE PERIOD JITTER SEED COUNT HIGH    what the line gets to do: a level and its ticks each, and the end
 * host desk < BYTES        what is answered to bytes of a host; no time passes
 * host fuzz SEED ROUNDS    random commands and bytes, a board that answers at random, a host that stalls at random
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../core/generator.h"

#define LEVELS	224u
#define SAMPLES	4096u

/* The board that is played: time, what was put, and what will be seen. */
static struct {
	uint64_t now, at;		/* `at`: up to where the line has come */
	bool is_going, has_overrun;
	uint32_t level, put, done;
	struct { bool is_high; uint32_t ticks; } levels[LEVELS];
	uint64_t left;
	struct sample samples[SAMPLES];
	uint32_t head, tail;
} board;

static uint64_t state;
static struct generator generator;

static uint32_t draw(uint32_t below)
{
	return (uint32_t)((displacement(1, state++, UINT64_MAX) >> 32) * below >> 32);
}

static void see(uint64_t at, uint32_t level)
{
	if (level == board.level)
		return;
	board.level = level;
	if (board.head - board.tail == SAMPLES)
		board.has_overrun = true;
	else
		board.samples[board.head++ % SAMPLES] = (struct sample){at & ~1ull, level};
}

uint32_t board_prepare(void)
{
	board_halt();
	board.head = board.tail = 0;
	board.has_overrun = false;
	board.now = board.at = 0;
	return board.level;
}

void board_put(bool is_high, uint32_t ticks)
{
	if (ticks < LEVEL_LEAST || ticks > SEGMENT_MOST || !board_room())
		abort();
	board.levels[board.put % LEVELS].is_high = is_high;
	board.levels[board.put++ % LEVELS].ticks = ticks;
}

uint32_t board_room(void)
{
	return LEVELS - (board.put - board.done);
}

void board_go(void)
{
	board.is_going = true;
	board.at = board.now;
	board.left = 0;
}

void board_halt(void)
{
	board.is_going = false;
	board.put = board.done = 0;
	see(board.now, board.level & ~LEVEL_LINE);
}

bool board_ran_dry(void)
{
	return board.is_going && board.put == board.done && !board.left;
}

bool board_sample(struct sample *sample)
{
	if (board.head == board.tail)
		return false;
	*sample = board.samples[board.tail++ % SAMPLES];
	return true;
}

bool board_is_behind(void)
{
	return board.head - board.tail > SAMPLES / 8;
}

bool board_overran(void)
{
	return board.has_overrun;
}

uint64_t board_now(void)
{
	return board.now;
}

/* Time goes on: the line does what was put, and now and then somebody answers. */
static void put_in(uint64_t to)
{
	while (board.is_going && board.at < to) {
		if (!board.left) {
			if (board.put == board.done)
				break;
			board.left = board.levels[board.done % LEVELS].ticks;
			bool is_high = board.levels[board.done++ % LEVELS].is_high;
			see(board.at, is_high ? board.level | LEVEL_LINE : board.level & ~LEVEL_LINE);
		}
		uint64_t step = board.left < to - board.at ? board.left : to - board.at;

		board.left -= step;
		board.at += step;
		if (draw(3))
			see(board.at, board.level ^ (1u << draw(10) & (LEVEL_ANSWERS | LEVEL_LOOP)));
	}
	board.now = to;
}

static uint32_t checked;

/* Reads what the generator says, as a host does, and ends the program where it is damaged. */
static void read_out(struct deframer *d, uint32_t most)
{
	const uint8_t *bytes;
	uint32_t count = outbox_peek(&generator.outbox, &bytes, most);
	struct frame frame;

	for (uint32_t i = 0; i < count; i++)
		if (deframer_take(d, bytes[i], &frame)) {
			if (frame.version != VERSION || !(frame.kind & KIND_OF_GENERATOR))
				abort();
			checked++;
		}
	outbox_taken(&generator.outbox, count);
	if (d->damaged)
		abort();
}

/* The tallies of a run that has ended add up, and its triggers are those that came. */
static void check_end(void)
{
	const struct stopped *s = &generator.desk.stopped;

	if (!generator.desk.has_stopped)
		return;
	for (int i = 0; i < RESPONDERS; i++) {
		const struct tally *t = &s->tallies[i];
		uint64_t sum = t->measured + t->unanswered + t->superseded + t->tainted + t->overrun;

		if (s->mask >> i & 1 && (sum != s->triggers || t->dropped > t->measured))
			abort();
	}
}

/* A command that is nearly right, or bytes. */
static uint32_t make_bytes(uint8_t *to)
{
	struct writer w;
	uint8_t kind = (uint8_t)(1 + draw(6));
	static const uint8_t lengths[] = {2, 16, 8, 1, 0, 0};
	uint32_t length = lengths[kind - 1], flip;

	writer_begin(&w, kind, (uint16_t)draw(65536));
	if (kind == SET) {
		put_u64(&w, draw(12));
		put_u64(&w, draw(4) ? draw(draw(2) ? 300 : 20000) : displacement(7, state++, UINT64_MAX));
	} else if (kind == TRAIN) {
		put_u64(&w, draw(2) ? 0 : draw(200));
		for (uint32_t i = draw(127), at = draw(5000); i; i--, at += 1240 + draw(3000))
			put_u64(&w, at);
	} else {
		for (uint32_t i = 0; i < length; i++)
			put_u8(&w, kind == IDENTIFY ? VERSION : (uint8_t)draw(draw(9) ? 2 : 256));
	}
	if (!draw(10))
		put_u8(&w, (uint8_t)draw(256));
	writer_end(&w);
	flip = draw(12) ? w.written : draw(w.written);
	for (uint32_t i = 0; i < w.written; i++)
		to[i] = (uint8_t)(w.out[i] ^ (i == flip ? 1 + draw(255) : 0));
	return w.written;
}

static int fuzz(uint64_t seed, uint32_t rounds)
{
	static uint8_t bytes[STUFFED_MAX];
	static struct deframer host;
	uint32_t count = 0, heard = 0, runs = 0, was_running = 0;

	state = seed << 40;
	generator_begin(&generator);
	for (uint32_t n = 0; n < rounds; n++) {
		if (heard == count) {
			count = draw(4) ? make_bytes(bytes) : draw(100);
			for (uint32_t i = 0; count < 100 && i < count && !draw(8); i++)
				bytes[i] = (uint8_t)draw(256);
			heard = 0;
		}
		heard += generator_hear(&generator, bytes + heard, count - heard);
		put_in(board.now + draw(draw(5) ? 3000 : 100000));
		generator_turn(&generator);
		if (was_running && !generator.desk.running)
			check_end();
		runs += !was_running && generator.desk.running;
		was_running = generator.desk.running;
		/* It reads little, and for long stretches nothing. */
		if (n / 3000 % 3)
			read_out(&host, draw(400));
		if (!draw(5000))
			generator_reconnected(&generator), host.begun = false;
	}
	printf("%" PRIu32 " frames, %" PRIu32 " runs, %" PRIu32 " damaged\n", checked, runs, generator.deframer.damaged);
	return 0;
}

static void print_hex(const uint8_t *bytes, uint32_t count)
{
	while (count--)
		printf("%02x", *bytes++);
}

/* Each frame as `version kind number payload`, and the same written anew. */
static int frames(void)
{
	static char line[16384];

	frame_begin();
	while (fgets(line, sizeof(line), stdin)) {
		struct deframer d = {.begun = false};
		struct frame frame;
		struct writer w;
		unsigned int byte;

		for (char *hex = line; sscanf(hex, "%2x", &byte) == 1; hex += 2) {
			if (!deframer_take(&d, (uint8_t)byte, &frame))
				continue;
			printf("%u %u %u ", frame.version, frame.kind, frame.number);
			print_hex(frame.payload, frame.length);
			writer_begin(&w, frame.kind, frame.number);
			for (uint32_t i = 0; i < frame.length; i++)
				put_u8(&w, frame.payload[i]);
			writer_end(&w);
			printf(" ");
			print_hex(w.out, w.written);
			printf(";");
		}
		printf("%" PRIu32 "\n", d.damaged);
	}
	return 0;
}

static struct schedule read_schedule(char **words)
{
	uint64_t numbers[5];

	for (int i = 0; i < 5; i++)
		numbers[i] = strtoull(words[i], NULL, 10);
	return (struct schedule){
		.phase = numbers[0], .base = numbers[0], .period = numbers[1], .jitter = numbers[2], .seed = numbers[3],
		.count = numbers[4],
	};
}

/* What is planned, taken away as soon as the board has no room for more. */
static int levels(char **words)
{
	static struct plan plan;
	struct schedule s = read_schedule(words);

	plan_begin(&plan, &s, strtoull(words[5], NULL, 10));
	do {
		plan_ahead(&plan);
		for (; board.done != board.put; board.done++)
			printf("%d %" PRIu32 "\n", board.levels[board.done % LEVELS].is_high,
			       board.levels[board.done % LEVELS].ticks);
		plan.tail = plan.head;
	} while (plan.step != PLAN_DONE);
	printf("%s\n", plan.is_beyond ? "beyond" : "end");
	return 0;
}

/* Whoever asks for the self-test hears nothing more: its time never comes. */
static int answer_alone(void)
{
	const uint8_t *bytes;
	uint32_t count;
	int c;

	generator_begin(&generator);
	while ((c = getchar()) != EOF) {
		uint8_t byte = (uint8_t)c;

		generator_hear(&generator, &byte, 1);
		while ((count = outbox_peek(&generator.outbox, &bytes, OUTBOX_BYTES))) {
			fwrite(bytes, 1, count, stdout);
			outbox_taken(&generator.outbox, count);
		}
	}
	return 0;
}

static int instants(char **words)
{
	struct schedule s = read_schedule(words);
	uint64_t due;

	for (; schedule_due(&s, &due) == DUE; schedule_advance(&s))
		printf("%" PRIu64 "\n", due);
	printf("%s\n", schedule_due(&s, &due) == DUE_NONE ? "end" : "beyond");
	return 0;
}

int main(int count, char **words)
{
	if (count == 2 && !strcmp(words[1], "frames"))
		return frames();
	if (count == 2 && !strcmp(words[1], "desk"))
		return answer_alone();
	if (count == 7 && !strcmp(words[1], "schedule"))
		return instants(words + 2);
	if (count == 8 && !strcmp(words[1], "levels"))
		return levels(words + 2);
	if (count == 4 && !strcmp(words[1], "fuzz"))
		return fuzz(strtoull(words[2], NULL, 10), (uint32_t)strtoul(words[3], NULL, 10));
	fprintf(stderr, "usage: host frames|schedule|levels|desk|fuzz\n");
	return 2;
}
