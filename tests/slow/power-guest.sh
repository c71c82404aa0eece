#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Process 1 of the guest of power.sh. It undoes what the boot before left, looks whether all is as it was, and then changes
# the machine and undoes that, again and again, until its power is cut. It says what it does, a line each beginning with @:
#   @at STEP        it begins with a step
#   @undo STATUS    an undo's exit status, after the undo's own words
#   @right WHAT     all is as it was; @left WHAT: all but what somebody else had changed
#   @FAULT WHAT     it is not
. /mounts.sh
boot=$(sed 's/.*power\.boot=\([0-9]*\).*/\1/' /proc/cmdline)
rounds=$(sed 's/.*power\.rounds=\([0-9]*\).*/\1/' /proc/cmdline)
say() { echo "@$*"; }
while read -r module; do insmod "/modules/$module.ko"; done </modules/order
mount -t ext4 /dev/vda /disk && mount -t ext4 /dev/vdb /boot || { dmesg | tail -n 20 && say FAULT "a disk cannot be mounted"; }
for place in etc/default/grub.d etc/grub.d var/lib/onset; do mount --bind "/disk/$place" "/$place"; done

# What is changed, and what it holds now. Each boot begins with other values, so that those of another boot show.
files="/proc/sys/vm/stat_interval /proc/sys/vm/swappiness /proc/sys/vm/dirty_writeback_centisecs /proc/sys/kernel/timer_migration
	/sys/kernel/mm/transparent_hugepage/enabled /sys/kernel/rcu_normal /sys/devices/virtual/workqueue/cpumask
	/proc/irq/default_smp_affinity /sys/kernel/debug/sched/preempt"
values() {
	for path in $files; do echo "$path $(cat "$path")"; done
	for thread in ksoftirqd/0 ksoftirqd/1; do
		for stat in /proc/[0-9]*/stat; do grep -qF "($thread)" "$stat" && awk '{ print $2, $19, $40, $41 }' "$stat"; done
	done
}
echo $((1 + boot % 50)) >/proc/sys/vm/stat_interval
echo $((boot % 100)) >/proc/sys/vm/swappiness
echo $((100 + boot)) >/proc/sys/vm/dirty_writeback_centisecs
values >/tmp/values

# The files on the disk: names, modes and bytes.
disk_files() { (cd / && find etc/default/grub.d etc/grub.d boot/grub ! -type d | sort | while read -r file; do
	stat -c '%n %a' "$file"; sha256sum "$file"; done); }
# The disk says which file somebody else is about to change, or has changed: only that one may differ after a boot.
foreign=/disk/foreign
note() { echo "$1 $file" >$foreign.new && mv $foreign.new $foreign && sync; }

undo() {
	say at "$1"
	onset tune undo >/tmp/undo 2>&1
	status=$?
	cat /tmp/undo
	say undo $status
	check "$1"
}

check() {
	[ "$status" = 0 ] || [ "$status" = 3 ] || say FAULT "$1: the undo ended with $status"
	left=
	values >/tmp/values.now
	if ! cmp -s /tmp/values /tmp/values.now; then
		diff /tmp/values /tmp/values.now >/tmp/difference
		if [ "$(grep -c '^[-+][^-+]' /tmp/difference)" = 2 ] && [ "$set" ] && grep -q "^+/proc/sys/vm/swappiness $set$" /tmp/difference; then
			left=" the value"
			grep -q swappiness /tmp/undo && [ "$status" = 3 ] || say FAULT "$1: nobody said that the value is left"
		else
			cat /tmp/difference
			say FAULT "$1: a value is another one"
		fi
	fi
	if [ -e $foreign ]; then
		read -r when file <$foreign
		if cmp -s "/$file" /foreign; then
			left="$left the file"
			grep -q "/$file" /tmp/undo && [ "$status" = 3 ] || say unsaid "the file, by this undo"
			note before
			rm "/$file"
		elif [ "$when" = after ]; then
			say FAULT "$1: what somebody else wrote is gone"
		fi
	fi
	disk_files >/tmp/disk
	if ! cmp -s /reference /tmp/disk; then
		diff /reference /tmp/disk
		say FAULT "$1: a file on the disk is another one"
	fi
	[ ! -e /var/lib/onset/tune/journal ] || say FAULT "$1: the journal is still open"
	# Somebody else takes back what he changed.
	rm -f $foreign
	[ -z "$set" ] || echo $((boot % 100)) >/proc/sys/vm/swappiness
	set=
	file=
	sync
	if [ "$left" ]; then say left "$1:$left"; else say right "$1"; fi
}

apply() {
	onset tune apply --cpus 1 "$@" >/tmp/apply 2>&1
	status=$?
	[ $status = 0 ] || { cat /tmp/apply; say FAULT "apply ended with $status"; }
}

# Somebody else changes a value or a file. The disk knows of it before and after.
disturb() {
	case $(($1 % 5)) in
	1 | 4) set=77 && echo 77 >/proc/sys/vm/swappiness ;;
	2) file=etc/default/grub.d/onset.cfg ;;
	3) file=etc/grub.d/42_onset ;;
	*) return ;;
	esac
	[ "$file" ] || return
	note before
	cat /foreign >"/$file"
	sync
	note after
	file=
}

set=
file=
undo first
round=0
while [ $round -lt "$rounds" ]; do
	round=$((round + 1))
	say at apply
	apply --knob vm.stat_interval=120 --knob vm.swappiness=10 --knob dirty_writeback_centisecs=1500 --knob timer_migration=0 \
		--knob transparent_hugepage.enabled=never --knob rcu_normal=1 --knob workqueue.cpumask=1 \
		--knob irq.default_smp_affinity=1 --knob sched.preempt=full --knob priority.ksoftirqd=fifo:20 \
		--knob threadirqs --knob skew_tick=1
	say at again
	apply --knob vm.stat_interval=60 --knob vm.swappiness=20 --knob priority.ksoftirqd=rr:5
	say at disturb
	disturb $((boot + round))
	undo undo
done
say at end
sync
reboot -f
