// SPDX-License-Identifier: GPL-2.0-or-later
#include "matcher.h"

#define HARDIRQ	0

void matcher_begin(struct matcher *m, uint8_t mask)
{
	*m = (struct matcher){.mask = mask};
}

void matcher_raise(struct matcher *m, const struct trigger *trigger)
{
	if (!m->untaken.is_there)
		m->untaken = *trigger;
	for (int i = 0; i < RESPONDERS; i++)
		if (m->mask >> i & 1 && !m->waits[i].trigger.is_there)
			m->waits[i].trigger = *trigger;
	m->raised++;
}

bool matcher_edge(struct matcher *m, uint8_t responder, uint64_t seen, struct measurement *measurement)
{
	struct wait *wait = &m->waits[responder];
	struct tally *tally = &m->tallies[responder];
	struct trigger trigger = wait->trigger;
	uint64_t latency, first = wait->first;
	bool is_measured;

	if (!(m->mask >> responder & 1))
		return false;
	if (responder == HARDIRQ || !(m->mask >> HARDIRQ & 1)) {
		m->taken = m->raised;
		m->untaken.is_there = false;
	}
	if (!trigger.is_there || first >= m->taken) {
		tally->spurious++;
		return false;
	}
	tally->superseded += m->taken - first - 1;
	wait->first = m->taken;
	wait->trigger = m->untaken;
	latency = seen - trigger.seen;
	is_measured = seen >= trigger.seen && latency < LATENCY_END;
	if (!is_measured)
		tally->tainted++;
	*measurement = (struct measurement){trigger.number, trigger.at, latency, responder};
	return is_measured;
}

bool matcher_is_complete(const struct matcher *m)
{
	for (int i = 0; i < RESPONDERS; i++)
		if (m->mask >> i & 1 && m->waits[i].first != m->raised)
			return false;
	return true;
}

void matcher_end(struct matcher *m)
{
	for (int i = 0; i < RESPONDERS; i++) {
		m->tallies[i].unanswered += m->raised - m->waits[i].first;
		m->waits[i] = (struct wait){.first = m->raised};
	}
}
