//! Sources of manifests. A source fetches bytes and names their revision; it never interprets them.
//!
//! Each source is one task. Out: [`SourceReport`]s on a bounded channel, whole artifacts only. A failure is a report of its own and
//! never looks like an empty artifact (promise P2): whoever reads the channel keeps the last good set.

mod around;
pub mod bundle;
pub mod credentials;
pub mod dir;
pub mod git;
pub mod http;
pub mod http_client;
pub mod oci;
mod one_line;
pub mod poll;
pub mod polling;
mod revision;
mod sealed;
mod signers;
pub mod tree_job;
mod tree_rules;
pub mod webhook;

pub use signers::{SignatureRequirement, SignersError};

use async_trait::async_trait;
use podstead_artifact::{SourceReport, Wishes};
use podstead_pod::SourceId;
use tokio::sync::mpsc;

/// A place that manifests come from.
#[async_trait]
pub trait PodSource: Send + 'static {
    /// The configured name.
    fn id(&self) -> SourceId;

    /// Fetches now, on every change and on every wish, until the receiver of `reports` is dropped. Never returns on a failure of the
    /// place. The future may be dropped at any await.
    async fn run(self: Box<Self>, reports: mpsc::Sender<(SourceId, SourceReport)>, wishes: Wishes);
}
