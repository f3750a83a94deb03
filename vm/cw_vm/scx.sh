# SPDX-License-Identifier: GPL-2.0-only
# Functions of guests that run sched_ext schedulers; they are for busybox's sh.
# Documentation/scheduler/sched-ext.rst tells what is in /sys/kernel/sched_ext.

# A line: the state, how often a scheduler has been enabled since boot, and the scheduler's name.
scx_state() {
	if [ -d /sys/kernel/sched_ext ]; then
		echo "$(cat /sys/kernel/sched_ext/state)" \
			"$(cat /sys/kernel/sched_ext/enable_seq)" \
			"$(cat /sys/kernel/sched_ext/root/ops 2>/dev/null)"
	else
		echo absent 0
	fi
}

# scx_wait STATE: waits until that is the state, 180 s at most, or until the loader has ended. An emulated CPU
# takes up to two minutes to verify coreward's programs (6.18).
scx_wait() {
	tenths=1800
	until [ "$(cat /sys/kernel/sched_ext/state 2>/dev/null)" = "$1" ]; do
		kill -0 "$loader" 2>/dev/null || [ "$1" = disabled ] || return 1
		[ $tenths -gt 0 ] || return 1
		tenths=$((tenths - 1))
		sleep 0.1
	done
}

# scx_start COMMAND...: starts a scheduler and waits until it schedules; $loader is its process, $loading
# how many seconds it took, rounded up, and what it says is appended to /out/loader. Without a command the
# kernel's scheduler goes on.
scx_start() {
	loader=
	[ $# -gt 0 ] || return 0
	local begin=$(cut -d. -f1 /proc/uptime)
	"$@" >>/out/loader 2>&1 &
	loader=$!
	scx_wait enabled || return 1
	loading=$(($(cut -d. -f1 /proc/uptime) - begin + 1))
}

# shadow_start COMMAND...: starts coreward shadow and waits until it watches the kernel's scheduler.
shadow_start() {
	: >/out/loader
	"$@" >>/out/loader 2>&1 &
	loader=$!
	until grep -q watches /out/loader; do
		kill -0 "$loader" || return 1
		sleep 0.1
	done
}

# Ends the scheduler as a user does, and waits until the kernel's schedules again.
scx_stop() {
	[ -n "$loader" ] || return 0
	kill -TERM "$loader" 2>/dev/null
	wait "$loader"
	scx_wait disabled
}
