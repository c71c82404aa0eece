#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Reads every knob in guests of the kernels in the cache, and compares the table of knobs (crates/machine/knobs) with what
# these kernels have: their files, threads and boot parameters. A second boot of each has all boot parameters on its command
# line, so that the kernel names those that it does not know.
#
# usage: tests/slow/knobs.sh [FLAVOUR...]
#
# Takes some four minutes for six kernels. Prints the table of docs/tuning.md. Exits with 1 where data and kernel do not agree;
# what the guests said lies in target/knobs.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -gt 0 ] || set -- 6.1 6.1-rt 6.12 6.12-rt 7.3 7.3-rt
name=knobs
. "$here/tests/slow/guest.sh"
need busybox-static kmod xz-utils python3
knobs() { what=$1 && shift && python3 "$here/tests/slow/knobs.py" "$what" "$here/crates/machine/knobs" "$@"; }

out=$here/target/knobs
rm -rf "$out" && mkdir -p "$out"
tree "$work/tree" "$here/tests/slow/knobs-guest.sh"
mkdir "$work/tree/boot"
knobs patterns >"$work/tree/patterns"

# boot FLAVOUR FILE [WORD...]: what the guest says goes to the file.
boot() {
	flavour=$1 file=$2
	shift 2
	(machine -smp 2 -m 512 -no-reboot -serial "file:$file.console" -serial "file:$file" -kernel "$cache/$flavour/vmlinuz" \
		-initrd "$work/image" -append "$words $*") || die "QEMU failed"
	grep -q '^@end' "$file" || { cat "$file.console"; die "the guest of $flavour did not come to its end"; }
}
for flavour in "$@"; do
	rm -f "$work"/tree/boot/*
	cp "$(configuration "$flavour")" "$work/tree/boot/config-$(release "$flavour")"
	image "$work/tree" "$work/image"
	boot "$flavour" "$out/$flavour.seen"
	boot "$flavour" "$out/$flavour.booted" knobs.parameters "$(knobs parameters)"
done
knobs compare "$out" "$@"
