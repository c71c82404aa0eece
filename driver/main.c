// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * onset_port - answers each trigger from every mechanism that Linux has for it,
 * and so shows how long each takes. A trigger is the interrupt of a parallel
 * port, answered on its data pins for an instrument at the other end of the
 * cable; or that of a GPIO line, answered on other GPIO lines; or a
 * high-resolution timer's, answered by reading the clock.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/string.h>

#include "onset.h"

/* What there is to choose from; the first is the default. */
static const struct {
	const char *name;
	const struct onset_source *source;
} onset_sources[] = {
#ifdef ONSET_HAS_IOPORT
	{ "port", &onset_port_source },
#endif
	{ "gpio", &onset_gpio_source },
	{ "timer", &onset_timer_source },
};

/* Which of them, and the same as the others know it. */
static unsigned int chosen;
const struct onset_source *onset_source;

static int onset_set_trigger(const char *val, const struct kernel_param *kp)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(onset_sources); i++) {
		if (sysfs_streq(onset_sources[i].name, val)) {
			chosen = i;
			return 0;
		}
	}
	pr_err("trigger=: \"%s\" is none of port (where there are I/O ports), gpio and timer\n", val);
	return -EINVAL;
}

static int onset_get_trigger(char *buf, const struct kernel_param *kp)
{
	return scnprintf(buf, PAGE_SIZE, "%s\n", onset_sources[chosen].name);
}

static const struct kernel_param_ops onset_trigger_ops = {
	.set = onset_set_trigger,
	.get = onset_get_trigger,
};
module_param_cb(trigger, &onset_trigger_ops, NULL, 0444);
__MODULE_PARM_TYPE(trigger, "string");
MODULE_PARM_DESC(trigger, "port: the interrupt of a parallel port; gpio: that of a GPIO line; timer: a high-resolution timer (default port, or gpio where there are no I/O ports)");

static int __init onset_init(void)
{
	int err;

	onset_source = onset_sources[chosen].source;
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

MODULE_DESCRIPTION("Answers the interrupt of a parallel port or a GPIO line, or a timer, from every mechanism of Linux");
MODULE_LICENSE("GPL");
