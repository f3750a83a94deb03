#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
# Makes sure that the tools for a purpose are installed:
#   setup.sh build    building coreward
#   setup.sh report   opening reports in a browser
#   setup.sh dist     building the .deb
#   setup.sh python   building the Python package
#   setup.sh check    all tests, including a short run of kernels under QEMU
#   setup.sh bindings  generating the Rust side of policy/
#   setup.sh record   building the recorder of decisions
#   setup.sh live     building the sched_ext scheduler
#   setup.sh vm       booting kernels under QEMU
#   setup.sh parity   recording kernels under all loads, on x86-64 and arm64
#   setup.sh bench-live  building published schedulers, and running them and coreward's in guests
# On Debian as root, it installs what is missing. Otherwise it names what is missing.
set -eu

# The rust-version of Cargo.toml.
RUST_MAJOR=1 RUST_MINOR=85
# QEMU's first version that tells guests which cores share which caches (smp-cache).
QEMU_MAJOR=10

PATH="${HOME:-/root}/.cargo/bin:$PATH"

case "${1:-}" in
build | report | dist | python | check | bindings | record | live | vm | parity | bench-live) purpose=$1 ;;
*)
	echo "usage: setup.sh build|report|dist|python|check|bindings|record|live|vm|parity|bench-live" >&2
	exit 1
	;;
esac

# The rust-version of crates/live/Cargo.toml, which is that of the scx crates.
case $purpose in
live | check | bench-live) RUST_MINOR=91 ;;
esac

have() { command -v "$1" >/dev/null 2>&1; }

have_libc_headers() {
	echo '#include <stdio.h>' | cc -E -x c - >/dev/null 2>&1
}

have_clang() { have clang-19 || have clang; }

# Is this version ("1.85.0") sufficient?
recent_rust() {
	major=${1%%.*}
	rest=${1#*.}
	minor=${rest%%.*}
	[ "$major" -gt "$RUST_MAJOR" ] || { [ "$major" -eq "$RUST_MAJOR" ] && [ "$minor" -ge "$RUST_MINOR" ]; }
} 2>/dev/null

have_cargo() { have cargo && recent_rust "$(cargo --version 2>/dev/null | cut -d' ' -f2)"; }
have_rustfmt() { cargo fmt --version >/dev/null 2>&1; }
have_clippy() { cargo clippy --version >/dev/null 2>&1; }

# Is this program, of QEMU, there and recent enough?
have_qemu() {
	version=$("$1" --version 2>/dev/null | sed -n 's/^QEMU emulator version \([0-9]*\).*/\1/p')
	[ "${version:-0}" -ge "$QEMU_MAJOR" ]
}

# One line for each thing that is missing: Debian's package, then what it is.
missing_to_build() {
	have cc || echo "gcc a C compiler (cc)"
	have_libc_headers || echo "libc6-dev the headers of the C library"
	have make || echo "make make"
	have_cargo || echo "cargo cargo and rustc $RUST_MAJOR.$RUST_MINOR or later"
}

missing_to_browse() {
	have python3 || echo "python3 Python 3"
	have chromium || echo "chromium Chromium"
}

missing_to_pack() {
	have dpkg-deb || echo "dpkg dpkg-deb"
	have mmdebstrap || echo "mmdebstrap mmdebstrap, for a clean Debian"
}

missing_python() {
	python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || echo "python3 Python 3.10 or later"
	python3 -c 'import ensurepip, venv' 2>/dev/null || echo "python3-venv Python's venv and pip"
}

missing_to_lint() {
	have_rustfmt || echo "rustfmt rustfmt (cargo fmt)"
	have_clippy || echo "rust-clippy clippy (cargo clippy)"
}

# bindgen loads libclang.
# libFuzzer is compiled
missing_to_fuzz() {
	have c++ || echo "g++ a C++ compiler (c++)"
}

missing_to_bind() {
	missing_to_build
	have_rustfmt || echo "rustfmt rustfmt"
	have clang-19 || echo "clang-19 libclang 19"
}

missing_to_record() {
	have cc || echo "gcc a C compiler (cc)"
	have_libc_headers || echo "libc6-dev the headers of the C library"
	have make || echo "make make"
	have_clang || echo "clang-19 clang with the BPF target"
	have pkg-config || echo "pkg-config pkg-config"
	pkg-config --exists libbpf zlib 2>/dev/null || echo "libbpf-dev libbpf with its headers"
}

# libbpf itself comes with its crate; bindgen loads libclang.
missing_live() {
	missing_to_build
	have clang-19 || echo "clang-19 clang 19 with the BPF target"
	have pkg-config || echo "pkg-config pkg-config"
	pkg-config --exists libelf zlib 2>/dev/null || echo "libelf-dev libelf and zlib with their headers"
}

missing_to_boot() {
	have python3 || echo "python3 Python 3"
	have_qemu qemu-system-x86_64 || echo "qemu-system-x86 QEMU $QEMU_MAJOR or later for x86-64"
	have_qemu qemu-system-aarch64 || echo "qemu-system-arm QEMU $QEMU_MAJOR or later for arm64"
	have dtc || echo "device-tree-compiler dtc, for the device trees of arm64 guests"
}

missing_loads() {
	have hackbench || echo "rt-tests hackbench and cyclictest"
	have stress-ng || echo "stress-ng stress-ng"
}

missing_to_see_programs() {
	have bpftool || echo "bpftool bpftool"
}

missing_benchmarks() {
	have sysbench || echo "sysbench sysbench"
	have perf || echo "linux-perf perf"
}

missing_for_arm64() {
	have aarch64-linux-gnu-gcc || echo "gcc-aarch64-linux-gnu a C compiler for arm64"
	have aarch64-linux-gnu-gcc || echo "libc6-dev-arm64-cross the headers of its C library"
}

missing() {
	case $purpose in
	build) missing_to_build ;;
	report) missing_to_browse ;;
	dist)
		missing_to_build
		missing_to_pack
		;;
	python)
		missing_to_build
		missing_python
		;;
	bindings) missing_to_bind ;;
	record) missing_to_record ;;
	live) missing_live ;;
	vm) missing_to_boot ;;
	check)
		missing_to_build
		missing_to_lint
		missing_to_fuzz
		missing_python
		missing_to_record
		missing_live
		missing_to_boot
		missing_loads
		missing_to_see_programs
		;;
	parity)
		missing_to_build
		missing_to_record
		missing_to_boot
		missing_loads
		missing_benchmarks
		missing_for_arm64
		;;
	bench-live)
		missing_live
		missing_to_boot
		missing_loads
		missing_benchmarks
		missing_to_see_programs
		;;
	esac | sort -u
}

stop() {
	echo "setup: missing:" >&2
	missing | sed 's/^[^ ]* /setup:   /' >&2
	echo "setup: $1" >&2
	exit 1
}

# The version of Debian's package that would be installed.
candidate() { LC_ALL=C apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: //p'; }

# Installs QEMU. If the release's own is too old, it takes the one from the release's backports,
# without changing the machine's package sources.
install_qemu() {
	version=$(candidate "$1" | sed 's/^[0-9]*://; s/[^0-9].*//')
	if [ "${version:-0}" -ge "$QEMU_MAJOR" ]; then
		apt-get install -y --no-install-recommends "$1"
		return
	fi
	parts=$(mktemp -d)
	(cd "$(dirname "$0")/../vm" && python3 -m cw_vm.sources) >"$parts/backports.sources"
	suite=$(sed -n 's/^Suites: //p' "$parts/backports.sources")
	cp /etc/apt/sources.list.d/* "$parts/" 2>/dev/null || true
	# the lists of the other sources stay: the next update needs them
	apt-get -o "Dir::Etc::SourceParts=$parts" -o APT::Get::List-Cleanup=0 update -q
	apt-get -o "Dir::Etc::SourceParts=$parts" install -y --no-install-recommends -t "$suite" "$1"
	rm -r "$parts"
}

install() {
	for package in "$@"; do
		case $package in
		cargo)
			if recent_rust "$(candidate cargo)"; then
				apt-get install -y --no-install-recommends cargo ca-certificates
			elif candidate rustup | grep -q '^[0-9]'; then
				apt-get install -y --no-install-recommends rustup ca-certificates
				rustup toolchain install stable --profile minimal -c rustfmt -c clippy
			elif have rustup; then
				rustup toolchain install stable --profile minimal -c rustfmt -c clippy
			else
				stop "this Debian's cargo is $(candidate cargo), too old: install Rust from https://rustup.rs"
			fi
			;;
		rustfmt | rust-clippy)
			# parts of a toolchain come with it: Debian's with Debian's, rustup's with rustup's
			if have rustup; then
				rustup component add "${package#rust-}"
			else
				apt-get install -y --no-install-recommends "$package"
			fi
			;;
		clang-19)
			apt-get install -y --no-install-recommends clang-19 ||
				apt-get install -y --no-install-recommends clang
			;;
		qemu-system-*) install_qemu "$package" ;;
		*) apt-get install -y --no-install-recommends "$package" ;;
		esac
	done
}

[ -n "$(missing)" ] || exit 0
have apt-get && [ -r /etc/debian_version ] || stop "this is not Debian: install them, then try again"
[ "$(id -u)" -eq 0 ] || stop "only root can install them: do that, or run this as root"

export DEBIAN_FRONTEND=noninteractive
echo "setup: installing what is missing" >&2
apt-get update -q >&2
# shellcheck disable=SC2046 # package names are words
install $(missing | cut -d' ' -f1) >&2
[ -z "$(missing)" ] || stop "they could not be installed"
