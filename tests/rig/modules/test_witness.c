// SPDX-License-Identifier: GPL-2.0-or-later
/* Runs a program of the host on two files of the host, inside the guest, and says how it ended. */
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/umh.h>

static int __init test_init(void)
{
	char *argv[] = { "/usr/bin/cmp", "/srv/one", "/srv/other", NULL };
	char *envp[] = { "PATH=/usr/bin", NULL };

	pr_err("cmp gave %d\n", call_usermodehelper(argv[0], argv, envp, UMH_WAIT_PROC));
	return 0;
}
module_init(test_init);

MODULE_DESCRIPTION("runs a program");
MODULE_LICENSE("GPL");
