# SPDX-License-Identifier: GPL-2.0-only
# Functions of guests that mistreat a scheduler. All that the load starts is in one control group, so
# that what never ends is found. Needs scx.sh.

group=/sys/fs/cgroup/load
cpus=$(nproc)

seconds() { cut -d. -f1 /proc/uptime; }

# begin COMMAND...: starts a part of the load, which is in the group from its first instruction.
begin() {
	echo $$ >$group/cgroup.procs
	"$@" >>/out/output 2>&1 &
	loads="$loads $!"
	echo $$ >/sys/fs/cgroup/cgroup.procs
}

# finish SECONDS: waits until all of the load has ended, but not longer. Writes down which processes are
# left, and in which state, else the status of each part.
finish() {
	local deadline=$(($(seconds) + $1))
	while grep -q "populated 1" $group/cgroup.events && [ "$(seconds)" -lt $deadline ]; do
		sleep 0.1
	done
	for pid in $(cat $group/cgroup.procs); do
		cut -d" " -f1-3 "/proc/$pid/stat"
	done >>/out/left 2>/dev/null
	if [ -s /out/left ]; then
		echo 1 >$group/cgroup.kill
		return
	fi
	for pid in $loads; do
		wait "$pid"
		echo "$?"
	done >>/out/statuses
	loads=
}

# What a process has run, in ns.
run_ns() { cut -d' ' -f1 "/proc/$1/schedstat"; }

# turns PID: how often the task was switched away though it could have gone on.
turns() {
	sed -n 's/^nonvoluntary_ctxt_switches:[[:space:]]*//p' "/proc/$1/status"
}

# shares COMMAND COMMAND SECONDS: what two spinners on CPU 1 run in that time, each started by a command
# such as nice: both times before and after, in ns, into /out/shares, and the turns of the first into /out/turns.
shares() {
	taskset 2 $1 sh -c 'while :; do :; done' &
	first=$!
	taskset 2 $2 sh -c 'while :; do :; done' &
	second=$!
	sleep 1
	before="$(run_ns $first) $(run_ns $second)"
	begun=$(turns $first)
	sleep "$3"
	echo "$before $(run_ns $first) $(run_ns $second)" >/out/shares
	echo "$begun $(turns $first)" >/out/turns
	kill $first $second
	wait $first $second 2>/dev/null
}

# toggle SECONDS: takes CPUs off and on, but for the first, which x86 cannot do without; all are on in
# the end. How often is in /out/toggled.
toggle() {
	local deadline=$(($(seconds) + $1))
	toggled=0
	while [ "$(seconds)" -lt $deadline ]; do
		online=/sys/devices/system/cpu/cpu$((RANDOM % (cpus - 1) + 1))/online
		echo $((1 - $(cat $online))) >$online && toggled=$((toggled + 1))
		sleep 0.05
	done
	for online in /sys/devices/system/cpu/cpu*/online; do
		echo 1 >$online
	done
	echo $toggled >/out/toggled
}

# scatter SECONDS: lets each process of the load run on other CPUs, chosen at random, again and again.
# How often is in /out/scattered.
scatter() {
	local deadline=$(($(seconds) + $1))
	scattered=0
	while [ "$(seconds)" -lt $deadline ]; do
		for pid in $(cat $group/cgroup.procs); do
			mask=$(printf %x $((RANDOM % ((1 << cpus) - 1) + 1)))
			taskset -p $mask "$pid" >/dev/null 2>&1 && scattered=$((scattered + 1))
		done
		sleep 0.02
	done
	echo $scattered >/out/scattered
}

# storm LIMIT SECONDS: shells that fork until the load has so many tasks, again and again for that long.
storm() {
	echo "$1" >$group/pids.max
	local deadline=$(($(seconds) + $2))
	while [ "$(seconds)" -lt $deadline ]; do
		begin sh -c 'trap "exit 0" EXIT; for i in 1 2 3 4; do (while :; do sleep 20 & done) & done; wait'
		finish 120
	done
}

# watch_kworkers COMMAND: each second, how long each worker of the kernel's has waited, in ns, and how often it
# has run, into /out/kworkers; started by a command such as chrt, so that it waits for none of them.
watch_kworkers() {
	$1 sh -c 'while sleep 1; do
		for dir in /proc/[0-9]*; do
			read -r name <$dir/comm
			case $name in kworker/*)
				read -r _ waited runs <$dir/schedstat && echo "$dir $waited $runs" ;;
			esac
		done
	done' >/out/kworkers 2>/dev/null &
	watching=$!
}

# The most tasks that the load had, and how often its limit was met, into /out/tasks.
tasks() { echo "$(cat $group/pids.peak) $(sed -n 's/^max //p' $group/pids.events)" >/out/tasks; }

echo +pids >/sys/fs/cgroup/cgroup.subtree_control
mkdir $group
: >/out/left
: >/out/statuses
