#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Runs every test after `make build firmware`: those of the crates, of the command, of the rig with real kernels, of
# the generator on an emulated board, of the viewer in a browser, and of the viewer on the report of a real run. The
# last line adds them all up.
#
# A test that cannot run here says why and is counted as skipped. Exits with 1 if any test failed.
set -u

cd "$(dirname "$0")/.." || exit 1
ONSET=$PWD/target/release/onset
CACHE=$PWD/target/test-cache
LOG=$PWD/target/test-log
PASSED=0
FAILED=0
SKIPPED=0

begun=$(date +%s)

section() {
	echo
	echo "== $* (after $(($(date +%s) - begun)) s)"
}

# Adds up what the tests of Rust and of node say in $LOG.
count() {
	PASSED=$((PASSED + $(sum passed pass)))
	FAILED=$((FAILED + $(sum failed fail)))
	SKIPPED=$((SKIPPED + $(sum ignored skipped)))
}

# "test result: ok. 3 passed; 0 failed; …" and "# pass 3", or "ℹ pass 3" in newer versions of node.
sum() {
	sed -nE "s/^test result: .* ([0-9]+) $1;.*/\1/p; s/^(#|ℹ) $2 ([0-9]+)\$/\2/p" "$LOG" |
		awk '{ total += $1 } END { print total + 0 }'
}

# Runs a command and shows and counts what it says. One that fails without a failed test of its own (it does
# not build, it crashes) counts as one, and so does one that says nothing of any test.
tests() {
	before=$FAILED
	counted=$((PASSED + FAILED + SKIPPED))
	{
		"$@" 2>&1
		echo "status $?"
	} | tee "$LOG" | grep --line-buffered -v '^status [0-9]*$'
	count
	if [ "$(tail -n 1 "$LOG")" != "status 0" ] && [ "$FAILED" = "$before" ]; then
		echo "failed: $*"
		FAILED=$((FAILED + 1))
	elif [ $((PASSED + FAILED + SKIPPED)) = "$counted" ]; then
		echo "failed: no test is counted in: $*"
		FAILED=$((FAILED + 1))
	fi
}

# Kernels are the user's own, so that they are fetched once; snapshots are the tests' own, so that they
# do not drive the user's out.
user_cache=${XDG_CACHE_HOME:-$HOME/.cache}/onset
mkdir -p "$user_cache/kernels" "$CACHE/onset"
ln -sfn "$user_cache/kernels" "$CACHE/onset/kernels"

# An archive drops what it had; the tests that want one of the last four say so. A line of each that is not there goes
# to $MISSING.
MISSING=$PWD/target/test-kernels-missing
fetch() {
	: >"$MISSING"
	for name in 6.12 6.12-rt 7.3 7.3-rt 6.1 6.1-rt; do
		"$ONSET" kernels fetch "$name" || echo "$name" >>"$MISSING"
	done
}

# Fetching waits for the network and for one compiler after the other, and the tests' build has the other processor
# meanwhile.
section "kernels, and building the tests"
fetch >"$LOG.kernels" 2>&1 &
fetching=$!
cargo test --workspace --locked --no-run || echo "the tests do not build: see below"
if ! wait "$fetching"; then
	echo "failed: the fetching of kernels ended early"
	FAILED=$((FAILED + 1))
fi
cat "$LOG.kernels"
# Most tests need one of these, and are skipped where it is not there, whatever the command says.
for name in 6.12 6.12-rt; do
	if grep -qxF "$name" "$MISSING" || [ ! -f "$CACHE/onset/kernels/$name/kernel.json" ]; then
		echo "failed: kernels fetch $name"
		FAILED=$((FAILED + 1))
	fi
done
for name in $(grep -vxF -e 6.12 -e 6.12-rt "$MISSING"); do
	echo "the tests of $name will be skipped"
done

section "crates, command and rig"
ONSET_TEST_NOTES=$PWD/target/test-notes
: >"$ONSET_TEST_NOTES"
export ONSET ONSET_TEST_CACHE="$CACHE" ONSET_TEST_NOTES
tests cargo test --workspace --locked --no-fail-fast
grep -v '^took: ' "$ONSET_TEST_NOTES"
echo "what took longest:"
sed -n 's/^took: \(.*\): \([0-9]*\) s$/\2 s  \1/p' "$ONSET_TEST_NOTES" | sort -rn | head -n 25
# The harness of Rust takes a test that skipped itself for one that passed.
itself=$(grep -c '^skip: ' "$ONSET_TEST_NOTES")
SKIPPED=$((SKIPPED + itself))
PASSED=$((PASSED - itself))

section "generator on an emulated board"
npm --prefix firmware ci --no-audit --no-fund --loglevel=error
tests npm --prefix firmware test

section "viewer, also on the report of a real run"
store=$(mktemp -d)
trap 'rm -rf "$store"' EXIT
if "$ONSET" run experiments/smoke.toml --store "$store" &&
	"$ONSET" report latest --store "$store" -o "$store/report.html"; then
	ONSET_REPORT=$store/report.html
	export ONSET_REPORT
else
	echo "failed: no report of a real run"
	FAILED=$((FAILED + 1))
fi
tests npm --prefix web test

echo
echo "$PASSED passed, $FAILED failed, $SKIPPED skipped, in $(($(date +%s) - begun)) s"
[ "$FAILED" = 0 ]
