#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Process 1 of the guest of storm.sh. Says to the second serial port how late a real-time thread woke up: at rest, while a
# onset is only started (--version), while knobs are applied, and while they are taken back.
. /mounts.sh
mount -t tmpfs none /tmp
mkdir -p /dev/shm
mkdir -p /var/lib/onset
to_second_port
exec 2>&1
knobs="--knob vm.stat_interval=120 --knob vm.swappiness=10 --knob dirty_writeback_centisecs=1500 --knob timer_migration=0
	--knob rcu_normal=1 --knob sched_rt_runtime_us=-1
	--knob sched.preempt=full --knob priority.ksoftirqd=fifo:20"

# measured STEP: measures while the step is taken.
measured() {
	cyclictest --quiet --mlockall --priority 95 --interval 500 --histogram 20000 --duration 30 >/tmp/cyclictest &
	measuring=$!
	sleep 0.2
	"$@" || echo "@failed $*"
	kill -INT $measuring
	wait $measuring
	echo "@late $1 $(sed -n 's/^# Total: *0*//p; s/^# Max Latencies: *0*//p; s/^# Avg Latencies: *0*//p' /tmp/cyclictest | tr '\n' ' ')"
}
rest() { sleep 5; }
start() { for _ in 1 2 3 4 5; do onset --version >/dev/null; done; }
# shellcheck disable=SC2086
apply() { onset tune apply $knobs >/tmp/said 2>&1 || { cat /tmp/said; return 1; }; }
undo() { onset tune undo >/tmp/said 2>&1 || { cat /tmp/said; return 1; }; }
# A kernel that has just booted is not at rest for some seconds.
sleep 6
measured rest
for _ in 1 2 3; do
	measured start
	measured apply
	measured undo
done
echo "@end"
reboot -f
