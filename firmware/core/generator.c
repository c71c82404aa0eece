// SPDX-License-Identifier: GPL-2.0-or-later
#include "generator.h"

void generator_begin(struct generator *g)
{
	frame_begin();
	g->deframer = (struct deframer){.begun = false};
	g->outbox.head = g->outbox.tail = 0;
	g->outbox.told = 0;
	g->run.is_going = false;
	g->run.is_test = false;
	desk_begin(&g->desk);
}

static void say(struct generator *g)
{
	outbox_put(&g->outbox, g->writer.out, g->writer.written);
}

static void tell_stopped(struct generator *g)
{
	write_stopped(&g->writer, g->outbox.told++, &g->desk.stopped);
	say(g);
}

static void obey(struct generator *g, const struct frame *frame)
{
	struct answer answer = desk_take(&g->desk, frame, &g->writer);

	if (answer.is_there)
		say(g);
	switch (answer.deed) {
	case DEED_NONE:
		break;
	case DEED_TELL:
		tell_stopped(g);
		break;
	case DEED_RESIZE:
		run_resize(&g->run, &g->desk, &g->outbox, &g->writer);
		break;
	case DEED_START:
		run_begin(&g->run, &g->desk, answer.is_train);
		break;
	case DEED_STOP:
		run_stop(&g->run);
		break;
	case DEED_TEST:
		g->test = answer.number;
		run_begin_test(&g->run);
		break;
	}
}

static bool is_listening(const struct generator *g)
{
	bool is_testing = g->run.is_going && g->run.is_test;

	return !is_testing && outbox_room(&g->outbox) >= ROOM_TO_HEAR;
}

uint32_t generator_hear(struct generator *g, const uint8_t *bytes, uint32_t count)
{
	struct frame frame;
	uint32_t i;

	for (i = 0; i < count && is_listening(g); i++)
		if (deframer_take(&g->deframer, bytes[i], &frame))
			obey(g, &frame);
	return i;
}

/* The answer to `test`: the four numbers, or a fault. */
static void answer_test(struct generator *g)
{
	const struct run *r = &g->run;
	const uint64_t words[4] = {r->matcher.raised, r->offset_least, r->offset_most - r->offset_least, r->late};
	enum fault fault = r->fault;

	if (!fault && r->loops != r->matcher.raised)
		fault = FAULT_NO_LOOP;
	if (fault)
		write_refused(&g->writer, g->test, WHY_FAULT, TEST, fault);
	else
		write_self_test(&g->writer, g->test, words);
	say(g);
}

void generator_turn(struct generator *g)
{
	struct stopped stopped;

	if (!g->run.is_going || !run_turn(&g->run, &g->outbox, &g->writer))
		return;
	if (g->run.is_test) {
		answer_test(g);
		return;
	}
	run_stopped(&g->run, &stopped);
	desk_stopped(&g->desk, &stopped);
	tell_stopped(g);
}

void generator_reconnected(struct generator *g)
{
	static const uint8_t delimiter;

	g->deframer.begun = false;
	outbox_clear(&g->outbox);
	/* What comes next begins a frame, whatever the line holds of the one before. */
	outbox_put(&g->outbox, &delimiter, 1);
	desk_disconnected(&g->desk);
}
