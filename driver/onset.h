/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of the module share. */
#ifndef ONSET_H
#define ONSET_H

#include <linux/bits.h>
#include <linux/types.h>

#include "onset_wire.h"

/* Holds the names of all responders and the commas between them. */
#define ONSET_NAMES_SIZE	128

/**
 * struct onset_source - what triggers, and how a trigger is answered
 * @claim: takes what the source needs; nothing triggers yet
 * @release: gives that back; no responder runs any more
 * @connect: from here on the source may trigger
 * @disconnect: waits until it does not trigger any more
 * @enable: lets it trigger, when nothing can fail any more
 * @disable: keeps it from triggering
 * @answer: makes a responder's answer to the triggers from number @first to
 *	    before @taken; all other answers are excluded, interrupts are off
 */
struct onset_source {
	int (*claim)(void);
	void (*release)(void);
	int (*connect)(void);
	void (*disconnect)(void);
	void (*enable)(void);
	void (*disable)(void);
	void (*answer)(enum onset_responder r, u64 first, u64 taken);
};

/* main.c: the one that was chosen, fixed before the first trigger. */
extern const struct onset_source *onset_source;

/* responders.c: who answers a trigger, and what has been answered. */
bool onset_active(enum onset_responder r);
const char *onset_name(enum onset_responder r);
int onset_list_active(char *buf, size_t size);
int onset_list_without_data_pin(char *buf, size_t size);
void onset_answer(enum onset_responder r);
void onset_trigger(u64 triggers);
bool onset_needs_thread(void);
void onset_run_in_thread(void);
u64 onset_give_up(u64 unanswered[ONSET_RESPONDERS]);
int onset_start_responders(void);
void onset_stop_responders(void);

bool onset_is_unseen(void);
bool onset_see(u64 *taken);
void onset_see_answered(void);

/* task.c: the device of the task responder. */
int onset_register_task(void);
void onset_deregister_task(void);
void onset_wake_task(void);
void onset_sync_task(void);

/* interrupt.c: the handlers of a line that something outside raises. */
extern bool onset_threaded;
int onset_connect_interrupt(unsigned int irq, unsigned long edge);
void onset_disconnect_interrupt(unsigned int irq);

/* gpio.c: GPIO lines, one of which triggers while the others are the answers. */
extern const struct onset_source onset_gpio_source;

/* timer.c: a high-resolution timer, and a clock for the answers. */
extern const struct onset_source onset_timer_source;
int onset_start_timer(void);
void onset_stop_timer(void);

/* samples.c: what the timer's triggers and the answers to them yield. */
int onset_register_samples(void);
void onset_deregister_samples(void);
void onset_allow_samples(void);
void onset_begin_samples(u64 due_ns, u64 period_ns);
void onset_end_samples(int end);
void onset_sample(enum onset_responder r, u64 first, u64 taken);

#ifdef ONSET_HAS_IOPORT
/* port.c: the parallel port, which triggers and whose pins are the answers. */
extern const struct onset_source onset_port_source;

/* disturbance.c: interrupts that nobody answers. */
int onset_connect_disturbance(void);
void onset_disconnect_disturbance(void);
#else
static inline int onset_connect_disturbance(void) { return 0; }
static inline void onset_disconnect_disturbance(void) { }
#endif

#endif /* ONSET_H */
