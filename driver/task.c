// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The device of the task responder: a process blocks in read() and answers by
 * ioctl().
 *
 * A hard handler may not call wake_up(): the lock of an ordinary wait queue
 * sleeps on PREEMPT_RT. poll() needs such a queue, so an irq_work (a thread on
 * PREEMPT_RT) wakes its sleepers, and only when there are any. The hard handler
 * itself wakes read(), the path that is measured.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bitops.h>
#include <linux/fs.h>
#include <linux/irq_work.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/poll.h>
#include <linux/swait.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#include "onset.h"
#include "onset_port.h"

/* Bit 0 is set while a file is open. */
static unsigned long opened;

/* Where read() waits. */
static DECLARE_SWAIT_QUEUE_HEAD(task_wait);

/* Where poll() waits. */
static DECLARE_WAIT_QUEUE_HEAD(poll_wait_queue);

static void onset_wake_pollers(struct irq_work *unused)
{
	wake_up_interruptible_poll(&poll_wait_queue, EPOLLIN | EPOLLRDNORM);
}
static DEFINE_IRQ_WORK(onset_poll_work, onset_wake_pollers);

/**
 * onset_wake_task() - tell whoever waits that there is a trigger
 */
void onset_wake_task(void)
{
	swake_up_one(&task_wait);
	if (wq_has_sleeper(&poll_wait_queue))
		irq_work_queue(&onset_poll_work);
}

/**
 * onset_sync_task() - wait until nobody is being woken
 */
void onset_sync_task(void)
{
	irq_work_sync(&onset_poll_work);
}

static int onset_open(struct inode *inode, struct file *file)
{
	/* One file, since one hard handler wakes one waiter at a bounded cost. */
	if (test_and_set_bit_lock(0, &opened))
		return -EBUSY;
	/* What no task has answered yet is new to this one. */
	onset_see_answered();
	return stream_open(inode, file);
}

static int onset_release(struct inode *inode, struct file *file)
{
	clear_bit_unlock(0, &opened);
	return 0;
}

static ssize_t onset_read(struct file *file, char __user *buf, size_t size, loff_t *pos)
{
	u64 taken;
	int err;

	if (size < sizeof(taken))
		return -EINVAL;
	if (file->f_flags & O_NONBLOCK) {
		if (!onset_see(&taken))
			return -EAGAIN;
	} else {
		err = swait_event_interruptible_exclusive(task_wait, onset_see(&taken));
		if (err)
			return err;
	}
	return copy_to_user(buf, &taken, sizeof(taken)) ? -EFAULT : sizeof(taken);
}

static __poll_t onset_poll(struct file *file, poll_table *wait)
{
	poll_wait(file, &poll_wait_queue, wait);
	/*
	 * Pairs with the barrier in wq_has_sleeper(): either the hard handler
	 * sees us in the queue, or we see the interrupt that it counted before.
	 */
	smp_mb();
	return onset_is_unseen() ? EPOLLIN | EPOLLRDNORM : 0;
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
 * onset_register_task() - create the device
 *
 * A file may be opened as soon as the device is there. So of all steps of
 * loading the module that can fail, this one is the last.
 *
 * Return: 0, or the error of misc_register().
 */
int onset_register_task(void)
{
	int err = 0;

	if (onset_active(ONSET_TASK))
		err = misc_register(&onset_misc);
	if (err)
		pr_err("cannot register " ONSET_DEVICE " (error %d)\n", err);
	return err;
}

/**
 * onset_deregister_task() - remove the device
 *
 * An open file holds the module, so nobody is in read() or poll() here.
 */
void onset_deregister_task(void)
{
	if (onset_active(ONSET_TASK))
		misc_deregister(&onset_misc);
}
