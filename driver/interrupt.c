// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The interrupt of a line that something outside raises, be it nACK of a
 * parallel port or a GPIO line: the hard handler, and the handler's thread.
 *
 * On PREEMPT_RT the hard handler stays hard (IRQF_NO_THREAD), unless the
 * parameter `threaded` is set.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/interrupt.h>
#include <linux/moduleparam.h>

#include "onset.h"

bool onset_threaded;
module_param_named(threaded, onset_threaded, bool, 0444);
MODULE_PARM_DESC(threaded, "port, gpio: let PREEMPT_RT make the hard handler a thread (default N)");

static irqreturn_t onset_run_threaded_irq(int line, void *unused)
{
	onset_run_in_thread();
	/* Also with nothing to answer: the core counts it against "nobody cared". */
	return IRQ_HANDLED;
}

/**
 * onset_run_hardirq() - the hard handler
 * @line: the interrupt
 * @unused: nothing
 *
 * Every call counts as a trigger. Neither nACK nor a GPIO line is latched where
 * the handler could ask, and edges that come at once are one interrupt. A line
 * that is edge triggered cannot be shared, so IRQF_SHARED is not asked for. The
 * 8259 signals its spurious interrupts as interrupt 7: where the PIC is used,
 * one of them makes edges that the instrument counts as answers to nothing.
 * IRQ_NONE for them would be a guess.
 *
 * Return: IRQ_WAKE_THREAD when the thread has something to do, else IRQ_HANDLED.
 */
static irqreturn_t onset_run_hardirq(int line, void *unused)
{
	onset_trigger(1);
	return onset_needs_thread() ? IRQ_WAKE_THREAD : IRQ_HANDLED;
}

/**
 * onset_connect_interrupt() - have the interrupt handled
 * @irq: the interrupt
 * @edge: IRQF_TRIGGER_RISING or _FALLING; 0 leaves the line as it is set up
 *
 * Return: 0, or the error of request_threaded_irq().
 */
int onset_connect_interrupt(unsigned int irq, unsigned long edge)
{
	irq_handler_t thread_fn = onset_needs_thread() ? onset_run_threaded_irq : NULL;
	unsigned long flags = edge | (onset_threaded ? 0 : IRQF_NO_THREAD);

	return request_threaded_irq(irq, onset_run_hardirq, thread_fn, flags, KBUILD_MODNAME,
				    &onset_threaded);
}

/**
 * onset_disconnect_interrupt() - wait for the hard handler and for threaded_irq
 * @irq: the interrupt
 */
void onset_disconnect_interrupt(unsigned int irq)
{
	free_irq(irq, &onset_threaded);
}
