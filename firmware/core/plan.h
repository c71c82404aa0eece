/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Ahead of time: from the schedule to levels of the line, and which triggers are on their way. */
#ifndef PLAN_H
#define PLAN_H

#include "board.h"
#include "schedule.h"

/* A power of two: triggers on their way, raised ones whose edge was not yet taken, and instants that are skipped. */
#define PLANNED_MOST	2048u
/* From board_go to an instant at 0. */
#define LEAD		1250u

struct planned {
	uint64_t number, due;
	bool is_skipped;	/* nothing is raised at this instant */
};

enum plan_step { PLAN_NEXT, PLAN_SKIP, PLAN_LOW, PLAN_HIGH, PLAN_DONE };

struct plan {
	struct schedule schedule;
	uint64_t high;
	enum plan_step step;
	uint64_t left;		/* ticks of the level that is being put */
	bool is_first;		/* nothing is raised yet */
	uint64_t fell;		/* when the line falls last, of what was put */
	uint64_t due;
	bool is_beyond;		/* the schedule goes on after 2^64 - 1 ticks */
	struct planned planned[PLANNED_MOST];
	uint32_t head, tail;
};

void plan_begin(struct plan *p, const struct schedule *schedule, uint64_t high);
/* Puts as much as there is room for. */
void plan_ahead(struct plan *p);
/* The first that is on its way; NULL where none is. */
const struct planned *plan_first(const struct plan *p);
void plan_drop_first(struct plan *p);

#endif
