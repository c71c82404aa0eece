// SPDX-License-Identifier: GPL-2.0-or-later
/* Takes all memory and keeps it. */
#include <linux/gfp.h>
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/workqueue.h>

static void strike(struct work_struct *unused)
{
	while (alloc_pages(GFP_KERNEL, 0))
		;
}
static DECLARE_DELAYED_WORK(work, strike);

static int __init test_init(void)
{
	schedule_delayed_work(&work, msecs_to_jiffies(2500));
	return 0;
}
module_init(test_init);

MODULE_DESCRIPTION("eats memory");
MODULE_LICENSE("GPL");
