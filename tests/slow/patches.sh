#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Tests what the patches change, in guests of the kernel without them and with them: the kernel's own modules test_vmalloc and
# test_free_pages, which its selftests of memory load; stress-ng with verification on an ext4 that null_blk holds; and a check of
# that file system at the end. A test counts if the kernel without patches passes it.
#
# usage: tests/slow/patches.sh SERIES [OPTION...]       as in: tests/slow/patches.sh 6.12 preempt=full
#
# The kernels are those of `onset patch build SERIES`. Takes some five minutes. Exits with 1 where the patched kernel fails.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
[ $# -gt 0 ] || { sed -n 's/^# \(usage: .*\)/\1/p' "$0" >&2; exit 2; }
series=$1
shift
name=patches
. "$here/tests/slow/guest.sh"
need busybox-static kmod stress-ng e2fsprogs gcc make
workshop=${WORKSHOP:-${XDG_CACHE_HOME:-$HOME/.cache}/onset/patches}
out=$here/target/patches
mkdir -p "$out"

# tests KERNEL DIRECTORY: the kernel's test modules, made to load when they pass, to speak at the console's level, and to end
# within seconds. __vmalloc_node() is there for modules only in a kernel that is configured to test it.
tests() {
	mkdir -p "$2"
	for test in test_vmalloc test_free_pages; do
		sed -e 's/int, test_loop_count, 1000000/int, test_loop_count, 200/' -e 's/return .*-EAGAIN;.*/return 0;/' \
			-e 's/i < 1000 \* 1000/i < 100 * 1000/' \
			-e 's/^#define __param/#undef __vmalloc_node\n#define __vmalloc_node(size, align, gfp, node, caller) __vmalloc(size, gfp)\n&/' \
			"$workshop/linux-${series%-rt}/lib/$test.c" >"$2/$test.c"
	done
	echo "obj-m := test_vmalloc.o test_free_pages.o" >"$2/Kbuild"
	make -s -C "$workshop/$1/headers" "M=$2" modules 2>"$2/said" || { cat "$2/said"; die "the test modules of $1 do not build"; }
}

for kernel in "$series-onset-base" "$series-onset"; do
	[ -d "$workshop/$kernel/headers" ] || die "there is no $kernel: run onset patch build $series"
	rm -rf "$work/tree"
	tree "$work/tree" "$here/tests/slow/patches-guest.sh"
	for each in stress-ng mke2fs e2fsck; do program "$work/tree" "$(command -v "$each")" "/bin/$each"; done
	modules "$kernel" "$work/tree" ext4 null_blk
	tests "$kernel" "$work/$kernel"
	mkdir -p "$work/tree/tests"
	cp "$work/$kernel"/*.ko "$work/tree/tests/"
	image "$work/tree" "$work/image"
	(machine -smp 1 -m 2048 -no-reboot -serial "file:$out/$kernel.console" -serial "file:$out/$kernel" -kernel "$cache/$kernel/vmlinuz" \
		-initrd "$work/image" -append "$words $*") || die "QEMU failed"
	grep -q '^@end' "$out/$kernel" || { cat "$out/$kernel.console" "$out/$kernel"; die "the guest of $kernel did not come to its end"; }
	sed -n 's/^@passed //p' "$out/$kernel" | sort >"$work/$kernel.passed"
	echo "$kernel: $(wc -l <"$work/$kernel.passed") passed, $(grep -c '^@failed' "$out/$kernel" || true) failed"
done
lost=$(comm -23 "$work/$series-onset-base.passed" "$work/$series-onset.passed")
[ -z "$lost" ] || die "only the kernel without patches passes: $lost"
grep '^@failed' "$out/$series-onset" || true
! grep -q '^@failed kernel' "$out/$series-onset" || die "the patched kernel complains"
