# SPDX-License-Identifier: GPL-2.0-or-later
# stress-ng: maps, touches, remaps and unmaps memory.
#
# programs: stress-ng
# counters: memory.vm memory.map
repeat memory.vm stress-ng --quiet --vm 1 --vm-bytes 8M --vm-method flip --vm-ops 64 --temp-path /tmp &
repeat memory.map stress-ng --quiet --mmap 1 --mmap-bytes 4M --mmap-ops 4 --temp-path /tmp &
