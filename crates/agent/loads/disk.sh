# SPDX-License-Identifier: GPL-2.0-or-later
# Writes to an ext4 file system and syncs it, on a disk that is memory and answers at once through a
# timer interrupt (null_blk, irqmode 2), so that it stays deterministic.
#
# programs: dd mke2fs mount mkdir sync
# module: null_blk memory_backed=1 irqmode=2 completion_nsec=20000 queue_mode=2 submit_queues=1 gb=1
# module: ext4
# counters: disk.dd disk.sync
mke2fs -q -t ext4 -b 4096 -N 256 -J size=4 /dev/nullb0 16384
mkdir -p /mnt/disk
mount -t ext4 /dev/nullb0 /mnt/disk
repeat disk.dd dd if=/dev/zero of=/mnt/disk/file bs=64k count=24 conv=fsync status=none &
repeat disk.sync sync &
