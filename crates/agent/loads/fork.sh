# SPDX-License-Identifier: GPL-2.0-or-later
# Storms of short-lived processes: eight at once, again and again.
#
# programs: sh true
# counters: fork.storm
repeat fork.storm sh -c 'for i in 1 2 3 4 5 6 7 8; do /bin/true & done; wait' &
