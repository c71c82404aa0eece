# SPDX-License-Identifier: GPL-2.0-or-later
# A cluster with a real Slurm on this machine, for the tests that source this file: a controller, and nodes of one CPU each
# named n1, n2, ... A node has a host name, processes and a network of its own (namespaces), so it can lose its power. They
# all see this machine's files. Nothing of it is on the machine's own network. Needs root.
#
# Who sources it has: need and die, as guest.sh has them. It gets: slurm_up DIR [NODES], node_kill N, node_up N, slurm_down.
# The cluster goes too when the shell that has called slurm_up is no more.

# slurm_up DIR [NODES]: starts the cluster, with its files below DIR (an absolute path), and waits until its nodes (4) are idle.
# sbatch and so on are then programs in DIR/bin, which is in PATH. A node that loses its power is down after some 7 s, and its
# jobs wait 5 s more: less than a cred_expire of 5 Slurm refuses.
slurm_up() {
	slurm=$1 nodes=${2:-4}
	[ "$(id -u)" = 0 ] || die "a cluster needs root"
	need slurmctld slurmd slurm-client munge iproute2
	mkdir -p "$slurm/bin" "$slurm/run" "$slurm/state"
	(umask 077 && head -c 128 /dev/urandom >"$slurm/key")
	cat >"$slurm/slurm.conf" <<END
ClusterName=onset
SlurmctldHost=control(10.0.0.254)
SlurmUser=root
AuthInfo=socket=$slurm/run/munge,cred_expire=5
StateSaveLocation=$slurm/state
SlurmctldPidFile=$slurm/run/slurmctld.pid
SlurmctldLogFile=$slurm/slurmctld.log
SlurmdPidFile=$slurm/run/slurmd.pid
SlurmdSpoolDir=$slurm/%n/spool
SlurmdLogFile=$slurm/%n/slurmd.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=100000,bf_interval=1
JobRequeue=1
ReturnToService=2
SlurmdTimeout=1
BatchStartTimeout=2
MessageTimeout=5
TCPTimeout=1
KillWait=3
TreeWidth=100
NodeName=n[1-$nodes] NodeAddr=10.0.0.[1-$nodes] CPUs=1 State=UNKNOWN
PartitionName=main Default=YES Nodes=ALL MaxTime=INFINITE State=UP
END
	# The controller's process 1. It still has the machine's /proc.
	cat >"$slurm/control" <<'END'
read -r pid rest </proc/self/stat
hostname control
ip link set lo up
ip link add cluster type bridge
ip addr add 10.0.0.254/24 dev cluster
ip link set cluster up
echo "$pid" >"$1/new" && mv "$1/new" "$1/init"
while [ -d "/proc/$2" ]; do sleep 1; done
END
	# A node's process 1. The node has its own munged, and Slurm's own programs instead of those in DIR/bin. slurmd -b says
	# that the node has booted. When it says what runs, Slurm takes a job for lost that was there some seconds ago. A real
	# boot takes longer than that; this one does not, so slurmd says it again.
	cat >"$slurm/node" <<'END'
read -r pid rest </proc/self/stat
hostname "n$2"
mount -t proc proc /proc
mount -t tmpfs none "$1/bin"
mount -t tmpfs none "$1/run"
echo "$pid" >"$1/n$2/new" && mv "$1/n$2/new" "$1/n$2/init"
until ip link set eth0 up 2>/dev/null; do sleep 0.1; done
ip link set lo up
ip addr add "10.0.0.$2/24" dev eth0
munged --force --origin=eth0 --key-file="$1/key" --socket="$1/run/munge" --pid-file="$1/run/munge.pid" \
	--log-file="$1/n$2/munge.log" --seed-file="$1/n$2/seed"
slurmd -b -D &
sleep 8
kill -HUP $!
wait
END
	export SLURM_CONF="$slurm/slurm.conf"
	rm -f "$slurm/init"
	setsid -f unshare -n -p -u -f sh "$slurm/control" "$slurm" $$ </dev/null >"$slurm/console" 2>&1
	slurm_init=$(slurm_pid "$slurm/init")
	for each in sbatch squeue scancel srun sinfo scontrol salloc sacct sattach sbcast; do
		printf '#!/bin/sh\nexec nsenter -t %s -n /usr/bin/%s "$@"\n' "$slurm_init" "$each" >"$slurm/bin/$each"
		chmod 755 "$slurm/bin/$each"
	done
	export PATH="$slurm/bin:$PATH"
	# The directory is root's alone, which munged takes only by force.
	slurm_there munged --force --origin=cluster --key-file="$slurm/key" --socket="$slurm/run/munge" --pid-file="$slurm/run/munge.pid" \
		--log-file="$slurm/munge.log" --seed-file="$slurm/seed"
	slurm_there slurmctld
	for each in $(seq "$nodes"); do node_up "$each"; done
	tries=0
	until [ "$(sinfo -h -N -t idle -o %n 2>/dev/null | wc -l)" = "$nodes" ]; do
		tries=$((tries + 1))
		[ $tries -lt 300 ] || die "the nodes of the cluster are not idle: $(sinfo -h -N -o '%n %T' 2>&1)"
		sleep 0.2
	done
}

# slurm_there COMMAND...: runs a command at the controller.
slurm_there() {
	nsenter -t "$slurm_init" -n -p -u "$@" </dev/null >>"$slurm/console" 2>&1 || die "$1 fails: $(tail -n 3 "$slurm/console")"
}

# slurm_pid FILE: the number of a process 1 on this machine, once the file has it.
slurm_pid() {
	tries=0
	until [ -s "$1" ]; do
		tries=$((tries + 1))
		[ $tries -lt 100 ] || die "$1 did not come"
		sleep 0.1
	done
	cat "$1"
}

# slurm_end PID: ends a process 1 and so every process of its namespace, and waits until they are gone.
slurm_end() {
	kill -9 "$1" 2>/dev/null || true
	while [ -d "/proc/$1" ]; do sleep 0.05; done
}

# node_kill N: the node loses its power. Its network goes first, so that nobody hears of it.
node_kill() {
	slurm_there ip link del "n$1"
	slurm_end "$(cat "$slurm/n$1/init")"
}

# node_up N: the node boots. It takes jobs a moment later.
node_up() {
	mkdir -p "$slurm/n$1/spool"
	rm -f "$slurm/n$1/init"
	nsenter -t "$slurm_init" -n -p setsid -f unshare -n -p -u -m -f sh "$slurm/node" "$slurm" "$1" </dev/null >>"$slurm/n$1/console" 2>&1
	node_pid=$(slurm_pid "$slurm/n$1/init")
	# The number of the process is this machine's, so not from the controller's namespace of processes.
	nsenter -t "$slurm_init" -n sh -c "ip link add n$1 type veth peer name eth0 netns $node_pid && ip link set n$1 master cluster up"
}

# slurm_down: ends all at once.
slurm_down() {
	[ -n "${slurm_init:-}" ] || return 0
	slurm_end "$slurm_init"
	slurm_init=
	PATH=${PATH#"$slurm/bin:"}
	unset SLURM_CONF
}
