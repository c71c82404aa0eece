// SPDX-License-Identifier: GPL-2.0-or-later
/* Spins with interrupts off, for ever. */
#include <linux/irqflags.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/timer.h>

static void strike(struct timer_list *unused)
{
	local_irq_disable();
	for (;;)
		cpu_relax();
}
static DEFINE_TIMER(timer, strike);

static int __init test_init(void)
{
	mod_timer(&timer, jiffies + msecs_to_jiffies(2500));
	return 0;
}
module_init(test_init);

MODULE_DESCRIPTION("hangs");
MODULE_LICENSE("GPL");
