// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The responders: every mechanism that Linux has to answer a trigger from. This
 * file starts them in hard interrupt context and keeps what each of them has
 * answered. The source of the triggers knows what an answer does.
 *
 * One trigger: the hard handler counts it and answers for hardirq. Then it
 * starts those of tasklet, bh_work, work, work_highpri, kthread and task that
 * are active, in the order of the pins. It returns, and threaded_irq is woken.
 * Each responder answers, unless all triggers counted so far are answered. So
 * every answer but that of hardirq contains the starting of the others. To
 * measure one responder alone, make it the only active one.
 *
 * The hard handler stays hard on PREEMPT_RT, so everything that it calls must
 * do with raw locks:
 *
 *   tasklet_schedule()	a per-CPU list and raise_softirq_irqoff(), no lock;
 *   queue_work()	the lock of a worker pool, raw since Linux 5.8, and
 *			wake_up_process(), or raise_softirq_irqoff() for a BH pool;
 *   swake_up_one()	the raw lock of a simple wait queue, and
 *			wake_up_process(): pi_lock and the run queue's, both raw;
 *   irq_work_queue()	a per-CPU list, no lock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitops.h>
#include <linux/err.h>
#include <linux/interrupt.h>
#include <linux/kthread.h>
#include <linux/lockdep.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/swait.h>
#include <linux/version.h>
#include <linux/workqueue.h>

#include "onset.h"

static const char * const onset_names[ONSET_RESPONDERS] = {
	[ONSET_HARDIRQ]		= "hardirq",
	[ONSET_THREADED_IRQ]	= "threaded_irq",
	[ONSET_TASKLET]		= "tasklet",
	[ONSET_BH_WORK]		= "bh_work",
	[ONSET_WORK]		= "work",
	[ONSET_WORK_HIGHPRI]	= "work_highpri",
	[ONSET_KTHREAD]		= "kthread",
	[ONSET_TASK]		= "task",
};

/* BH workqueues came with Linux 6.9. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 9, 0)
#define ONSET_AVAILABLE		GENMASK(ONSET_RESPONDERS - 1, 0)

static void onset_queue_bh_work(struct work_struct *work)
{
	queue_work(system_bh_wq, work);
}
#else
#define ONSET_AVAILABLE		(GENMASK(ONSET_RESPONDERS - 1, 0) & ~BIT(ONSET_BH_WORK))

/* Never called: what is not available cannot be made active. */
static void onset_queue_bh_work(struct work_struct *work) { }
#endif

/**
 * struct onset_state - what has been taken and answered
 * @lock: protects the members from @taken to @seen, and the answer itself
 * @taken: triggers taken by the hard handler since the module was loaded
 * @answered: for each responder, the value of @taken that it answered last
 * @seen: the value of @taken that the open file of task was given last
 * @kthread: the kthread responder; NULL when it is not active
 * @kthread_wait: where it waits
 */
struct onset_state {
	raw_spinlock_t lock;
	u64 taken;
	u64 answered[ONSET_RESPONDERS];
	u64 seen;

	struct task_struct *kthread;
	struct swait_queue_head kthread_wait;
};

static struct onset_state state = {
	.lock		= __RAW_SPIN_LOCK_UNLOCKED(state.lock),
	.kthread_wait	= __SWAIT_QUEUE_HEAD_INITIALIZER(state.kthread_wait),
};

/* Fixed before the first trigger. */
static unsigned long active = ONSET_AVAILABLE;

bool onset_active(enum onset_responder r)
{
	return active & BIT(r);
}

const char *onset_name(enum onset_responder r)
{
	return onset_names[r];
}

/* Writes the names of the responders in @set, with commas between them. */
static int onset_list(char *buf, size_t size, unsigned long set)
{
	int r, len = 0;

	buf[0] = '\0';
	for_each_set_bit(r, &set, ONSET_RESPONDERS)
		len += scnprintf(buf + len, size - len, "%s%s", len ? "," : "", onset_names[r]);
	return len;
}

/* Gives the available responder whose name is the first @len bytes at @name. */
static int onset_find(const char *name, size_t len)
{
	unsigned long available = ONSET_AVAILABLE;
	int r;

	for_each_set_bit(r, &available, ONSET_RESPONDERS)
		if (strlen(onset_names[r]) == len && !memcmp(onset_names[r], name, len))
			return r;
	return -EINVAL;
}

static int onset_set_responders(const char *val, const struct kernel_param *kp)
{
	char names[ONSET_NAMES_SIZE];
	unsigned long set = 0;

	do {
		size_t len = strcspn(val, ",");
		int r = onset_find(val, len);

		if (r < 0) {
			onset_list(names, sizeof(names), ONSET_AVAILABLE);
			pr_err("responders=: no responder \"%.*s\"; this kernel has %s\n",
			       (int)len, val, names);
			return r;
		}
		set |= BIT(r);
		val += len;
	} while (*val++ == ',');

	active = set;
	return 0;
}

int onset_list_active(char *buf, size_t size)
{
	return onset_list(buf, size, active);
}

static int onset_get_responders(char *buf, const struct kernel_param *kp)
{
	int len = onset_list_active(buf, PAGE_SIZE);

	return len + scnprintf(buf + len, PAGE_SIZE - len, "\n");
}

static const struct kernel_param_ops onset_responders_ops = {
	.set = onset_set_responders,
	.get = onset_get_responders,
};
module_param_cb(responders, &onset_responders_ops, NULL, 0444);
__MODULE_PARM_TYPE(responders, "string");
MODULE_PARM_DESC(responders, "comma-separated list of who answers (default: all that the kernel has)");

/*
 * One answer is for all the triggers taken before it. An execution that finds
 * none does nothing: an earlier answer was for its trigger, too.
 */
static void onset_answer_locked(enum onset_responder r)
{
	u64 first = state.answered[r];

	lockdep_assert_held(&state.lock);
	if (first == state.taken)
		return;
	state.answered[r] = state.taken;
	onset_source->answer(r, first, state.taken);
}

/**
 * onset_answer() - answer all triggers that a responder was told of
 * @r: the responder
 */
void onset_answer(enum onset_responder r)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&state.lock, flags);
	onset_answer_locked(r);
	raw_spin_unlock_irqrestore(&state.lock, flags);
}

/* Whether @count, a member of the state, is behind the triggers taken. */
static bool onset_behind(const u64 *count)
{
	unsigned long flags;
	bool behind;

	raw_spin_lock_irqsave(&state.lock, flags);
	behind = *count != state.taken;
	raw_spin_unlock_irqrestore(&state.lock, flags);
	return behind;
}

/**
 * onset_is_unseen() - whether there are triggers that task was not told of
 */
bool onset_is_unseen(void)
{
	return onset_behind(&state.seen);
}

/**
 * onset_see() - tell task of the triggers taken
 * @taken: their number
 *
 * Gives the count of triggers if it is new, once: of two threads that read
 * the same file, one gets it and the other waits for the next.
 *
 * Return: whether it is new.
 */
bool onset_see(u64 *taken)
{
	unsigned long flags;
	bool new;

	raw_spin_lock_irqsave(&state.lock, flags);
	new = state.seen != state.taken;
	state.seen = state.taken;
	*taken = state.taken;
	raw_spin_unlock_irqrestore(&state.lock, flags);
	return new;
}

/**
 * onset_see_answered() - make triggers new again that no task has answered
 */
void onset_see_answered(void)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&state.lock, flags);
	state.seen = state.answered[ONSET_TASK];
	raw_spin_unlock_irqrestore(&state.lock, flags);
}

static void onset_run_tasklet(struct tasklet_struct *unused)
{
	onset_answer(ONSET_TASKLET);
}
static DECLARE_TASKLET(onset_tasklet, onset_run_tasklet);

static void onset_run_bh_work(struct work_struct *unused)
{
	onset_answer(ONSET_BH_WORK);
}
static DECLARE_WORK(onset_bh_work, onset_run_bh_work);

static void onset_run_work(struct work_struct *unused)
{
	onset_answer(ONSET_WORK);
}
static DECLARE_WORK(onset_work, onset_run_work);

static void onset_run_work_highpri(struct work_struct *unused)
{
	onset_answer(ONSET_WORK_HIGHPRI);
}
static DECLARE_WORK(onset_work_highpri, onset_run_work_highpri);

static int onset_run_kthread(void *unused)
{
	while (!kthread_should_stop()) {
		/* Idle: such a wait is no load, and hung_task leaves it alone. */
		swait_event_idle_exclusive(state.kthread_wait,
					  onset_behind(&state.answered[ONSET_KTHREAD]) ||
					  kthread_should_stop());
		onset_answer(ONSET_KTHREAD);
	}
	return 0;
}

/**
 * onset_trigger() - take triggers: answer for hardirq, start the others
 * @triggers: how many there were since the last call
 *
 * Called by the hard handler, which then wakes threaded_irq itself.
 */
void onset_trigger(u64 triggers)
{
	unsigned long flags;

	/* With interrupts off, because `threaded` may have made this a thread. */
	raw_spin_lock_irqsave(&state.lock, flags);
	state.taken += triggers;
	if (onset_active(ONSET_HARDIRQ))
		onset_answer_locked(ONSET_HARDIRQ);
	raw_spin_unlock_irqrestore(&state.lock, flags);

	if (onset_active(ONSET_TASKLET))
		tasklet_schedule(&onset_tasklet);
	if (onset_active(ONSET_BH_WORK))
		onset_queue_bh_work(&onset_bh_work);
	if (onset_active(ONSET_WORK))
		schedule_work(&onset_work);
	if (onset_active(ONSET_WORK_HIGHPRI))
		queue_work(system_highpri_wq, &onset_work_highpri);
	if (onset_active(ONSET_KTHREAD))
		swake_up_one(&state.kthread_wait);
	if (onset_active(ONSET_TASK))
		onset_wake_task();
}

/**
 * onset_give_up() - let nobody answer the triggers until now any more
 * @unanswered: takes, for each responder, how many triggers it has not answered
 *
 * Return: how many triggers were taken since the module was loaded.
 */
u64 onset_give_up(u64 unanswered[ONSET_RESPONDERS])
{
	unsigned long flags;
	u64 taken;
	int r;

	raw_spin_lock_irqsave(&state.lock, flags);
	taken = state.taken;
	for (r = 0; r < ONSET_RESPONDERS; r++) {
		unanswered[r] = onset_active(r) ? taken - state.answered[r] : 0;
		state.answered[r] = taken;
	}
	raw_spin_unlock_irqrestore(&state.lock, flags);
	return taken;
}

/**
 * onset_start_responders() - start what has to wait for triggers
 *
 * Return: 0, or the error of creating the kernel thread.
 */
int onset_start_responders(void)
{
	struct task_struct *kthread;

	if (!onset_active(ONSET_KTHREAD))
		return 0;
	kthread = kthread_create(onset_run_kthread, NULL, "onset_kthread");
	if (IS_ERR(kthread))
		return PTR_ERR(kthread);
	/* The priority of threaded interrupts, so that both can be compared. */
	sched_set_fifo(kthread);
	state.kthread = kthread;
	wake_up_process(kthread);
	return 0;
}

/**
 * onset_stop_responders() - wait until none of them runs
 *
 * To be called only when the hard handler is gone and nothing starts them.
 */
void onset_stop_responders(void)
{
	tasklet_kill(&onset_tasklet);
	cancel_work_sync(&onset_bh_work);
	cancel_work_sync(&onset_work);
	cancel_work_sync(&onset_work_highpri);
	onset_sync_task();
	if (state.kthread)
		kthread_stop(state.kthread);
}
