// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * GPIO lines as trigger and answers, by gpiolib: an instrument raises one line,
 * whose interrupt is the trigger, and watches the others, of which each
 * responder toggles its own. So a board without a parallel port can be measured.
 *
 * The lines are those of a platform device. Firmware has such a device (device
 * tree, ACPI) or another module makes one (a software node); else this module
 * makes one of its own, and a lookup table by which gpiolib finds the lines
 * that the parameters name. README.md has the binding.
 *
 * The first of the answer lines is of the first responder that is active, in
 * the order of their numbers, and so on: few lines do for few responders. What
 * lines there are beyond that is left alone.
 *
 * An answer is made with interrupts off, so a chip whose lines sleep cannot be
 * used. The time of an answer contains gpiolib and the chip's driver.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bits.h>
#include <linux/err.h>
#include <linux/gpio/consumer.h>
#include <linux/gpio/machine.h>
#include <linux/interrupt.h>
#include <linux/irq.h>
#include <linux/irqdesc.h>
#include <linux/kernel.h>
#include <linux/lockdep.h>
#include <linux/mod_devicetable.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/platform_device.h>
#include <linux/slab.h>

#include "onset.h"

/* By this name devices and this driver find each other without firmware. */
#define ONSET_GPIO_NAME		"onset-gpio"

/**
 * struct onset_gpio - the one device, and its lines
 * @mutex: protects @bound and @connected: a device may go before the module
 * @own: the device that this module made; NULL where somebody else did
 * @table: where gpiolib finds the lines of @own
 * @err: why the device's lines cannot be used
 * @bound: whether there is a device, and its lines are ours
 * @connected: whether the interrupt is handled
 * @irq: the interrupt of the trigger
 * @edge: which edge of its line interrupts
 * @answers: for each active responder its line
 * @levels: what they were set to; each responder toggles its own bit
 */
struct onset_gpio {
	struct mutex mutex;
	struct platform_device *own;
	struct gpiod_lookup_table *table;
	int err;
	bool bound;
	bool connected;
	unsigned int irq;
	unsigned long edge;
	struct gpio_desc *answers[ONSET_RESPONDERS];
	unsigned long levels;
};

static struct onset_gpio gpio = {
	.mutex = __MUTEX_INITIALIZER(gpio.mutex),
};

static char *chip;
module_param(chip, charp, 0444);
MODULE_PARM_DESC(chip, "gpio: label of the chip with the lines (default: a device of the firmware has them)");

static ushort trigger_line;
module_param(trigger_line, ushort, 0444);
MODULE_PARM_DESC(trigger_line, "gpio: number of the chip's line that triggers (default 0)");

static ushort answer_lines[ONSET_RESPONDERS];
static unsigned int answer_count;
module_param_array(answer_lines, ushort, &answer_count, 0444);
MODULE_PARM_DESC(answer_lines, "gpio: comma-separated numbers of the chip's lines that answer, in the order of the responders");

/* The edge tells the instrument; it counts the triggers by itself. */
static void onset_toggle_line(enum onset_responder r, u64 first, u64 taken)
{
	gpio.levels ^= BIT(r);
	gpiod_set_value(gpio.answers[r], !!(gpio.levels & BIT(r)));
}

/* Says why a line cannot be had, and what to do about it; gives the module's own error. */
static int onset_refuse(const char *function, unsigned int index, int err)
{
	int own = err;
	const char *why;

	switch (err) {
	case -EPROBE_DEFER:
		own = -ENODEV;
		why = "its chip is not there; gpiodetect and /sys/kernel/debug/gpio show the chips, with their labels in brackets";
		break;
	case -EBUSY:
		why = "it is in use, or named twice; gpioinfo and /sys/kernel/debug/gpio show by whom: take another line";
		break;
	case -ENOENT:
		own = -EINVAL;
		why = chip ? "it is not named: name as many answer lines as there are responders, or fewer in responders=" :
			"the device does not name it, or its chip is none of the firmware: correct trigger-gpios and answer-gpios, which has a line for each responder";
		break;
	case -ENOSYS:
		why = "this kernel has no gpiolib (CONFIG_GPIOLIB)";
		break;
	case -EINVAL:
		why = "the chip has no such line, or it cannot have that direction";
		break;
	default:
		why = "gpiolib or the chip's driver refuses it";
	}
	pr_err("%s line %u cannot be had (error %d): %s\n", function, index, err, why);
	return own;
}

/* The trigger's line, and the interrupt that its rising edge is. */
static int onset_get_trigger_line(struct device *dev)
{
	struct gpio_desc *line = devm_gpiod_get(dev, "trigger", GPIOD_IN);
	int irq;

	if (IS_ERR(line))
		return onset_refuse("trigger", 0, PTR_ERR(line));
	gpiod_set_consumer_name(line, "onset trigger");
	irq = gpiod_to_irq(line);
	if (irq < 0) {
		pr_err("the trigger line has no interrupt (error %d): take a line of a chip that can interrupt\n",
		       irq);
		return irq;
	}
	/* Such an interrupt calls no hard handler, which everybody here waits for. */
	if (irq_check_status_bit(irq, IRQ_NESTED_THREAD)) {
		pr_err("the trigger line's chip sleeps to find out who interrupts: take a line of the processor, not one behind I2C or SPI\n");
		return -EOPNOTSUPP;
	}
	gpio.irq = irq;
	gpio.edge = gpiod_is_active_low(line) ? IRQF_TRIGGER_FALLING : IRQF_TRIGGER_RISING;
	return 0;
}

/* The line of a responder, the one at @index of those that answer. */
static int onset_get_answer_line(struct device *dev, enum onset_responder r, unsigned int index)
{
	struct gpio_desc *line = devm_gpiod_get_index(dev, "answer", index, GPIOD_OUT_LOW);
	char name[32];

	if (IS_ERR(line))
		return onset_refuse("answer", index, PTR_ERR(line));
	if (gpiod_cansleep(line)) {
		pr_err("answer line %u sleeps, and answers are made with interrupts off: take a line of the processor, not one behind I2C or SPI\n",
		       index);
		return -EOPNOTSUPP;
	}
	scnprintf(name, sizeof(name), "onset %s", onset_name(r));
	gpiod_set_consumer_name(line, name);
	gpio.answers[r] = line;
	return 0;
}

/* The lines of the device, which go back by themselves when it goes. */
static int onset_get_lines(struct device *dev)
{
	unsigned int index = 0;
	int err, r;

	err = onset_get_trigger_line(dev);
	for (r = 0; !err && r < ONSET_RESPONDERS; r++)
		if (onset_active(r))
			err = onset_get_answer_line(dev, r, index++);
	return err;
}

/* To be called with the mutex. Waits for the hard handler and for threaded_irq. */
static void onset_disconnect_locked(void)
{
	lockdep_assert_held(&gpio.mutex);
	if (gpio.connected)
		onset_disconnect_interrupt(gpio.irq);
	gpio.connected = false;
}

/*
 * The lines go now: at the end of the module, or before, when somebody removes
 * the device. Then nobody triggers any more, and what is not answered stays so.
 */
static void onset_unbind(void *unused)
{
	u64 unanswered[ONSET_RESPONDERS];

	mutex_lock(&gpio.mutex);
	onset_disconnect_locked();
	gpio.bound = false;
	mutex_unlock(&gpio.mutex);
	onset_give_up(unanswered);
}

static int onset_bind(struct platform_device *pdev)
{
	/* Who names lines means these, also where firmware has a device. */
	if (gpio.own && gpio.own != pdev)
		return -ENODEV;
	if (gpio.bound) {
		pr_err("%s is a second device with lines, and one is enough: it is left alone\n",
		       dev_name(&pdev->dev));
		return -EBUSY;
	}
	gpio.err = onset_get_lines(&pdev->dev);
	if (gpio.err)
		return gpio.err;
	gpio.err = devm_add_action(&pdev->dev, onset_unbind, NULL);
	gpio.bound = !gpio.err;
	return gpio.err;
}

/*
 * No MODULE_DEVICE_TABLE: whoever loads the module says who answers. A board
 * that loaded it at boot would answer with everything that the kernel has. ACPI
 * finds the compatible by PRP0001.
 */
static const struct of_device_id onset_gpio_match[] = {
	{ .compatible = "onset,gpio-lines" },
	{ }
};

static struct platform_driver onset_gpio_driver = {
	.driver = {
		.name		= ONSET_GPIO_NAME,
		.of_match_table	= onset_gpio_match,
	},
};

static int onset_check_parameters(void)
{
	unsigned int i, j;

	if (!answer_count) {
		pr_err("chip= without answer_lines=: name the lines that answer, as in answer_lines=27,22\n");
		return -EINVAL;
	}
	for (i = 0; i < answer_count; i++) {
		bool twice = answer_lines[i] == trigger_line;

		for (j = 0; j < i; j++)
			twice |= answer_lines[i] == answer_lines[j];
		if (twice) {
			pr_err("line %u is named twice in trigger_line= and answer_lines=\n",
			       answer_lines[i]);
			return -EINVAL;
		}
	}
	return 0;
}

/* A device of our own, and where its lines are. */
static int onset_make_device(void)
{
	struct gpiod_lookup_table *table;
	unsigned int i;

	/* The trigger, the answers, and an empty one at the end. */
	table = kzalloc(struct_size(table, table, answer_count + 2), GFP_KERNEL);
	if (!table)
		return -ENOMEM;
	table->table[0] = GPIO_LOOKUP(chip, trigger_line, "trigger", GPIO_ACTIVE_HIGH);
	for (i = 0; i < answer_count; i++)
		table->table[1 + i] = GPIO_LOOKUP_IDX(chip, answer_lines[i], "answer", i,
						      GPIO_ACTIVE_HIGH);
	gpio.own = platform_device_register_simple(ONSET_GPIO_NAME, PLATFORM_DEVID_AUTO, NULL, 0);
	if (IS_ERR(gpio.own)) {
		int err = PTR_ERR(gpio.own);

		gpio.own = NULL;
		kfree(table);
		return err;
	}
	table->dev_id = dev_name(&gpio.own->dev);
	gpiod_add_lookup_table(table);
	gpio.table = table;
	return 0;
}

static void onset_remove_device(void)
{
	if (!gpio.own)
		return;
	/* First the table, which has the device's name. */
	gpiod_remove_lookup_table(gpio.table);
	platform_device_unregister(gpio.own);
	kfree(gpio.table);
	gpio.own = NULL;
}

/**
 * onset_claim_gpio() - take the lines: those of the parameters, or of a device
 *
 * Return: 0, -ENODEV when no device has lines, -EINVAL for wrong parameters, or
 * the error by which a line cannot be had.
 */
static int onset_claim_gpio(void)
{
	int err;

	if (chip) {
		err = onset_check_parameters();
		if (!err)
			err = onset_make_device();
		if (err)
			return err;
	}
	/* Binds what is there now, and nothing later: the lines stay as they are. */
	err = platform_driver_probe(&onset_gpio_driver, onset_bind);
	if (!err)
		return 0;
	if (!gpio.err)
		pr_err("no device has lines: name them with chip=, trigger_line= and answer_lines=, or give the device tree, ACPI or a software node such a device (driver/README.md)\n");
	onset_remove_device();
	return gpio.err ?: err;
}

/* The lines keep their level: an edge on the way out would be an answer. */
static void onset_give_back_gpio(void)
{
	platform_driver_unregister(&onset_gpio_driver);
	onset_remove_device();
}

static int onset_connect_gpio(void)
{
	int err = -ENODEV;

	mutex_lock(&gpio.mutex);
	if (gpio.bound)
		err = onset_connect_interrupt(gpio.irq, gpio.edge);
	gpio.connected = !err;
	mutex_unlock(&gpio.mutex);
	if (err)
		pr_err("cannot have interrupt %u of the trigger line (error %d): its chip does not interrupt at an edge, or another driver has it (see /proc/interrupts)\n",
		       gpio.irq, err);
	return err;
}

static void onset_disconnect_gpio(void)
{
	mutex_lock(&gpio.mutex);
	onset_disconnect_locked();
	mutex_unlock(&gpio.mutex);
}

/* The interrupt is on since it is handled: a GPIO line has no switch of its own. */
static void onset_enable_gpio(void)
{
	char names[ONSET_NAMES_SIZE];

	onset_list_active(names, sizeof(names));
	pr_info("trigger=gpio irq=%u threaded=%c responders=%s\n", gpio.irq,
		onset_threaded ? 'Y' : 'N', names);
}

static void onset_disable_gpio(void) { }

const struct onset_source onset_gpio_source = {
	.claim		= onset_claim_gpio,
	.release	= onset_give_back_gpio,
	.connect	= onset_connect_gpio,
	.disconnect	= onset_disconnect_gpio,
	.enable		= onset_enable_gpio,
	.disable	= onset_disable_gpio,
	.answer		= onset_toggle_line,
};
