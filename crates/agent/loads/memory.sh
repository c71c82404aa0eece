# SPDX-License-Identifier: GPL-2.0-or-later
# stress-ng: maps, touches, remaps and unmaps memory.
#
# programs: stress-ng
# counters: memory.vm memory.map
repeat memory.vm stress-ng --quiet --vm 1 --vm-bytes 4M --vm-method flip --vm-ops 16 --temp-path "${TMPDIR:-/tmp}" &
repeat memory.map stress-ng --quiet --mmap 1 --mmap-bytes 256K --mmap-ops 2 --temp-path "${TMPDIR:-/tmp}" &
