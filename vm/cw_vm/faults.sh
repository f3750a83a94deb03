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

# goes_on BEGUN SECONDS DONE TIMES: whether what was begun then is to be done again: for so many seconds, and where a
# slow guest has not yet done it so many times, for up to ten times as long.
goes_on() {
	local passed=$(($(seconds) - $1))
	[ $passed -lt "$2" ] || { [ "$3" -lt "$4" ] && [ $passed -lt $((10 * $2)) ]; }
}

# toggle SECONDS TIMES: takes CPUs off and on, but for the first, which x86 cannot do without; all are on in
# the end. How often is in /out/toggled.
toggle() {
	local begun=$(seconds)
	toggled=0
	while goes_on $begun "$1" $toggled "$2"; do
		online=/sys/devices/system/cpu/cpu$((RANDOM % (cpus - 1) + 1))/online
		echo $((1 - $(cat $online))) >$online && toggled=$((toggled + 1))
		sleep 0.05
	done
	for online in /sys/devices/system/cpu/cpu*/online; do
		echo 1 >$online
	done
	echo $toggled >/out/toggled
}

# scatter SECONDS TIMES: lets each process of the load run on other CPUs, chosen at random, again and again.
# How often is in /out/scattered.
scatter() {
	local begun=$(seconds)
	scattered=0
	while goes_on $begun "$1" $scattered "$2"; do
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

# freeze SECONDS TIMES: stops all of the load for a moment, again and again. How often is in /out/frozen.
freeze() {
	local begun=$(seconds)
	frozen=0
	while goes_on $begun "$1" $frozen "$2"; do
		echo 1 >$group/cgroup.freeze
		sleep 0.$((RANDOM % 9 + 1))
		grep -q "frozen 1" $group/cgroup.events && frozen=$((frozen + 1))
		echo 0 >$group/cgroup.freeze
		sleep 0.5
	done
	echo $frozen >/out/frozen
}

# partition SECONDS TIMES: makes partitions of CPUs chosen at random, and takes them back, again and again: one with the load
# in it, and an isolated one with nobody. How many is in /out/partitions.
partition() {
	local begun=$(seconds)
	partitions=0
	echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control
	mkdir /sys/fs/cgroup/nobody
	while goes_on $begun "$1" $partitions "$2"; do
		for kind in "$group root" "/sys/fs/cgroup/nobody isolated"; do
			dir=${kind% *}
			first=$((RANDOM % (cpus - 1) + 1))
			echo $first-$((first + RANDOM % (cpus - first))) >$dir/cpuset.cpus
			echo ${kind#* } >$dir/cpuset.cpus.partition
			[ "$(cat $dir/cpuset.cpus.partition)" = ${kind#* } ] && partitions=$((partitions + 1))
			sleep 0.2
			echo member >$dir/cpuset.cpus.partition
			echo >$dir/cpuset.cpus
		done
	done
	rmdir /sys/fs/cgroup/nobody
	echo $partitions >/out/partitions
}

# The processes that were started since boot.
forks() { sed -n 's/^processes //p' /proc/stat; }

# execs SECONDS: for each CPU a process that starts programs one after the other. How many a second is in /out/execs.
# xargs does so with vfork(), which an emulated CPU does faster than the fork() of a shell.
execs() {
	for cpu in $(seq $cpus); do
		begin sh -c 'until [ -e /tmp/enough ]; do seq 50 | xargs -n 1 /bin/busybox true; done'
	done
	before=$(forks)
	sleep "$1"
	echo $((($(forks) - before) / $1)) >/out/execs
	touch /tmp/enough
}

# clocks SECONDS TIMES: sets the time of day, years forth and back, again and again. How often is in /out/stepped.
clocks() {
	local begun=$(seconds)
	stepped=0
	while goes_on $begun "$1" $stepped "$2"; do
		date -s @$((1500000000 + RANDOM * 20000)) >/dev/null && stepped=$((stepped + 1))
		sleep 0.1
	done
	echo $stepped >/out/stepped
}

# pause SECONDS TIMES: stops the loader and lets it go on, again and again. How often is in /out/paused.
pause() {
	local begun=$(seconds)
	paused=0
	while goes_on $begun "$1" $paused "$2"; do
		kill -STOP "$loader" && paused=$((paused + 1))
		sleep $((RANDOM % 3))
		kill -CONT "$loader"
		sleep 1
	done
	echo $paused >/out/paused
}

# at_once COMMAND...: runs functions side by side, and waits for them.
at_once() {
	local running=
	for function in "$@"; do
		$function &
		running="$running $!"
	done
	wait $running
}

# ask NAME COMMAND...: what the command says, and its status, into /out/NAME. It has half a minute, and as long as
# ten schedulers took to load: a second one does so beside the load.
ask() {
	local name=$1
	shift
	timeout -s KILL $((30 + 10 * loading)) "$@" >"/out/$name" 2>&1
	echo $? >>"/out/$name"
}

# ask_unseen NAME COMMAND...: the same, where the command finds neither the lock nor the state of the scheduler that runs.
ask_unseen() {
	local name=$1
	shift
	ask "$name" unshare -m sh -c 'mount -t tmpfs none /run && echo disabled >/tmp/disabled &&
		mount --bind /tmp/disabled /sys/kernel/sched_ext/state && exec "$@"' sh "$@"
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
