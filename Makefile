# All development tasks. `make help` lists the targets.
.DEFAULT_GOAL := help
SHELL := /bin/bash

# Dependencies of the build besides Rust, and further ones of the tests (Debian package names).
BUILD_PACKAGES := gcc libc6-dev libseccomp-dev pkg-config libelf-dev zlib1g-dev
DEMO_PACKAGES := busybox-static curl git iproute2 python3
# Any kubectl works; the Debian package conflicts with other packages that contain one.
KUBECTL_PACKAGE := $(if $(shell command -v kubectl),,kubernetes-client)
TEST_PACKAGES := $(DEMO_PACKAGES) nftables iptables gnupg openssh-client openssh-server nginx-light fcgiwrap bind9-dnsutils unbound containernetworking-plugins catatonit util-linux e2fsprogs procps strace zstd prometheus mmdebstrap age openssl python3-cryptography python3-yaml python3-kubernetes skopeo docker-registry umoci podman crun runc conmon docker.io ufw firewalld dbus $(KUBECTL_PACKAGE)
CLUSTER_PACKAGES := $(TEST_PACKAGES) etcd-server golang-go dpkg-dev
BENCH_PACKAGES := $(TEST_PACKAGES) iperf3 netavark
VM_PACKAGES := $(TEST_PACKAGES) qemu-system-x86 qemu-utils nbdkit
ARM64_PACKAGES := mmdebstrap qemu-system-arm qemu-user-static arch-test busybox-static
NSPAWN_PACKAGES := systemd-container mmdebstrap busybox-static git

TARGET := $(shell rustc -vV | sed -n 's/^host: //p')
RELEASE := target/$(TARGET)/release

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 14

.PHONY: setup setup-demo setup-test setup-cluster setup-bench setup-vm
setup: ## install the dependencies of the build (root)
	@packaging/apt-install $(BUILD_PACKAGES)
setup-demo: ## install the dependencies of the demo (root)
	@packaging/apt-install $(BUILD_PACKAGES) $(DEMO_PACKAGES)
setup-test: ## install the dependencies of the tests (root)
	@packaging/apt-install $(BUILD_PACKAGES) $(TEST_PACKAGES)
setup-cluster: ## install the dependencies of the tests with a real API server (root)
	@packaging/apt-install $(BUILD_PACKAGES) $(CLUSTER_PACKAGES)
setup-bench: ## install the dependencies of the benchmarks (root)
	@packaging/apt-install $(BUILD_PACKAGES) $(BENCH_PACKAGES)
setup-vm: ## install the dependencies of the tests in a virtual machine (root)
	@packaging/apt-install $(BUILD_PACKAGES) $(VM_PACKAGES)

.PHONY: build
build: setup ## build the two static binaries, optimised
	packaging/cargo-release $(TARGET)

.PHONY: check
check: ## check formatting, lints, architecture, fuzz targets, documentation and dependency policy
	cargo fmt --all --check
	cargo clippy --locked --all-targets -- -D warnings
	cargo clippy --locked --lib --bins --no-default-features -- -D warnings
	cargo clippy --locked --lib --bins --test sources --features openpgp -- -D warnings
	cargo test --locked --test architecture
	CUSTOM_LIBFUZZER_PATH=/unused/libfuzzer.a cargo check --locked --manifest-path tests/fuzz/Cargo.toml --target-dir target # without libFuzzer, which is C++
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --no-deps --lib
	packaging/deny

.PHONY: unit
unit: ## run the fast tests, without root and without Debian packages other than a C compiler
	cargo test --locked --workspace --exclude podstead --exclude podstead-shim --lib

# Most tests wait for containers and servers, so that one more than there are cores keeps the cores busy.
.PHONY: test
test: export RUST_TEST_THREADS ?= $(shell expr $$(nproc) + 1)
test: setup-test ## run all tests (root)
	cargo test --locked --no-fail-fast
	cargo test --locked --no-fail-fast --package podstead-trust --features openpgp
	cargo test --locked --no-fail-fast --features openpgp --test sources -- keyring openpgp

.PHONY: cluster
cluster: setup-cluster ## run the tests with a real kube-apiserver, built from Debian's source the first time (root)
	tests/upstream/build-apiserver target/kube-apiserver
	PODSTEAD_KUBE_APISERVER=$(abspath target/kube-apiserver) cargo test --locked --test upstream apiserver:: -- --ignored

.PHONY: kustomize
kustomize: KUBECTL ?= kubectl
kustomize: ## build each pair of fields of a kustomization as kubectl does; needs kubectl 1.36 or 1.37 (KUBECTL)
	KUBECTL=$(shell command -v $(KUBECTL)) cargo test --locked --test manifest pairs:: -- --ignored

.PHONY: deb
deb: setup ## build the Debian package in target/debian
	packaging/build-deb $(TARGET)

.PHONY: deb-arm64
deb-arm64: setup ## cross-build the Debian package for 64-bit ARM, in a Debian root (root)
	packaging/build-deb aarch64-unknown-linux-gnu

.PHONY: check-deb
check-deb: deb ## check the package with lintian and further checks
	packaging/check-deb target/debian/podstead_*_$(shell dpkg --print-architecture).deb

.PHONY: release
release: setup ## build packages, archives, bills of materials and checksums in target/release-files, from a clean checkout (TARGETS=, RELEASE_KEY=)
	packaging/release

.PHONY: reproduce
reproduce: setup ## build the package in two places and compare the bytes; with RELEASE_FILES=dir, build once and compare with the package there
	packaging/reproduce $(RELEASE_FILES)

.PHONY: demo
demo: setup-demo ## run real pods in a network namespace of their own, and say what to type next (root; KEEP=1: they stay)
	cargo build --locked --package podstead --bins --target $(TARGET)
	packaging/demo target/$(TARGET)/debug

.PHONY: bench
bench: setup-bench build ## measure latency and memory, as ratios to podman, crun and runc (root)
	PODSTEAD_BIN_DIR=$(abspath $(RELEASE)) cargo bench --locked --profile dev --bench host -- $(PARTS)

.PHONY: vm
vm: setup-vm build ## run the core of the node tests in a Debian machine with systemd and cgroup v2 (root)
	tests/vm/run $(RELEASE)

.PHONY: vm-network
vm-network: setup-vm build ## run the tests that need less common kernel network features: SCTP, ipvlan, VLANs, tbf (root)
	tests/vm/run $(RELEASE) network

.PHONY: vm-hostile
vm-hostile: setup-vm ## run the tests with hostile images, manifests, servers and containers on cgroup v2, with and without AppArmor (root)
	tests/vm/run target hostile
	VM_APPARMOR=off tests/vm/run target hostile

.PHONY: fuzz
fuzz: ## run all fuzz targets for an equal share of MINUTES (480) each; fails on a crash (needs nightly Rust and cargo-fuzz)
	tests/fuzz/run $(or $(MINUTES),480)

.PHONY: clients
clients: setup-test ## build a client with kube-rs, and run it against a daemon (root)
	cargo build --locked --manifest-path tests/clients/kube-rs/Cargo.toml --target-dir target/clients
	PODSTEAD_KUBE_RS=$(abspath target/clients/$(TARGET)/debug/podstead-client-kube-rs) cargo test --locked --test node kube_rs:: -- --ignored

# 50 images of 150 MiB on a disk of 4 GiB, with a registry that has all of them: 12 GiB in target/ until it ends.
.PHONY: disk
disk: setup-test ## pull 50 versions of an image in a row on a file system of 4 GiB (root)
	mkdir -p target/disk
	TMPDIR=$(abspath target/disk) PODSTEAD_DISK_MIB=4096 cargo test --locked --test images fifty_versions -- --nocapture
	rmdir target/disk

.PHONY: kills
kills: setup-test ## kill the daemon 200 times during calls of CNI plugins and changes of Services and policies, and while kubectl writes, the jobs of polls and pulls 200 times each beside starts of pods, the image store and the jobs of pulls 500 times each; cut the power of a store 50 times (root)
	PODSTEAD_KILLS=200 cargo test --locked --test node kills::random_kills -- --nocapture --test-threads 1
	PODSTEAD_KILLS=200 cargo test --locked --test node kubectl_rows::kills_leave -- --nocapture
	PODSTEAD_KILLS=200 cargo test --locked --test node killed_jobs:: -- --nocapture
	PODSTEAD_KILLS=200 cargo test --locked --test sources artifacts_are_whole -- --nocapture
	PODSTEAD_KILLS=500 cargo test --locked --test images kills:: -- --nocapture
	PODSTEAD_CUTS=50 cargo test --locked --test images cuts:: -- --nocapture
	PODSTEAD_KILLS=500 cargo test --locked --test hostile layers::jobs::pulls_with_killed_jobs -- --nocapture

.PHONY: life
life: setup-vm deb ## test the package from installation to purge, in a Debian machine (root; OLDER=package, commit or tag to upgrade from)
	tests/vm/life target/debian

.PHONY: nspawn
nspawn: setup deb ## test the package like life, in a systemd-nspawn container on the kernel of this machine (root; OLDER=)
	@packaging/apt-install $(NSPAWN_PACKAGES)
	tests/vm/nspawn target/debian

.PHONY: vm-arm64
vm-arm64: deb-arm64 ## test the package for 64-bit ARM in an emulated Debian machine (root)
	@packaging/apt-install $(ARM64_PACKAGES)
	tests/vm/arm64 target/debian

.PHONY: power-cuts
power-cuts: setup-vm deb ## cut the power of a busy Debian machine 20 times at random, without and with pod networks (root; SEED=, CUTS=)
	tests/vm/power-cuts target/debian
	tests/vm/power-cuts target/debian --network builtin
	tests/vm/power-cuts target/debian --network cni

.PHONY: image-cuts
image-cuts: setup-vm build ## cut the power of the image store of a Debian machine: 50 times its disk, 5 times the machine (root; SEED=, CUTS=)
	tests/vm/run $(RELEASE) images
	tests/vm/power-cuts $(RELEASE) --images --cuts 5

.PHONY: workload-cuts
workload-cuts: setup-vm build ## cut the power of a Debian machine in updates of workloads, and set its clock forward and back (root; SEED=, CUTS=)
	tests/vm/power-cuts $(RELEASE) --workloads

# The first commit with a package, for the longest upgrade path. A release is also tested with an upgrade from the previous one.
FIRST_PACKAGE := e127c4d11ce3b1e662b84c59bd14ef6e9e403974

.PHONY: long
long: setup-vm build check-deb ## run for hours: the core of the node tests and the package tests on Debian 12 and 13, upgrades from old versions, 20 power cuts (root)
	VM_SUITE=bookworm tests/vm/run $(RELEASE)
	VM_SUITE=trixie tests/vm/run $(RELEASE)
	VM_SUITE=bookworm OLDER=$(or $(OLDER),$(FIRST_PACKAGE)) tests/vm/life target/debian
	VM_SUITE=trixie tests/vm/life target/debian
	@packaging/apt-install $(NSPAWN_PACKAGES)
	OLDER=$(or $(OLDER),$(FIRST_PACKAGE)) tests/vm/nspawn target/debian
	tests/vm/power-cuts target/debian --cuts 20

.PHONY: book
book: ## build the manual as a book in target/book (installs mdbook with cargo)
	command -v mdbook >/dev/null || cargo install --locked --quiet mdbook
	mdbook build

.PHONY: docs
docs: ## regenerate the generated pages and the recorded outputs
	UPDATE=1 cargo test --locked --lib --test cli --test architecture
	cargo doc --no-deps --lib
