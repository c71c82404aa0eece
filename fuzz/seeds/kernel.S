# SPDX-License-Identifier: GPL-2.0-or-later
# The smallest image that crates/vmlinux takes for a kernel: two symbols, no types, one entry of an unwind table.

	.text
	.globl	_start
_start:	nop
next:	ret

	.section .rodata, "a"
	.balign	8
names:	.quad	2				# how many
	.byte	6
	.ascii	"Tstart"
	.byte	5
	.ascii	"tnext"
	.balign	8
	.quad	0				# a marker for each 256 names
tokens:	.byte	1, 0				# each one character
	.set	token, 1
	.rept	255
	.byte	token, 0
	.set	token, token + 1
	.endr
	.set	token, 0			# where each begins
	.rept	256
	.short	2 * token
	.set	token, token + 1
	.endr
	.long	0, 1				# offsets
	.quad	_start				# from here on
	.fill	64, 1, 0x55

	.section .orc_unwind_ip, "a"
	.long	_start - .
	.section .orc_unwind, "a"
	.short	8, 0
	.short	0x0215

	.section .BTF, "a"
	.short	0xeb9f
	.byte	1, 0
	.long	24, 0, 16, 16, 5
	.long	1, 0x01000000, 4, 0x20		# one type, an integer
	.asciz	"\0int"
