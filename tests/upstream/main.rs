//! The cluster: mirror pods, the Node, its Lease and events, against an API server in this process.
//!
//! [`server`] does what a real one does with a node's rights; [`wire`] serves it over TLS to the real daemon; [`unreliable`] puts it behind
//! a connection that fails in every way, in paused time; [`relay`] cuts and slows real connections; [`malice`] sends without end.
//! [`apiserver`] asks a real kube-apiserver, where there is one (`make cluster`).
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test that cannot go on has to fail, and says what it saw")]

mod apiserver;
mod codes;
mod daemon;
mod faults;
mod host;
mod kube;
mod malice;
mod memory;
mod pressure;
mod refusals;
mod relay;
mod rules;
mod server;
mod sockets;
mod unreliable;
mod wire;

#[path = "../node/support/mod.rs"]
#[allow(dead_code, reason = "what other suites need of it")]
mod support;
