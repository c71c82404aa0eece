# SPDX-License-Identifier: GPL-2.0-or-later
# Requests and responses of one byte over one TCP connection, one at a time, as netperf's TCP_RR: NetPIPE bounces a
# byte, 250 times in each of four trials. So a unit of work is 1000 round trips, and a few before them.
#
# NetPIPE's receiver takes one connection and ends. Its sender fails until the receiver listens. Both ask for the
# number of the protocol tcp, which the bare guest has not.
#
# network: namespaces
# programs: NPtcp
# counters: tcp_rr.1000
if [ ! -e /etc/protocols ]; then
	# Only the bare guest has this directory.
	if [ ! -d /onset ]; then
		echo 'NetPIPE needs /etc/protocols: apt install netbase' >&2
		exit 1
	fi
	mkdir -p /etc
	echo 'tcp 6 TCP' >/etc/protocols
fi
bounce='
set -- -l 1 -u 1 -p 0 -n 250 -o /dev/null
ip netns exec west NPtcp "$@" &
receiver=$!
until ip netns exec east NPtcp -h 10.1.1.2 "$@"; do
	kill -0 "$receiver" || exit
	sleep 0.005
done
wait "$receiver"
'
repeat tcp_rr.1000 sh -c "$bounce" &
