// SPDX-License-Identifier: GPL-2.0-or-later
/* Panics while the guest is being measured. */
#include <linux/jiffies.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/timer.h>

static void strike(struct timer_list *unused)
{
	panic("planted by a test");
}
static DEFINE_TIMER(timer, strike);

static int __init test_init(void)
{
	mod_timer(&timer, jiffies + msecs_to_jiffies(2500));
	return 0;
}
module_init(test_init);

MODULE_DESCRIPTION("panics");
MODULE_LICENSE("GPL");
