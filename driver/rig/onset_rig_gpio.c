// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The GPIO chip of the virtual rig: the parallel port of the plugin as lines of
 * gpiolib. Debian's kernels have no chip that a guest without one could use.
 *
 * Line n is data pin n, of the port's register or of the rig's second one. The
 * line behind them all is nACK: an input, whose
 * interrupt is the port's. So the plugin triggers and sees the answers as on
 * the port itself, and a driver that answers by gpiolib is measured by the same
 * instrument as one that writes the port's register.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/acpi.h>
#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/device.h>
#include <linux/gpio/driver.h>
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/module.h>
#include <linux/property.h>
#include <linux/spinlock.h>
#include <linux/version.h>

#include "onset_wire.h"

/* Registers of the parallel port, as in port.c. */
#define ONSET_CONTROL		2
#define ONSET_REGISTERS		3
#define ONSET_CONTROL_IRQ	BIT(4)

/* The input's number: the first behind the pins of all responders. */
#define ONSET_TRIGGER_LINE	ONSET_RESPONDERS

static_assert(ONSET_RESPONDERS <= 2 * ONSET_DATA_PINS, "two data registers have no more pins");

/**
 * struct onset_rig_chip - the one chip
 * @gc: the part that gpiolib knows
 * @lock: protects @latch, also where PREEMPT_RT makes other locks sleep
 * @latch: what the data registers hold
 */
struct onset_rig_chip {
	struct gpio_chip gc;
	raw_spinlock_t lock;
	u16 latch;
};

static struct onset_rig_chip chip = {
	.lock = __RAW_SPIN_LOCK_UNLOCKED(chip.lock),
};

/* By this node a software node of somebody else names the chip's lines. */
static const struct software_node onset_rig_node = {
	.name = ONSET_CHIP,
};

/* A device of this identifier is the chip, where a test gives the guest a table of ACPI with one. */
#define ONSET_CHIP_HID		"ONST0001"

static bool sleeps;
module_param(sleeps, bool, 0444);
MODULE_PARM_DESC(sleeps, "say that the lines sleep, to try who refuses such lines (default N)");

static int onset_rig_get_direction(struct gpio_chip *gc, unsigned int offset)
{
	return offset == ONSET_TRIGGER_LINE ? GPIO_LINE_DIRECTION_IN : GPIO_LINE_DIRECTION_OUT;
}

static int onset_rig_get(struct gpio_chip *gc, unsigned int offset)
{
	/* The port's status register does not show the level of nACK. */
	return offset == ONSET_TRIGGER_LINE ? 0 : !!(chip.latch & BIT(offset));
}

static int onset_rig_write(struct gpio_chip *gc, unsigned int offset, int value)
{
	unsigned long flags;

	if (offset == ONSET_TRIGGER_LINE)
		return -EINVAL;
	raw_spin_lock_irqsave(&chip.lock, flags);
	if (value)
		chip.latch |= BIT(offset);
	else
		chip.latch &= ~BIT(offset);
	if (offset < ONSET_DATA_PINS)
		outb(chip.latch, ONSET_PORT);
	else
		outb(chip.latch >> ONSET_DATA_PINS, ONSET_HIGHER_PORT);
	raw_spin_unlock_irqrestore(&chip.lock, flags);
	return 0;
}

/* set() gives an error since Linux 6.17. */
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 17, 0)
#define onset_rig_set	onset_rig_write
#else
static void onset_rig_set(struct gpio_chip *gc, unsigned int offset, int value)
{
	onset_rig_write(gc, offset, value);
}
#endif

static int onset_rig_direction_input(struct gpio_chip *gc, unsigned int offset)
{
	return offset == ONSET_TRIGGER_LINE ? 0 : -EINVAL;
}

static int onset_rig_to_irq(struct gpio_chip *gc, unsigned int offset)
{
	return offset == ONSET_TRIGGER_LINE ? ONSET_PORT_IRQ : -ENXIO;
}

/*
 * The device that the kernel made of the one in ACPI's tables; NULL where there is none. gpiolib knows the chip of an
 * ACPI line by such a device, which has to be the chip's parent, and which stays as long as the guest runs.
 */
static struct device *onset_rig_find_parent(void)
{
	struct acpi_device *firmware = acpi_dev_get_first_match_dev(ONSET_CHIP_HID, NULL, -1);
	struct device *parent;

	if (!firmware)
		return NULL;
	parent = acpi_get_first_physical_node(firmware);
	acpi_dev_put(firmware);
	return parent;
}

static int __init onset_rig_init(void)
{
	struct device *parent = onset_rig_find_parent();
	int err;

	if (!request_region(ONSET_PORT, ONSET_REGISTERS, KBUILD_MODNAME))
		return -EBUSY;
	if (!request_region(ONSET_HIGHER_PORT, 1, KBUILD_MODNAME)) {
		err = -EBUSY;
		goto out_release;
	}
	err = software_node_register(&onset_rig_node);
	if (err)
		goto out_release_higher;
	chip.gc = (struct gpio_chip) {
		.label			= ONSET_CHIP,
		.owner			= THIS_MODULE,
		.parent			= parent,
		/* A chip without a node of its own has its parent's. */
		.fwnode			= parent ? NULL : software_node_fwnode(&onset_rig_node),
		.base			= -1,
		.ngpio			= ONSET_TRIGGER_LINE + 1,
		.can_sleep		= sleeps,
		.get_direction		= onset_rig_get_direction,
		.direction_input	= onset_rig_direction_input,
		.direction_output	= onset_rig_write,
		.get			= onset_rig_get,
		.set			= onset_rig_set,
		.to_irq			= onset_rig_to_irq,
	};
	outb(chip.latch, ONSET_PORT);
	outb(chip.latch >> ONSET_DATA_PINS, ONSET_HIGHER_PORT);
	err = gpiochip_add_data(&chip.gc, NULL);
	if (err)
		goto out_unregister;
	outb(ONSET_CONTROL_IRQ, ONSET_PORT + ONSET_CONTROL);
	return 0;

out_unregister:
	software_node_unregister(&onset_rig_node);
out_release_higher:
	release_region(ONSET_HIGHER_PORT, 1);
out_release:
	release_region(ONSET_PORT, ONSET_REGISTERS);
	return err;
}

static void __exit onset_rig_exit(void)
{
	outb(0, ONSET_PORT + ONSET_CONTROL);
	gpiochip_remove(&chip.gc);
	software_node_unregister(&onset_rig_node);
	release_region(ONSET_HIGHER_PORT, 1);
	release_region(ONSET_PORT, ONSET_REGISTERS);
}

module_init(onset_rig_init);
module_exit(onset_rig_exit);

MODULE_DESCRIPTION("The parallel port of onset's virtual rig as a GPIO chip");
MODULE_LICENSE("GPL");
