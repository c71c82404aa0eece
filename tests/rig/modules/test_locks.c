// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A thread of low priority holds what others wait for, for as long as a known number of instructions takes: a lock that
 * the thread of softirqs wants, and then bottom halves. Only PREEMPT_RT has anybody sleep for either.
 */
#include <linux/delay.h>
#include <linux/interrupt.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/string.h>

#define APART_US	9000

/* Two instructions an iteration: decrement, and jump while it is not zero. */
static __always_inline void spend(unsigned long instructions)
{
	unsigned long n = instructions / 2;

	asm volatile("1: dec %0\n\tjnz 1b" : "+r"(n) : : "cc");
}

static DEFINE_SPINLOCK(lock);

/* The thread of softirqs, as soon as it was seen. */
static struct task_struct *server;

static void want(struct tasklet_struct *unused)
{
	if (!strncmp(current->comm, "ksoftirqd/", 10))
		WRITE_ONCE(server, current);
	spin_lock(&lock);
	spin_unlock(&lock);
}
static DECLARE_TASKLET(softirq, want);

static noinline void test_hold_lock(void)
{
	spin_lock(&lock);
	tasklet_schedule(&softirq);
	/* It was woken with interrupts off: here it runs, until it sleeps for the lock. */
	preempt_disable();
	preempt_enable();
	spend(400000);
	spin_unlock(&lock);
	/* Something is left to do, so that the call before is no jump, and this function stands in its stack. */
	barrier();
}

static noinline void test_hold_bottom_halves(void)
{
	local_bh_disable();
	spend(300000);
	local_bh_enable();
	barrier();
}

static int hold(void *unused)
{
	while (!READ_ONCE(server)) {
		tasklet_schedule(&softirq);
		msleep(1);
	}
	/* As on a system whose softirqs matter; else it would not go before this thread. */
	sched_set_fifo_low(server);
	while (!kthread_should_stop()) {
		test_hold_lock();
		usleep_range(APART_US, APART_US);
		test_hold_bottom_halves();
		usleep_range(APART_US, APART_US);
	}
	return 0;
}

static int __init test_init(void)
{
	return PTR_ERR_OR_ZERO(kthread_run(hold, NULL, "test-locks"));
}
module_init(test_init);

MODULE_DESCRIPTION("locks that are held for long");
MODULE_LICENSE("GPL");
