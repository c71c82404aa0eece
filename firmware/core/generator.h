/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The whole of the protocol's side: bytes in, bytes out, runs and self-tests in between. */
#ifndef GENERATOR_H
#define GENERATOR_H

#include "run.h"

struct generator {
	struct deframer deframer;
	struct writer writer;
	struct desk desk;
	struct outbox outbox;
	struct run run;
	uint16_t test;		/* the number of the command that asked for the self-test that goes on */
};

void generator_begin(struct generator *g);
/* Takes bytes of the host. How many: fewer than there are where an answer waits for room. */
uint32_t generator_hear(struct generator *g, const uint8_t *bytes, uint32_t count);
/* To be called again and again. What is to be said then lies in `outbox`. */
void generator_turn(struct generator *g);
/* Somebody else may be at the other end. */
void generator_reconnected(struct generator *g);

#endif
