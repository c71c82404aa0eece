#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Measures whether `onset tune undo` makes others late: cyclictest wakes up each 0.5 ms in a guest in virtual time (an instruction
# is 8 ns), at rest, while onset is only started (--version), while it changes eight knobs, and while it takes them back.
#
# usage: tests/slow/storm.sh [FLAVOUR]
#
# Takes half a minute. Prints how often the thread woke up, and its mean and longest delay in microseconds of virtual time.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
flavour=${1:-6.12}
name=storm
. "$here/tests/slow/guest.sh"
need busybox-static kmod rt-tests
tree "$work/tree" "$here/tests/slow/storm-guest.sh"
program "$work/tree" "$(command -v cyclictest)" /bin/cyclictest
image "$work/tree" "$work/image"
(machine -icount shift=3,sleep=off -smp 1 -m 512 -no-reboot -serial "file:$work/console" -serial "file:$work/said" \
	-kernel "$cache/$flavour/vmlinuz" -initrd "$work/image" -append "$words") || die "QEMU failed"
grep -q '^@end' "$work/said" || { cat "$work/console" "$work/said"; die "the guest did not come to its end"; }
! grep -v '^@late\|^@end' "$work/said" || die "the lines above say what went wrong"
echo "  what    times mean max"
sed -n 's/^@late/ /p' "$work/said"
