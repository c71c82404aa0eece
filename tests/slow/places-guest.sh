#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Process 1 of the guest of places.sh. Changes the partition and the card and takes that back, each time killing onset at a random
# moment of the one, of the other, or of both, and says to the second serial port where all is not as it was.
. /mounts.sh
mount -t tmpfs none /tmp
mkdir -p /var/lib/onset
to_second_port
exec 2>&1
while read -r module; do insmod "/modules/$module.ko" || echo "@FAULT insmod $module"; done </modules/order
rounds=$(sed 's/.*places\.rounds=\([0-9]*\).*/\1/' /proc/cmdline)
seed=$(sed 's/.*places\.seed=\([0-9]*\).*/\1/' /proc/cmdline)
draw() {
	seed=$(((seed * 1103515245 + 12345) % 2147483648))
	number=$((seed / 65536 % $1))
}
state() {
	cat /sys/fs/cgroup/cgroup.subtree_control /sys/fs/cgroup/cpuset.cpus.effective
	ls -d /sys/fs/cgroup/onset 2>/dev/null
	ethtool --show-coalesce eth0 | grep rx-usecs:
}
knobs="--cpus 1 --knob cpuset.partition=1 --knob net.rx_usecs=50"
# shellcheck disable=SC2086
apply() { onset tune apply $knobs; }
# killed MILLISECONDS COMMAND...: kills a command after so long.
killed() {
	after=$1
	shift
	"$@" >/tmp/said 2>&1 &
	sleep "$(printf '0.%03d' "$after")"
	kill -9 $! 2>/dev/null && wait $! 2>/dev/null
	return 0
}
ls /sys/class/net/eth0 >/dev/null || { dmesg | tail -n 20; echo "@FAULT no card"; }
# Half of the rounds begin with the controller on.
state >/tmp/off
apply >/tmp/said 2>&1 || { cat /tmp/said; echo "@FAULT apply"; }
echo "@made $(cat /sys/fs/cgroup/onset/cpuset.cpus.partition) $(cat /sys/fs/cgroup/cpuset.cpus.effective) $(ethtool --show-coalesce eth0 | grep rx-usecs:)"
# A program runs on a CPU of the partition only from inside, and an undo lets it go on outside.
taskset -c 1 true 2>/dev/null && echo "@FAULT a program outside runs on a CPU of the partition"
inside='echo 0 >/sys/fs/cgroup/onset/cgroup.procs && exec'
sh -c "$inside taskset -c 1 true" || echo "@FAULT a program inside does not run there"
sh -c "$inside sleep 100000" &
sleep 0.2
grep -qx $! /sys/fs/cgroup/onset/cgroup.procs || echo "@FAULT it is not inside"
onset tune undo >/tmp/said 2>&1 || { cat /tmp/said; echo "@FAULT undo beside a program"; }
[ -d /sys/fs/cgroup/onset ] && echo "@FAULT the partition stays"
kill $! || echo "@FAULT the program has ended"
apply >/tmp/said 2>&1
round=0
while [ $round -lt "$rounds" ]; do
	onset tune undo >/tmp/said 2>&1 || { cat /tmp/said; echo "@FAULT $round: undo"; }
	[ $((round % 2)) = 0 ] && echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control || echo -cpuset >/sys/fs/cgroup/cgroup.subtree_control
	state >/tmp/before
	draw 60
	# Not the function: the shell would be killed, and not onset.
	# shellcheck disable=SC2086
	killed "$number" onset tune apply $knobs
	ls -d /sys/fs/cgroup/onset >/dev/null 2>&1 && begun=$((begun + 1))
	draw 2
	if [ "$number" = 1 ]; then
		draw 60
		killed "$number" onset tune undo
	fi
	onset tune undo >/tmp/said 2>&1
	status=$?
	state >/tmp/after
	if [ $status != 0 ] || ! cmp -s /tmp/before /tmp/after; then
		echo "@FAULT $round: the undo ended with $status"
		cat /tmp/said
		diff /tmp/before /tmp/after
	fi
	apply >/tmp/said 2>&1
	round=$((round + 1))
done
onset tune undo >/tmp/said 2>&1
# Somebody else widens the partition: it is left, and said.
apply >/tmp/said 2>&1
echo 0-1 >/sys/fs/cgroup/onset/cpuset.cpus
onset tune undo >/tmp/said 2>&1
grep -q '/sys/fs/cgroup/onset' /tmp/said && [ -d /sys/fs/cgroup/onset ] || { cat /tmp/said; echo "@FAULT what somebody else changed is not left"; }
echo "@killed $rounds, of these $begun with a partition at the kill"
echo "@end"
reboot -f
