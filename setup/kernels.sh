#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# What `make kernels` runs: every command that looks into a kernel, on every kernel that is named (by default those of the table
# in docs/kernels.md), and the table of what came out. A kernel that the archive has no more is a row that says so.
#
# usage: setup/kernels.sh [NAME…]
set -u
export LC_ALL=C

: "${ONSET:=onset}"
cd "$(dirname "$0")/.." || exit 1
[ $# -gt 0 ] || set -- 6.1 6.1-rt 6.12 6.12-rt 6.16 6.17 6.18 6.18-rt 6.19 7.0 7.1 7.2 7.2-rt 7.3 7.3-rt

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
ONSET_STORE=$place/store
export ONSET_STORE
failed=0

# "ok", what is missing, or the end of the error; the whole is kept in the log.
outcome() {
	if "$@" >"$place/out" 2>"$place/err"; then
		missing=$(grep -h '^ *! not seen: ' "$place/out" "$place/err" | sed 's/^ *! not seen: //' | sort -u | paste -sd ';')
		echo "${missing:-ok}"
	else
		status=$?
		failed=1
		echo "failed ($status): $(tail -n 1 "$place/err" | tr '|' '/')"
	fi
}

# An image without modules runs no load.
load_of() {
	if "$ONSET" kernels list --available | awk -v name="$1" '$1 == name' | grep -q 'the image alone'; then
		echo idle
	else
		echo mixed
	fi
}

# The driver's responders under load, 300 triggers.
ladder() {
	cat >"$place/$1.toml" <<-END
		title = "$1"
		target = "rig"
		flavours = ["$1"]
		loads = ["${2:-mixed}"]
		responders = ["hardirq", "task"]
		[trigger]
		period = "1ms"
		jitter = "200us"
		count = 300
	END
	echo "$place/$1.toml"
}

# Ends with 3 where no limit was given, which is no failure.
run() {
	"$ONSET" run "$1" || [ $? = 3 ]
}

echo "| kernel | release | ladder | windows | explain | blame | bound | hunt | replay, trace | minimise |"
echo "|---|---|---|---|---|---|---|---|---|---|"
for name; do
	if ! "$ONSET" kernels fetch "$name" >"$place/fetched" 2>"$place/err"; then
		echo "| $name | $(tail -n 1 "$place/err" | tr '|' '/') ||||||||"
		continue
	fi
	release=$(sed -n 's/^[^ ]*: \([^ ]*\) (.*/\1/p' "$place/fetched" | tail -n 1)
	if ! "$ONSET" kernels list | awk -v name="$name" '$1 == name' | grep -q 'can be built'; then
		# Without the driver there are no triggers; a probe at rest runs, and can be looked into.
		cat >"$place/$name.toml" <<-END
			title = "$name"
			target = "rig"
			flavours = ["$name"]
			loads = ["idle"]
			[periodic]
			methods = ["clock_nanosleep"]
			periods = ["1ms"]
			count = 300
		END
		ran="probe: $(outcome run "$place/$name.toml")"
		echo "| $name | $release | $ran | $(outcome "$ONSET" windows "$(ladder "$name" "$(load_of "$name")")") | – | – | – | – | – | – |"
		continue
	fi
	experiment=$(ladder "$name")
	ran=$(outcome run "$experiment")
	windows=$(outcome "$ONSET" windows "$experiment")
	explain=$(outcome "$ONSET" explain latest --worst 1)
	blame=$(outcome "$ONSET" blame latest)
	bound=$(outcome "$ONSET" bound latest)
	hunt=$(outcome "$ONSET" hunt "$experiment" --budget 8trials --directory "$place/hunt-$name")
	find=$(find "$place/hunt-$name" -name 'task.find.json' | head -n 1)
	replay=$(outcome "$ONSET" replay "$find" --trace "$place/trace.pftrace")
	minimise=$(outcome "$ONSET" minimise "$find")
	echo "| $name | $release | $ran | $windows | $explain | $blame | $bound | $hunt | $replay | $minimise |"
done
exit $failed
