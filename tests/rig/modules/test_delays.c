// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Delays of known length at known places, one after the other and again each 40 ms: what a search has to find. Each has
 * a function of its own, which is not inlined, so that its name stands in the stack.
 *
 * A delay counts loop iterations and not time: what interrupts it does then not make it shorter, and its length in
 * instructions does not depend on the calibration of udelay().
 */
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/spinlock.h>
#include <linux/version.h>

#define ROUND_MS	40
#define APART_MS	5

/* Two instructions an iteration: decrement, and jump while it is not zero. */
static __always_inline void spend(unsigned long instructions)
{
	unsigned long n = instructions / 2;

	asm volatile("1: dec %0\n\tjnz 1b" : "+r"(n) : : "cc");
}

static DEFINE_RAW_SPINLOCK(lock);

static noinline void test_irqs_off(void)
{
	local_irq_disable();
	spend(137000);
	local_irq_enable();
}

static noinline void test_preempt_off(void)
{
	preempt_disable();
	spend(223000);
	preempt_enable();
}

static noinline void test_raw_spinlock(void)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&lock, flags);
	spend(61000);
	raw_spin_unlock_irqrestore(&lock, flags);
}

static noinline void test_bh_off(void)
{
	local_bh_disable();
	spend(91000);
	local_bh_enable();
}

/* A softirq; PREEMPT_RT runs it in a thread that can be preempted. */
static noinline void test_softirq(struct tasklet_struct *tasklet)
{
	spend(173000);
}
static DECLARE_TASKLET(softirq, test_softirq);

/* A hard handler: the timer's interrupt itself. */
static noinline enum hrtimer_restart test_hardirq(struct hrtimer *timer)
{
	spend(113000);
	return HRTIMER_NORESTART;
}
static struct hrtimer hardirq;

static int round(void *unused)
{
	while (!kthread_should_stop()) {
		test_irqs_off();
		msleep(APART_MS);
		test_preempt_off();
		msleep(APART_MS);
		test_raw_spinlock();
		msleep(APART_MS);
		test_bh_off();
		msleep(APART_MS);
		tasklet_schedule(&softirq);
		msleep(APART_MS);
		hrtimer_start(&hardirq, ms_to_ktime(1), HRTIMER_MODE_REL_HARD);
		msleep(ROUND_MS - 5 * APART_MS);
	}
	return 0;
}

static int __init test_init(void)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
	hrtimer_setup(&hardirq, test_hardirq, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
#else
	hrtimer_init(&hardirq, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	hardirq.function = test_hardirq;
#endif
	return PTR_ERR_OR_ZERO(kthread_run(round, NULL, "test-delays"));
}
module_init(test_init);

MODULE_DESCRIPTION("delays of known length");
MODULE_LICENSE("GPL");
