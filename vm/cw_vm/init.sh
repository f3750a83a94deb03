#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-only
# The guest's first process: mounts what tools expect, runs the command, passes back what it
# printed, wrote into /out and returned, and switches the machine off.

export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root LANG=C TMPDIR=/tmp
/bin/busybox mkdir -p /usr/bin /usr/sbin
/bin/busybox --install -s 2>/dev/null

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mkdir -p /dev/shm /dev/pts
mount -t tmpfs tmpfs /dev/shm
mount -t devpts devpts /dev/pts
mount -t tmpfs tmpfs /tmp
mount -t tmpfs -o size=90% tmpfs /out
mount -t debugfs debugfs /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing
mount -t bpf bpf /sys/fs/bpf
mount -t cgroup2 cgroup2 /sys/fs/cgroup
ln -s /proc/self/fd /dev/fd
ln -s /proc/self/fd/0 /dev/stdin
ln -s /proc/self/fd/1 /dev/stdout
ln -s /proc/self/fd/2 /dev/stderr
for module in /etc/coreward/modules/*; do
	[ -e "$module" ] && insmod "$module"
done
ip link set lo up
ulimit -n 1048576

# The device of the host's port of this name.
port() {
	for dir in /sys/class/virtio-ports/*; do
		if [ "$(cat "$dir/name")" = "$1" ]; then
			echo "/dev/${dir##*/}"
			return
		fi
	done
	echo "coreward: the guest has no port $1"
	poweroff -f
}

status=$(port status)
exec 3>"$status"
echo started >&3
cd "$(cat /etc/coreward/directory)"
sh /etc/coreward/command </dev/null >"$(port stdout)" 2>"$(port stderr)" 3>&-
result=$?

cd /out
if [ -n "$(ls -A)" ]; then
	tar cf "$(port out)" . || echo "files of /out are missing" >&3
fi
echo "exit $result" >&3
poweroff -f
