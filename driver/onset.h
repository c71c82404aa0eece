/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the parts of the module share. */
#ifndef ONSET_H
#define ONSET_H

#include <linux/bits.h>
#include <linux/types.h>

/* The responders, each numbered by the data pin that it toggles. */
enum onset_responder {
	ONSET_HARDIRQ,
	ONSET_THREADED_IRQ,
	ONSET_TASKLET,
	ONSET_BH_WORK,
	ONSET_WORK,
	ONSET_WORK_HIGHPRI,
	ONSET_KTHREAD,
	ONSET_TASK,
	ONSET_RESPONDERS
};

/* Holds the names of all responders and the commas between them. */
#define ONSET_NAMES_SIZE	96

/* responders.c: who answers a trigger, and what has been answered. */
bool onset_active(enum onset_responder r);
int onset_list_active(char *buf, size_t size);
void onset_answer(enum onset_responder r);
void onset_trigger(void);
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

/* port.c: the parallel port, which triggers and whose pins are the answers. */
int onset_claim_port(void);
void onset_give_back_port(void);
int onset_connect_port(void);
void onset_disconnect_port(void);
void onset_enable_port(void);
void onset_disable_port(void);
void onset_toggle(enum onset_responder r);

#endif /* ONSET_H */
