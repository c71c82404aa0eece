/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The registers of the RP2040 that are used here, by the names and sections of its datasheet. */
#ifndef REGISTERS_H
#define REGISTERS_H

#include <stdint.h>

#define REGISTER(address)	(*(volatile uint32_t *)(address))
/* 2.1.2: writes to these aliases set or clear bits. */
#define SET_BITS(address)	REGISTER((address) + 0x2000)
#define CLEAR_BITS(address)	REGISTER((address) + 0x3000)

/* 2.14 resets */
#define RESETS_RESET		0x4000c000u
#define RESETS_DONE		0x4000c008u
#define RESET_DMA		(1u << 2)
#define RESET_IO_BANK0		(1u << 5)
#define RESET_PADS_BANK0	(1u << 8)
#define RESET_PIO0		(1u << 10)
#define RESET_PLL_SYS		(1u << 12)
#define RESET_PLL_USB		(1u << 13)
#define RESET_TIMER		(1u << 21)
#define RESET_USB		(1u << 24)

/* 2.15 clocks */
#define CLOCK_REF_CTRL		0x40008030u
#define CLOCK_REF_SELECTED	0x40008038u
#define CLOCK_SYS_CTRL		0x4000803cu
#define CLOCK_SYS_SELECTED	0x40008044u
#define CLOCK_USB_CTRL		0x40008054u
#define CLOCK_SYS_RESUS_CTRL	0x40008078u

/* 2.16 crystal, 2.18 PLLs */
#define XOSC_CTRL		0x40024000u
#define XOSC_STATUS		0x40024004u
#define XOSC_STARTUP		0x4002400cu
#define PLL_SYS			0x40028000u
#define PLL_USB			0x4002c000u
#define PLL_CS			0x0u
#define PLL_PWR			0x4u
#define PLL_FBDIV		0x8u
#define PLL_PRIM		0xcu

/* 4.6 timer, 4.7 watchdog (which makes the timer's microsecond) */
#define TIMER_HIGH		0x40054024u
#define TIMER_LOW		0x40054028u
#define WATCHDOG_TICK		0x4005802cu

/* 2.19 pins */
#define IO_CTRL(pin)		(0x40014004u + 8 * (pin))
#define IO_FUNCTION_PIO0	6u
#define IO_FUNCTION_NONE	31u
#define PAD(pin)		(0x4001c004u + 4 * (pin))
#define PAD_SCHMITT		(1u << 1)
#define PAD_PULL_DOWN		(1u << 2)
#define PAD_DRIVE_8MA		(2u << 4)
#define PAD_INPUT		(1u << 6)
#define PAD_NO_OUTPUT		(1u << 7)
#define PINS			30u

/* 2.1.1 who wins on the bus */
#define BUS_PRIORITY		0x40030000u
#define BUS_PRIORITY_DMA	(1u << 8 | 1u << 12)

/* 2.5 DMA */
#define DMA(channel)		(0x50000000u + 0x40 * (channel))
#define DMA_READ		0x00u
#define DMA_WRITE		0x04u
#define DMA_COUNT		0x08u
#define DMA_CTRL_TRIGGER	0x0cu
#define DMA_CTRL		0x10u
#define DMA_COUNT_TRIGGER	0x1cu
#define DMA_ABORT		0x50000444u
#define DMA_EN			(1u << 0)
#define DMA_WORDS		(2u << 2)
#define DMA_INCR_READ		(1u << 4)
#define DMA_INCR_WRITE		(1u << 5)
#define DMA_RING_READ(bits)	((bits) << 6)
#define DMA_RING_WRITE(bits)	((bits) << 6 | 1u << 10)
#define DMA_CHAIN(channel)	((channel) << 11)
#define DMA_PACE(request)	((request) << 15)
#define DMA_UNPACED		0x3fu
#define DMA_QUIET		(1u << 21)
#define DMA_BUSY		(1u << 24)
#define DMA_REQUEST_TX(machine)	(machine)
#define DMA_REQUEST_RX(machine)	(4u + (machine))

/* 3.7 PIO */
#define PIO_CTRL		0x50200000u
#define PIO_FSTAT		0x50200004u
#define PIO_FDEBUG		0x50200008u
#define PIO_TX(machine)		(0x50200010u + 4 * (machine))
#define PIO_RX(machine)		(0x50200020u + 4 * (machine))
#define PIO_MEMORY(place)	(0x50200048u + 4 * (place))
#define PIO_MACHINE(machine)	(0x502000c8u + 0x18 * (machine))
#define PIO_CLKDIV		0x00u
#define PIO_EXECCTRL		0x04u
#define PIO_SHIFTCTRL		0x08u
#define PIO_INSTR		0x10u
#define PIO_PINCTRL		0x14u
#define PIO_RESTART(machines)	((machines) << 4)
#define PIO_RX_EMPTY(machine)	(1u << (8 + (machine)))
#define PIO_TX_EMPTY(machine)	(1u << (24 + (machine)))
#define PIO_RX_STALLED(machine)	(1u << (machine))

/* 4.1 USB */
#define USB_RAM			0x50100000u
#define USB_ADDRESS		0x50110000u
#define USB_MAIN_CTRL		0x50110040u
#define USB_SIE_CTRL		0x5011004cu
#define USB_SIE_STATUS		0x50110050u
#define USB_BUFFERS		0x50110058u
#define USB_STALL_ARM		0x50110068u
#define USB_MUXING		0x50110074u
#define USB_POWER		0x50110078u

/* ARMv6-M: system control */
#define SYSTEM_RESET		0xe000ed0cu

#endif
