# SPDX-License-Identifier: GPL-2.0-or-later
# A ping flood, a TCP and a UDP stream.
#
# network: namespaces
# programs: ping iperf3
# counters: net.ping net.tcp net.udp
ip netns exec west iperf3 --server --port 5201 >/dev/null 2>&1 &
ip netns exec west iperf3 --server --port 5202 >/dev/null 2>&1 &
sleep 0.1
repeat net.ping ip netns exec east ping -q -f -c 200 10.1.1.2 &
repeat net.tcp ip netns exec east iperf3 --client 10.1.1.2 --port 5201 --bytes 256K &
repeat net.udp ip netns exec east iperf3 --client 10.1.1.2 --port 5202 --udp --bitrate 50M --bytes 32K &
