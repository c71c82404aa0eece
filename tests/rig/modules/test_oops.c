// SPDX-License-Identifier: GPL-2.0-or-later
/* Writes to address 8 while the guest is being measured. */
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/workqueue.h>

static void strike(struct work_struct *unused)
{
	WRITE_ONCE(*(int *)8, 1);
}
static DECLARE_DELAYED_WORK(work, strike);

static int __init test_init(void)
{
	schedule_delayed_work(&work, msecs_to_jiffies(2500));
	return 0;
}
module_init(test_init);

MODULE_DESCRIPTION("faults");
MODULE_LICENSE("GPL");
