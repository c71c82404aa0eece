/* SPDX-License-Identifier: GPL-2.0-or-later */
/* The table of vectors, and what runs from the flash: it copies the program into the RAM, where no read waits. */
	.syntax unified
	.cpu cortex-m0plus
	.thumb

	.section .vectors, "a"
	.word	stack_end
	.word	reset
	.word	fault			/* NMI */
	.word	fault			/* hard fault */
	.space	4 * 12			/* nothing else is enabled */

	.section .flash_text, "ax"
	.thumb_func
reset:
	cpsid	i
	ldr	r0, =ram_from
	ldr	r1, =ram_start
	ldr	r2, =ram_end
copy:
	cmp	r1, r2
	bhs	clear_bss
	ldmia	r0!, {r3}
	stmia	r1!, {r3}
	b	copy
clear_bss:
	ldr	r1, =bss_start
	ldr	r2, =bss_end
	movs	r3, #0
clear:
	cmp	r1, r2
	bhs	run
	stmia	r1!, {r3}
	b	clear
run:
	ldr	r0, =main
	bx	r0

	.thumb_func
fault:
	ldr	r0, =0xe000ed0c		/* AIRCR: SYSRESETREQ. The host finds a generator that was not identified. */
	ldr	r1, =0x05fa0004
	str	r1, [r0]
	b	.
	.pool
