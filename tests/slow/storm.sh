#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Does `onset tune` disturb a running task while it changes the machine and undoes that? A guest of two processors measures a
# periodic task on CPU 1 in blocks, in alternating order: CPU 0 does nothing, reads all knobs again and again, or applies all
# proposals that take effect at once and undoes them, again and again. The guest is in virtual time (an instruction is a
# nanosecond, of both processors together), so that other work of the host does not show.
#
# usage: tests/slow/storm.sh [PAIRS] [FLAVOUR]
#
# Prints for each kind the medians over the blocks. Eight pairs take some ten minutes.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
pairs=${1:-8}
flavour=${2:-6.12}
name=storm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
. "$here/tests/slow/guest.sh"
need busybox-static kmod xz-utils python3
agent=${ONSET_AGENT:-$here/target/lib/onset/onset-agent}
tree "$work/tree" "$here/tests/slow/storm-guest.sh"
mkdir -p "$work/tree/lib/onset" "$work/tree/boot"
cp "$agent" "$work/tree/lib/onset/"
cp "$(configuration "$flavour")" "$work/tree/boot/config-$(release "$flavour")"
image "$work/tree" "$work/image"
mkdir -p "$here/target/storm"
said=$here/target/storm/said
(machine -icount shift=0,sleep=off -smp 2 -m 512 -no-reboot -serial "file:$said.console" -serial "file:$said" \
	-kernel "$cache/$flavour/vmlinuz" -initrd "$work/image" -append "$words storm.pairs=$pairs") || die "QEMU failed"
grep -q '^@end' "$said" && ! grep -q '^@FAULT' "$said" || { cat "$said"; die "the guest did not come to its end"; }
python3 - "$said" <<'END'
import json
import statistics
import sys

blocks, lines = {}, open(sys.argv[1]).read().splitlines()
for at, line in enumerate(lines):
    if line.startswith("@block"):
        _, kind, times = line.split()
        blocks.setdefault(kind, []).append((int(times), json.loads(lines[at + 1])))
print("what CPU 0 does | blocks | times each | median of p99 | median of max | largest")
for kind, of in blocks.items():
    series = [block["series"][0]["summary"] for _, block in of]
    us = lambda key: [each[key] / 1000 for each in series]
    print(f"{kind} | {len(of)} | {statistics.median(times for times, _ in of)} | {statistics.median(us('p99_ns')):.1f} µs"
          f" | {statistics.median(us('max_ns')):.1f} µs | {max(us('max_ns')):.1f} µs")
END
