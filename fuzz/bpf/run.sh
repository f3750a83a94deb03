#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Calls the policy natively and in this kernel's BPF on random states and compares; see docs/fuzzing.md. Needs root.
# run.sh [CALLS], of each kind; 2000000 is the default.
set -eu

cd "$(dirname "$0")/../.."
calls=${1:-2000000}
case $calls in
'' | *[!0-9]* | 0)
	echo "fuzz-bpf: '$calls' is not a number of calls, allowed are whole numbers from 1" >&2
	exit 2
	;;
esac
[ "$(id -u)" = 0 ] || { echo "fuzz-bpf: loading BPF programs needs root" >&2; exit 1; }

out=target/fuzz-bpf
per_machine=20000
machines=$(((calls + per_machine - 1) / per_machine))
mkdir -p $out
make -s -C policy bpf
(cd fuzz && cargo build --release --example states)
states=${CARGO_TARGET_DIR:-fuzz/target}/release/examples/states

for kind in place balance; do
	case $kind in
	place) checked=bpf_check control=WA_BIAS ;;
	balance) checked=bpf_check_balance control=LB_RUNNABLE ;;
	esac
	balance=
	[ $kind = place ] || balance=-DBALANCE
	cc -O2 -Wall -Wextra -Wno-unused-function -Ipolicy $balance -DCHECKED="\"$checked.c\"" fuzz/bpf/diff.c -o $out/$kind -lbpf
	# with a feature switched on one side only, a difference has to be found
	if "$states" 20 0 | $out/$kind target/policy/$checked.o 2000 1 $control; then
		echo "fuzz-bpf: $kind: $control on one side only went unnoticed" >&2
		exit 1
	fi
	"$states" $machines 0 | $out/$kind target/policy/$checked.o $per_machine 1
done
