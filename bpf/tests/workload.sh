#!/bin/sh
# Records a workload with and without BPF on this kernel: workload.sh RECORDER. Needs root.
set -e
recorder=$1
[ "$(id -u)" = 0 ] || { echo "workload.sh: not root: nothing is recorded"; exit 0; }
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
expect() {
	grep -q "$1" messages || { echo "workload.sh: no \`$1\` in:"; cat messages; exit 1; }
}
# the status is that of the command
status=0
"$recorder" --workload -o a.cwr -- sh -c 'echo x | cat; exit 5' > /dev/null 2> messages || status=$?
[ $status = 5 ] || { echo "workload.sh: status $status"; exit 1; }
expect ' 0 lost'
# a task that moves to a task group, with the controller's version 1 or 2
groups=/sys/fs/cgroup
[ ! -e $groups/cpu/cpu.shares ] || groups=$groups/cpu
group=$groups/coreward-test-$$
if mkdir "$group" 2> /dev/null && { [ -e "$group/cpu.shares" ] || [ -e "$group/cpu.weight" ]; }; then
	trap 'rmdir "$group"; rm -rf "$directory"' EXIT
	"$recorder" --workload -o g.cwr -- sh -c "echo 0 > $group/cgroup.procs; sleep 0.1; echo 0 > $groups/cgroup.procs" 2> messages
	grep -aq "/coreward-test-$$" g.cwr || { echo "workload.sh: the task group is not recorded"; exit 1; }
	! grep -aq "/coreward-test-" a.cwr || { echo "workload.sh: a group is recorded in which no task was"; exit 1; }
	rm g.cwr
fi
# messages of a task that is awake: where data comes to an empty socket, and where the last is received
if [ -e /sys/kernel/tracing/events/sock/sk_data_ready ]; then
	for at_once in 1 2; do
		"$recorder" --workload -o s.cwr -- python3 -c "if True:
			import socket
			a, b = socket.socketpair()
			for _ in range(20000):
				for _ in range($at_once): a.send(b'x')
				for _ in range($at_once): b.recv(1)" 2> messages
		events=$(sed -n 's/.*: \([0-9]*\) events,.*/\1/p' messages)
		[ "$events" -ge 40000 ] && [ "$events" -lt 60000 ] ||
			{ echo "workload.sh: $events events of 20000 times $at_once messages"; exit 1; }
	done
	rm s.cwr
fi
status=0
"$recorder" --workload --tracepoints --duration 0.2 -o b.cwr 2> messages || status=$?
[ $status = 0 ] || { echo "workload.sh: status $status"; exit 1; }
expect 'text of tracepoints, 0 events lost'
zcat b.cwr | grep -q sched_switch: || { echo "workload.sh: no switches in the text"; exit 1; }
# a file that is full
status=0
"$recorder" --workload --max-size 1 -o c.cwr -- sh -c 'i=0; while [ $i -lt 9000 ]; do /bin/true; i=$((i + 1)); done' 2> messages || status=$?
[ $status = 3 ] || { echo "workload.sh: status $status of a full file"; cat messages; exit 1; }
expect 'the file reached 1 MiB'
[ "$(stat -c %s c.cwr)" -lt 1200000 ] || { echo "workload.sh: the file is larger than it may be"; exit 1; }
# nothing is left of a recording that failed
"$recorder" --workload -o none/d.cwr -- true 2> messages && exit 1
expect 'none/d.cwr: No such file'
[ "$(ls)" = "$(printf 'a.cwr\nb.cwr\nc.cwr\nmessages')" ] || { echo "workload.sh: files are left: $(ls)"; exit 1; }
