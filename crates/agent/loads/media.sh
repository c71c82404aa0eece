# SPDX-License-Identifier: GPL-2.0-or-later
# A media player: it reads and decodes 64 KiB every 20 ms, a tenth of a second ahead. A player that runs dry is counted
# as media.block.failed.
#
# programs: dd mkdir
# counters: media.block
directory=${TMPDIR:-/tmp}/media
mkdir -p "$directory"
dd if=/dev/zero of="$directory/film" bs=64k count=64 status=none
play media.block "$directory/film" &
