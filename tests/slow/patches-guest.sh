#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Process 1 of the guest of patches.sh. Runs the tests of what the patches change, and says to the second serial port what
# became of each.
. /mounts.sh
mount -t tmpfs none /tmp
to_second_port
exec 2>&1
while read -r module; do
	case $module in null_blk) more="memory_backed=1 gb=1" ;; *) more= ;; esac
	# The words are parameters of the module.
	# shellcheck disable=SC2086
	insmod "/modules/$module.ko" $more || echo "@failed insmod $module"
done </modules/order
for test in test_vmalloc test_free_pages; do
	insmod "/tests/$test.ko" && echo "@passed $test loaded" || echo "@failed $test"
done
dmesg | sed -n 's/.*Summary: \([^ ]*\) .* failed: \([0-9]*\) .*/\1 \2/p' | while read -r test failed; do
	if [ "$failed" = 0 ]; then echo "@passed test_vmalloc $test"; else echo "@failed test_vmalloc $test"; fi
done
/bin/mke2fs -q -t ext4 /dev/nullb0 && mount -t ext4 /dev/nullb0 /disk || echo "@failed mount"
# What is written is read back and compared (--verify).
for stressor in hdd readahead sync-file vm malloc mmap mremap fork brk stack vm-segv munmap; do
	if /bin/stress-ng --verify --"$stressor" 2 --hdd-bytes 24m --vm-bytes 48m --timeout 4 --temp-path /disk >/tmp/said 2>&1; then
		echo "@passed stress-ng $stressor"
	else
		echo "@failed stress-ng $stressor"
		cat /tmp/said
	fi
done
# A file of 64 MiB goes to the disk in large requests, and comes back from it.
dd if=/dev/urandom of=/tmp/once bs=1M count=64 2>/dev/null
cp /tmp/once /disk/once && sync && echo 3 >/proc/sys/vm/drop_caches
if cmp /tmp/once /disk/once; then echo "@passed copy"; else echo "@failed copy"; fi
umount /disk
if /bin/e2fsck -f -n /dev/nullb0 >/tmp/said 2>&1; then echo "@passed e2fsck"; else echo "@failed e2fsck"; cat /tmp/said; fi
dmesg | grep -E 'BUG|WARNING|Oops|stall|hung' | sed 's/^/@failed kernel: /'
echo "@end"
reboot -f
