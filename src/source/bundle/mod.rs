//! Bundles: manifests, images and signatures in one signed file, from a directory or a removable medium.
//!
//! In: the directory, or the file systems that others mount ([`BundleOptions`]). Out: an artifact for each bundle that was taken; its revision is
//! the digest of the document. The images are in the store before the artifact is reported.
//!
//! ```text
//! document       name, serial, hosts, content by digest          pure
//! order          no older serial                                  pure
//! choice         bundle to take among those that were found       pure
//! archive        tar archive with the document in front
//! write          bundles of `podstead bundle create`
//! find           files that may be bundles
//! memory         last bundle on disk
//! watch          hints that files came or went
//! place          look at all files
//! ```
//!
//! * The signature is verified before anything but the document is read. Content counts only under the digest that the document has for it.
//! * No file at all is no failure: a medium is there for a moment, and what was taken from it stays (promise P2).
//! * A medium may go at any time, and the power too: layers that were published stay, and the next look goes on with the others.
//! * The serial is durable before the artifact is reported, so that no older bundle of the same name comes back.

pub mod archive;
mod choice;
pub mod document;
mod error;
mod find;
mod memory;
mod options;
mod order;
mod place;
mod watch;
pub mod write;

pub use options::BundleOptions;
pub use podstead_trust::BUNDLE_NAMESPACE;

use super::PodSource;
use super::polling::poll_forever;
use async_trait::async_trait;
use place::BundlePlace;
use podstead_artifact::{SourceReport, Wishes};
use podstead_pod::SourceId;
use tokio::sync::mpsc;

/// A source that takes bundles.
#[derive(Debug)]
pub struct BundleSource {
    id: SourceId,
    options: BundleOptions,
}

impl BundleSource {
    /// Nothing is read before the source runs.
    pub fn new(id: SourceId, options: BundleOptions) -> Self {
        Self { id, options }
    }
}

#[async_trait]
impl PodSource for BundleSource {
    fn id(&self) -> SourceId {
        self.id.clone()
    }

    async fn run(self: Box<Self>, reports: mpsc::Sender<(SourceId, SourceReport)>, wishes: Wishes) {
        let Self { id, options } = *self;
        let interval = options.interval;
        poll_forever(id.clone(), interval, BundlePlace::new(id, options), reports, wishes).await;
    }
}
