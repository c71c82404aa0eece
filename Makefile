# SPDX-License-Identifier: GPL-2.0-or-later
#
# make demo      install what is missing, build, fetch kernels, run the comparison, write the report
# make kernels   try every command that looks into a kernel on every kernel that the archive has, and print the table
# make papers    as demo, for the papers' experiments: their tables with ours beside, in one report, each cell in three guests (an hour)
# make test      install what is missing, run every test; those of many kernels with three of them
# make test-all  as test, with every kernel that a test names (an hour more)
# make torture   kill, fail, flip, deceive and fuzz it, and print the table of docs/reliability.md (an hour)
# make build     build everything into target/
# make firmware  build the generator for a Raspberry Pi Pico: target/firmware/firmware.uf2
# make install   after make build: install the command, its parts, man pages and completions below PREFIX
# make bench     print the figures that onset promises, measured here
# make lint      formatting and lints
# make check     what can be told without QEMU: formatting, lints, the rules of the house, the unit tests
# make contract  write docs/*.schema.json and web/src/contract.ts anew, of the types of what is printed

PREFIX ?= /usr/local
DESTDIR ?=
CARGO ?= cargo
CARGO_HOME ?= $(HOME)/.cargo
TARGET := x86_64-unknown-linux-gnu
# The guest and the plugin name no directory of this machine: the same commit, built by the same Rust elsewhere, is the same
# guest, in which finds come again.
NAMELESS := --remap-path-prefix=$(CURDIR)=/onset --remap-path-prefix=$(CARGO_HOME)=/cargo
LIB := target/lib/onset
ONSET := target/release/onset
DOCUMENTATION := target/documentation
# What is shown in a browser: the viewer of a report, and the page of onset serve.
PAGES := $(LIB)/report.html $(LIB)/site.html
BUILT := $(ONSET) $(LIB)/libonset_plugin.so $(LIB)/onset-agent $(LIB)/patches/patches.sh $(PAGES) $(DOCUMENTATION)/onset.1
WEB_SOURCES := $(shell find web/src web/build.mjs web/package.json web/package-lock.json web/tsconfig.json 2>/dev/null)

.PHONY: demo kernels papers test test-all torture build firmware install bench lint check contract prepare prepare-run prepare-test \
	prepare-firmware rust
# Installing packages comes before building, and building before running. cargo and npm use every core themselves.
.NOTPARALLEL:

demo: prepare-run build
	ONSET=$(ONSET) setup/demo.sh

kernels: prepare-run build
	ONSET=$(abspath $(ONSET)) setup/kernels.sh

papers: prepare-run build
	$(ONSET) kernels fetch 6.12 6.12-rt 7.3 7.3-rt
	ONSET=$(ONSET) setup/papers.sh

test: prepare-run prepare-test build firmware
	tests/run.sh

test-all: prepare-run prepare-test build firmware
	ONSET_TEST_KERNELS=all tests/run.sh

torture: prepare-run prepare-test build
	$(ONSET) kernels fetch 6.12
	ONSET=$(abspath $(ONSET)) ONSET_TORTURE=all \
		$(CARGO) test --locked -p onset-tests --test torture -- --nocapture --test-threads 1
	ONSET=$(abspath $(ONSET)) tests/torture/fuzz.sh

build: prepare rust $(PAGES)

rust:
	$(CARGO) build --release --locked --target-dir target -p onset
	RUSTFLAGS="$(NAMELESS)" $(CARGO) build --release --locked --target-dir target -p onset-plugin --target $(TARGET)
	RUSTFLAGS="$(NAMELESS) -C target-feature=+crt-static" \
		$(CARGO) build --profile agent --locked --target-dir target -p onset-agent --target $(TARGET)
	mkdir -p $(LIB)
	# A new file each, also while a QEMU has the old one mapped; unchanged ones keep their date.
	install -C -m 755 target/$(TARGET)/release/libonset_plugin.so target/$(TARGET)/agent/onset-agent $(LIB)/
	rm -rf $(LIB)/patches
	cp -R patches $(LIB)/
	$(ONSET) documentation $(DOCUMENTATION)

$(PAGES) &: $(WEB_SOURCES)
	cd web && npm ci --no-audit --no-fund --loglevel=error && npm run --silent build
	mkdir -p $(LIB)
	cp web/dist/report.html web/dist/site.html $(LIB)/

firmware: prepare-firmware
	$(MAKE) -C firmware OUT=../target/firmware

prepare:
	setup/debian.sh build

prepare-run:
	setup/debian.sh build run

prepare-test:
	setup/debian.sh test

prepare-firmware:
	setup/debian.sh firmware

# Builds nothing: it may run as root, who has no Rust toolchain in PATH.
install:
	@for file in $(BUILT); do \
		test -f $$file || { echo "make install: $$file is missing; run make build first" >&2; exit 1; }; \
	done
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/onset $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 755 $(ONSET) $(DESTDIR)$(PREFIX)/bin/
	install -m 755 $(LIB)/libonset_plugin.so $(LIB)/onset-agent $(DESTDIR)$(PREFIX)/lib/onset/
	install -m 644 $(PAGES) $(DESTDIR)$(PREFIX)/lib/onset/
	cp -R $(LIB)/patches $(DESTDIR)$(PREFIX)/lib/onset/
	install -m 644 $(DOCUMENTATION)/*.1 $(DESTDIR)$(PREFIX)/share/man/man1/
	install -D -m 644 $(DOCUMENTATION)/onset.bash $(DESTDIR)$(PREFIX)/share/bash-completion/completions/onset
	install -D -m 644 $(DOCUMENTATION)/_onset $(DESTDIR)$(PREFIX)/share/zsh/site-functions/_onset
	install -D -m 644 $(DOCUMENTATION)/onset.fish $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/onset.fish

bench: prepare-run build
	$(ONSET) kernels fetch 6.12 6.12-rt
	$(CARGO) bench --locked -p onset-stats --bench recording
	$(CARGO) bench --locked -p onset --bench figures
	$(CARGO) bench --locked -p onset --bench machine
	$(CARGO) bench --locked -p onset --bench protocol
	cd web && node build.mjs --tests
	$(CARGO) bench --locked -p onset --bench page
	$(CARGO) test --locked -p onset-tests --test rig -- delays_are_found --nocapture --test-threads 1
	$(CARGO) test --release --locked -p onset-tests --test rig -- trials_a_second --nocapture --test-threads 1
	$(CARGO) bench --locked -p onset --bench hunt
	cd web && npm run --silent figures

check: lint
	$(CARGO) test --locked --quiet --workspace --lib

lint: prepare
	@$(CARGO) fmt --version >/dev/null 2>&1 && $(CARGO) clippy --version >/dev/null 2>&1 || \
		{ echo "make lint: needs rustfmt and clippy: rustup component add clippy rustfmt" >&2; exit 1; }
	$(CARGO) fmt --all --check -- crates/probes/src/*.rs crates/probes/src/*/*.rs
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	# The fuzz targets are a workspace of their own, which only make torture builds.
	$(CARGO) metadata --manifest-path fuzz/Cargo.toml --locked --format-version 1 >/dev/null

contract: prepare
	$(CARGO) run --locked --target-dir target -p onset-view --example contract
	cd web && npm ci --no-audit --no-fund --loglevel=error && npm run --silent contract
