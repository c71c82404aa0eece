// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * onset_port - answers each interrupt of a parallel port from every mechanism
 * that Linux has for it, each on its own data pin, so that an instrument at
 * the other end of the cable sees how long each of them takes.
 *
 * The instrument raises nACK, which is the port's interrupt, and watches
 * D0 ... D7. The module owns the port by itself, without parport, whose
 * locking and sharing would be part of what is measured.
 *
 * One interrupt: the hard handler counts it and toggles D0; then it starts, in
 * pin order, whichever of tasklet, bh_work, work, work_highpri, kthread and
 * task are active; it returns, and the interrupt core wakes threaded_irq. Each
 * of them toggles its pin, unless all interrupts counted so far are answered.
 * So every answer but that of hardirq contains the starting of the others; to
 * measure one alone, make it the only one active.
 *
 * On PREEMPT_RT the hard handler stays hard (IRQF_NO_THREAD, unless the
 * parameter `threaded` is set), so all that it calls must do with raw locks:
 *
 *   tasklet_schedule()	a per-CPU list and raise_softirq_irqoff(), no lock;
 *   queue_work()	the lock of a worker pool, raw since Linux 5.8, and
 *			wake_up_process(), or raise_softirq_irqoff() for a BH pool;
 *   swake_up_one()	the raw lock of a simple wait queue, and
 *			wake_up_process(): pi_lock and the run queue's, both raw;
 *   irq_work_queue()	a per-CPU list, no lock.
 *
 * wake_up() is not among them: the lock of an ordinary wait queue sleeps on
 * PREEMPT_RT. poll() needs such a queue, so its sleepers are woken by an
 * irq_work (a thread on PREEMPT_RT), and only when there are any. read(), the
 * path that is measured, is woken by the hard handler itself.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitops.h>
#include <linux/err.h>
#include <linux/fs.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/lockdep.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/poll.h>
#include <linux/sched.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/swait.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "onset_port.h"

/* Registers of the PC's parallel port, from its base. */
#define ONSET_DATA		0
#define ONSET_CONTROL		2
#define ONSET_REGISTERS		3

/* Control register: the four control lines, and whether nACK interrupts. */
#define ONSET_CONTROL_LINES	GENMASK(3, 0)
#define ONSET_CONTROL_IRQ	BIT(4)

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

/* Holds the names of all responders and the commas between them. */
#define ONSET_NAMES_SIZE	96

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
 * struct onset_port - the one port that the module owns
 * @lock: protects the data register and the members from @latch to @seen
 * @latch: what the data register holds; each responder toggles its own bit
 * @taken: interrupts taken by the hard handler since the module was loaded
 * @answered: for each responder, the value of @taken that it answered last
 * @seen: the value of @taken that the open file was given last
 * @control: the control register as it was found
 * @opened: bit 0 is set while a file is open
 * @kthread: the kthread responder; NULL when it is not active
 * @kthread_wait: where it waits
 * @task_wait: where read() waits
 * @poll_wait: where poll() waits
 */
struct onset_port {
	raw_spinlock_t lock;
	u8 latch;
	u64 taken;
	u64 answered[ONSET_RESPONDERS];
	u64 seen;

	u8 control;
	unsigned long opened;
	struct task_struct *kthread;
	struct swait_queue_head kthread_wait;
	struct swait_queue_head task_wait;
	wait_queue_head_t poll_wait;
};

static struct onset_port port = {
	.lock		= __RAW_SPIN_LOCK_UNLOCKED(port.lock),
	.kthread_wait	= __SWAIT_QUEUE_HEAD_INITIALIZER(port.kthread_wait),
	.task_wait	= __SWAIT_QUEUE_HEAD_INITIALIZER(port.task_wait),
	.poll_wait	= __WAIT_QUEUE_HEAD_INITIALIZER(port.poll_wait),
};

static unsigned short io = 0x378;
module_param_hw(io, ushort, ioport, 0444);
MODULE_PARM_DESC(io, "first I/O port (default 0x378)");

static unsigned int irq = 7;
module_param_hw(irq, uint, irq, 0444);
MODULE_PARM_DESC(irq, "interrupt (default 7)");

static bool threaded;
module_param(threaded, bool, 0444);
MODULE_PARM_DESC(threaded, "let PREEMPT_RT make the hard handler a thread (default N)");

/* Fixed before the first interrupt. */
static unsigned long active = ONSET_AVAILABLE;

static bool onset_active(enum onset_responder r)
{
	return active & BIT(r);
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

static int onset_get_responders(char *buf, const struct kernel_param *kp)
{
	int len = onset_list(buf, PAGE_SIZE, active);

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
 * One edge answers all the interrupts taken before it. An execution that finds
 * none, because an earlier one answered for it, makes no edge.
 */
static void onset_answer_locked(enum onset_responder r)
{
	lockdep_assert_held(&port.lock);
	if (port.answered[r] == port.taken)
		return;
	port.answered[r] = port.taken;
	port.latch ^= BIT(r);
	outb(port.latch, io + ONSET_DATA);
}

static void onset_answer(enum onset_responder r)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&port.lock, flags);
	onset_answer_locked(r);
	raw_spin_unlock_irqrestore(&port.lock, flags);
}

/* Whether @count, a member of the port, is behind the interrupts taken. */
static bool onset_behind(const u64 *count)
{
	unsigned long flags;
	bool behind;

	raw_spin_lock_irqsave(&port.lock, flags);
	behind = *count != port.taken;
	raw_spin_unlock_irqrestore(&port.lock, flags);
	return behind;
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
		/* Idle: a wait that is no load and that hung_task leaves alone. */
		swait_event_idle_exclusive(port.kthread_wait,
					  onset_behind(&port.answered[ONSET_KTHREAD]) ||
					  kthread_should_stop());
		onset_answer(ONSET_KTHREAD);
	}
	return 0;
}

static void onset_wake_pollers(struct irq_work *unused)
{
	wake_up_interruptible_poll(&port.poll_wait, EPOLLIN | EPOLLRDNORM);
}
static DEFINE_IRQ_WORK(onset_poll_work, onset_wake_pollers);

static irqreturn_t onset_run_threaded_irq(int line, void *unused)
{
	onset_answer(ONSET_THREADED_IRQ);
	/* Also with nothing to answer: the core counts this against "nobody cared". */
	return IRQ_HANDLED;
}

/**
 * onset_run_hardirq() - the hard handler
 * @line: the interrupt
 * @unused: nothing
 *
 * Every call counts as an interrupt of the port. nACK is a pulse on an edge
 * triggered ISA line, which the port does not latch, so there is nothing to
 * ask whether it was ours; nor can such a line be shared, so it is not asked
 * for IRQF_SHARED. In particular the 8259 signals its spurious interrupts as
 * interrupt 7: where the PIC is used, one of them makes edges that the
 * instrument counts as answers to nothing. IRQ_NONE for them would be a guess.
 *
 * Return: IRQ_WAKE_THREAD when threaded_irq is active, else IRQ_HANDLED.
 */
static irqreturn_t onset_run_hardirq(int line, void *unused)
{
	unsigned long flags;

	/* With interrupts off, because `threaded` may have made this a thread. */
	raw_spin_lock_irqsave(&port.lock, flags);
	port.taken++;
	if (onset_active(ONSET_HARDIRQ))
		onset_answer_locked(ONSET_HARDIRQ);
	raw_spin_unlock_irqrestore(&port.lock, flags);

	if (onset_active(ONSET_TASKLET))
		tasklet_schedule(&onset_tasklet);
	if (onset_active(ONSET_BH_WORK))
		onset_queue_bh_work(&onset_bh_work);
	if (onset_active(ONSET_WORK))
		schedule_work(&onset_work);
	if (onset_active(ONSET_WORK_HIGHPRI))
		queue_work(system_highpri_wq, &onset_work_highpri);
	if (onset_active(ONSET_KTHREAD))
		swake_up_one(&port.kthread_wait);
	if (onset_active(ONSET_TASK)) {
		swake_up_one(&port.task_wait);
		if (wq_has_sleeper(&port.poll_wait))
			irq_work_queue(&onset_poll_work);
	}
	return onset_active(ONSET_THREADED_IRQ) ? IRQ_WAKE_THREAD : IRQ_HANDLED;
}

/*
 * Gives the count of interrupts if it is new, once: of two threads that read
 * the same file, one gets it and the other waits for the next.
 */
static bool onset_take(u64 *taken)
{
	unsigned long flags;
	bool new;

	raw_spin_lock_irqsave(&port.lock, flags);
	new = port.seen != port.taken;
	port.seen = port.taken;
	*taken = port.taken;
	raw_spin_unlock_irqrestore(&port.lock, flags);
	return new;
}

static int onset_open(struct inode *inode, struct file *file)
{
	unsigned long flags;

	/* One file, since one hard handler wakes one waiter at a bounded cost. */
	if (test_and_set_bit_lock(0, &port.opened))
		return -EBUSY;
	/* What no task has answered yet is new to this one. */
	raw_spin_lock_irqsave(&port.lock, flags);
	port.seen = port.answered[ONSET_TASK];
	raw_spin_unlock_irqrestore(&port.lock, flags);
	return stream_open(inode, file);
}

static int onset_release(struct inode *inode, struct file *file)
{
	clear_bit_unlock(0, &port.opened);
	return 0;
}

static ssize_t onset_read(struct file *file, char __user *buf, size_t size, loff_t *pos)
{
	u64 taken;
	int err;

	if (size < sizeof(taken))
		return -EINVAL;
	if (file->f_flags & O_NONBLOCK) {
		if (!onset_take(&taken))
			return -EAGAIN;
	} else {
		err = swait_event_interruptible_exclusive(port.task_wait, onset_take(&taken));
		if (err)
			return err;
	}
	return copy_to_user(buf, &taken, sizeof(taken)) ? -EFAULT : sizeof(taken);
}

static __poll_t onset_poll(struct file *file, poll_table *wait)
{
	poll_wait(file, &port.poll_wait, wait);
	/*
	 * Pairs with the barrier in wq_has_sleeper(): either the hard handler
	 * sees us in the queue, or we see the interrupt that it counted before.
	 */
	smp_mb();
	return onset_behind(&port.seen) ? EPOLLIN | EPOLLRDNORM : 0;
}

static long onset_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	if (cmd != ONSET_ANSWER)
		return -ENOTTY;
	onset_answer(ONSET_TASK);
	return 0;
}

static const struct file_operations onset_fops = {
	.owner		= THIS_MODULE,
	.open		= onset_open,
	.release	= onset_release,
	.read		= onset_read,
	.poll		= onset_poll,
	.unlocked_ioctl	= onset_ioctl,
};

static struct miscdevice onset_misc = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "onset",
	.fops	= &onset_fops,
};

/**
 * onset_claim_port() - take the I/O ports and make them a quiet output
 *
 * Finds out whether a port is there by what its data register reads back, and
 * leaves the pins as it found them.
 *
 * Return: 0, -EBUSY when the I/O ports are taken, -ENODEV when nothing answers.
 */
static int onset_claim_port(void)
{
	static const u8 patterns[] = { 0x55, 0xaa };
	bool present = true;
	u8 control, data;
	size_t i;

	if (!request_region(io, ONSET_REGISTERS, KBUILD_MODNAME)) {
		pr_err("I/O ports %#x-%#x are not free (see /proc/ioports); is parport_pc loaded? rmmod or blacklist it\n",
		       io, io + ONSET_REGISTERS - 1);
		return -EBUSY;
	}
	control = inb(io + ONSET_CONTROL);
	outb(control & ONSET_CONTROL_LINES, io + ONSET_CONTROL);

	data = inb(io + ONSET_DATA);
	for (i = 0; i < ARRAY_SIZE(patterns); i++) {
		outb(patterns[i], io + ONSET_DATA);
		present &= inb(io + ONSET_DATA) == patterns[i];
	}
	outb(data, io + ONSET_DATA);
	if (!present) {
		pr_err("no parallel port at %#x: its data register does not read back; check io= and the firmware's set-up\n",
		       io);
		outb(control, io + ONSET_CONTROL);
		release_region(io, ONSET_REGISTERS);
		return -ENODEV;
	}
	port.control = control;
	port.latch = data;
	return 0;
}

/* The pins keep their level: an edge on the way out would be an answer. */
static void onset_give_back_port(void)
{
	outb(port.control & ~ONSET_CONTROL_IRQ, io + ONSET_CONTROL);
	release_region(io, ONSET_REGISTERS);
}

static void onset_port_irq(bool on)
{
	u8 control = port.control & ONSET_CONTROL_LINES;

	outb(on ? control | ONSET_CONTROL_IRQ : control, io + ONSET_CONTROL);
}

static int onset_start_kthread(void)
{
	struct task_struct *kthread;

	if (!onset_active(ONSET_KTHREAD))
		return 0;
	kthread = kthread_create(onset_run_kthread, NULL, "onset_kthread");
	if (IS_ERR(kthread))
		return PTR_ERR(kthread);
	/* The priority of threaded interrupts, so that the two compare. */
	sched_set_fifo(kthread);
	port.kthread = kthread;
	wake_up_process(kthread);
	return 0;
}

/* Only after free_irq(), when nothing starts these again. */
static void onset_stop_responders(void)
{
	tasklet_kill(&onset_tasklet);
	cancel_work_sync(&onset_bh_work);
	cancel_work_sync(&onset_work);
	cancel_work_sync(&onset_work_highpri);
	irq_work_sync(&onset_poll_work);
	if (port.kthread)
		kthread_stop(port.kthread);
}

static int __init onset_init(void)
{
	irq_handler_t thread_fn = onset_active(ONSET_THREADED_IRQ) ? onset_run_threaded_irq : NULL;
	char names[ONSET_NAMES_SIZE];
	int err;

	err = onset_claim_port();
	if (err)
		return err;

	err = onset_start_kthread();
	if (err)
		goto out_give_back_port;

	err = request_threaded_irq(irq, onset_run_hardirq, thread_fn,
				   threaded ? 0 : IRQF_NO_THREAD, KBUILD_MODNAME, &port);
	if (err) {
		pr_err("cannot have interrupt %u (error %d): irq= is wrong, or another driver has it (see /proc/interrupts)\n",
		       irq, err);
		goto out_stop_responders;
	}

	/* Last of what can fail: a file may be opened from here on. */
	if (onset_active(ONSET_TASK)) {
		err = misc_register(&onset_misc);
		if (err) {
			pr_err("cannot register " ONSET_DEVICE " (error %d)\n", err);
			goto out_free_irq;
		}
	}

	onset_list(names, sizeof(names), active);
	pr_info("io=%#x irq=%u threaded=%c responders=%s\n", io, irq, threaded ? 'Y' : 'N', names);
	onset_port_irq(true);
	return 0;

out_free_irq:
	free_irq(irq, &port);
out_stop_responders:
	onset_stop_responders();
out_give_back_port:
	onset_give_back_port();
	return err;
}

/* An open file holds the module, so nobody is in read() or poll() here. */
static void __exit onset_exit(void)
{
	onset_port_irq(false);
	if (onset_active(ONSET_TASK))
		misc_deregister(&onset_misc);
	/* Waits for the hard handler and for threaded_irq. */
	free_irq(irq, &port);
	onset_stop_responders();
	onset_give_back_port();
}

module_init(onset_init);
module_exit(onset_exit);

MODULE_DESCRIPTION("Answers each interrupt of a parallel port from every mechanism of Linux, each on its own pin");
MODULE_LICENSE("GPL");
