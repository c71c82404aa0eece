# SPDX-License-Identifier: GPL-2.0-or-later
# Writes to a file system and syncs it. In the guest that is ext4 on a disk that is memory and answers at once
# through a timer interrupt (null_blk, irqmode 2), so that it stays deterministic. On a machine it is the directory
# ONSET_DISK, and only its file system is synced.
#
# programs: dd mkdir sync
# programs of the guest: mke2fs mount
# module: null_blk memory_backed=1 irqmode=2 completion_nsec=20000 queue_mode=2 submit_queues=1 gb=1
# module: ext4
# counters: disk.dd disk.sync
disk=${ONSET_DISK:-/mnt/disk}
if [ -z "${ONSET_DISK:-}" ]; then
	mke2fs -q -t ext4 -b 4096 -N 256 -J size=4 /dev/nullb0 16384
	mkdir -p "$disk"
	mount -t ext4 /dev/nullb0 "$disk"
fi
repeat disk.dd dd if=/dev/zero of="$disk/file" bs=64k count=24 conv=fsync status=none &
repeat disk.sync sync ${ONSET_DISK:+--file-system "$disk"} &
