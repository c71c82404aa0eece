// SPDX-License-Identifier: GPL-2.0-or-later
/* Unloads the driver while the guest is being measured, and says how that went. */
#include <linux/jiffies.h>
#include <linux/module.h>
#include <linux/umh.h>
#include <linux/workqueue.h>

static void strike(struct work_struct *unused)
{
	char *argv[] = { "/usr/bin/rmmod", "onset_port", NULL };
	char *envp[] = { "PATH=/usr/bin", NULL };

	pr_err("rmmod onset_port: status %d\n", call_usermodehelper(argv[0], argv, envp, UMH_WAIT_PROC));
}
static DECLARE_DELAYED_WORK(work, strike);

static int __init test_init(void)
{
	schedule_delayed_work(&work, msecs_to_jiffies(2500));
	return 0;
}
module_init(test_init);

MODULE_DESCRIPTION("unloads the driver");
MODULE_LICENSE("GPL");
