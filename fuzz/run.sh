#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Runs every fuzz target for its share of SECONDS (600). Stops at the first input that crashes a
# reader or takes more than 10 s or 512 MiB, and leaves that input in fuzz/artifacts.
# With --check, only looks whether the targets compile.
set -eu

cd "$(dirname "$0")"
# The readers use the same versions of crates as the program.
[ Cargo.lock -nt ../Cargo.lock ] || cp ../Cargo.lock Cargo.lock
if [ "${1:-}" = --check ]; then
	exec cargo check --quiet
fi
seconds=${1:-600}
case $seconds in
'' | *[!0-9]* | 0)
	echo "fuzz: '$seconds' is not a number of seconds, allowed are whole numbers from 1" >&2
	exit 2
	;;
esac

command -v c++ >/dev/null || { echo "fuzz: a C++ compiler (c++) is missing: libFuzzer is built with it" >&2; exit 1; }
command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz

# Coverage needs an unstable compiler option, which a stable compiler accepts with this variable.
export RUSTC_BOOTSTRAP=1
# The readers are safe Rust: AddressSanitizer would find little, and take time and memory.
build="--sanitizer none --fuzz-dir ."
# shellcheck disable=SC2086 # options are words
cargo fuzz build $build

# The target's own seeds, and those elsewhere in the repository.
seeds() {
	[ ! -d "seeds/$1" ] || echo "seeds/$1"
	case $1 in
	machine_toml) echo ../machines ;;
	experiment_toml) echo ../experiments ;;
	hwloc_xml) echo ../crates/machine/tests/data ;;
	capture) echo ../crates/parity/tests/data ;;
	esac
}

# Recordings are kept compressed, which a mutation would only break.
unpacked() {
	case $1 in
	trace_text) names="sched-ftrace.txt sched-report.txt perf-script.txt" ;;
	trace_dat) names="sched-v6.dat sched-v7-none.dat" ;;
	perf_data) names="perf.data perf-pipe.data" ;;
	perfetto) names="sched.pftrace sched-compact.pftrace" ;;
	*) names= ;;
	esac
	for name in $names; do
		gzip -dc "../crates/trace/tests/data/$name.gz" >"corpus/$1/$name"
	done
}

targets=$(cargo fuzz list --fuzz-dir .)
share=$((seconds / $(echo "$targets" | wc -w)))
[ "$share" -gt 0 ] || share=1
for target in $targets; do
	echo "fuzz: $target, $share s"
	mkdir -p "corpus/$target"
	unpacked "$target"
	dict=
	[ ! -f "dictionaries/$target.dict" ] || dict="-dict=dictionaries/$target.dict"
	# shellcheck disable=SC2046,SC2086 # options and directories are words
	cargo fuzz run $build "$target" "corpus/$target" $(seeds "$target") -- \
		-max_total_time="$share" -timeout=10 -report_slow_units=1 -rss_limit_mb=512 -max_len=65536 \
		$dict -print_final_stats=1 -verbosity=0
done
