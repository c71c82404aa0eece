// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * onset_port - answers each interrupt of a parallel port from every mechanism
 * that Linux has for it, each on its own data pin, so that an instrument at
 * the other end of the cable sees how long each of them takes.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>

#include "onset.h"

static int __init onset_init(void)
{
	int err;

	err = onset_claim_port();
	if (err)
		return err;
	err = onset_start_responders();
	if (err)
		goto out_give_back_port;
	err = onset_connect_port();
	if (err)
		goto out_stop_responders;
	err = onset_register_task();
	if (err)
		goto out_disconnect;
	onset_enable_port();
	return 0;

out_disconnect:
	onset_disconnect_port();
out_stop_responders:
	onset_stop_responders();
out_give_back_port:
	onset_give_back_port();
	return err;
}

static void __exit onset_exit(void)
{
	onset_disable_port();
	onset_deregister_task();
	onset_disconnect_port();
	onset_stop_responders();
	onset_give_back_port();
}

module_init(onset_init);
module_exit(onset_exit);

MODULE_DESCRIPTION("Answers each interrupt of a parallel port from every mechanism of Linux, each on its own pin");
MODULE_LICENSE("GPL");
