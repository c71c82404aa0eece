#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The comparison that `make demo` shows: the response ladder of three flavours, idle and under load, and its report.
set -eu

: "${ONSET:=onset}"
experiment=experiments/ladder.toml
report=onset-ladder.html
names=$(mktemp)
trap 'rm -f "$names"' EXIT

# A limit that this kernel does not keep is a result, not a failure of the demonstration.
status=0
"$ONSET" run "$experiment" || status=$?
case $status in
0 | 1 | 3) ;;
*) exit "$status" ;;
esac
"$ONSET" list --json >"$names"
runs=$(sed -n 's/^ *"run": "\(.*\)",*$/\1/p' "$names" | head -n 6)
# shellcheck disable=SC2086
"$ONSET" report $runs -o "$report" >/dev/null
echo "The report: $(pwd)/$report"
