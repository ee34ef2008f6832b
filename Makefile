# The one door to every habit. `make help` lists the targets.
.DEFAULT_GOAL := help
SHELL := /bin/bash

# What the build needs beside Rust, and what the tests need on top of it (Debian package names).
BUILD_PACKAGES := gcc libc6-dev libseccomp-dev pkg-config libelf-dev zlib1g-dev
DEMO_PACKAGES := busybox-static curl git python3
# Any kubectl will do; Debian's package conflicts with others that bring one.
KUBECTL_PACKAGE := $(if $(shell command -v kubectl),,kubernetes-client)
TEST_PACKAGES := $(DEMO_PACKAGES) nftables iptables gnupg openssh-client openssh-server nginx-light fcgiwrap bind9-dnsutils unbound iproute2 containernetworking-plugins util-linux e2fsprogs procps strace zstd prometheus mmdebstrap age openssl python3-cryptography python3-yaml skopeo docker-registry umoci podman crun runc conmon docker.io ufw firewalld dbus $(KUBECTL_PACKAGE)
BENCH_PACKAGES := $(TEST_PACKAGES) catatonit iperf3 netavark
VM_PACKAGES := $(TEST_PACKAGES) qemu-system-x86 qemu-utils nbdkit

TARGET := $(shell rustc -vV | sed -n 's/^host: //p')
RELEASE := target/$(TARGET)/release

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

.PHONY: setup setup-demo setup-test setup-bench setup-vm
setup: ## install what the build needs (root)
	@packaging/apt-install $(BUILD_PACKAGES)
setup-demo: ## install what the demo needs (root)
	@packaging/apt-install $(BUILD_PACKAGES) $(DEMO_PACKAGES)
setup-test: ## install what the tests need (root)
	@packaging/apt-install $(BUILD_PACKAGES) $(TEST_PACKAGES)
setup-bench: ## install what the benchmarks need (root)
	@packaging/apt-install $(BUILD_PACKAGES) $(BENCH_PACKAGES)
setup-vm: ## install what the tests in a virtual machine need (root)
	@packaging/apt-install $(BUILD_PACKAGES) $(VM_PACKAGES)

.PHONY: build
build: setup ## the two static binaries, optimised
	packaging/cargo-release $(TARGET)

.PHONY: check
check: ## format, lints, documentation, dependency policy
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	cargo clippy --locked --lib --bins --no-default-features -- -D warnings
	cargo clippy --locked --lib --bins --test sources --features openpgp -- -D warnings
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --lib
	packaging/deny

.PHONY: unit
unit: ## the fast tests: no root, no packages
	cargo test --locked --lib --test architecture

.PHONY: test
test: setup-test ## all tests (root)
	cargo test --locked --no-fail-fast
	cargo test --locked --no-fail-fast --features openpgp --lib --test sources -- trust:: keyring openpgp

.PHONY: deb
deb: setup ## the Debian package, in target/debian
	packaging/build-deb $(TARGET)

.PHONY: demo
demo: setup-demo build ## a real pod from manifests/, its log and its HTTP answer (root)
	packaging/demo $(RELEASE)

.PHONY: bench
bench: setup-bench build ## latency and memory, as ratios to podman, crun and runc (root)
	PODSTEAD_BIN_DIR=$(abspath $(RELEASE)) cargo bench --locked --profile dev --bench host -- $(PARTS)

.PHONY: vm
vm: setup-vm build ## the core of the node tests in a Debian machine with systemd and cgroup v2 (root)
	tests/vm/run $(RELEASE)

.PHONY: life
life: setup-vm deb ## the life of the package, from installation to purge, in a Debian machine (root)
	tests/vm/life target/debian

.PHONY: power-cuts
power-cuts: setup-vm deb ## 20 power cuts at random moments of a Debian machine that works (root; SEED=, CUTS=)
	tests/vm/power-cuts target/debian

.PHONY: book
book: ## the manual as a book, in target/book (installs mdbook with cargo)
	command -v mdbook >/dev/null || cargo install --locked --quiet mdbook
	mdbook build

.PHONY: docs
docs: ## rewrite the generated pages and the recorded outputs
	UPDATE=1 cargo test --locked --lib --test cli
	cargo doc --no-deps --lib
