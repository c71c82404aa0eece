// SPDX-License-Identifier: GPL-2.0-or-later
#include "desk.h"

struct range {
	uint64_t least, most;
};

/* Of each setting; every step is 1. */
static const struct range limits[SETTINGS + 1] = {
	[PERIOD] = {GAP, LONGEST},
	[HIGH] = {LEVEL_LEAST, LONGEST},
	[BATCH_SIZE] = {1, BATCH_MAX},
	[COUNT] = {1, FOREVER},
	[JITTER] = {0, LONGEST},
	[SEED] = {0, UINT64_MAX},
	[PHASE] = {0, LONGEST},
	[MEASURED] = {1, (1 << RESPONDERS) - 1},
	[GRACE] = {0, LONGEST},
	[AGE] = {TICKS_A_MICRO * 1000, LONGEST},
};

/* A millisecond from trigger to trigger, high for 10 µs, batches at least every 0.1 s. */
static const uint64_t defaults[SETTINGS + 1] = {
	[PERIOD] = 125000, [HIGH] = 1250, [BATCH_SIZE] = BATCH_MAX, [COUNT] = FOREVER, [JITTER] = 0, [SEED] = 1,
	[PHASE] = 125000, [MEASURED] = (1 << RESPONDERS) - 1, [GRACE] = 12500000, [AGE] = 12500000,
};

static const char name[32] = "onset generator on RP2040";

/* What is being answered. */
struct answering {
	struct desk *desk;
	const struct frame *frame;
	struct writer *w;
	struct answer answer;
};

void desk_begin(struct desk *d)
{
	for (int i = 0; i <= SETTINGS; i++)
		d->values[i] = defaults[i];
	d->is_identified = false;
	d->running = d->last = d->held = 0;
	d->shortest = UINT64_MAX;
	d->has_stopped = false;
}

/* Without limits where `range` is NULL. */
static void refuse(struct answering *a, enum why why, uint8_t setting, uint64_t value, const struct range *range)
{
	writer_begin(a->w, REFUSED, a->frame->number);
	put_u8(a->w, (uint8_t)why);
	put_u8(a->w, a->frame->kind);
	put_u8(a->w, setting);
	put_zeros(a->w, 5);
	put_u64(a->w, value);
	put_u64(a->w, range ? range->least : 0);
	put_u64(a->w, range ? range->most : 0);
	put_u64(a->w, range ? 1 : 0);
	writer_end(a->w);
	a->answer.is_there = true;
}

static void refuse_plainly(struct answering *a, enum why why, uint64_t value)
{
	refuse(a, why, 0, value, NULL);
}

static void accept(struct answering *a, uint8_t setting, uint64_t value)
{
	writer_begin(a->w, ACCEPTED, a->frame->number);
	put_u8(a->w, a->frame->kind);
	put_u8(a->w, setting);
	put_zeros(a->w, 6);
	put_u64(a->w, value);
	writer_end(a->w);
	a->answer.is_there = true;
}

static bool are_zeros(const uint8_t *bytes, uint32_t count)
{
	while (count--)
		if (*bytes++)
			return false;
	return true;
}

static void write_identity(struct answering *a)
{
	struct desk *d = a->desk;
	struct writer *w = a->w;

	writer_begin(w, IDENTITY, a->frame->number);
	put_u8(w, 2);
	put_zeros(w, 3);
	put_u32(w, d->running);
	put_u32(w, TICK_NANOS);
	put_u32(w, 1);
	put_u32(w, ACCURACY_PPB);
	put_u32(w, d->held);
	put_u64(w, RESOLUTION);
	for (uint8_t i = 0; i < PINS_TOLD; i++)
		put_u8(w, i < RESPONDERS ? i : NOBODY);
	put_u64(w, GAP);
	put_u32(w, TRAIN_MOST);
	put_u32(w, 0);
	for (uint32_t i = 0; i < sizeof(name); i++)
		put_u8(w, (uint8_t)name[i]);
	for (int i = 1; i <= SETTINGS; i++) {
		put_u64(w, d->values[i]);
		put_u64(w, limits[i].least);
		put_u64(w, limits[i].most);
		put_u64(w, 1);
	}
	writer_end(w);
	a->answer.is_there = true;
}

static void identify(struct answering *a)
{
	uint8_t oldest, newest;

	if (a->frame->length != 2) {
		refuse_plainly(a, WHY_MALFORMED, 0);
		return;
	}
	oldest = a->frame->payload[0];
	newest = a->frame->payload[1];
	a->desk->is_identified = false;
	if (oldest > newest || oldest > VERSION || newest < VERSION) {
		refuse(a, WHY_VERSION, 0, newest, &(struct range){VERSION, VERSION});
		return;
	}
	a->desk->is_identified = true;
	write_identity(a);
	if (!a->desk->running && a->desk->has_stopped)
		a->answer.deed = DEED_TELL;
}

/* Refuses where a run goes on. */
static bool is_idle(struct answering *a)
{
	if (a->desk->running)
		refuse_plainly(a, WHY_RUNNING, a->desk->running);
	return !a->desk->running;
}

static void set(struct answering *a)
{
	const uint8_t *payload = a->frame->payload;
	uint8_t setting;
	uint64_t value;
	bool is_of_batches, is_outside;

	if (a->frame->length != 16) {
		refuse_plainly(a, WHY_MALFORMED, 0);
		return;
	}
	setting = payload[0];
	value = get_u64(payload + 8);
	if (setting < 1 || setting > SETTINGS) {
		refuse(a, WHY_UNKNOWN_SETTING, 0, setting, &(struct range){1, SETTINGS});
		return;
	}
	if (!are_zeros(payload + 1, 7)) {
		refuse_plainly(a, WHY_MALFORMED, 0);
		return;
	}
	is_of_batches = setting == BATCH_SIZE || setting == AGE;
	if (!is_of_batches && !is_idle(a))
		return;
	is_outside = value < limits[setting].least || value > limits[setting].most;
	if (is_outside) {
		refuse(a, WHY_OUTSIDE, setting, value, &limits[setting]);
		return;
	}
	a->desk->values[setting] = value;
	accept(a, setting, value);
	if (is_of_batches && a->desk->running)
		a->answer.deed = DEED_RESIZE;
}

/* Refuses a time of a train that does not fit behind the one before; `shortest` becomes the shortest gap. */
static bool has_order(struct answering *a, uint64_t before, uint64_t time, uint64_t *shortest)
{
	uint64_t gap = time - before, least;

	if (time < before || gap < GAP) {
		if (__builtin_add_overflow(before, GAP, &least))
			least = UINT64_MAX;
		refuse(a, WHY_ORDER, 0, time, &(struct range){least, UINT64_MAX});
		return false;
	}
	if (gap < *shortest)
		*shortest = gap;
	return true;
}

static void train(struct answering *a)
{
	struct desk *d = a->desk;
	const uint8_t *payload = a->frame->payload;
	uint32_t first, count, held;
	uint64_t shortest;

	if (a->frame->length < 8 || a->frame->length % 8 || a->frame->length > 8 + 8 * TRAIN_PIECE ||
	    !are_zeros(payload + 4, 4)) {
		refuse_plainly(a, WHY_MALFORMED, 0);
		return;
	}
	if (!is_idle(a))
		return;
	first = get_u32(payload);
	count = a->frame->length / 8 - 1;
	held = first ? d->held : 0;
	shortest = first ? d->shortest : UINT64_MAX;
	if (first != held) {
		refuse(a, WHY_PLACE, 0, first, &(struct range){held, held});
		return;
	}
	if (count > TRAIN_MOST - held) {
		refuse(a, WHY_OUTSIDE, 0, TRAIN_MOST + 1, &(struct range){0, TRAIN_MOST});
		return;
	}
	/* All are looked at before one is kept: a piece that is refused changes nothing. */
	for (uint32_t i = 0; i < count; i++) {
		uint64_t time = get_u64(payload + 8 + 8 * i);
		bool is_first = !held && !i;
		uint64_t before = is_first ? 0 : i ? get_u64(payload + 8 * i) : d->train[held - 1];

		if (!is_first && !has_order(a, before, time, &shortest))
			return;
	}
	for (uint32_t i = 0; i < count; i++)
		d->train[held + i] = get_u64(payload + 8 + 8 * i);
	d->held = held + count;
	d->shortest = shortest;
	accept(a, 0, d->held);
}

/* The settings agree with each other, or the first that does not is refused, in the order of the protocol's page. */
static bool do_settings_agree(struct answering *a, bool is_train)
{
	struct desk *d = a->desk;
	uint64_t period = d->values[PERIOD], jitter = d->values[JITTER], high = d->values[HIGH], shortest;

	if (is_train) {
		if (!d->held) {
			refuse(a, WHY_NO_TRAIN, 0, 0, &(struct range){1, TRAIN_MOST});
			return false;
		}
		shortest = d->shortest;
	} else if (d->values[COUNT] == 1) {
		shortest = UINT64_MAX;
	} else {
		if (jitter > period - GAP) {
			refuse(a, WHY_OUTSIDE, JITTER, jitter, &(struct range){0, period - GAP});
			return false;
		}
		shortest = period - jitter;
	}
	/* The low level needs as many ticks as any level does. */
	if (high > shortest - LEVEL_LEAST) {
		refuse(a, WHY_OUTSIDE, HIGH, high, &(struct range){LEVEL_LEAST, shortest - LEVEL_LEAST});
		return false;
	}
	return true;
}

static void start(struct answering *a)
{
	struct desk *d = a->desk;
	bool is_train;

	if (a->frame->length != 1 || a->frame->payload[0] > 1) {
		refuse_plainly(a, WHY_MALFORMED, 0);
		return;
	}
	is_train = a->frame->payload[0] == 1;
	if (!is_idle(a) || !do_settings_agree(a, is_train))
		return;
	d->last = d->last == UINT32_MAX ? 1 : d->last + 1;
	d->running = d->last;
	d->has_stopped = false;
	writer_begin(a->w, STARTED, a->frame->number);
	put_u32(a->w, d->running);
	put_u8(a->w, is_train);
	put_zeros(a->w, 3);
	put_u32(a->w, is_train ? d->held : 0);
	put_u32(a->w, 0);
	for (int i = 1; i <= SETTINGS; i++)
		put_u64(a->w, d->values[i]);
	writer_end(a->w);
	a->answer.is_there = true;
	a->answer.is_train = is_train;
	a->answer.deed = DEED_START;
}

/* A command without a payload. */
static bool has_no_payload(struct answering *a)
{
	if (a->frame->length)
		refuse_plainly(a, WHY_MALFORMED, 0);
	return !a->frame->length;
}

static void obey(struct answering *a)
{
	switch (a->frame->kind) {
	case SET:
		set(a);
		break;
	case TRAIN:
		train(a);
		break;
	case START:
		start(a);
		break;
	case STOP:
		if (!has_no_payload(a))
			break;
		if (!a->desk->running) {
			refuse_plainly(a, WHY_NOT_RUNNING, 0);
			break;
		}
		accept(a, 0, 0);
		a->answer.deed = DEED_STOP;
		break;
	case TEST:
		if (has_no_payload(a) && is_idle(a))
			a->answer.deed = DEED_TEST;
		break;
	default:
		refuse_plainly(a, WHY_UNKNOWN_COMMAND, 0);
	}
}

struct answer desk_take(struct desk *d, const struct frame *frame, struct writer *w)
{
	struct answering a = {d, frame, w, {.number = frame->number}};
	bool is_known = frame->kind >= IDENTIFY && frame->kind <= TEST;

	/* The line echoes what was said here, or nobody needs the frame. */
	if (frame->kind & KIND_OF_GENERATOR || (!is_known && frame->kind & KIND_OPTIONAL && frame->version == VERSION))
		return a.answer;
	if (frame->kind == IDENTIFY)
		identify(&a);
	else if (!d->is_identified || frame->version != VERSION)
		refuse_plainly(&a, WHY_UNIDENTIFIED, 0);
	else
		obey(&a);
	return a.answer;
}

void desk_stopped(struct desk *d, const struct stopped *stopped)
{
	d->running = 0;
	d->has_stopped = true;
	d->stopped = *stopped;
}

void desk_disconnected(struct desk *d)
{
	d->is_identified = false;
}

void write_tallies(struct writer *w, uint8_t mask, const struct tally *tallies)
{
	for (int i = 0; i < RESPONDERS; i++) {
		const struct tally *t = &tallies[i];

		if (!(mask >> i & 1))
			continue;
		put_u64(w, t->measured);
		put_u64(w, t->unanswered);
		put_u64(w, t->superseded);
		put_u64(w, t->spurious);
		put_u64(w, t->tainted);
		put_u64(w, t->dropped);
		put_u64(w, t->overrun);
	}
}

void write_stopped(struct writer *w, uint16_t number, const struct stopped *s)
{
	writer_begin(w, STOPPED, number);
	put_u32(w, s->run);
	put_u8(w, (uint8_t)s->why);
	put_u8(w, 0);
	put_u16(w, s->mask);
	put_u16(w, (uint16_t)s->fault);
	put_zeros(w, 6);
	put_u64(w, s->triggers);
	put_u64(w, s->at);
	write_tallies(w, s->mask, s->tallies);
	writer_end(w);
}

void write_self_test(struct writer *w, uint16_t number, const uint64_t words[4])
{
	writer_begin(w, SELF_TEST, number);
	for (int i = 0; i < 4; i++)
		put_u64(w, words[i]);
	writer_end(w);
}

void write_refused(struct writer *w, uint16_t number, enum why why, uint8_t kind, uint64_t value)
{
	struct frame frame = {.kind = kind, .number = number};
	struct answering a = {NULL, &frame, w, {0}};

	refuse_plainly(&a, why, value);
}
