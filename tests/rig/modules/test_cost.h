/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Makes each call of getppid longer by TURNS turns of a loop of two instructions, and by what a kprobe takes. */
#include <linux/kprobes.h>
#include <linux/module.h>

static int turn(struct kprobe *unused, struct pt_regs *registers)
{
	unsigned long turns = TURNS;

	asm volatile("1: dec %0; jnz 1b" : "+r"(turns) : : "cc");
	return 0;
}
static struct kprobe probe = { .symbol_name = "__x64_sys_getppid", .pre_handler = turn };

static int __init test_init(void)
{
	return register_kprobe(&probe);
}
module_init(test_init);

MODULE_DESCRIPTION("makes a system call longer");
MODULE_LICENSE("GPL");
