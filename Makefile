# The one door to every habit. `make help` lists the targets.
.DEFAULT_GOAL := help
SHELL := /bin/bash

# What the build needs beside Rust, and what the tests need on top of it (Debian package names).
BUILD_PACKAGES := gcc libc6-dev libseccomp-dev pkg-config libelf-dev zlib1g-dev
DEMO_PACKAGES := busybox-static curl git python3
# Any kubectl will do; Debian's package conflicts with others that bring one.
KUBECTL_PACKAGE := $(if $(shell command -v kubectl),,kubernetes-client)
TEST_PACKAGES := $(DEMO_PACKAGES) nftables iptables gnupg openssh-client openssh-server nginx-light fcgiwrap bind9-dnsutils unbound iproute2 containernetworking-plugins catatonit util-linux e2fsprogs procps strace zstd prometheus mmdebstrap age openssl python3-cryptography python3-yaml skopeo docker-registry umoci podman crun runc conmon docker.io ufw firewalld dbus $(KUBECTL_PACKAGE)
CLUSTER_PACKAGES := $(TEST_PACKAGES) etcd-server golang-go dpkg-dev
BENCH_PACKAGES := $(TEST_PACKAGES) iperf3 netavark
VM_PACKAGES := $(TEST_PACKAGES) qemu-system-x86 qemu-utils nbdkit
ARM64_PACKAGES := mmdebstrap qemu-system-arm qemu-user-static arch-test busybox-static
NSPAWN_PACKAGES := systemd-container mmdebstrap busybox-static git

TARGET := $(shell rustc -vV | sed -n 's/^host: //p')
RELEASE := target/$(TARGET)/release

.PHONY: help
help: ## this list
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

.PHONY: setup setup-demo setup-test setup-cluster setup-bench setup-vm
setup: ## install what the build needs (root)
	@packaging/apt-install $(BUILD_PACKAGES)
setup-demo: ## install what the demo needs (root)
	@packaging/apt-install $(BUILD_PACKAGES) $(DEMO_PACKAGES)
setup-test: ## install what the tests need (root)
	@packaging/apt-install $(BUILD_PACKAGES) $(TEST_PACKAGES)
setup-cluster: ## install what the tests with a real API server need (root)
	@packaging/apt-install $(BUILD_PACKAGES) $(CLUSTER_PACKAGES)
setup-bench: ## install what the benchmarks need (root)
	@packaging/apt-install $(BUILD_PACKAGES) $(BENCH_PACKAGES)
setup-vm: ## install what the tests in a virtual machine need (root)
	@packaging/apt-install $(BUILD_PACKAGES) $(VM_PACKAGES)

.PHONY: build
build: setup ## the two static binaries, optimised
	packaging/cargo-release $(TARGET)

.PHONY: check
check: ## format, lints, that fuzz targets compile, documentation, dependency policy
	cargo fmt --check
	cargo clippy --locked --all-targets -- -D warnings
	cargo clippy --locked --lib --bins --no-default-features -- -D warnings
	cargo clippy --locked --lib --bins --test sources --features openpgp -- -D warnings
	CUSTOM_LIBFUZZER_PATH=/unused/libfuzzer.a cargo check --locked --manifest-path tests/fuzz/Cargo.toml --target-dir target # without libFuzzer, which is C++
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --lib
	packaging/deny

.PHONY: unit
unit: ## the fast tests: no root, no packages
	cargo test --locked --lib --test architecture

.PHONY: test
test: setup-test ## all tests (root)
	cargo test --locked --no-fail-fast
	cargo test --locked --no-fail-fast --features openpgp --lib --test sources -- trust:: keyring openpgp

.PHONY: cluster
cluster: setup-cluster ## the tests with a real kube-apiserver, built from Debian's source the first time (root)
	tests/upstream/build-apiserver target/kube-apiserver
	PODSTEAD_KUBE_APISERVER=$(abspath target/kube-apiserver) cargo test --locked --test upstream apiserver:: -- --ignored

.PHONY: deb
deb: setup ## the Debian package, in target/debian
	packaging/build-deb $(TARGET)

.PHONY: deb-arm64
deb-arm64: setup ## the Debian package for 64-bit ARM, built in a Debian that compiles for it (root)
	packaging/build-deb aarch64-unknown-linux-gnu

.PHONY: check-deb
check-deb: deb ## lintian and what else a package must be before anyone gets it
	packaging/check-deb target/debian/podstead_*_$(shell dpkg --print-architecture).deb

.PHONY: release
release: setup ## packages, archives, what they are made of, checksums: in target/release-files, from a clean checkout (TARGETS=, RELEASE_KEY=)
	packaging/release

.PHONY: reproduce
reproduce: setup ## build the package in two places and compare the bytes; with RELEASE_FILES=dir, build once and compare with the one there
	packaging/reproduce $(RELEASE_FILES)

.PHONY: demo
demo: setup-demo build ## a real pod from manifests/, its log and its HTTP answer (root)
	packaging/demo $(RELEASE)

.PHONY: bench
bench: setup-bench build ## latency and memory, as ratios to podman, crun and runc (root)
	PODSTEAD_BIN_DIR=$(abspath $(RELEASE)) cargo bench --locked --profile dev --bench host -- $(PARTS)

.PHONY: vm
vm: setup-vm build ## the core of the node tests in a Debian machine with systemd and cgroup v2 (root)
	tests/vm/run $(RELEASE)

.PHONY: vm-network
vm-network: setup-vm build ## tests that need more of a kernel's network than many machines have: SCTP, ipvlan, VLANs, tbf (root)
	tests/vm/run $(RELEASE) network

.PHONY: vm-hostile
vm-hostile: setup-vm build ## hostile images, manifests, servers and containers on cgroup v2, with AppArmor and without (root)
	tests/vm/run $(RELEASE) hostile
	VM_APPARMOR=off tests/vm/run $(RELEASE) hostile

.PHONY: fuzz
fuzz: ## all targets of tests/fuzz, an equal share of MINUTES (480) each; fails on a crash (needs nightly Rust and cargo-fuzz)
	tests/fuzz/run $(or $(MINUTES),480)

.PHONY: kills
kills: setup-test ## 200 kills of the daemon in the middle of CNI plugins' work (root)
	PODSTEAD_KILLS=200 cargo test --locked --test node network::cni::kills:: -- --nocapture

.PHONY: life
life: setup-vm deb ## the life of the package, from installation to purge, in a Debian machine (root; OLDER=package, commit or tag to upgrade from)
	tests/vm/life target/debian

.PHONY: nspawn
nspawn: setup deb ## the same life in a container of systemd-nspawn, on this machine's kernel (root; OLDER=)
	@packaging/apt-install $(NSPAWN_PACKAGES)
	tests/vm/nspawn target/debian

.PHONY: vm-arm64
vm-arm64: deb-arm64 ## the package for 64-bit ARM in a Debian machine of that architecture (root)
	@packaging/apt-install $(ARM64_PACKAGES)
	tests/vm/arm64 target/debian

.PHONY: power-cuts
power-cuts: setup-vm deb ## 20 power cuts each at random moments of a Debian machine that works, and that connects pods (root; SEED=, CUTS=)
	tests/vm/power-cuts target/debian
	tests/vm/power-cuts target/debian --network builtin
	tests/vm/power-cuts target/debian --network cni

# The first commit that makes a package: the furthest way that an upgrade can have. A release upgrades from the one before it, too.
FIRST_PACKAGE := e127c4d11ce3b1e662b84c59bd14ef6e9e403974

.PHONY: long
long: setup-vm build check-deb ## hours: the core of the node tests, and the life of the package, on Debian 12 and 13; upgrades from afar; 20 power cuts (root)
	VM_SUITE=bookworm tests/vm/run $(RELEASE)
	VM_SUITE=trixie tests/vm/run $(RELEASE)
	VM_SUITE=bookworm OLDER=$(or $(OLDER),$(FIRST_PACKAGE)) tests/vm/life target/debian
	VM_SUITE=trixie tests/vm/life target/debian
	@packaging/apt-install $(NSPAWN_PACKAGES)
	OLDER=$(or $(OLDER),$(FIRST_PACKAGE)) tests/vm/nspawn target/debian
	tests/vm/power-cuts target/debian --cuts 20

.PHONY: book
book: ## the manual as a book, in target/book (installs mdbook with cargo)
	command -v mdbook >/dev/null || cargo install --locked --quiet mdbook
	mdbook build

.PHONY: docs
docs: ## rewrite the generated pages and the recorded outputs
	UPDATE=1 cargo test --locked --lib --test cli
	cargo doc --no-deps --lib
