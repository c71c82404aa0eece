# SPDX-License-Identifier: GPL-2.0-or-later
# hackbench: a group of senders and receivers that wake each other through sockets.
#
# programs: hackbench
# counters: ipc.hackbench
repeat ipc.hackbench hackbench --groups 1 --fds 4 --loops 20 &
