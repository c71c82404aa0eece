#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Shares a census and a hunt among the four nodes of a real Slurm (cluster-slurm.sh), while every few seconds a random node
# loses its power for 2 s. Each has to come out as undivided, or as on one machine, to the byte. The command that waits for the
# census is killed once, too, and given again. Then nothing of the cluster is left.
#
# usage: tests/slow/cluster.sh [SHARDS] [SEED]        40 shards of the census, and a tenth as many of the hunt
#
# Takes some ten minutes as root on two processors. Exits with 1 where something differs or is left.
set -eu
here=$(cd "$(dirname "$0")/../.." && pwd)
shards=${1:-40} seed=${2:-$(date +%s)}
name=cluster
. "$here/tests/slow/guest.sh"
. "$here/tests/slow/cluster-slurm.sh"
trap 'slurm_down; rm -rf "$work"' EXIT
mounts=$(cat /proc/mounts)

# killing PID: takes the power from a random node every few seconds until the process is gone.
killing() {
	while kill -0 "$1" 2>/dev/null; do
		kills=$((kills + 1))
		node=$(sed -n "${kills}p" "$work/nodes")
		sleep 8
		node_kill "$node"
		sleep 2
		node_up "$node"
	done
}

# seconds COMMAND...: how long a command takes. It has to succeed.
seconds() {
	began=$(date +%s)
	"$@" >"$work/out" 2>"$work/err" || { cat "$work/err" >&2; die "$* fails"; }
	echo $(($(date +%s) - began))
}

kills=0
awk -v seed="$seed" 'BEGIN { srand(seed); for (i = 0; i < 10000; i++) print 1 + int(4 * rand()) }' >"$work/nodes"
hunt="hunt --flavour 6.12-rt --load mixed --responder task --seed 1"
# A find of one trigger: trials that begin before hundreds of others would take long.
$onset $hunt --strategy foresight --budget 8trials --directory "$work/find" >/dev/null 2>&1 || die "the hunt for a find fails"
census="census $work/find/task.find.json --around 100us --every 10ns"
alone=$(seconds "$onset" $census --jobs 1 --json)
cp "$work/out" "$work/alone.json"
slurm_up "$work/cluster"

# What a shard costs beyond its trials, without a node that dies.
few=$((shards < 20 ? shards : 20))
divided=$(seconds "$onset" $census --on slurm --tasks 1 --shards "$few" --directory "$work/few" --json)
cmp "$work/out" "$work/alone.json" || die "the census of $few shards differs"
echo "a census of 10001 trials: $alone s undivided, $divided s in $few shards, one at once"

"$onset" $census --on slurm --shards "$shards" --directory "$work/census" --json >"$work/out" 2>"$work/err" &
first=$!
(sleep 30; kill -9 $first) &
began=$(date +%s)
killing $first
wait $first || true
there_then=$(ls "$work/census/shards" | grep -c -- "-of-$shards.json" || true)
"$onset" $census --on slurm --shards "$shards" --directory "$work/census" --json >"$work/out" 2>>"$work/err" &
again=$!
killing $again
wait $again || { cat "$work/err"; die "the census fails"; }
took=$(($(date +%s) - began))
# The second command waits for the array of the first, unless that has ended already.
grep -q "it goes on" "$work/err" || [ "$there_then" = "$shards" ] || die "the second command submitted anew"
cmp "$work/out" "$work/alone.json" || die "the census of $shards shards differs from the undivided one"
there=$(ls "$work/census/shards" | grep -c -- "-of-$shards.json")
[ "$there" = "$shards" ] || die "$there of $shards shards"
[ $kills -gt 0 ] || die "no node lost its power during the census; give more shards"
echo "$there of $shards shards in $took s, equal to the undivided census; $kills times a node lost its power"

few=$(((shards + 9) / 10)) kills=0
"$onset" $hunt --budget 3trials --on slurm --tasks 3 --shards "$few" --directory "$work/slurm" >"$work/out" 2>"$work/err" &
hunting=$!
killing $hunting
wait $hunting || { cat "$work/err"; die "the hunt fails"; }
"$onset" $hunt --budget 3trials --shards "$few" --directory "$work/here" >"$work/out" 2>"$work/err" || { cat "$work/err"; die "the hunt here fails"; }
for file in trials.jsonl task.find.json; do
	cmp "$work/slurm/$file" "$work/here/$file" || die "$file of the hunt in $few shards is not that of one machine"
done
[ $kills -gt 0 ] || die "no node lost its power during the hunt; give more shards"
echo "a hunt in $few shards is that of one machine; $kills times a node lost its power"

"$onset" $hunt --budget 3trials --on slurm --partition none --shards 2 --directory "$work/none" 2>"$work/err" && die "a wrong partition is taken"
grep -q "no partition none; choose one of: main" "$work/err" || { cat "$work/err"; die "the wrong partition is not named"; }

# refused WORD...: a hunt on the cluster that a node refuses, with these words, before anything runs.
refused() {
	"$onset" $hunt --budget 3trials --on slurm --shards 2 --directory "$work/refused" >"$work/out" 2>"$work/err" && die "a hunt is made though a node cannot"
	for said; do grep -q "$said" "$work/err" || { cat "$work/err"; die "it does not say $said"; }; done
	[ -z "$(ls "$work/refused")" ] || die "something ran, or stays"
}

# A directory of the node's own at the same place, empty and then with a work; then a node without the kernel.
mkdir "$work/refused"
inside="nsenter -t $(cat "$slurm/n1/init") -m"
$inside mount -t tmpfs none "$work/refused"
refused "1 of 4 nodes" "n1: .*is not here: the directory is not shared"
$inside mkdir "$work/refused/shards"
$inside sh -c "cat >$work/refused/shards/work.json" <"$work/slurm/shards/work.json"
refused "1 of 4 nodes" "n1: .*it is not shared with this machine"
$inside umount "$work/refused"
$inside mount -t tmpfs none "$cache"
refused "1 of 4 nodes" "n1: .*6.12-rt"
echo "a node with a directory of its own is refused, and so is one without the kernel"
slurm_down

# A process of the cluster has the directory in its environment.
left=$(echo "$work" | grep -lsaF -f - /proc/[0-9]*/environ || true)
[ -z "$left" ] || die "processes are left: $left"
[ "$(cat /proc/mounts)" = "$mounts" ] || die "mounts are left"
