//! The image store with real archives, real tools, a real file system and real registries. Needs root.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod archives;
mod bundles;
mod collection;
mod cuts;
mod documents;
mod fake_registry;
mod families;
mod hostile_layers;
mod kills;
mod layers;
mod logins;
mod mirrors;
mod power_cut;
mod preload;
mod progress;
mod proxy;
mod pulls;
mod random;
mod real_registry;
#[expect(dead_code, reason = "the tests of hosts use the rest")]
#[path = "../node/support/registry.rs"]
mod registry;
mod resume;
mod signatures;
mod signing;
mod support;
mod torture;
mod tree;
mod upgrade;
mod verify;
mod windows;
