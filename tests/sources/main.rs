//! Sources on real file systems with real inotify, and against real and unreal servers.
#![expect(clippy::unwrap_used, reason = "a test that cannot set up its files has to fail")]

mod bundle;
mod directory;
mod directory_layers;
mod follower;
mod following;
mod git;
#[cfg(feature = "openpgp")]
mod gnupg;
mod http;
mod http_crash;
mod http_misbehaves;
mod http_nginx;
#[cfg(feature = "openpgp")]
mod http_openpgp;
mod http_server;
mod mounts;
mod oci;
#[cfg(feature = "openpgp")]
mod openpgp;
mod pipeline;
mod signatures;
mod single_file;
mod storm;
mod support;
mod webhook;
