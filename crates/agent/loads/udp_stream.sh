# SPDX-License-Identifier: GPL-2.0-or-later
# One sender of UDP datagrams as fast as it can, as netperf's UDP_STREAM. A unit of work is 4 MiB that were sent: UDP
# does not wait for the receiver, so fewer may have arrived.
#
# network: namespaces
# programs: iperf3
# counters: udp_stream.4mib
ip netns exec west iperf3 --server >/dev/null 2>&1 &
sleep 0.1
repeat udp_stream.4mib ip netns exec east iperf3 --client 10.1.1.2 --udp --bitrate 0 --bytes 4M &
