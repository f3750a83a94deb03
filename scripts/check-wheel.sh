#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Installs the wheel on a clean Debian 12 without a compiler and without an index, as its users do, runs examples, and has
# Debian's TuneD apply, verify and take back a setting that the package exports.
set -eu

wheel=$1
here=$(cd "$(dirname "$0")" && pwd)
[ "$(id -u)" -eq 0 ] || {
	echo "check-wheel: skipped: only root can change into another Debian"
	exit 0
}
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
mmdebstrap --quiet --variant=essential --include=python3-venv,tuned bookworm "$root/debian"
mkdir "$root/debian/work"
cp "$wheel" "$here"/../examples/*.py "$here/check-tuned.py" "$root/debian/work/"
inside() {
	# the mount is gone with its namespace
	env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 unshare --mount sh -euc '
		mount -t proc proc "$1/proc"
		exec chroot "$1" sh -euc "cd /work && $2"' sh "$root/debian" "$1"
}

if inside 'command -v cc || command -v gcc || command -v rustc'; then
	echo "check-wheel: there is a compiler"
	exit 1
fi
inside 'python3 -m venv here && here/bin/pip install --quiet --no-index --disable-pip-version-check *.whl'
# those that take no other library
inside 'for example in run matrix explain seeds; do here/bin/python $example.py >$example.out; test -s $example.out; done'
inside 'grep -q "wakeup_latency_us_p99 *[0-9]" run.out'
# in the place of the kernel's files
inside 'mkdir -p /sys/kernel/debug/sched && cd /sys/kernel/debug/sched
	echo TTWU_QUEUE SIS_UTIL >features; echo 3000000 >base_slice_ns; echo 32 >nr_migrate'
inside 'here/bin/python check-tuned.py export /etc/tuned/coreward && /usr/bin/python3 check-tuned.py apply coreward 2>tuned.log' || {
	cat "$root/debian/work/tuned.log"
	exit 1
}
echo "check-wheel: $(basename "$wheel"), $(du -k "$wheel" | cut -f1) KiB, runs on a clean Debian $(cat "$root/debian/etc/debian_version"); TuneD takes what it exports"
