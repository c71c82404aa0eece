#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Replays what hunts find: hunts make their trials by forks, and each find has to come out again, to the instruction, in a
# guest that is restored from its snapshot. The hunts have all strategies and responders. There is one for each flavour, load
# and seed until there are enough finds.
#
# usage: tests/slow/finds.sh [FINDS] [TRIALS]       1000 finds, of hunts of 120 trials each
#
# Prints how many finds of each strategy came out the same. Takes some two hours on two processors. Exits with 1 if one did not.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
onset=${ONSET:-$here/target/release/onset}
wanted=${1:-1000} trials=${2:-120}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
sed 's/^loads = .*/loads = ["mixed", "disk", "net", "fork"]/' "$here/experiments/hunt.toml" >"$work/hunt.toml"
replayed=0 failed=0 seed=0
: >"$work/strategies"
while [ "$replayed" -lt "$wanted" ]; do
	seed=$((seed + 1))
	for flavour in "6.12 preempt=none" "6.12 preempt=full" 6.12-rt "7.3 preempt=lazy" 7.3-rt; do
		for load in mixed disk net fork; do
			[ "$replayed" -lt "$wanted" ] || continue
			hunt=$work/hunt
			rm -rf "$hunt"
			"$onset" hunt "$work/hunt.toml" --flavour "$flavour" --load "$load" --seed "$seed" --budget "${trials}trials" \
				--directory "$hunt" --json >"$work/found.json" 2>"$work/said" || { cat "$work/said"; exit 1; }
			for find in "$hunt"/*.find.json; do
				name=$(basename "$find")
				strategy=$(python3 -c 'import json, sys; found = json.load(open(sys.argv[1]))
print(*[w["at_strategy"] for w in found["worst"] if (w["find"] or "").endswith("/" + sys.argv[2])])' "$work/found.json" "$name")
				if "$onset" replay "$find" >"$work/said" 2>&1; then
					echo "$strategy" >>"$work/strategies"
				else
					failed=$((failed + 1))
					echo "differs: $flavour, $load, seed $seed, $name ($strategy)"
					cat "$work/said"
				fi
				replayed=$((replayed + 1))
			done
			echo "$replayed replayed, $failed of them otherwise ($flavour, $load, seed $seed)"
		done
	done
done
sort "$work/strategies" | uniq -c
[ "$failed" = 0 ]
