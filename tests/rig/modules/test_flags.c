// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reads in many places whether interrupts are masked, and the preemption count, and tells both at the parallel port's
 * data register: who follows the kernel from outside is told at that very instruction what the kernel itself holds to
 * be so.
 *
 * A statement is five writes. The first has D7 set, interrupts masked in D6, and below them the place; the others have
 * the preemption count, six bits each, the lowest first: it has no more than 24 (include/linux/preempt.h). Places come
 * in the order of their numbers, round after round, because the thread waits for all that it starts elsewhere. So no
 * statement is made inside another.
 */
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/mman.h>
#include <linux/module.h>
#include <linux/preempt.h>
#include <linux/sched/mm.h>
#include <linux/spinlock.h>
#include <linux/uaccess.h>
#include <linux/version.h>
#include <linux/vmalloc.h>

#define DATA		0x378
#define HEAD		0x80
#define MASKED		0x40

#define COUNT_BITS	24
#define BITS_AT_ONCE	6

/* A timer that shall expire soon; and one that expires often, and in step with nothing. */
#define SOON		ns_to_ktime(10 * NSEC_PER_USEC)
#define OFTEN		ns_to_ktime(97 * NSEC_PER_USEC)
#define TIMES		300

/* As in tests/rig/follow.rs. */
enum place {
	IN_THREAD,
	IRQS_SAVED,
	IRQS_SAVED_TWICE,
	IRQS_RESTORED_ONCE,
	IRQS_RESTORED,
	FLAGS_POPPED_MASKED,
	FLAGS_POPPED,
	SPIN_LOCKED,
	SPIN_UNLOCKED,
	RAW_LOCKED,
	RAW_UNLOCKED,
	PREEMPT_OFF,
	PREEMPT_OFF_TWICE,
	IRQS_AND_PREEMPT_OFF,
	PREEMPT_ON_ONCE,
	PREEMPT_ON,
	BH_OFF,
	BH_AND_PREEMPT_OFF,
	SOFTIRQ,
	SOFTIRQ_IRQS_OFF,
	HARDIRQ_IN_SOFTIRQ,
	SOFTIRQ_INTERRUPTED,
	BH_ON,
	MIGRATION_OFF,
	HARDIRQ,
	INTERRUPTED,
	HARDIRQ_PREEMPT_OFF,
	PREEMPT_OFF_INTERRUPTED,
	HARDIRQ_BH_OFF,
	BH_OFF_INTERRUPTED,
	HOLDING_BACK,
	HARDIRQ_HELD_BACK,
	HELD_BACK_DONE,
	IRQ_WORK,
	IRQ_WORK_DONE,
	FAULTED,
	FAULTED_IRQS_OFF,
	FAULTED_PREEMPT_OFF,
	FAULT_SERVED,
	SLEPT,
	ANYWHERE,
};

static DEFINE_SPINLOCK(lock);
static DEFINE_RAW_SPINLOCK(raw_lock);

/* An address at which there is no memory. */
static char *nowhere;
/* The address space of init, to fault in. */
static struct mm_struct *space;

/*
 * The preemption count in the form that kernels before 7.2 have it in: interrupts from bit 16 on, NMIs from bit 20.
 * Since then interrupts that are disabled are counted in between.
 */
static unsigned int counted(void)
{
	unsigned int count = preempt_count();

	return (count & (PREEMPT_MASK | SOFTIRQ_MASK)) |
	       (unsigned int)((count & HARDIRQ_MASK) >> HARDIRQ_SHIFT) << 16 |
	       (unsigned int)((count & NMI_MASK) >> NMI_SHIFT) << 20;
}

static void tell(enum place place)
{
	bool masked = irqs_disabled();
	unsigned int bits, count = counted();

	outb(HEAD | (masked ? MASKED : 0) | place, DATA);
	for (bits = 0; bits < COUNT_BITS; bits += BITS_AT_ONCE)
		outb(count >> bits & (BIT(BITS_AT_ONCE) - 1), DATA);
}

/* Expires in hard interrupt context, also on PREEMPT_RT; what it tells, and how often. */
static struct hrtimer timer;
static enum place timer_tells;
static unsigned int timer_left;

static enum hrtimer_restart expire(struct hrtimer *unused)
{
	tell(timer_tells);
	WRITE_ONCE(timer_left, timer_left - 1);
	if (!timer_left)
		return HRTIMER_NORESTART;
	hrtimer_forward_now(&timer, OFTEN);
	return HRTIMER_RESTART;
}

static void start_timer(enum place place, unsigned int times)
{
	timer_tells = place;
	timer_left = times;
	hrtimer_start(&timer, SOON, HRTIMER_MODE_REL_HARD);
}

static void spin_until_expired(void)
{
	while (READ_ONCE(timer_left))
		cpu_relax();
}

static void be_interrupted(enum place place)
{
	start_timer(place, 1);
	spin_until_expired();
}

static void with_irqs_off(void)
{
	unsigned long flags, nested;

	local_irq_save(flags);
	tell(IRQS_SAVED);
	local_irq_save(nested);
	tell(IRQS_SAVED_TWICE);
	local_irq_restore(nested);
	tell(IRQS_RESTORED_ONCE);
	local_irq_restore(flags);
	tell(IRQS_RESTORED);

	/* By the instruction that the kernel no longer restores them with. */
	flags = native_save_fl();
	asm volatile("push %0\n\tpopf" : : "r"(flags & ~X86_EFLAGS_IF) : "memory", "cc");
	tell(FLAGS_POPPED_MASKED);
	asm volatile("push %0\n\tpopf" : : "r"(flags) : "memory", "cc");
	tell(FLAGS_POPPED);
}

static void with_locks(void)
{
	unsigned long flags;

	spin_lock_irqsave(&lock, flags);
	tell(SPIN_LOCKED);
	spin_unlock_irqrestore(&lock, flags);
	tell(SPIN_UNLOCKED);
	raw_spin_lock_irqsave(&raw_lock, flags);
	tell(RAW_LOCKED);
	raw_spin_unlock_irqrestore(&raw_lock, flags);
	tell(RAW_UNLOCKED);
}

static void with_preemption_off(void)
{
	preempt_disable();
	tell(PREEMPT_OFF);
	preempt_disable();
	tell(PREEMPT_OFF_TWICE);
	local_irq_disable();
	tell(IRQS_AND_PREEMPT_OFF);
	local_irq_enable();
	preempt_enable();
	tell(PREEMPT_ON_ONCE);
	preempt_enable();
	tell(PREEMPT_ON);
}

static void serve(struct tasklet_struct *unused)
{
	unsigned long flags;

	tell(SOFTIRQ);
	local_irq_save(flags);
	tell(SOFTIRQ_IRQS_OFF);
	local_irq_restore(flags);
	be_interrupted(HARDIRQ_IN_SOFTIRQ);
	tell(SOFTIRQ_INTERRUPTED);
}
static DECLARE_TASKLET(softirq, serve);

static void with_bottom_halves_off(void)
{
	local_bh_disable();
	tell(BH_OFF);
	preempt_disable();
	tell(BH_AND_PREEMPT_OFF);
	preempt_enable();
	/* Who enables bottom halves serves what was raised meanwhile, so that this is the thread in every kernel. */
	tasklet_schedule(&softirq);
	local_bh_enable();
	tell(BH_ON);
	migrate_disable();
	tell(MIGRATION_OFF);
	migrate_enable();
}

static void work(struct irq_work *unused)
{
	tell(IRQ_WORK);
}
static struct irq_work irq_work = IRQ_WORK_INIT_HARD(work);

static void with_interrupts(void)
{
	unsigned long n = 50000;

	be_interrupted(HARDIRQ);
	tell(INTERRUPTED);
	preempt_disable();
	be_interrupted(HARDIRQ_PREEMPT_OFF);
	tell(PREEMPT_OFF_INTERRUPTED);
	preempt_enable();
	local_bh_disable();
	be_interrupted(HARDIRQ_BH_OFF);
	tell(BH_OFF_INTERRUPTED);
	local_bh_enable();

	/* Masked until it is due for long, and taken as soon as that ends. */
	local_irq_disable();
	start_timer(HARDIRQ_HELD_BACK, 1);
	asm volatile("1: dec %0\n\tjnz 1b" : "+r"(n) : : "cc");
	tell(HOLDING_BACK);
	local_irq_enable();
	spin_until_expired();
	tell(HELD_BACK_DONE);

	irq_work_queue(&irq_work);
	irq_work_sync(&irq_work);
	tell(IRQ_WORK_DONE);
}

static bool faults(void)
{
	char byte;

	return copy_from_kernel_nofault(&byte, nowhere, sizeof(byte)) == -EFAULT;
}

static void with_faults(void)
{
	unsigned long address;

	if (faults())
		tell(FAULTED);
	local_irq_disable();
	if (faults())
		tell(FAULTED_IRQS_OFF);
	local_irq_enable();
	preempt_disable();
	if (faults())
		tell(FAULTED_PREEMPT_OFF);
	preempt_enable();

	/* One that is served, with interrupts on and by what may sleep: the page is not there before it is written. */
	kthread_use_mm(space);
	address = vm_mmap(NULL, 0, PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, 0);
	if (!IS_ERR_VALUE(address)) {
		if (!put_user(1, (char __user *)address))
			tell(FAULT_SERVED);
		vm_munmap(address, PAGE_SIZE);
	}
	kthread_unuse_mm(space);
}

static int round(void *unused)
{
	/* Others have no part in what is waited for here. */
	sched_set_fifo_low(current);
	while (!kthread_should_stop()) {
		tell(IN_THREAD);
		with_irqs_off();
		with_locks();
		with_preemption_off();
		with_bottom_halves_off();
		with_interrupts();
		with_faults();
		msleep(1);
		tell(SLEPT);
		/* Whatever runs then: user space, softirqs, the idle task. */
		start_timer(ANYWHERE, TIMES);
		while (READ_ONCE(timer_left))
			msleep(1);
	}
	return 0;
}

static int __init test_init(void)
{
	char *page = vmalloc(PAGE_SIZE);

	if (!page)
		return -ENOMEM;
	/* The page that guards it. */
	nowhere = page + PAGE_SIZE;
	space = get_task_mm(current);
	if (!space || !faults())
		return -EIO;
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
	hrtimer_setup(&timer, expire, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
#else
	hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	timer.function = expire;
#endif
	return PTR_ERR_OR_ZERO(kthread_run(round, NULL, "test-flags"));
}
module_init(test_init);

MODULE_DESCRIPTION("what the kernel holds of its own flags");
MODULE_LICENSE("GPL");
