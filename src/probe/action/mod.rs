//! One check of a container: what it is ([`Action`], pure) and how it is made ([`exec`], [`http`], [`tcp`], [`grpc`]).
//!
//! Nothing in here has a deadline of its own but for the tool [`within`]: who asks says how long he waits, and dropping a check ends
//! it: its connection is closed, its process in the container is killed.
//!
//! Connections go from the host to the pod's address, as the kubelet's. A pod without an address that the host could reach is asked
//! at 127.0.0.1 in its own network namespace. An action that names a host is always made from the host.

pub mod exec;
pub mod grpc;
pub mod http;
pub mod tcp;

mod connect;
mod request;
mod tls;

#[cfg(test)]
mod grpc_test;
#[cfg(test)]
mod http_test;

pub use connect::{PodAddress, authority};
pub use exec::ExecAnswer;
pub use grpc::GrpcAnswer;
pub use http::HttpAnswer;
pub use request::{Action, ActionError, GrpcCheck, HttpGet, TcpConnect};

use std::time::Duration;

/// The most that is kept of what a container answers, as the kubelet.
pub const OUTPUT_LIMIT: usize = 10 * 1024;

/// The Kubernetes version that user agents name: that of the kubelet whose behaviour is podstead's.
pub const KUBERNETES_VERSION: &str = "1.36";

/// Result of `check`, or `None` if it took longer than `limit`.
pub async fn within<T>(limit: Duration, check: impl Future<Output = T>) -> Option<T> {
    tokio::time::timeout(limit, check).await.ok()
}

/// Bytes as text, cut at [`OUTPUT_LIMIT`].
fn bounded_text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(OUTPUT_LIMIT)]).into_owned()
}
