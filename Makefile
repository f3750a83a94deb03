# SPDX-License-Identifier: GPL-2.0-only
# make demo: build, and run the first experiment.
# make check: all tests, and a short make parity.
# make bench: the engine's speed.
# make record: coreward-record, beside target/release/coreward.
# make parity: kernels' decisions, recorded in guests, against the policy's.
# make fidelity: published figures against simulated ones, and what carries the effects, into docs/fidelity.md.
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
	$(MAKE) -C policy check
	$(MAKE) -C policy bpf
	$(CARGO) test --locked --workspace
	python3 vm/tests/test_vm.py
	rm -rf target/captures
	vm/parity --short --files target/captures

record:
	@sh scripts/setup.sh record
	$(MAKE) -C bpf install bindir=$(CURDIR)/target/release

# Captures are kept in the cache directory (docs/parity.md); delete them to record anew.
parity:
	@sh scripts/setup.sh parity
	$(CARGO) build --locked --release -p coreward
	vm/parity

bench:
	@sh scripts/setup.sh build
	$(CARGO) bench --locked -p coreward-engine

fidelity:
	@sh scripts/setup.sh build
	$(CARGO) build --locked --release -p coreward
	target/release/coreward fidelity experiments --ablations --output docs/fidelity.md

# Seconds for all fuzz targets together.
FUZZ_SECONDS ?= 600

fuzz:
	@sh scripts/setup.sh build
	sh fuzz/run.sh $(FUZZ_SECONDS)

.PHONY: help demo check bench record parity fidelity fuzz
