// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The parallel port as trigger. An instrument raises nACK, which is the port's
 * interrupt, and watches D0 ... D7, on which the responders answer. The module
 * owns the port by itself. It does without parport, whose locking and sharing
 * would be part of what is measured.
 *
 * A parallel port has eight data pins. The virtual rig has a second data
 * register, at ONSET_HIGHER_PORT, for the responders whose number is above 7.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bits.h>
#include <linux/io.h>
#include <linux/ioport.h>
#include <linux/moduleparam.h>
#include <linux/stringify.h>

#include "onset.h"

/* Registers of the PC's parallel port, from its base. */
#define ONSET_DATA		0
#define ONSET_CONTROL		2
#define ONSET_REGISTERS		3

/* Control register: the four control lines, and whether nACK interrupts. */
#define ONSET_CONTROL_LINES	GENMASK(3, 0)
#define ONSET_CONTROL_IRQ	BIT(4)

/**
 * struct onset_port - the one port that the module owns
 * @latch: what the data registers hold; each responder toggles its own bit
 * @control: the control register as it was found
 * @higher: whether the module has the second data register
 */
struct onset_port {
	u16 latch;
	u8 control;
	bool higher;
};

static struct onset_port port;

static unsigned short io = ONSET_PORT;
module_param_hw(io, ushort, ioport, 0444);
MODULE_PARM_DESC(io, "port: first I/O port (default " __stringify(ONSET_PORT) ")");

static unsigned int irq = ONSET_PORT_IRQ;
module_param_hw(irq, uint, irq, 0444);
MODULE_PARM_DESC(irq, "port: interrupt (default " __stringify(ONSET_PORT_IRQ) ")");

/* The edge tells the instrument; it counts the triggers by itself. */
static void onset_toggle(enum onset_responder r, u64 first, u64 taken)
{
	port.latch ^= BIT(r);
	if (r < ONSET_DATA_PINS)
		outb(port.latch, io + ONSET_DATA);
	else
		outb(port.latch >> ONSET_DATA_PINS, ONSET_HIGHER_PORT);
}

/**
 * onset_claim_higher() - take the rig's second data register, where it is needed
 *
 * Return: 0, -EINVAL when a responder needs a pin that a parallel port has not,
 * -EBUSY when the I/O port is taken.
 */
static int onset_claim_higher(void)
{
	char names[ONSET_NAMES_SIZE];

	if (!onset_list_without_data_pin(names, sizeof(names)))
		return 0;
	/* Only read: on a machine anything may be at this port. */
	if (inb(ONSET_MARK_PORT) != ONSET_PRESENT) {
		pr_err("responders=: a parallel port has eight data pins, and none for %s; name the first eight only, or answer on GPIO lines\n",
		       names);
		return -EINVAL;
	}
	if (!request_region(ONSET_HIGHER_PORT, 1, KBUILD_MODNAME)) {
		pr_err("I/O port %#x is not free (see /proc/ioports); name none of %s in responders=\n",
		       ONSET_HIGHER_PORT, names);
		return -EBUSY;
	}
	port.higher = true;
	return 0;
}

static void onset_give_back_higher(void)
{
	if (port.higher)
		release_region(ONSET_HIGHER_PORT, 1);
}

/**
 * onset_claim_port() - take the I/O ports and make them a quiet output
 *
 * Finds out whether a port is there by what its data register reads back, and
 * leaves the pins as it found them.
 *
 * Return: 0, -EBUSY when the I/O ports are taken, -ENODEV when nothing answers,
 * or the error of onset_claim_higher().
 */
static int onset_claim_port(void)
{
	static const u8 patterns[] = { 0x55, 0xaa };
	bool present = true;
	u8 control, data;
	size_t i;
	int err;

	err = onset_claim_higher();
	if (err)
		return err;
	if (!request_region(io, ONSET_REGISTERS, KBUILD_MODNAME)) {
		pr_err("I/O ports %#x-%#x are not free (see /proc/ioports); is parport_pc loaded? rmmod or blacklist it\n",
		       io, io + ONSET_REGISTERS - 1);
		onset_give_back_higher();
		return -EBUSY;
	}
	control = inb(io + ONSET_CONTROL);
	outb(control & ONSET_CONTROL_LINES, io + ONSET_CONTROL);

	data = inb(io + ONSET_DATA);
	for (i = 0; i < ARRAY_SIZE(patterns); i++) {
		outb(patterns[i], io + ONSET_DATA);
		present &= inb(io + ONSET_DATA) == patterns[i];
	}
	outb(data, io + ONSET_DATA);
	if (!present) {
		pr_err("no parallel port at %#x: its data register does not read back; check io= and the firmware's set-up\n",
		       io);
		outb(control, io + ONSET_CONTROL);
		release_region(io, ONSET_REGISTERS);
		onset_give_back_higher();
		return -ENODEV;
	}
	port.control = control;
	port.latch = data;
	if (port.higher)
		port.latch |= inb(ONSET_HIGHER_PORT) << ONSET_DATA_PINS;
	return 0;
}

/**
 * onset_give_back_port() - leave the port without its interrupt
 *
 * The pins keep their level: an edge on the way out would be an answer.
 */
static void onset_give_back_port(void)
{
	outb(port.control & ~ONSET_CONTROL_IRQ, io + ONSET_CONTROL);
	release_region(io, ONSET_REGISTERS);
	onset_give_back_higher();
}

/**
 * onset_connect_port() - have the interrupt handled
 *
 * Return: 0, or the error of request_threaded_irq().
 */
static int onset_connect_port(void)
{
	int err = onset_connect_interrupt(irq, 0);

	if (err)
		pr_err("cannot have interrupt %u (error %d): irq= is wrong, or another driver has it (see /proc/interrupts)\n",
		       irq, err);
	return err;
}

/**
 * onset_disconnect_port() - wait for the hard handler and for threaded_irq
 */
static void onset_disconnect_port(void)
{
	onset_disconnect_interrupt(irq);
}

/**
 * onset_enable_port() - let the port interrupt, and say with what
 */
static void onset_enable_port(void)
{
	char names[ONSET_NAMES_SIZE];

	onset_list_active(names, sizeof(names));
	pr_info("io=%#x irq=%u threaded=%c responders=%s\n", io, irq, onset_threaded ? 'Y' : 'N', names);
	outb((port.control & ONSET_CONTROL_LINES) | ONSET_CONTROL_IRQ, io + ONSET_CONTROL);
}

/**
 * onset_disable_port() - keep the port from interrupting
 */
static void onset_disable_port(void)
{
	outb(port.control & ONSET_CONTROL_LINES, io + ONSET_CONTROL);
}

const struct onset_source onset_port_source = {
	.claim		= onset_claim_port,
	.release	= onset_give_back_port,
	.connect	= onset_connect_port,
	.disconnect	= onset_disconnect_port,
	.enable		= onset_enable_port,
	.disable	= onset_disable_port,
	.answer		= onset_toggle,
};
