// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Keeps what the guest itself reads from /proc/kallsyms, for a test that looks into its memory: through a copy, because
 * the kernel refuses to read files of /proc itself.
 */
#include <linux/fs.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/umh.h>
#include <linux/vmalloc.h>

#define COPY "/tmp/kallsyms"

char *test_kallsyms_text;
unsigned long test_kallsyms_length;

static int __init test_init(void)
{
	char *argv[] = { "/usr/bin/cp", "/proc/kallsyms", COPY, NULL };
	char *envp[] = { "PATH=/usr/bin", NULL };
	struct file *copy;
	loff_t length, at = 0;
	ssize_t n;
	int error;

	error = call_usermodehelper(argv[0], argv, envp, UMH_WAIT_PROC);
	if (error)
		return error < 0 ? error : -EIO;
	copy = filp_open(COPY, O_RDONLY, 0);
	if (IS_ERR(copy))
		return PTR_ERR(copy);
	length = i_size_read(file_inode(copy));
	test_kallsyms_text = vmalloc(length);
	while (test_kallsyms_text && at < length) {
		n = kernel_read(copy, test_kallsyms_text + at, length - at, &at);
		if (n <= 0)
			break;
	}
	test_kallsyms_length = at;
	filp_close(copy, NULL);
	return test_kallsyms_text && at == length ? 0 : -EIO;
}
module_init(test_init);

MODULE_DESCRIPTION("keeps /proc/kallsyms");
MODULE_LICENSE("GPL");
