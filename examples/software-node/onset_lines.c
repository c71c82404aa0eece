// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A software node that gives onset_port its GPIO lines, for a board whose
 * firmware says nothing of them. Change the four values below, build it, load
 * it, and then load onset_port with trigger=gpio.
 */
#include <linux/err.h>
#include <linux/gpio/machine.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <linux/property.h>

/* The chip by the name of its own software node, and three of its lines. */
#define CHIP		"onset-rig"
#define TRIGGER		11
#define FIRST_ANSWER	0
#define SECOND_ANSWER	7

static struct platform_device *device;

static int __init lines_init(void)
{
	const struct software_node *chip = software_node_find_by_name(NULL, CHIP);
	struct software_node_ref_args trigger[1], answers[2];
	struct property_entry properties[] = {
		PROPERTY_ENTRY_REF_ARRAY_LEN("trigger-gpios", trigger, ARRAY_SIZE(trigger)),
		PROPERTY_ENTRY_REF_ARRAY_LEN("answer-gpios", answers, ARRAY_SIZE(answers)),
		{ }
	};
	struct platform_device_info info = {
		.name		= "onset-gpio",
		.id		= PLATFORM_DEVID_AUTO,
		.properties	= properties,
	};

	if (!chip) {
		pr_err("there is no software node " CHIP "\n");
		return -ENODEV;
	}
	trigger[0] = SOFTWARE_NODE_REFERENCE(chip, TRIGGER, GPIO_ACTIVE_HIGH);
	answers[0] = SOFTWARE_NODE_REFERENCE(chip, FIRST_ANSWER, GPIO_ACTIVE_HIGH);
	answers[1] = SOFTWARE_NODE_REFERENCE(chip, SECOND_ANSWER, GPIO_ACTIVE_HIGH);
	device = platform_device_register_full(&info);
	return PTR_ERR_OR_ZERO(device);
}

static void __exit lines_exit(void)
{
	platform_device_unregister(device);
}

module_init(lines_init);
module_exit(lines_exit);

MODULE_DESCRIPTION("GPIO lines for onset_port, as a software node");
MODULE_LICENSE("GPL");
