// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Disturbances: a second device, whose interrupt nobody answers and which takes
 * the CPU's time. The handler does the least that a handler can: it reads its
 * device's one register, which acknowledges. The register also says how many
 * high-resolution timers to start. All of them expire at one instant, each with
 * a callback that only counts: a burst of timers, like that of many sleepers.
 *
 * Handler and callbacks run in hard interrupt context on every kernel
 * (IRQF_NO_THREAD, HRTIMER_MODE_HARD), so a disturbance is the same on
 * PREEMPT_RT. Without high resolution (highres=off) timers expire at the tick.
 *
 * The device exists in the virtual rig only (crates/plugin/src/disturbance.rs).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/ktime.h>
#include <linux/moduleparam.h>
#include <linux/timekeeping.h>
#include <linux/version.h>

#include "onset.h"
#include "onset_port.h"

/**
 * struct onset_disturbance - the one device
 * @timers: the burst; where fewer are asked for, the first ones are started
 * @taken: interrupts that were acknowledged
 * @expired: timers that have expired
 */
struct onset_disturbance {
	struct hrtimer timers[ONSET_DISTURBANCE_TIMERS];
	u64 taken;
	atomic64_t expired;
};

static struct onset_disturbance disturbance;

static unsigned int disturbance_irq;
module_param_hw(disturbance_irq, uint, irq, 0444);
MODULE_PARM_DESC(disturbance_irq, "interrupt of the rig's second device (default 0: leave the device alone)");

static enum hrtimer_restart onset_expire_in_burst(struct hrtimer *unused)
{
	atomic64_inc(&disturbance.expired);
	return HRTIMER_NORESTART;
}

/**
 * onset_take_disturbance() - the hard handler
 * @line: the interrupt
 * @unused: nothing
 *
 * A timer that is still waiting from the burst before is started anew.
 *
 * Return: IRQ_HANDLED, or IRQ_NONE when the register reads as no number of
 * timers: then no device is there, and the interrupt was not ours.
 */
static irqreturn_t onset_take_disturbance(int line, void *unused)
{
	unsigned int count = inb(ONSET_DISTURBANCE_PORT);
	unsigned int i;
	ktime_t due;

	if (count > ONSET_DISTURBANCE_TIMERS)
		return IRQ_NONE;
	disturbance.taken++;
	if (!count)
		return IRQ_HANDLED;
	/* Read once, or each timer would be later than the one before it. */
	due = ktime_add_ns(ktime_get(), ONSET_DISTURBANCE_BURST_NS);
	for (i = 0; i < count; i++)
		hrtimer_start(&disturbance.timers[i], due, HRTIMER_MODE_ABS_PINNED_HARD);
	return IRQ_HANDLED;
}

static void onset_set_up_burst(void)
{
	unsigned int i;

	for (i = 0; i < ONSET_DISTURBANCE_TIMERS; i++) {
		struct hrtimer *timer = &disturbance.timers[i];

/* hrtimer_setup() came with Linux 6.13, and hrtimer_init() went after it. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
		hrtimer_setup(timer, onset_expire_in_burst, CLOCK_MONOTONIC,
			      HRTIMER_MODE_ABS_PINNED_HARD);
#else
		hrtimer_init(timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
		timer->function = onset_expire_in_burst;
#endif
	}
}

/**
 * onset_connect_disturbance() - have disturbances handled, where asked for
 *
 * Return: 0, -EBUSY when the I/O port is taken, -ENODEV when no device is
 * there, or the error of request_irq().
 */
int onset_connect_disturbance(void)
{
	int err;

	if (!disturbance_irq)
		return 0;
	if (!request_region(ONSET_DISTURBANCE_PORT, 1, KBUILD_MODNAME)) {
		pr_err("I/O port %#x is not free (see /proc/ioports); leave disturbance_irq= out\n",
		       ONSET_DISTURBANCE_PORT);
		return -EBUSY;
	}
	/* Where nothing answers, an ISA bus reads as ones. */
	if (inb(ONSET_DISTURBANCE_PORT) > ONSET_DISTURBANCE_TIMERS) {
		pr_err("nothing disturbs at %#x: the device exists in the virtual rig only; leave disturbance_irq= out\n",
		       ONSET_DISTURBANCE_PORT);
		err = -ENODEV;
		goto out_release;
	}
	onset_set_up_burst();
	err = request_irq(disturbance_irq, onset_take_disturbance, IRQF_NO_THREAD,
			  KBUILD_MODNAME "_disturbance", &disturbance);
	if (err) {
		pr_err("cannot have interrupt %u (error %d): disturbance_irq= is wrong, or another driver has it (see /proc/interrupts)\n",
		       disturbance_irq, err);
		goto out_release;
	}
	return 0;

out_release:
	release_region(ONSET_DISTURBANCE_PORT, 1);
	return err;
}

/**
 * onset_disconnect_disturbance() - wait for the handler, then for the timers,
 * which nobody starts any more; say how many there were
 */
void onset_disconnect_disturbance(void)
{
	unsigned int i;

	if (!disturbance_irq)
		return;
	free_irq(disturbance_irq, &disturbance);
	for (i = 0; i < ONSET_DISTURBANCE_TIMERS; i++)
		hrtimer_cancel(&disturbance.timers[i]);
	release_region(ONSET_DISTURBANCE_PORT, 1);
	pr_info("%llu disturbances, %lld timers expired\n", disturbance.taken,
		(long long)atomic64_read(&disturbance.expired));
}
