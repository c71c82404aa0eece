// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Takes its own stack by the kernel's own unwinder, again and again in several contexts, and stays there for a while:
 * who looks at the guest meanwhile can compare.
 */
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/kdebug.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/stacktrace.h>
#include <linux/version.h>
#include <linux/workqueue.h>

enum { OF_THREAD = 1, OF_WORK, OF_SOFTIRQ, OF_HARDIRQ, OF_EXCEPTION };

/* Read from outside. */
unsigned long test_stacks_context;
unsigned long test_stacks_count;
unsigned long test_stacks_entries[64];

static noinline void test_stacks_stay(unsigned long context)
{
	unsigned long flags, n = 3000000;

	local_irq_save(flags);
	test_stacks_count = stack_trace_save(test_stacks_entries, ARRAY_SIZE(test_stacks_entries), 0);
	WRITE_ONCE(test_stacks_context, context);
	asm volatile("1: dec %0\n\tjnz 1b" : "+r"(n) : : "cc", "memory");
	WRITE_ONCE(test_stacks_context, 0);
	local_irq_restore(flags);
}

static noinline void test_stacks_deep(unsigned int depth)
{
	if (depth)
		test_stacks_deep(depth - 1);
	else
		test_stacks_stay(OF_THREAD);
	/* Something is left to do, so that this is no jump. */
	barrier();
}

static void test_stacks_work(struct work_struct *work)
{
	test_stacks_stay(OF_WORK);
}
static DECLARE_WORK(work, test_stacks_work);

static void test_stacks_softirq(struct tasklet_struct *tasklet)
{
	test_stacks_stay(OF_SOFTIRQ);
}
static DECLARE_TASKLET(softirq, test_stacks_softirq);

static enum hrtimer_restart test_stacks_hardirq(struct hrtimer *timer)
{
	test_stacks_stay(OF_HARDIRQ);
	return HRTIMER_NORESTART;
}
static struct hrtimer hardirq;

/* A breakpoint of nobody's: an exception in the middle of a function, whose frame is on the stack with all of its
 * registers. */
static bool trapping;

static noinline void test_stacks_trap(void)
{
	trapping = true;
	asm volatile("int3");
	trapping = false;
}

static int test_stacks_trapped(struct notifier_block *block, unsigned long what, void *data)
{
	if (what != DIE_INT3 || !trapping)
		return NOTIFY_DONE;
	test_stacks_stay(OF_EXCEPTION);
	return NOTIFY_STOP;
}
static struct notifier_block trapped = { .notifier_call = test_stacks_trapped };

static int round(void *unused)
{
	unsigned int depth;

	/* Until the guest has settled. */
	msleep(800);
	for (depth = 0; !kthread_should_stop(); depth = (depth + 1) % 9) {
		test_stacks_deep(depth);
		test_stacks_trap();
		schedule_work(&work);
		tasklet_schedule(&softirq);
		hrtimer_start(&hardirq, ns_to_ktime(300 * NSEC_PER_USEC), HRTIMER_MODE_REL_HARD);
		usleep_range(1000, 2000);
	}
	return 0;
}

static int __init test_init(void)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
	hrtimer_setup(&hardirq, test_stacks_hardirq, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
#else
	hrtimer_init(&hardirq, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	hardirq.function = test_stacks_hardirq;
#endif
	register_die_notifier(&trapped);
	return PTR_ERR_OR_ZERO(kthread_run(round, NULL, "test-stacks"));
}
module_init(test_init);

MODULE_DESCRIPTION("the kernel's own view of its stacks");
MODULE_LICENSE("GPL");
