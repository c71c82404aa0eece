#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Tests the places that are no files, with a real kernel: the isolated partition of CPUs (cgroups) and the coalescing of a network
# card (ethtool). onset is killed (SIGKILL) at random moments of apply and of undo; the undo after it has to give all back.
#
# usage: tests/slow/places.sh [KILLS] [SEED] [FLAVOUR]
#
# 200 kills take some five minutes. Exits with 1 where something is not as it was.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
kills=${1:-200}
seed=${2:-$(date +%s)}
flavour=${3:-6.12}
name=places
. "$here/tests/slow/guest.sh"
need busybox-static kmod xz-utils ethtool
tree "$work/tree" "$here/tests/slow/places-guest.sh"
program "$work/tree" "$(command -v ethtool || echo /usr/sbin/ethtool)" /usr/sbin/ethtool
modules "$flavour" "$work/tree" e1000e
image "$work/tree" "$work/image"
(machine -smp 2 -m 512 -no-reboot -netdev user,id=net,restrict=on -device e1000e,netdev=net -serial "file:$work/console" -serial "file:$work/said" \
	-kernel "$cache/$flavour/vmlinuz" -initrd "$work/image" -append "$words net.ifnames=0 places.rounds=$kills places.seed=$seed") || die "QEMU failed"
grep '^@' "$work/said" || true
grep -q '^@end' "$work/said" || { cat "$work/console" "$work/said"; die "the guest did not come to its end"; }
! grep -q '^@FAULT' "$work/said" || { cat "$work/said"; die "something is not as it was (seed $seed)"; }
echo "places: seed $seed, $kills kills on $flavour: 0 faults"
