// SPDX-License-Identifier: GPL-2.0-or-later
#include "plan.h"

/* A level that lasts longer goes to the board in pieces; what is left behind a piece is long enough for another. */
#define PIECE	(1u << 30)
/* Of 224 words: at 100 kHz the rest lasts for 0.6 ms at the least, within which the processor comes by again. */
#define ROOM_TO_SKIP	96u

void plan_begin(struct plan *p, const struct schedule *schedule, uint64_t high)
{
	p->schedule = *schedule;
	p->high = high;
	p->step = PLAN_NEXT;
	p->is_first = true;
	p->fell = 0;
	p->is_beyond = false;
	p->head = p->tail = 0;
}

const struct planned *plan_first(const struct plan *p)
{
	return p->head == p->tail ? NULL : &p->planned[p->tail % PLANNED_MOST];
}

void plan_drop_first(struct plan *p)
{
	p->tail++;
}

static void remember(struct plan *p, uint64_t due, bool is_skipped)
{
	p->planned[p->head++ % PLANNED_MOST] = (struct planned){p->schedule.next, due, is_skipped};
}

/* Before the first trigger. An instant that nobody lives to see does not become one of now. */
static uint64_t after_lead(uint64_t due)
{
	return due > UINT64_MAX - LEAD ? UINT64_MAX : due + LEAD;
}

/* Takes the next instant. False where there is none, or no room to remember it. */
static bool take_next(struct plan *p)
{
	enum due due;
	bool is_behind;

	if (p->head - p->tail == PLANNED_MOST)
		return false;
	due = schedule_due(&p->schedule, &p->due);
	if (due != DUE) {
		p->is_beyond = due == DUE_BEYOND;
		p->step = PLAN_DONE;
		return false;
	}
	/*
	 * Raising it would cause more edges than are taken. The line stays low, and the instant counts as overrun; but
	 * only where the line needs something to do, because the edges may have been taken until then.
	 */
	is_behind = board_is_behind();
	if (is_behind && board_room() < ROOM_TO_SKIP)
		return false;
	p->left = p->is_first ? after_lead(p->due) : p->due - p->fell;
	p->step = is_behind ? PLAN_SKIP : PLAN_LOW;
	return true;
}

/* Puts the level that is left, in pieces. False where there is no room for all of it. */
static bool put_level(struct plan *p, bool is_high)
{
	while (p->left) {
		uint32_t ticks = p->left > SEGMENT_MOST ? PIECE : (uint32_t)p->left;

		if (!board_room())
			return false;
		board_put(is_high, ticks);
		p->left -= ticks;
	}
	return true;
}

void plan_ahead(struct plan *p)
{
	for (;;) {
		switch (p->step) {
		case PLAN_NEXT:
			if (!take_next(p))
				return;
			break;
		case PLAN_SKIP:
			if (!put_level(p, false))
				return;
			remember(p, p->due, true);
			schedule_advance(&p->schedule);
			p->fell = p->due;
			p->is_first = false;
			p->step = PLAN_NEXT;
			break;
		case PLAN_LOW:
			if (!put_level(p, false))
				return;
			remember(p, p->due, false);
			schedule_advance(&p->schedule);
			p->left = p->high;
			p->fell = p->due + p->high;
			p->is_first = false;
			p->step = PLAN_HIGH;
			break;
		case PLAN_HIGH:
			if (!put_level(p, true))
				return;
			p->step = PLAN_NEXT;
			break;
		case PLAN_DONE:
			return;
		}
	}
}
