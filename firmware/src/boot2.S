/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The second stage of the boot: the bootrom copies these 256 bytes of the flash to the end of the RAM and begins at the
 * first, if the last four are the CRC-32 of the others (datasheet 2.8.1; image.mjs computes it). It lets the flash be
 * read as memory, with the plain read command 03h that every chip has, and starts what lies behind it. That copies
 * itself into the RAM and needs no speed.
 */
	.syntax unified
	.cpu cortex-m0plus
	.thumb

	.section .boot2, "ax"
	.global boot2
	.thumb_func
boot2:
	ldr	r0, =0x18000000		/* 4.10.13: the SSI */
	movs	r1, #0
	str	r1, [r0, #0x08]		/* SSIENR: off while it is set up */
	movs	r1, #4
	str	r1, [r0, #0x14]		/* BAUDR: a fourth of the clock, 31 MHz at 125 MHz */
	ldr	r1, =0x001f0300		/* CTRLR0: one line, 32 bits of data, read after what is sent */
	str	r1, [r0, #0x00]
	movs	r1, #0
	str	r1, [r0, #0x04]		/* CTRLR1: one word a read */
	ldr	r1, =0x03000218		/* SPI_CTRLR0: command 03h of 8 bits, an address of 24, all on one line */
	movs	r2, #0xf4
	str	r1, [r0, r2]
	movs	r1, #1
	str	r1, [r0, #0x10]		/* SER: the one chip there is */
	str	r1, [r0, #0x08]		/* SSIENR */
	ldr	r0, =0x10000100		/* the table of vectors behind this */
	ldr	r1, =0xe000ed08		/* VTOR */
	str	r0, [r1]
	ldmia	r0!, {r1, r2}
	msr	msp, r1
	bx	r2
	.pool
	.space	252 - (. - boot2)
	.word	0			/* the CRC-32 */
