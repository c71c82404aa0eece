# SPDX-License-Identifier: GPL-2.0-or-later
# Walks the kernel's own file trees, packs and unpacks an archive, reads it.
#
# programs: sh find tar cat mkdir rm
# counters: fs.find fs.tar
mkdir -p /tmp/fs/tree
i=0
while [ "$i" -lt 120 ]; do
	mkdir -p "/tmp/fs/tree/$((i % 12))"
	echo "file $i" >"/tmp/fs/tree/$((i % 12))/$i"
	i=$((i + 1))
done
repeat fs.find find /sys/devices /sys/kernel /proc/sys -xdev -name 'onset*' &
repeat fs.tar sh -c 'tar -cf /tmp/fs/a.tar -C /tmp/fs tree && mkdir -p /tmp/fs/b && tar -xf /tmp/fs/a.tar -C /tmp/fs/b && cat /tmp/fs/a.tar >/dev/null && rm -r /tmp/fs/b' &
