# SPDX-License-Identifier: GPL-2.0-or-later
# Two network namespaces, joined by a veth pair, before each load that has "network: namespaces" in its header. east is
# 10.1.1.1, and west is 10.1.1.2.
#
# programs: ip mkdir sleep
# module: veth
mkdir -p /run/netns
ip netns add east
ip netns add west
ip link add veth-east netns east type veth peer name veth-west netns west
ip -n east addr add 10.1.1.1/24 dev veth-east
ip -n west addr add 10.1.1.2/24 dev veth-west
ip -n east link set veth-east up
ip -n west link set veth-west up
