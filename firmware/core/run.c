// SPDX-License-Identifier: GPL-2.0-or-later
#include "run.h"

/* What is taken in one turn, at the most: the line to the host is served in between. */
#define SAMPLES_A_TURN	16
#define MEASUREMENTS_A_TURN	3
/* The line's own edge is seen within this time of its instant, or something is wrong with the line. 1 ms. */
#define EDGE_MOST	(1000u * TICKS_A_MICRO)
/* What was on its way when the line was halted has been captured after this time. 20 µs. */
#define SETTLED		(20u * TICKS_A_MICRO)

/* The self-test: 256 triggers, an odd number of ticks apart, so that both phases of the capture are met. */
#define TEST_COUNT	256u
#define TEST_PERIOD	2501u
#define TEST_HIGH	625u

static void begin(struct run *r, const struct schedule *schedule, uint64_t high, uint8_t mask)
{
	r->level = board_prepare();
	r->has_zero = r->is_ending = r->is_halted = false;
	r->heard = r->overrun = r->first = r->since = 0;
	r->held = 0;
	r->fault = FAULT_NONE;
	matcher_begin(&r->matcher, mask);
	plan_begin(&r->plan, schedule, high);
	plan_ahead(&r->plan);
	board_go();
	r->zero = board_now() + LEAD;
	r->is_going = true;
}

void run_begin(struct run *r, const struct desk *d, bool is_train)
{
	struct schedule schedule = {
		.is_train = is_train, .period = d->values[PERIOD], .jitter = d->values[JITTER],
		.seed = d->values[SEED], .phase = d->values[PHASE], .base = d->values[PHASE],
		.count = is_train ? d->held : d->values[COUNT], .train = d->train,
	};

	r->is_test = false;
	r->number = d->running;
	r->grace = d->values[GRACE];
	r->age = d->values[AGE];
	r->size = (uint32_t)d->values[BATCH_SIZE];
	begin(r, &schedule, d->values[HIGH], (uint8_t)d->values[MEASURED]);
}

void run_begin_test(struct run *r)
{
	struct schedule schedule = {.period = TEST_PERIOD, .count = TEST_COUNT};

	r->is_test = true;
	r->number = 0;
	r->grace = SETTLED;
	r->age = LONGEST;
	r->size = BATCH_MAX;
	r->late = r->offset_most = r->loops = 0;
	r->offset_least = UINT64_MAX;
	begin(r, &schedule, TEST_HIGH, 0);
}

/* Ends the run: nothing more is raised, and answers are waited for until `end`, in the time of the board. */
static void end(struct run *r, enum ended why, uint64_t at)
{
	if (r->is_ending)
		return;
	r->is_ending = true;
	r->why = why;
	r->end = at + r->grace;
}

static void fail(struct run *r, enum fault fault)
{
	if (r->fault)
		return;
	board_halt();
	r->fault = fault;
	r->is_ending = true;
	r->why = ENDED_FAULT;
	r->end = 0;
}

static void hear(struct run *r, uint64_t at)
{
	uint64_t heard = at > r->zero ? at - r->zero : 0;

	if (r->has_zero && heard > r->heard)
		r->heard = heard;
}

static void send_batch(struct run *r, struct outbox *o, struct writer *w)
{
	writer_begin(w, BATCH, o->told++);
	put_u32(w, r->number);
	put_u16(w, r->matcher.mask);
	put_u8(w, (uint8_t)r->held);
	put_u8(w, 0);
	put_u64(w, r->first);
	put_u64(w, r->matcher.raised + r->overrun);
	put_u64(w, r->heard);
	write_tallies(w, r->matcher.mask, r->matcher.tallies);
	for (uint32_t i = 0; i < r->held; i++) {
		const struct measurement *m = &r->measurements[i];

		put_u64(w, m->number);
		put_u64(w, m->at);
		put_u64(w, m->latency | (uint64_t)m->responder << 56);
	}
	writer_end(w);
	r->first += r->held;
	r->held = 0;
	r->since = r->heard;
	outbox_put(o, w->out, w->written);
}

/* Sends what is held, or throws it away and counts it where there is no room. */
static void flush(struct run *r, struct outbox *o, struct writer *w)
{
	if (outbox_room(o) >= STUFFED_MAX + ROOM_BESIDE_BATCH) {
		send_batch(r, o, w);
		return;
	}
	for (uint32_t i = 0; i < r->held; i++)
		r->matcher.tallies[r->measurements[i].responder].dropped++;
	o->told++;
	r->first += r->held;
	r->held = 0;
	r->since = r->heard;
}

static void measure(struct run *r, const struct measurement *m)
{
	r->matcher.tallies[m->responder].measured++;
	if (!r->held)
		r->since = r->heard;
	r->measurements[r->held++] = *m;
}

static void count_skipped(struct run *r)
{
	r->overrun++;
	for (int i = 0; i < RESPONDERS; i++)
		r->matcher.tallies[i].overrun++;
	plan_drop_first(&r->plan);
}

/* The line rose: it is the next trigger that is on its way, at the instant that the schedule has. */
static void rise(struct run *r, uint64_t at)
{
	const struct planned *next;
	struct trigger trigger = {.is_there = true, .seen = at};
	int64_t late;

	while ((next = plan_first(&r->plan)) && next->is_skipped)
		count_skipped(r);
	if (!next) {
		fail(r, FAULT_LINE);
		return;
	}
	if (!r->has_zero) {
		r->zero = at - next->due;
		r->has_zero = true;
	}
	late = (int64_t)(at - r->zero - next->due);
	if (late > (int64_t)RESOLUTION || late < -(int64_t)RESOLUTION) {
		fail(r, FAULT_LINE);
		return;
	}
	if (late > 0 && (uint64_t)late > r->late)
		r->late = (uint64_t)late;
	r->seen = at;
	trigger.number = next->number;
	trigger.at = next->due;
	plan_drop_first(&r->plan);
	hear(r, at);
	matcher_raise(&r->matcher, &trigger);
}

static void loop_rise(struct run *r, uint64_t at)
{
	uint64_t offset = at - r->seen;

	if (!r->has_zero)
		return;
	r->loops++;
	if (offset < r->offset_least)
		r->offset_least = offset;
	if (offset > r->offset_most)
		r->offset_most = offset;
}

static void take(struct run *r, const struct sample *s, struct outbox *o, struct writer *w)
{
	uint32_t changed = s->level ^ r->level, rose = changed & s->level, edges = changed & LEVEL_ANSWERS;

	r->level = s->level;
	hear(r, s->at);
	/* In the order of pins: an edge of the hard handler counts for those seen with it. Answers come before a trigger
	 * that is seen with them, because nobody answers within one sample. */
	for (uint8_t pin = 0; edges; pin++, edges >>= 1) {
		struct measurement m;

		if (!(edges & 1) || !matcher_edge(&r->matcher, pin, s->at, &m))
			continue;
		measure(r, &m);
		if (r->held >= r->size)
			flush(r, o, w);
	}
	if (rose & LEVEL_LINE)
		rise(r, s->at);
	if (rose & LEVEL_LOOP && r->is_test)
		loop_rise(r, s->at);
}

void run_resize(struct run *r, const struct desk *d, struct outbox *o, struct writer *w)
{
	r->size = (uint32_t)d->values[BATCH_SIZE];
	r->age = d->values[AGE];
	if (r->is_going && r->held >= r->size)
		flush(r, o, w);
}

void run_stop(struct run *r)
{
	if (r->is_ending || r->is_halted)
		return;
	board_halt();
	r->is_halted = true;
	r->halted = board_now();
}

/* After a stop: the samples of everything that was raised are there, and what was planned beyond is forgotten. */
static void settle(struct run *r, uint64_t now)
{
	const struct planned *next;
	uint64_t since = r->halted > r->zero ? r->halted - r->zero : 0;

	if (now - r->halted < SETTLED)
		return;
	while ((next = plan_first(&r->plan)) && next->is_skipped && next->due <= since)
		count_skipped(r);
	r->plan.tail = r->plan.head;
	r->plan.step = PLAN_DONE;
	end(r, ENDED_ASKED, r->halted);
}

/* What time alone brings. All samples have been taken. */
static void pass(struct run *r, uint64_t now)
{
	const struct planned *next = plan_first(&r->plan);
	uint64_t since = now > r->zero ? now - r->zero : 0;

	if (r->is_halted) {
		if (!r->is_ending)
			settle(r, now);
		return;
	}
	if (next && next->is_skipped && next->due <= since)
		count_skipped(r);
	else if (next && !next->is_skipped && since > next->due && since - next->due > EDGE_MOST)
		fail(r, FAULT_LINE);
	else if (!next && r->plan.step == PLAN_DONE)
		end(r, r->plan.is_beyond ? ENDED_CLOCK : ENDED_COMPLETE, r->zero + r->heard);
}

static bool has_ended(const struct run *r, uint64_t now)
{
	if (!r->is_ending)
		return false;
	return now >= r->end || (matcher_is_complete(&r->matcher) && !r->is_test);
}

/* Measurements so far, modulo 2^32. */
static uint32_t made(const struct run *r)
{
	return (uint32_t)r->first + r->held;
}

bool run_turn(struct run *r, struct outbox *o, struct writer *w)
{
	struct sample sample;
	uint64_t now = board_now();
	uint32_t before = made(r);
	bool is_drained = false;

	for (int i = 0; i < SAMPLES_A_TURN && made(r) - before < MEASUREMENTS_A_TURN && !r->fault && !is_drained; i++) {
		is_drained = !board_sample(&sample);
		if (!is_drained)
			take(r, &sample, o, w);
	}
	if (board_overran())
		fail(r, FAULT_CAPTURE);
	if (!r->is_halted && !r->fault && r->plan.step != PLAN_DONE) {
		if (board_ran_dry())
			fail(r, FAULT_DRY);
		else
			plan_ahead(&r->plan);
	}
	if (is_drained && !r->fault) {
		pass(r, now);
		hear(r, now);
	}
	if (r->fault || (is_drained && has_ended(r, now))) {
		matcher_end(&r->matcher);
		if (r->held && !r->is_test)
			flush(r, o, w);
		board_halt();
		r->is_going = false;
		return true;
	}
	if (r->heard - r->since >= r->age && r->has_zero)
		flush(r, o, w);
	return false;
}

void run_stopped(const struct run *r, struct stopped *s)
{
	*s = (struct stopped){
		.run = r->number, .why = r->why, .fault = r->fault, .mask = r->matcher.mask,
		.triggers = r->matcher.raised + r->overrun, .at = r->heard,
	};
	for (int i = 0; i < RESPONDERS; i++)
		s->tallies[i] = r->matcher.tallies[i];
}
