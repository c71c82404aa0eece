# SPDX-License-Identifier: GPL-2.0-or-later
# One TCP connection that sends as fast as the receiver takes it, as netperf's TCP_STREAM. A unit of work is 16 MiB.
#
# network: namespaces
# programs: iperf3
# counters: tcp_stream.16mib
ip netns exec west iperf3 --server >/dev/null 2>&1 &
sleep 0.1
repeat tcp_stream.16mib ip netns exec east iperf3 --client 10.1.1.2 --bytes 16M &
