#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# Process 1 of the guest of knobs.sh. Says to the second serial port what onset sees of its knobs, and which of their files
# and threads there are (a file that the kernel refuses to read does not count): those that the host has written to /patterns, a knob and a pattern a line.
. /mounts.sh
to_second_port
if ! grep -q knobs.parameters /proc/cmdline; then
	onset tune --cpus 1 --json
	while read -r name pattern; do
		# A pattern of files.
		# shellcheck disable=SC2086
		for path in $pattern; do ! cat "$path" >/dev/null 2>&1 || echo "@has $name $path"; done
	done </patterns
	for stat in /proc/[0-9]*/stat; do sed -n 's/.* (\(.*\)) .*/@thread \1/p' "$stat"; done
fi
dmesg | sed -n 's/.*Unknown kernel command line parameters "\(.*\)", will be.*/@unknown \1/p'
echo "@end"
sync
reboot -f
