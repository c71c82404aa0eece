#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What `make papers` runs: the papers' experiments, and the report with their tables.
set -eu
export LC_ALL=C

: "${ONSET:=onset}"
# A run without limits is inconclusive; that is a result here. Whoever interrupted it goes on where it was.
status=0
"$ONSET" run --resume experiments/papers/*.toml --report onset-papers.html || status=$?
case $status in
0 | 1 | 3) ;;
*) exit "$status" ;;
esac
