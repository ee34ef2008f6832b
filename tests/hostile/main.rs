//! Hostile images, manifests, repositories, servers and containers against real pods. Needs root.
//!
//! Each case attacks the host, another source or another pod, and asserts that nothing beyond the attacker's bounds changed. A case fails without
//! the code that stops the attack. [`docs/explanation/security.md`](../../docs/explanation/security.md) lists the attackers and the cases that
//! cover each of them.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test that cannot go on has to fail, and says what it saw")]

mod containers;
mod events;
mod layers;
mod policies;
mod registries;
mod rootfs;
mod slice;
mod sources;
mod victim;
mod volumes;

#[path = "../node/support/mod.rs"]
#[allow(dead_code, reason = "what other suites need of it")]
mod support;
