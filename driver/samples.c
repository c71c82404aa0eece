// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From answers to records that a process reads.
 *
 * The rule is that of crates/sample/src/answers.rs: an answer is for every
 * trigger that the responder was told of, the oldest of them gives the sample,
 * and the younger ones are superseded. Every trigger ends, for each responder,
 * as one of sample, superseded, tainted, dropped and unanswered. None is
 * spurious, because an execution that finds nothing to answer makes no answer.
 *
 * The trigger with number n is due n periods after the first one, so nothing
 * needs to be kept of it. Samples go through a ring with one writer (answers
 * exclude each other) and one reader (@reading), and no lock between them.
 * Losses are counted beside the ring, so a full ring loses none of them.
 *
 * An answer wakes nobody: the wake-up would be part of what the responders
 * after it are measured with. A delayed work of the unbound workqueue looks
 * every ONSET_BATCH_MS and wakes whoever waits.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/atomic.h>
#include <linux/bitops.h>
#include <linux/fs.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/miscdevice.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/poll.h>
#include <linux/timekeeping.h>
#include <linux/uaccess.h>
#include <linux/vmalloc.h>
#include <linux/wait.h>
#include <linux/workqueue.h>

#include "onset.h"
#include "onset_port.h"

/*
 * 2 MiB: eight batches of what eight responders give at the shortest period,
 * 8 * 20 ms / 20 us = 8000 records each; six of what eleven give.
 */
#define ONSET_RING		65536U
#define ONSET_BATCH_MS		20

/**
 * struct onset_samples - what the one open file has to read
 * @ring: samples; the place of number n is n % ONSET_RING
 * @head: number of the next sample to be written; only answers change it
 * @tail: number of the next one to be read; only the reader changes it
 * @lost: losses not yet read
 * @origin: triggers taken before the file was opened
 * @due_ns: when the first trigger was due, CLOCK_MONOTONIC
 * @period_ns: from trigger to trigger
 * @end: 0 while there are triggers, 1 after the last one, -EIO if that was not
 *	 asked for
 * @complete: nothing is to come any more but what @ring and @lost hold
 * @reading: held by the one reader
 * @wait: where it waits, and poll()
 * @opened: bit 0 is set while a file is open
 * @allowed: the module is loaded
 */
struct onset_samples {
	struct onset_record *ring;
	unsigned int head;
	unsigned int tail;
	atomic64_t lost[ONSET_RESPONDERS][ONSET_LOSSES];
	u64 origin;
	u64 due_ns;
	u64 period_ns;
	int end;
	bool complete;
	struct mutex reading;
	wait_queue_head_t wait;
	unsigned long opened;
	bool allowed;
};

static struct onset_samples samples = {
	.reading	= __MUTEX_INITIALIZER(samples.reading),
	.wait		= __WAIT_QUEUE_HEAD_INITIALIZER(samples.wait),
};

static void onset_lose(enum onset_responder r, enum onset_loss loss, u64 triggers)
{
	atomic64_add(triggers, &samples.lost[r][loss]);
}

/* Gives whether there was room. */
static bool onset_put(enum onset_responder r, u64 number, u64 due_ns, u64 latency_ns)
{
	unsigned int head = samples.head;

	if (head - smp_load_acquire(&samples.tail) == ONSET_RING)
		return false;
	samples.ring[head % ONSET_RING] = (struct onset_record) {
		.kind		= ONSET_SAMPLE,
		.pin		= cpu_to_le32(r),
		.number		= cpu_to_le64(number),
		.due_ns		= cpu_to_le64(due_ns),
		.latency_ns	= cpu_to_le64(latency_ns),
	};
	/* Pairs with the reader's load: it sees the whole record. */
	smp_store_release(&samples.head, head + 1);
	return true;
}

/**
 * onset_sample() - the answer to a trigger of the timer
 * @r: the responder
 * @first: the oldest trigger that it answers
 * @taken: the trigger after the youngest
 */
void onset_sample(enum onset_responder r, u64 first, u64 taken)
{
	u64 now_ns = ktime_get_ns();
	u64 number = first - samples.origin;
	u64 due_ns = samples.due_ns + number * samples.period_ns;

	if (taken - first > 1)
		onset_lose(r, ONSET_SUPERSEDED, taken - first - 1);
	if (unlikely(now_ns < due_ns))
		onset_lose(r, ONSET_TAINTED, 1);
	else if (unlikely(!onset_put(r, number, due_ns, now_ns - due_ns)))
		onset_lose(r, ONSET_DROPPED, 1);
}

/**
 * onset_begin_samples() - say when the triggers are due; before the first
 * @due_ns: the first, CLOCK_MONOTONIC
 * @period_ns: from one to the next
 */
void onset_begin_samples(u64 due_ns, u64 period_ns)
{
	samples.due_ns = due_ns;
	samples.period_ns = period_ns;
}

/**
 * onset_end_samples() - say that there are no more triggers
 * @end: 1, or why read() is to fail when all was read
 */
void onset_end_samples(int end)
{
	/* The first one stays: a handler that ONSET_STOP waits for may lose its CPU. */
	cmpxchg(&samples.end, 0, end);
}

static bool onset_is_lost(void)
{
	int r, loss;

	for (r = 0; r < ONSET_RESPONDERS; r++)
		for (loss = 0; loss < ONSET_LOSSES; loss++)
			if (atomic64_read(&samples.lost[r][loss]))
				return true;
	return false;
}

/* Whether read() would not wait. */
static bool onset_is_ready(void)
{
	return READ_ONCE(samples.head) != READ_ONCE(samples.tail) || onset_is_lost() ||
	       READ_ONCE(samples.end);
}

static void onset_wake_reader(struct work_struct *unused);
static DECLARE_DELAYED_WORK(onset_waker, onset_wake_reader);

static void onset_wake_reader(struct work_struct *unused)
{
	if (onset_is_ready())
		wake_up_interruptible_poll(&samples.wait, EPOLLIN | EPOLLRDNORM);
	queue_delayed_work(system_unbound_wq, &onset_waker, msecs_to_jiffies(ONSET_BATCH_MS));
}

/* Gives up to @room samples; how many, or -EFAULT if not even one. */
static ssize_t onset_copy_ring(struct onset_record __user *buf, size_t room)
{
	unsigned int tail = samples.tail, ready = smp_load_acquire(&samples.head) - tail;
	size_t left = min_t(size_t, room, ready), done = 0;

	while (left) {
		unsigned int from = tail % ONSET_RING;
		size_t n = min_t(size_t, left, ONSET_RING - from);

		if (copy_to_user(buf + done, samples.ring + from, n * sizeof(*buf)))
			return done ?: -EFAULT;
		done += n;
		left -= n;
		tail += n;
		/* Pairs with the writer's load: it may overwrite what was read. */
		smp_store_release(&samples.tail, tail);
	}
	return done;
}

/* Gives up to @room losses; how many, or -EFAULT if not even one. */
static ssize_t onset_copy_losses(struct onset_record __user *buf, size_t room)
{
	size_t done = 0;
	int i;

	for (i = 0; i < ONSET_RESPONDERS * ONSET_LOSSES && done < room; i++) {
		int r = i / ONSET_LOSSES, loss = i % ONSET_LOSSES;
		u64 count = atomic64_xchg(&samples.lost[r][loss], 0);
		struct onset_record record = {
			.kind	= ONSET_LOSS,
			.loss	= loss,
			.pin	= cpu_to_le32(r),
			.number	= cpu_to_le64(count),
		};

		if (!count)
			continue;
		if (copy_to_user(buf + done, &record, sizeof(record))) {
			onset_lose(r, loss, count);
			return done ?: -EFAULT;
		}
		done++;
	}
	return done;
}

/* What is not answered now, after the last trigger, counts as unanswered. */
static void onset_complete(void)
{
	u64 unanswered[ONSET_RESPONDERS];
	int r;

	onset_give_up(unanswered);
	for (r = 0; r < ONSET_RESPONDERS; r++)
		onset_lose(r, ONSET_UNANSWERED, unanswered[r]);
	samples.complete = true;
}

/* How many records were copied; 0 when there are none at present. */
static ssize_t onset_copy(struct onset_record __user *buf, size_t room)
{
	ssize_t samples_done = onset_copy_ring(buf, room), losses_done;

	if (samples_done < 0)
		return samples_done;
	losses_done = onset_copy_losses(buf + samples_done, room - samples_done);
	if (losses_done < 0)
		return samples_done ?: losses_done;
	return samples_done + losses_done;
}

/* With @reading held. How many records were copied, or what read() gives instead. */
static ssize_t onset_read_records(struct file *file, struct onset_record __user *buf, size_t room)
{
	for (;;) {
		/* Read before the ring, which then has all answers before the end. */
		int end = smp_load_acquire(&samples.end);
		ssize_t done = onset_copy(buf, room);
		int err;

		if (done)
			return done;
		if (samples.complete)
			return end < 0 ? end : 0;
		if (end) {
			onset_complete();
			continue;
		}
		if (file->f_flags & O_NONBLOCK)
			return -EAGAIN;
		err = wait_event_interruptible(samples.wait, onset_is_ready());
		if (err)
			return err;
	}
}

static ssize_t onset_samples_read(struct file *file, char __user *buf, size_t size, loff_t *pos)
{
	ssize_t done;

	if (size < sizeof(struct onset_record))
		return -EINVAL;
	if (file->f_flags & O_NONBLOCK) {
		if (!mutex_trylock(&samples.reading))
			return -EAGAIN;
	} else if (mutex_lock_interruptible(&samples.reading)) {
		return -ERESTARTSYS;
	}
	done = onset_read_records(file, (struct onset_record __user *)buf,
				  size / sizeof(struct onset_record));
	mutex_unlock(&samples.reading);
	return done > 0 ? done * sizeof(struct onset_record) : done;
}

static __poll_t onset_samples_poll(struct file *file, poll_table *wait)
{
	poll_wait(file, &samples.wait, wait);
	return onset_is_ready() ? EPOLLIN | EPOLLRDNORM : 0;
}

static long onset_samples_ioctl(struct file *file, unsigned int cmd, unsigned long arg)
{
	if (cmd != ONSET_STOP)
		return -ENOTTY;
	onset_stop_timer();
	onset_end_samples(1);
	wake_up_interruptible_poll(&samples.wait, EPOLLIN | EPOLLRDNORM);
	return 0;
}

/* An empty ring, and no loss; nobody writes before the first trigger. */
static int onset_prepare(void)
{
	u64 unanswered[ONSET_RESPONDERS];

	samples.ring = vmalloc(array_size(ONSET_RING, sizeof(*samples.ring)));
	if (!samples.ring)
		return -ENOMEM;
	memset(samples.lost, 0, sizeof(samples.lost));
	samples.head = 0;
	samples.tail = 0;
	samples.end = 0;
	samples.complete = false;
	samples.origin = onset_give_up(unanswered);
	return 0;
}

static void onset_close(void)
{
	u64 unanswered[ONSET_RESPONDERS];

	onset_stop_timer();
	cancel_delayed_work_sync(&onset_waker);
	/* From here on no answer finds a trigger, so nobody writes. */
	onset_give_up(unanswered);
	vfree(samples.ring);
	clear_bit_unlock(0, &samples.opened);
}

static int onset_samples_open(struct inode *inode, struct file *file)
{
	int err;

	/* A file that is open would outlive a module that fails to load. */
	if (!READ_ONCE(samples.allowed))
		return -ENXIO;
	if (test_and_set_bit_lock(0, &samples.opened))
		return -EBUSY;
	err = onset_prepare();
	if (err) {
		clear_bit_unlock(0, &samples.opened);
		return err;
	}
	queue_delayed_work(system_unbound_wq, &onset_waker, msecs_to_jiffies(ONSET_BATCH_MS));
	err = onset_start_timer();
	if (err) {
		onset_close();
		return err;
	}
	return stream_open(inode, file);
}

static int onset_samples_release(struct inode *inode, struct file *file)
{
	onset_close();
	return 0;
}

static const struct file_operations onset_samples_fops = {
	.owner		= THIS_MODULE,
	.open		= onset_samples_open,
	.release	= onset_samples_release,
	.read		= onset_samples_read,
	.poll		= onset_samples_poll,
	.unlocked_ioctl	= onset_samples_ioctl,
};

static struct miscdevice onset_samples_misc = {
	.minor	= MISC_DYNAMIC_MINOR,
	.name	= "onset-samples",
	.fops	= &onset_samples_fops,
};

/**
 * onset_register_samples() - create the device; it may not be opened yet
 *
 * Return: 0, or the error of misc_register().
 */
int onset_register_samples(void)
{
	int err = misc_register(&onset_samples_misc);

	if (err)
		pr_err("cannot register " ONSET_SAMPLES " (error %d)\n", err);
	return err;
}

/**
 * onset_deregister_samples() - remove the device
 */
void onset_deregister_samples(void)
{
	misc_deregister(&onset_samples_misc);
}

/**
 * onset_allow_samples() - let the device be opened: nothing can fail any more
 */
void onset_allow_samples(void)
{
	WRITE_ONCE(samples.allowed, true);
}
