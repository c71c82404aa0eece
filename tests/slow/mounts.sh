# SPDX-License-Identifier: GPL-2.0-or-later
# What process 1 of each guest of these tests begins with (guest.sh puts it into the guest): the kernel's file systems.
PATH=/bin:/usr/sbin
export PATH
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t debugfs none /sys/kernel/debug
mount -t cgroup2 none /sys/fs/cgroup

# From here on what is printed goes to the second serial port, byte by byte.
to_second_port() {
	stty -F /dev/ttyS1 raw
	exec >/dev/ttyS1
}
