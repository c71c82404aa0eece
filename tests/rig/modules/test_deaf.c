// SPDX-License-Identifier: GPL-2.0-or-later
/* Disables the port's interrupt: triggers are raised and nobody hears them. */
#include <linux/interrupt.h>
#include <linux/module.h>

static int __init test_init(void)
{
	disable_irq(7);
	return 0;
}
module_init(test_init);

MODULE_DESCRIPTION("disables interrupt 7");
MODULE_LICENSE("GPL");
