// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A high-resolution timer as trigger, for machines without an instrument. The
 * timer's handler is the hard handler: HRTIMER_MODE_HARD keeps it in hard
 * interrupt context on PREEMPT_RT. A trigger is due when the timer is
 * programmed to expire. So a latency contains, before the hard handler, the
 * programming of the timer's hardware and the kernel's search for what expired.
 * It does not show an error of the clock itself.
 *
 * There is no interrupt line, so the kernel has no thread for one: threaded_irq
 * is a thread of ours. It waits as irq_thread() does (kernel/irq/manage.c), at
 * the same priority, on the timer's CPU, and is woken last, as by the core.
 *
 * The timer runs while ONSET_SAMPLES is open.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitops.h>
#include <linux/cpumask.h>
#include <linux/err.h>
#include <linux/hrtimer.h>
#include <linux/kthread.h>
#include <linux/math64.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/smp.h>
#include <linux/time64.h>
#include <linux/timekeeping.h>
#include <linux/version.h>

#include "onset.h"

/* Below, eight responders do not come to an end; nobody waits longer. */
#define ONSET_PERIOD_NS_MIN	20000U
#define ONSET_PERIOD_NS_MAX	1000000000U

/**
 * struct onset_timer - the one timer
 * @hrtimer: the kernel's part
 * @period_ns: from trigger to trigger, fixed while it runs
 * @due_ns: when the next trigger is due, CLOCK_MONOTONIC
 * @thread: the interrupt's thread; NULL when it has nothing to do
 * @woken: bit 0 is set while the thread has something to do
 */
struct onset_timer {
	struct hrtimer hrtimer;
	u64 period_ns;
	u64 due_ns;
	struct task_struct *thread;
	unsigned long woken;
};

static struct onset_timer timer;

static unsigned int period_ns = NSEC_PER_MSEC;

static int onset_set_period(const char *val, const struct kernel_param *kp)
{
	unsigned int ns;

	if (kstrtouint(val, 0, &ns) || ns < ONSET_PERIOD_NS_MIN || ns > ONSET_PERIOD_NS_MAX) {
		pr_err("period_ns=: a whole number of nanoseconds from %u to %u\n",
		       ONSET_PERIOD_NS_MIN, ONSET_PERIOD_NS_MAX);
		return -EINVAL;
	}
	WRITE_ONCE(period_ns, ns);
	return 0;
}

static const struct kernel_param_ops onset_period_ops = {
	.set = onset_set_period,
	.get = param_get_uint,
};
module_param_cb(period_ns, &onset_period_ops, &period_ns, 0644);
__MODULE_PARM_TYPE(period_ns, "uint");
MODULE_PARM_DESC(period_ns, "timer: period from when the samples are opened next, 20000 to 1000000000 (default 1000000)");

static unsigned int cpu;
module_param(cpu, uint, 0444);
MODULE_PARM_DESC(cpu, "timer: which CPU (default 0)");

/* As irq_thread(): what sets @woken also wakes us. */
static int onset_run_thread(void *unused)
{
	for (;;) {
		set_current_state(TASK_IDLE);
		if (kthread_should_stop())
			break;
		if (!test_and_clear_bit(0, &timer.woken)) {
			schedule();
			continue;
		}
		__set_current_state(TASK_RUNNING);
		onset_run_in_thread();
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

/*
 * The hard handler. hrtimer_forward() is not used: without high resolution it
 * makes the period that of the tick, and the times between would be lost
 * without being counted.
 */
static enum hrtimer_restart onset_expire(struct hrtimer *hrtimer)
{
	s64 late_ns = ktime_get_ns() - timer.due_ns;
	u64 triggers = 1;

	/* The kernel moves the timers of a CPU that goes offline. */
	if (unlikely(smp_processor_id() != cpu)) {
		onset_end_samples(-EIO);
		return HRTIMER_NORESTART;
	}
	if (late_ns >= (s64)timer.period_ns)
		triggers += div64_u64(late_ns, timer.period_ns);
	timer.due_ns += triggers * timer.period_ns;
	hrtimer_set_expires(hrtimer, ns_to_ktime(timer.due_ns));

	onset_trigger(triggers);
	if (timer.thread) {
		set_bit(0, &timer.woken);
		wake_up_process(timer.thread);
	}
	return HRTIMER_RESTART;
}

/* On the timer's CPU, interrupts off, so the first trigger is not late yet. */
static void onset_arm(void *unused)
{
	timer.due_ns = ktime_get_ns() + timer.period_ns;
	onset_begin_samples(timer.due_ns, timer.period_ns);
	hrtimer_start(&timer.hrtimer, ns_to_ktime(timer.due_ns), HRTIMER_MODE_ABS_PINNED_HARD);
}

/**
 * onset_start_timer() - trigger, for the first time after one period
 *
 * Return: 0, or -ENXIO when the CPU is not online.
 */
int onset_start_timer(void)
{
	timer.period_ns = READ_ONCE(period_ns);
	return smp_call_function_single(cpu, onset_arm, NULL, 1);
}

/**
 * onset_stop_timer() - trigger no more; the responders may still be at work
 */
void onset_stop_timer(void)
{
	hrtimer_cancel(&timer.hrtimer);
}

static void onset_set_up_hrtimer(void)
{
/* hrtimer_setup() came with Linux 6.13, and hrtimer_init() went after it. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 13, 0)
	hrtimer_setup(&timer.hrtimer, onset_expire, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
#else
	hrtimer_init(&timer.hrtimer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_PINNED_HARD);
	timer.hrtimer.function = onset_expire;
#endif
}

static int onset_claim_timer(void)
{
	struct task_struct *thread;

	if (onset_threaded) {
		pr_err("threaded= is of trigger=port and trigger=gpio: the handler of the timer is always hard\n");
		return -EINVAL;
	}
	if (cpu >= nr_cpu_ids || !cpu_online(cpu)) {
		pr_err("cpu=%u is not online (see /sys/devices/system/cpu/online)\n", cpu);
		return -EINVAL;
	}
	onset_set_up_hrtimer();
	if (!onset_needs_thread())
		return 0;
	thread = kthread_create(onset_run_thread, NULL, "onset_threaded_irq");
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	sched_set_fifo(thread);
	kthread_bind(thread, cpu);
	timer.thread = thread;
	wake_up_process(thread);
	return 0;
}

static void onset_release_timer(void)
{
	if (timer.thread)
		kthread_stop(timer.thread);
}

static void onset_enable_timer(void)
{
	char names[ONSET_NAMES_SIZE];

	onset_list_active(names, sizeof(names));
	pr_info("trigger=timer period_ns=%u cpu=%u responders=%s\n", period_ns, cpu, names);
	onset_allow_samples();
}

/* Nothing to do: when the module goes, no file is open and the timer stands. */
static void onset_disable_timer(void) { }

const struct onset_source onset_timer_source = {
	.claim		= onset_claim_timer,
	.release	= onset_release_timer,
	.connect	= onset_register_samples,
	.disconnect	= onset_deregister_samples,
	.enable		= onset_enable_timer,
	.disable	= onset_disable_timer,
	.answer		= onset_sample,
};
