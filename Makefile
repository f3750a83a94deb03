# SPDX-License-Identifier: GPL-2.0-only
# make demo: build, and run the first experiment.
# make check: all tests, short runs of make parity and make faults among them.
# make deny: licences, bans and sources of all libraries, by deny.toml.
# make bench: the engine's speed.
# make bindings: the Rust side of policy/, in crates/policy/src/generated.
# make record: coreward-record, beside target/release/coreward.
# make live: coreward-live, the sched_ext scheduler and its shadow, likewise.
# make parity: kernels' decisions, recorded in guests, against the policy's.
# make bench-live: the kernel's scheduler, coreward's and published ones side by side in guests.
# make faults: what coreward's scheduler must survive on a running kernel.
# make observe: what coreward's scheduler tells of itself, against the kernel's counters.
# make effects: how features and tunables move migrations on a running kernel.
# make kernels: on which of Debian's kernels coreward's scheduler loads.
# make fidelity: published figures against simulated ones, and what carries the effects, into docs/fidelity.md.
# make mutants: small changes of the policy that its tests have to notice.
# make fuzz: every reader against arbitrary input, for FUZZ_SECONDS (600).
# Each of them first sees that the tools that it needs are there (scripts/setup.sh).

CARGO ?= cargo
export PATH := $(HOME)/.cargo/bin:$(PATH)

help:
	@sed -n 's/^# make/make/p' Makefile

demo:
	@sh scripts/setup.sh build
	$(CARGO) build --locked --release -p coreward
	target/release/coreward compare experiments/wakeup-bias-prev.toml

check:
	@sh scripts/setup.sh check
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(MAKE) deny
	$(MAKE) -C policy check
	$(MAKE) -C policy bpf
	$(MAKE) -C bpf check
	cd crates/bindings && $(CARGO) fmt --check
	cd crates/bindings && $(CARGO) clippy --locked -- -D warnings
	cd crates/bindings && $(CARGO) run --locked -q -- --check
	$(CARGO) test --locked --workspace
	python3 vm/tests/test_vm.py
	rm -rf target/captures
	vm/parity --short --files target/captures
	cd crates/live && $(CARGO) fmt --check
	cd crates/live && $(CARGO) clippy --locked --release --all-targets -- -D warnings
	cd crates/live && $(CARGO) test --locked --release
	$(MAKE) live
	vm/shadow
	vm/kernels --kernel 6.18
	vm/faults --short --test kill --test weights
	vm/faults --short --kernel 6.18 --test hotplug

bindings:
	@sh scripts/setup.sh bindings
	cd crates/bindings && $(CARGO) run --locked -q

# The two workspaces are checked by the same deny.toml.
deny:
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	$(CARGO) deny --locked check licenses bans sources
	cd crates/live && $(CARGO) deny --locked check licenses bans sources

record:
	@sh scripts/setup.sh record
	$(MAKE) -C bpf install bindir=$(CURDIR)/target/release

live:
	@sh scripts/setup.sh live
	cd crates/live && $(CARGO) build --locked --release
	install -D -t target/release crates/live/target/release/coreward-live

# Captures are kept in the cache directory (docs/parity.md); delete them to record anew.
parity:
	@sh scripts/setup.sh parity
	$(CARGO) build --locked --release -p coreward
	vm/parity

bench:
	@sh scripts/setup.sh build
	$(CARGO) bench --locked -p coreward-engine

# The published schedulers are built once, which takes a quarter of an hour (vm/README.md).
bench-live: live
	@sh scripts/setup.sh bench-live
	$(CARGO) build --locked --release -p coreward
	vm/peers
	vm/bench-live

faults effects kernels observe: live
	@sh scripts/setup.sh bench-live
	$(CARGO) build --locked --release -p coreward
	vm/$@

fidelity:
	@sh scripts/setup.sh build
	$(CARGO) build --locked --release -p coreward
	target/release/coreward fidelity experiments --ablations --output docs/fidelity.md

mutants:
	@sh scripts/setup.sh build
	python3 scripts/mutants.py

# Seconds for all fuzz targets together.
FUZZ_SECONDS ?= 600

fuzz:
	@sh scripts/setup.sh build
	sh fuzz/run.sh $(FUZZ_SECONDS)

.PHONY: help demo check deny bench bindings record live parity bench-live faults effects kernels observe fidelity mutants fuzz
