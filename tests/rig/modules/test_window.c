// SPDX-License-Identifier: GPL-2.0-or-later
/* Keeps interrupts off for 137 us in each 4 ms, so that the guest still counts as idle. */
#include <linux/delay.h>
#include <linux/hrtimer.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/version.h>

#define PERIOD	ms_to_ktime(4)

static enum hrtimer_restart strike(struct hrtimer *timer)
{
	udelay(137);
	hrtimer_forward_now(timer, PERIOD);
	return HRTIMER_RESTART;
}

static struct hrtimer timer;

static int __init test_init(void)
{
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 15, 0)
	hrtimer_setup(&timer, strike, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
#else
	hrtimer_init(&timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_HARD);
	timer.function = strike;
#endif
	hrtimer_start(&timer, PERIOD, HRTIMER_MODE_REL_HARD);
	return 0;
}
module_init(test_init);

MODULE_DESCRIPTION("keeps interrupts off");
MODULE_LICENSE("GPL");
