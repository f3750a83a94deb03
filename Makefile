# SPDX-License-Identifier: GPL-2.0-only
# make build: builds coreward into target/release.
# make demo: builds, then simulates a published regression (six minutes on two CPUs).
# make wheel: builds the Python package into target/wheels.
# make dist: builds what can be handed on into target/dist: a .deb with completions and manual pages, and the wheel; and tries them, the wheel on a clean Debian 12, and the action of contrib/.
# make check: runs all tests, including short runs of make parity and make faults.
# make check-python: runs the tests of the Python package, which make check runs, too.
# make check-ray: tests sweeps and matrices on a Ray cluster of several nodes on this machine. make check does not: Ray is large.
# make measure-ray: measures what Python and Ray cost beside the command, in some seven minutes of a quiet machine.
# make check-tables: has pyarrow and DuckDB read the tables that coreward writes; make check does, too.
# make check-report: opens the pages of reports in Chromium, checks them, and leaves screenshots in target/report.
# make deny: checks the licences, bans and sources of all libraries against deny.toml.
# make advisories: looks for known faults of all libraries in RustSec's database, which it fetches.
# make docs: runs the commands of README.md, docs/guide.md, docs/sweep.md and docs/variant.md and writes what they print into these pages.
# make validation NAME=zen-4: calibrates this machine twice, runs twenty benchmarks on it beside their simulation, and writes the tables of docs/results/validation-zen-4.md.
# make bench: measures the engine's speed.
# make bindings: generates the Rust side of policy/ in crates/policy/src/generated.
# make record: builds coreward-record into target/release.
# make live: builds coreward-live, the sched_ext scheduler and the shadow, into target/release.
# make parity: records kernels' decisions in guests and compares them with the policy's.
# make bench-live: measures the kernel's scheduler, coreward's and published ones side by side in guests.
# make faults: tests what coreward's scheduler must survive on a running kernel.
# make observe: compares what coreward's scheduler reports with the kernel's counters.
# make effects: measures how features and tunables change migrations on a running kernel.
# make kernels: tests on which of Debian's kernels coreward's scheduler loads.
# make fidelity [EXPERIMENTS="FILE…"]: compares published figures with simulated ones, with intervals and ablations, and writes docs/fidelity.md and .json. Of experiments that are not given, the pages have what came of them last (docs/results/fidelity.jsonl).
# make power: measures the false alarms of coreward compare and the changes that it finds, and writes docs/results/power.md.
# make lengths: runs experiments with benchmarks of one, three and ten times their length, and writes how far their changes depend on it to docs/results/lengths.md.
# make mutants: makes small changes to the policy, each of which its tests have to detect. With CAPTURES=DIR it also tells which the gates of make parity detect.
# make fuzz: feeds arbitrary input to every reader for FUZZ_SECONDS (600).
# make fuzz-bpf: calls the policy natively and in this kernel's BPF on random states, and compares what it decides (FUZZ_CALLS of each kind, 2000000).
# make fuzz-diff OLD=REV: runs generated cases with the engine of another revision, too, and compares the reports (FUZZ_CASES, 200).
# Each target first makes sure that the tools it needs are installed (scripts/setup.sh).

CARGO ?= cargo
export PATH := $(HOME)/.cargo/bin:$(PATH)

help:
	@sed -n 's/^# make/make/p' Makefile

build:
	@sh scripts/setup.sh build
	$(CARGO) build --locked --release -p coreward

demo: build
	target/release/coreward compare experiments/pipe-wakeups.toml

# The tools of the Python package are in an environment of its own.
PYTHON = target/python/bin

$(PYTHON)/maturin: crates/python/tests/requirements.txt
	@sh scripts/setup.sh python
	python3 -m venv target/python
	$(PYTHON)/pip install --quiet --disable-pip-version-check -r $<
	touch $@

# PYO3_NO_PYTHON: the wheel is for every Python from 3.10 on, whichever builds it.
wheel: $(PYTHON)/maturin
	@sh scripts/setup.sh build
	PYO3_NO_PYTHON=1 $(PYTHON)/maturin build --locked --release -m crates/python/Cargo.toml --out target/wheels

dist: build
	@sh scripts/setup.sh dist
	@command -v cargo-deb >/dev/null || $(CARGO) install --locked cargo-deb
	rm -rf target/dist
	mkdir -p target/dist/completions target/dist/man
	target/release/coreward completions bash >target/dist/completions/coreward
	target/release/coreward completions zsh >target/dist/completions/_coreward
	target/release/coreward completions fish >target/dist/completions/coreward.fish
	target/release/coreward manual target/dist/man
	$(CARGO) deb --locked --no-build -p coreward --output target/dist/
	sh scripts/check-deb.sh target/dist/*.deb
	bash contrib/action/test.sh
	$(MAKE) wheel
	cp target/wheels/*.whl target/dist/
	sh scripts/check-wheel.sh target/dist/*.whl

# The package in its environment, built without optimisation.
python: $(PYTHON)/maturin
	rm -rf target/python/wheels
	PYO3_NO_PYTHON=1 $(PYTHON)/maturin build --locked --profile dev -m crates/python/Cargo.toml --out target/python/wheels
	$(PYTHON)/pip install --quiet --disable-pip-version-check --no-deps --force-reinstall target/python/wheels/*.whl

check-python: python
	$(CARGO) build --locked -p coreward
	COREWARD=target/debug/coreward $(PYTHON)/python -m pytest -q -c crates/python/pyproject.toml crates/python/tests

# Ray is in an environment of its own, into which pip fetches some 100 MB.
RAY = target/ray/bin

$(RAY)/ray: crates/python/tests-ray/requirements.txt
	@sh scripts/setup.sh python
	python3 -m venv target/ray
	$(RAY)/pip install --quiet --disable-pip-version-check -r $<
	touch $@

check-ray: $(RAY)/ray wheel
	$(RAY)/pip install --quiet --disable-pip-version-check --no-deps --force-reinstall target/wheels/*.whl
	$(RAY)/python -m pytest -q -c crates/python/pyproject.toml crates/python/tests-ray

# The machine has to be quiet.
measure-ray: $(RAY)/ray wheel build
	$(RAY)/pip install --quiet --disable-pip-version-check --no-deps --force-reinstall target/wheels/*.whl
	$(RAY)/python crates/python/overhead.py target/release/coreward
	$(RAY)/python crates/python/tests-ray/speed.py target/release/coreward

check-tables: $(PYTHON)/maturin
	PYTHON=$(CURDIR)/$(PYTHON)/python $(CARGO) test --locked -p coreward-tables --test read_back -- --ignored

# Chromium is large, so make check does without.
check-report: build python
	@sh scripts/setup.sh report
	PATH=$(CURDIR)/$(PYTHON):$$PATH python3 scripts/check-report.py

check:
	@sh scripts/setup.sh check
	$(CARGO) fmt --all --check
	$(CARGO) clippy --locked --workspace --all-targets -- -D warnings
	$(MAKE) deny
	$(MAKE) -C policy check
	$(MAKE) -C policy bpf
	python3 scripts/mutants.py --check
	python3 scripts/lengths.py --check
	$(MAKE) -C bpf check
	sh fuzz/run.sh --check
	cd crates/bindings && $(CARGO) fmt --check
	cd crates/bindings && $(CARGO) clippy --locked -- -D warnings
	cd crates/bindings && $(CARGO) run --locked -q -- --check
	$(CARGO) test --locked --workspace
	$(MAKE) check-python
	$(MAKE) check-tables
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

# Both workspaces are checked against the same deny.toml.
deny:
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	$(CARGO) deny --locked check licenses bans sources
	cd crates/live && $(CARGO) deny --locked check licenses bans sources

advisories:
	@command -v cargo-deny >/dev/null || $(CARGO) install --locked cargo-deny
	$(CARGO) deny --locked check advisories
	cd crates/live && $(CARGO) deny --locked check advisories
	cd crates/bindings && $(CARGO) deny --locked check advisories

record:
	@sh scripts/setup.sh record
	$(MAKE) -C bpf install bindir=$(CURDIR)/target/release
	@target/release/coreward-record --check || echo "make record: the recorder is built, for other kernels than this one"

live:
	@sh scripts/setup.sh live
	@test -d crates/live/target/release || echo "make live: the first build takes three to four minutes of one core: it compiles libbpf and 230 crates, most of them for sched_ext's libraries"
	cd crates/live && $(CARGO) build --locked --release
	install -D -t target/release crates/live/target/release/coreward-live

# Captures are kept in the cache directory (docs/parity.md); delete them to record again.
parity:
	@sh scripts/setup.sh parity
	$(CARGO) build --locked --release -p coreward
	vm/parity

# The listings that tests compare are written, too.
docs:
	@sh scripts/setup.sh build
	COREWARD_BLESS=1 $(CARGO) test --locked --release -p coreward --test readme --test golden --test validation_page

# The machine has to be quiet, and wakeup latencies need root. Figures further off than allowed do not stop it.
validation:
	$(if $(wildcard docs/results/validation-$(NAME).md),,$(error NAME has to be that of a page docs/results/validation-NAME.md))
	@sh scripts/setup.sh build
	$(CARGO) build --locked --release -p coreward
	target/release/coreward calibrate --json > target/calibration-$(NAME)-1.json
	target/release/coreward validate --calibrate target/here.toml --json=target/validation-$(NAME).json || test $$? = 1
	target/release/coreward calibrate --json > target/calibration-$(NAME)-2.json
	mv target/calibration-$(NAME)-[12].json target/validation-$(NAME).json docs/results/
	COREWARD_BLESS=1 $(CARGO) test --locked --release -p coreward --test validation_page

bench:
	@sh scripts/setup.sh build
	$(CARGO) bench --locked -p coreward-engine

# The published schedulers are built only once, which takes a quarter of an hour (vm/README.md).
bench-live: live
	@sh scripts/setup.sh bench-live
	$(CARGO) build --locked --release -p coreward
	vm/peers
	vm/bench-live

faults effects kernels observe: live
	@sh scripts/setup.sh bench-live
	$(CARGO) build --locked --release -p coreward
	vm/$@

fidelity: build
	target/release/coreward fidelity $(or $(EXPERIMENTS),experiments) --intervals --ablations --state target/fidelity.jsonl \
		--results docs/results/fidelity.jsonl --output docs/fidelity.md --record docs/fidelity.json \
		--revision $$(git describe --always --dirty 2>/dev/null || echo unknown)

power:
	@sh scripts/setup.sh build
	$(CARGO) run --locked --release -p coreward-engine --example power > target/power.md
	mv target/power.md docs/results/power.md

lengths: build
	python3 scripts/lengths.py --page docs/results/lengths.md

mutants:
	@sh scripts/setup.sh build
	$(if $(CAPTURES),$(CARGO) build --locked --release -p coreward)
	python3 scripts/mutants.py $(if $(CAPTURES),--captures $(CAPTURES))

# The seconds for all fuzz targets together.
FUZZ_SECONDS ?= 600

fuzz:
	@sh scripts/setup.sh build
	sh fuzz/run.sh $(FUZZ_SECONDS)

FUZZ_CALLS ?= 2000000

fuzz-bpf:
	@sh scripts/setup.sh record
	sh fuzz/bpf/run.sh $(FUZZ_CALLS)

FUZZ_CASES ?= 200

fuzz-diff:
	@sh scripts/setup.sh build
	$(if $(OLD),,$(error make fuzz-diff needs OLD=REV, the revision to compare with))
	python3 fuzz/diff-engine.py $(OLD) --cases $(FUZZ_CASES)

.PHONY: help build demo wheel dist check python check-python check-ray measure-ray check-tables check-report deny advisories docs validation bench bindings record live parity bench-live faults effects kernels observe fidelity power lengths mutants fuzz fuzz-bpf fuzz-diff
