#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Shows that a change of the code leaves every number as it was: two builds of onset measure the same guests, and what
# they print and keep is compared byte for byte. Takes about ten minutes on two processors.
#
# usage: tests/slow/same.sh BEFORE AFTER [own-agent]
#
# BEFORE and AFTER are the directories in which `make build` has built (target/ of two checkouts). The agent is a part of the
# guest: a guest with another agent has another history. So AFTER runs with BEFORE's agent, unless `own-agent` is given.
# Prints a row for each measurement. Exits with 1 where one differs; both sides of it then lie in target/same.
set -eu

cd "$(dirname "$0")/../.."
[ $# -ge 2 ] || { sed -n 's/^# \(usage: .*\)/\1/p' "$0" >&2; exit 2; }
BEFORE=$(realpath "$1")
AFTER=$(realpath "$2")
OWN=${3:-}
KEPT=$PWD/target/same
WORK=$(mktemp -d)
trap 'rm -rf "$WORK"' EXIT
rm -rf "$KEPT"
mkdir -p "$KEPT"

# The command and its parts, where it looks for them.
assemble() {
	mkdir -p "$WORK/$1/release" "$WORK/$1/lib"
	cp "$2/release/onset" "$WORK/$1/release/"
	cp -r "$2/lib/onset" "$WORK/$1/lib/"
}
assemble before "$BEFORE"
assemble after "$AFTER"
[ -n "$OWN" ] || cp "$BEFORE/lib/onset/onset-agent" "$WORK/after/lib/onset/"

# Leaves out what differs from one run to the next, or from one build to the next: names, dates, places, and keys of snapshots,
# which hash the plugin.
scrub() {
	sed -E '/"(run|bundle|created|find|path|directory|replay|command|plugin_blake3|snapshot|schema|version|commit)":/d' |
		sed -E "s,$WORK/(before|after),,g"
}

LADDER='title = "same"
target = "rig"
flavours = ["6.12 preempt=none", "6.12-rt", "7.3 preempt=full"]
loads = ["mixed"]
trigger = { period = "1ms", jitter = "200us", count = 500 }'
PROBES='title = "same"
target = "rig"
flavours = ["6.12-rt"]
loads = ["mixed"]
[periodic]
methods = ["clock_nanosleep", "timerfd"]
count = 200
[cyclictest]
count = 200'

# measure SIDE: everything, into a directory of its own.
measure() {
	side=$1
	onset=$WORK/$side/release/onset
	out=$KEPT/$side
	store=$WORK/$side/store
	mkdir -p "$out"
	allowed() { "$@" || [ $? -le 3 ]; }
	samples() { (cd "$store" && find . -name samples.parquet | LC_ALL=C sort | sed 's,^\./[0-9-]*,,' | LC_ALL=C sort -u &&
		find . -name samples.parquet -exec sha256sum {} + | cut -c 1-64 | LC_ALL=C sort); }
	allowed "$onset" run experiments/smoke.toml --store "$store" --json 2>/dev/null | scrub >"$out/smoke"
	echo "$LADDER" >"$WORK/ladder.toml"
	allowed "$onset" run "$WORK/ladder.toml" --store "$store" --json 2>/dev/null | scrub >"$out/ladder"
	echo "$PROBES" >"$WORK/probes.toml"
	allowed "$onset" run "$WORK/probes.toml" --store "$store" --json 2>/dev/null | scrub >"$out/probes"
	samples | sed 's,-[0-9a-f]*/samples,/samples,' >"$out/samples"
	ladder=$(basename "$(ls -d "$store"/*6-12-rt-mixed* | grep -v 'periodic\|cyclictest' | head -n 1)")
	allowed "$onset" blame "$ladder" --above all --store "$store" --json 2>/dev/null | scrub >"$out/ledger"
	allowed "$onset" explain "$ladder" --responder task --worst 5 --store "$store" --json 2>/dev/null | scrub >"$out/explanations"
	allowed "$onset" windows "$ladder" --store "$store" --json 2>/dev/null | scrub >"$out/windows"
	allowed "$onset" bound "$ladder" --store "$store" --json 2>/dev/null | scrub >"$out/bound"
	allowed "$onset" hunt --flavour 6.12-rt --load mixed --budget 40trials --directory "$WORK/$side/hunt" --json 2>/dev/null | scrub >"$out/hunt"
	sed -E '1d; s/"snapshot":"[^"]*"//' "$WORK/$side/hunt/trials.jsonl" | LC_ALL=C sort >"$out/trials"
}

measure before
measure after
different=0
for file in "$KEPT"/before/*; do
	name=$(basename "$file")
	lines=$(wc -l <"$file")
	same=same
	cmp -s "$file" "$KEPT/after/$name" || { same=DIFFERENT && different=1; }
	[ "$lines" -gt 0 ] || { same="EMPTY" && different=1; }
	printf '%-14s %7d lines  %s\n' "$name" "$lines" "$same"
done
exit $different
