#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Process 1 of the guest of storm.sh: measures how late a task on CPU 1 is, in blocks of 2,000 periods of 1 ms, while CPU 0 does
# nothing, reads all knobs again and again, or changes and undoes them again and again. Says a line for each block:
#   @block KIND COUNT: how often it did so; and the measurement's JSON after it.
PATH=/bin
export PATH HOME=/tmp
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t debugfs none /sys/kernel/debug
mount -t tmpfs none /tmp
pairs=$(sed 's/.*storm\.pairs=\([0-9]*\).*/\1/' /proc/cmdline)
stty -F /dev/ttyS1 raw
exec >/dev/ttyS1 2>&1
onset --version
disturb() {
	case $1 in
	nothing) return 0 ;;
	reads) taskset 1 onset tune --cpus 1 >/tmp/log 2>&1 || echo "@FAULT $(cat /tmp/log)" ;;
	changes)
		taskset 1 onset tune apply --cpus 1 --only runtime >/tmp/log 2>&1 || echo "@FAULT $(cat /tmp/log)"
		taskset 1 onset tune undo >/tmp/log 2>&1 || echo "@FAULT $(cat /tmp/log)"
		;;
	esac
}
block() {
	rm -f /tmp/done
	onset measure periodic --cpus 1 --count 2000 --json --store /tmp/store >/tmp/json 2>/tmp/errors &
	measure=$!
	times=0
	while [ "$1" != nothing ] && kill -0 $measure 2>/dev/null; do
		disturb "$1"
		times=$((times + 1))
	done
	wait $measure || { cat /tmp/errors; echo "@FAULT the measurement ended with $?"; }
	echo "@block $1 $times"
	tr -d '\n' </tmp/json
	echo
}
pair=0
while [ $pair -lt "$pairs" ]; do
	pair=$((pair + 1))
	# One order, then the other one.
	for kind in $([ $((pair % 2)) = 1 ] && echo nothing reads changes || echo changes reads nothing); do block "$kind"; done
done
echo "@end"
sync
reboot -f
