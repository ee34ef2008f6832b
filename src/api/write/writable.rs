//! The source that clients may write to.

use podstead_pod::SourceId;
use podstead_store::CheckContext;
use std::path::PathBuf;
use tokio::sync::Mutex;

/// The source that clients may write to.
#[derive(Debug)]
pub struct Writable {
    pub(super) source: SourceId,
    pub(super) directory: PathBuf,
    pub(super) check: CheckContext,
    /// Held by the request that writes.
    pub(super) turn: Mutex<()>,
}

impl Writable {
    /// Its name.
    pub(crate) fn source(&self) -> &SourceId {
        &self.source
    }

    /// The source of this name, whose files are in `directory` and are checked with `check`.
    pub fn new(source: SourceId, directory: PathBuf, check: CheckContext) -> Self {
        Self { source, directory, check, turn: Mutex::default() }
    }
}
