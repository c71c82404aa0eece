# SPDX-License-Identifier: GPL-2.0-or-later
# Two network namespaces, joined by a veth pair: a ping flood, a TCP and a UDP stream.
#
# programs: ip ping iperf3 mkdir sleep
# module: veth
# counters: net.ping net.tcp net.udp
mkdir -p /run/netns
ip netns add east
ip netns add west
ip link add veth-east netns east type veth peer name veth-west netns west
ip -n east addr add 10.1.1.1/24 dev veth-east
ip -n west addr add 10.1.1.2/24 dev veth-west
ip -n east link set veth-east up
ip -n west link set veth-west up
ip netns exec west iperf3 --server --port 5201 >/dev/null 2>&1 &
ip netns exec west iperf3 --server --port 5202 >/dev/null 2>&1 &
sleep 0.1
repeat net.ping ip netns exec east ping -q -f -c 200 10.1.1.2 &
repeat net.tcp ip netns exec east iperf3 --client 10.1.1.2 --port 5201 --bytes 256K &
repeat net.udp ip netns exec east iperf3 --client 10.1.1.2 --port 5202 --udp --bitrate 50M --bytes 32K &
