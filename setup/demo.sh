#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# The comparison that `make demo` shows: the response ladder of three flavours, idle and under load, and its report.
set -eu
export LC_ALL=C

: "${ONSET:=onset}"
# A limit that this kernel does not keep is a result, not a failure of the demonstration.
status=0
"$ONSET" run experiments/ladder.toml --report onset-ladder.html || status=$?
case $status in
0 | 1 | 3) ;;
*) exit "$status" ;;
esac
