#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Builds the targets of fuzz/ with the compiler that is there and lets each try inputs for some time, beginning with real ones.
# Prints a row for each, as of the table in docs/reliability.md: inputs tried, and those of them that were taken well. Exits with 1
# where one was not; the input then lies in target/fuzz/artifacts.
#
# usage: tests/torture/fuzz.sh [SECONDS [TARGET …]]
#
# ONSET is the command that makes the inputs to begin with, target/release/onset by default. What was learned stays in
# target/fuzz/corpus for the next time.
set -eu

cd "$(dirname "$0")/../.."
SECONDS_EACH=${1:-60}
[ $# = 0 ] || shift
ONSET=$(realpath "${ONSET:-target/release/onset}")
PLACE=${CARGO_TARGET_DIR:-$PWD/target}/fuzz
HOST=x86_64-unknown-linux-gnu
SEEDS=$PLACE/seeds
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT

die() {
	echo "fuzz: $*" >&2
	exit 1
}

# libFuzzer's coverage without -Z: a compiler that is stable has no AddressSanitizer, but every overflow and assertion is a panic.
# With a target that is named, build scripts and macros are not instrumented.
build() {
	coverage="-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
	coverage="$coverage -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table"
	RUSTFLAGS="$coverage -Ccodegen-units=1 -Cdebug-assertions -Coverflow-checks --cfg fuzzing" CARGO_TARGET_DIR=$PLACE \
		"${CARGO:-cargo}" build --manifest-path fuzz/Cargo.toml --locked --release --target $HOST --bins
}

# A number as four bytes, little endian.
number() {
	octal=
	for shift in 0 8 16 24; do
		octal=$octal$(printf '\\%03o' $(($1 >> shift & 255)))
	done
	printf "$octal"
}

# The files of a directory in one row (fuzz/fuzz_targets/files.rs), those named first in front.
pack() {
	(
		cd "$1" && shift
		{ printf '%s\n' "$@" && find . -type f | sed 's,^\./,,' | LC_ALL=C sort; } | awk '!seen[$0]++' | while read -r file; do
			printf "\\$(printf %03o ${#file})%s" "$file"
			number "$(wc -c <"$file")"
			cat "$file"
		done
	)
}

seed_experiments() {
	for file in experiments/*.toml experiments/papers/*.toml; do
		name=$(basename "$file")
		cp "$file" "$SEEDS/experiment/$name"
		{ cat "$file" && printf '\0trigger.count=5'; } >"$SEEDS/experiment/$name.set"
	done
	for word in 'task.p99 > +5%' 'hardirq.max > 100us' '3ms 16 timers' 200trials '6.12 preempt=none' \
		'{"responder":"task","statistic":"p99.9","bound_ns":7}'; do
		printf 'x\0%s' "$word" >"$SEEDS/experiment/$(echo "$word" | tr -dc a-z0-9)"
	done
}

# A bundle, and what a command leaves that is killed.
seed_runs() {
	measure="measure periodic --period 1ms --policy other --load idle --store $WORK/store"
	"$ONSET" $measure --count 20 >/dev/null 2>&1 || [ $? = 3 ] || die "no run to begin with"
	pack "$(echo "$WORK"/store/2*)" manifest.json >"$SEEDS/bundle/measured"
	pack "$(echo "$WORK"/store/2*)" manifest.json >"$SEEDS/leftover/nameless"
	"$ONSET" $measure --count 100000 >/dev/null 2>&1 &
	while [ -z "$(find "$WORK"/store/.partial-*/journal -size +0 2>/dev/null)" ]; do
		kill -0 $! || die "no run to kill"
	done
	sleep 0.1
	kill -KILL $!
	# The shell says that it was killed.
	wait $! 2>/dev/null || true
	partial=$(echo "$WORK"/store/.partial-*)
	head -c 1200 "$partial/journal" >"$WORK/journal" && mv "$WORK/journal" "$partial/journal"
	pack "$partial" begun.json journal >"$SEEDS/leftover/killed"
}

seed_hunts() {
	"$ONSET" hunt --flavour "6.12 preempt=none" --load idle --jobs 1 --budget 6trials --directory "$WORK/hunt" >/dev/null 2>&1 ||
		die "no hunt to begin with: onset kernels fetch 6.12"
	for lines in 2 4 7; do
		head -n $lines "$WORK/hunt/trials.jsonl" >"$SEEDS/hunt/$lines"
	done
	{ cat "$SEEDS/hunt/4" && printf '\0' && cat "$WORK/hunt/hunt.json"; } >"$SEEDS/hunt/concluded"
	cp "$WORK"/hunt/*.find.json "$SEEDS/find/"
	# No number is larger.
	sed -E '2,$s/:[0-9]{3,}/:18446744073709551615/g' "$SEEDS/hunt/4" >"$SEEDS/hunt/largest"
}

seed_packages() {
	files=$WORK/package
	mkdir -p "$files/boot" "$files/lib/modules/9.9/kernel" "$files/usr/src/linux-headers-9.9"
	echo image >"$files/boot/vmlinuz-9.9"
	echo module >"$files/lib/modules/9.9/kernel/a.ko"
	echo include /usr/src/linux-headers-9.9-common/Makefile >"$files/usr/src/linux-headers-9.9/Makefile"
	ln -s ../src/linux-headers-9.9 "$files/usr/lib"
	ln -s /etc/passwd "$files/boot/out"
	ln "$files/boot/vmlinuz-9.9" "$files/boot/same"
	long=$files/$(printf '%0120d' 0)
	mkdir "$long" && echo deep >"$long/file"
	for format in gnu pax; do
		tar --format=$format --blocking-factor=1 -C "$files" -cf "$SEEDS/package/$format" .
	done
}

# The golden bytes of the generator protocol, in pieces of 7 bytes. Octal, because every printf reads that.
seed_generators() {
	while IFS=: read -r name hex; do
		file=$SEEDS/generator_host/$(echo "$name" | tr -dc a-z)
		echo "07$hex" | tr -d ' ' | sed 's/../&\n/g' | sed '/^$/d' | while read -r byte; do
			printf "\\$(printf %03o "0x$byte")"
		done >"$file"
		cp "$file" "$SEEDS/generator_device/"
	done <crates/wire/golden/generator.txt
}

seed_others() {
	gcc -nostdlib -static -Wl,-Ttext=0xffffffff81000000,--build-id=none,-s,-N,--no-warn-rwx-segments -o "$SEEDS/kernel/image" fuzz/seeds/kernel.S
	# All who answer; the measuring begins, a trigger, and the pins go up.
	{
		printf '\377\0'
		for record in '\003\0 2 0' '\001\0 0 0' '\002\377 0 1' '\001\0 0 1' '\004\0 0 2'; do
			set -- $record
			printf "$1\\0\\0" && number "$2" && number "$3" && number 0
			number 1000 && number 0 && number 500 && number 0
		done
	} >"$SEEDS/record/ladder"
	for file in /proc/stat /proc/cpuinfo /proc/self/stat /proc/self/limits /proc/self/status /proc/cmdline; do
		{ echo 'model name' && head -n 40 $file; } >"$SEEDS/system/$(echo $file | tr / -)"
	done
	printf '0-3,5' >"$SEEDS/system/list"
	printf '3,ffffffff' >"$SEEDS/system/mask"
	printf 'x\nalways [madvise] never' >"$SEEDS/system/chosen"
}

# Runs a target; the words of its inputs help it to make others.
fuzz() {
	mkdir -p "$PLACE/corpus/$1" "$PLACE/artifacts"
	echo '"{}"' >"$WORK/words"
	cat "$SEEDS/$1"/* | grep -aoE '[A-Za-z_][A-Za-z_.-]{2,23}' | sort -u | head -n 1000 | sed 's/.*/"&"/' >>"$WORK/words"
	crashes=0
	"$PLACE/$HOST/release/$1" -max_total_time="$SECONDS_EACH" -rss_limit_mb=512 -timeout=5 -dict="$WORK/words" \
		-print_final_stats=1 -close_fd_mask=3 -artifact_prefix="$PLACE/artifacts/$1-" \
		"$PLACE/corpus/$1" "$SEEDS/$1" >"$PLACE/$1.log" 2>&1 || crashes=1
	tried=$(sed -n 's/^stat::number_of_executed_units: *//p' "$PLACE/$1.log")
	printf '%-66s %8d  %d\n' "inputs of the fuzz target $1" "${tried:-0}" $((${tried:-0} - crashes))
	[ $crashes = 0 ] && return
	found=$(sed -n 's/^.*Test unit written to //p' "$PLACE/$1.log")
	echo "fuzz: $1: ${found:-see $PLACE/$1.log}"
	# Once more, with what it says.
	[ -z "$found" ] || "$PLACE/$HOST/release/$1" -rss_limit_mb=512 -timeout=5 "$found" 2>&1 | head -n 40
	false
}

build || die "the targets do not build: they need g++ (setup/debian.sh test)"
targets=${*:-$(sed -n 's/^path = "fuzz_targets\/\(.*\)\.rs"/\1/p' fuzz/Cargo.toml)}
rm -rf "$SEEDS"
for target in $(sed -n 's/^path = "fuzz_targets\/\(.*\)\.rs"/\1/p' fuzz/Cargo.toml); do
	mkdir -p "$SEEDS/$target"
done
seed_experiments
seed_runs
seed_hunts
seed_packages
seed_generators
seed_others
# Files of no disk: most targets write one for each input.
[ ! -w /dev/shm ] || export TMPDIR="${TMPDIR:-/dev/shm}"
failed=0
for target in $targets; do
	fuzz "$target" || failed=1
done
exit $failed
