# SPDX-License-Identifier: GPL-2.0-or-later
# Walks the kernel's own file trees, unpacks an archive over itself, reads it. Each unit of work is
# small, so that all of them move within tenths of a second, also in the company of `mixed`.
#
# programs: sh find tar cat mkdir
# counters: fs.find fs.untar fs.cat
directory=${TMPDIR:-/tmp}/fs
mkdir -p "$directory/tree" "$directory/unpacked"
i=0
while [ "$i" -lt 40 ]; do
	mkdir -p "$directory/tree/$((i % 8))"
	echo "file $i" >"$directory/tree/$((i % 8))/$i"
	i=$((i + 1))
done
tar -cf "$directory/archive" -C "$directory" tree
repeat fs.find find /sys/devices/system /proc/sys/kernel -xdev -name 'onset*' &
repeat fs.untar tar -xf "$directory/archive" -C "$directory/unpacked" &
repeat fs.cat cat "$directory/archive" &
