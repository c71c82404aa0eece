// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The responders: every mechanism that Linux has to answer a trigger from. This
 * file starts them in hard interrupt context and keeps what each of them has
 * answered. The source of the triggers knows what an answer does.
 *
 * One trigger: the hard handler counts it and answers for hardirq. Then it
 * starts the others that are active, in the order of the pins, but for
 * threaded_irq: it returns, and that one is woken.
 * Each responder answers, unless all triggers counted so far are answered. So
 * every answer but that of hardirq contains the starting of the others. To
 * measure one responder alone, make it the only active one.
 *
 * The hard handler stays hard on PREEMPT_RT, so everything that it calls must
 * do with raw locks:
 *
 *   tasklet_schedule(), tasklet_hi_schedule()
 *			a per-CPU list and raise_softirq_irqoff(), no lock;
 *   queue_work()	the lock of a worker pool, raw since Linux 5.8, and
 *			wake_up_process(), or raise_softirq_irqoff() for a BH pool;
 *   swake_up_one()	the raw lock of a simple wait queue, and
 *			wake_up_process(): pi_lock and the run queue's, both raw;
 *   mod_timer()		the raw lock of the CPU's timers;
 *   irq_work_queue()	a per-CPU list, no lock.
 *
 * wake_up() does not: the lock of an ordinary wait queue sleeps on PREEMPT_RT.
 * There the interrupt's thread calls it for waitqueue, unless the hard handler
 * is a thread itself. An irq_work would do, too, but behind a lazy one it waits
 * for the next tick.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitops.h>
#include <linux/err.h>
#include <linux/interrupt.h>
#include <linux/jiffies.h>
#include <linux/kconfig.h>
#include <linux/kthread.h>
#include <linux/lockdep.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/swait.h>
#include <linux/timer.h>
#include <linux/version.h>
#include <linux/wait.h>
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
	[ONSET_TASKLET_HI]	= "tasklet_hi",
	[ONSET_TIMER_SOFTIRQ]	= "timer_softirq",
	[ONSET_WAITQUEUE]	= "waitqueue",
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
 * @kthread_wait: where the kthread responder waits
 * @waitqueue: where the waitqueue responder waits
 * @timer: of the timer_softirq responder
 * @threads: the threads of kthread and waitqueue; NULL for all others, and for
 *	     these when they are not active
 */
struct onset_state {
	raw_spinlock_t lock;
	u64 taken;
	u64 answered[ONSET_RESPONDERS];
	u64 seen;

	struct swait_queue_head kthread_wait;
	wait_queue_head_t waitqueue;
	struct timer_list timer;
	struct task_struct *threads[ONSET_RESPONDERS];
};

static struct onset_state state = {
	.lock		= __RAW_SPIN_LOCK_UNLOCKED(state.lock),
	.kthread_wait	= __SWAIT_QUEUE_HEAD_INITIALIZER(state.kthread_wait),
	.waitqueue	= __WAIT_QUEUE_HEAD_INITIALIZER(state.waitqueue),
};

/* Those for which a parallel port has a data pin. */
#define ONSET_WITH_DATA_PIN	GENMASK(ONSET_DATA_PINS - 1, 0)

/* Fixed before the first trigger. */
static unsigned long active = ONSET_AVAILABLE & ONSET_WITH_DATA_PIN;

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

/**
 * onset_list_without_data_pin() - list what no parallel port can answer
 * @buf: takes the names of the active responders that have no data pin
 * @size: its size
 *
 * Return: the length of the list; 0 when there are none.
 */
int onset_list_without_data_pin(char *buf, size_t size)
{
	return onset_list(buf, size, active & ~ONSET_WITH_DATA_PIN);
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
MODULE_PARM_DESC(responders, "comma-separated list of who answers (default: all with a data pin that the kernel has)");

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

static void onset_run_tasklet_hi(struct tasklet_struct *unused)
{
	onset_answer(ONSET_TASKLET_HI);
}
static DECLARE_TASKLET(onset_tasklet_hi, onset_run_tasklet_hi);

static void onset_run_timer(struct timer_list *unused)
{
	onset_answer(ONSET_TIMER_SOFTIRQ);
}

/*
 * Due at once, so at the next tick: the softirq of timers looks no sooner. One
 * that waits is left alone. To set it anew after the tick and before its
 * softirq would put the answer off by another tick.
 */
static void onset_arm_timer(void)
{
	if (!timer_pending(&state.timer))
		mod_timer(&state.timer, jiffies);
}

static int onset_run_waitqueue(void *unused)
{
	while (!kthread_should_stop()) {
		/* Nobody sends signals to a kernel thread, so the result says nothing. */
		wait_event_interruptible(state.waitqueue,
					 onset_behind(&state.answered[ONSET_WAITQUEUE]) ||
					 kthread_should_stop());
		onset_answer(ONSET_WAITQUEUE);
	}
	return 0;
}

/* Whether the interrupt's thread wakes waitqueue, and not the hard handler. */
static bool onset_wakes_from_thread(void)
{
	return IS_ENABLED(CONFIG_PREEMPT_RT) && !onset_threaded && onset_active(ONSET_WAITQUEUE);
}

/**
 * onset_needs_thread() - whether the interrupt's thread has something to do
 */
bool onset_needs_thread(void)
{
	return onset_active(ONSET_THREADED_IRQ) || onset_wakes_from_thread();
}

/**
 * onset_run_in_thread() - what the interrupt's thread does
 */
void onset_run_in_thread(void)
{
	if (onset_active(ONSET_THREADED_IRQ))
		onset_answer(ONSET_THREADED_IRQ);
	if (onset_wakes_from_thread())
		wake_up(&state.waitqueue);
}

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
 * Called by the hard handler, which then wakes the interrupt's thread itself
 * where onset_needs_thread().
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
	if (onset_active(ONSET_TASKLET_HI))
		tasklet_hi_schedule(&onset_tasklet_hi);
	if (onset_active(ONSET_TIMER_SOFTIRQ))
		onset_arm_timer();
	if (onset_active(ONSET_WAITQUEUE) && !onset_wakes_from_thread())
		wake_up(&state.waitqueue);
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

/* Starts the thread of a responder, when that is active. */
static int onset_start_thread(enum onset_responder r, int (*run)(void *))
{
	struct task_struct *thread;

	if (!onset_active(r))
		return 0;
	thread = kthread_create(run, NULL, "onset_%s", onset_names[r]);
	if (IS_ERR(thread))
		return PTR_ERR(thread);
	/* The priority of threaded interrupts, so that all can be compared. */
	sched_set_fifo(thread);
	state.threads[r] = thread;
	wake_up_process(thread);
	return 0;
}

/**
 * onset_start_responders() - start what has to wait for triggers
 *
 * Return: 0, or the error of creating a kernel thread.
 */
int onset_start_responders(void)
{
	int err;

	/* Pinned: it expires on the CPU that took the interrupt, as a tasklet runs there. */
	timer_setup(&state.timer, onset_run_timer, TIMER_PINNED);
	err = onset_start_thread(ONSET_KTHREAD, onset_run_kthread);
	if (!err)
		err = onset_start_thread(ONSET_WAITQUEUE, onset_run_waitqueue);
	if (err)
		onset_stop_responders();
	return err;
}

/**
 * onset_stop_responders() - wait until none of them runs
 *
 * To be called only when the hard handler is gone and nothing starts them.
 */
void onset_stop_responders(void)
{
	int r;

	tasklet_kill(&onset_tasklet);
	tasklet_kill(&onset_tasklet_hi);
	timer_delete_sync(&state.timer);
	cancel_work_sync(&onset_bh_work);
	cancel_work_sync(&onset_work);
	cancel_work_sync(&onset_work_highpri);
	onset_sync_task();
	for (r = 0; r < ONSET_RESPONDERS; r++)
		if (state.threads[r])
			kthread_stop(state.threads[r]);
}
