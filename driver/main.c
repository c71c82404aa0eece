// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * onset_port - answers each trigger from every mechanism that Linux has for it,
 * and so shows how long each takes. A trigger is the interrupt of a parallel
 * port, answered on its data pins for an instrument at the other end of the
 * cable; or a high-resolution timer's, answered by reading the clock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/string.h>

#include "onset.h"

static const char * const onset_trigger_names[] = { "port", "timer" };

static const struct onset_source * const onset_sources[] = {
	&onset_port_source,
	&onset_timer_source,
};

const struct onset_source *onset_source = &onset_port_source;

static int onset_set_trigger(const char *val, const struct kernel_param *kp)
{
	int i = sysfs_match_string(onset_trigger_names, val);

	if (i < 0) {
		pr_err("trigger=: \"%s\" is neither port nor timer\n", val);
		return i;
	}
	onset_source = onset_sources[i];
	return 0;
}

static int onset_get_trigger(char *buf, const struct kernel_param *kp)
{
	bool timer = onset_source == &onset_timer_source;

	return scnprintf(buf, PAGE_SIZE, "%s\n", onset_trigger_names[timer]);
}

static const struct kernel_param_ops onset_trigger_ops = {
	.set = onset_set_trigger,
	.get = onset_get_trigger,
};
module_param_cb(trigger, &onset_trigger_ops, NULL, 0444);
__MODULE_PARM_TYPE(trigger, "string");
MODULE_PARM_DESC(trigger, "port: the interrupt of a parallel port; timer: a high-resolution timer (default port)");

static int __init onset_init(void)
{
	int err;

	err = onset_source->claim();
	if (err)
		return err;
	err = onset_start_responders();
	if (err)
		goto out_release;
	err = onset_source->connect();
	if (err)
		goto out_stop_responders;
	err = onset_connect_disturbance();
	if (err)
		goto out_disconnect;
	err = onset_register_task();
	if (err)
		goto out_disconnect_disturbance;
	onset_source->enable();
	return 0;

out_disconnect_disturbance:
	onset_disconnect_disturbance();
out_disconnect:
	onset_source->disconnect();
out_stop_responders:
	onset_stop_responders();
out_release:
	onset_source->release();
	return err;
}

static void __exit onset_exit(void)
{
	onset_source->disable();
	onset_deregister_task();
	onset_disconnect_disturbance();
	onset_source->disconnect();
	onset_stop_responders();
	onset_source->release();
}

module_init(onset_init);
module_exit(onset_exit);

MODULE_DESCRIPTION("Answers the interrupt of a parallel port, or a timer, from every mechanism of Linux");
MODULE_LICENSE("GPL");
