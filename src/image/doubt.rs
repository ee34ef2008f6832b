//! Doubt about images that are stored: what makes podstead verify them without being asked, and mend them (I47).
//!
//! Reading all of an image costs the disk some seconds. So it is done once an hour at most for each image, and only for a sign that an image may be
//! damaged: a container that does not start as if its files were damaged, and a file system that finds errors in itself.

use super::check::mend::Mender;
use podstead_container::digest::Digest;
use podstead_container::reference::Reference;
use podstead_sys_async::disk_errors::DiskErrors;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// Between two verifications of an image for a doubt.
const PAUSE: Duration = Duration::from_secs(3600);

/// Images in doubt.
#[derive(Debug)]
pub(super) struct Doubts {
    pub(super) mender: Arc<Mender>,
    /// Beginnings of verifications within the last hour.
    verified: Mutex<BTreeMap<Digest, Instant>>,
}

impl Doubts {
    pub(super) fn new(mender: Arc<Mender>) -> Arc<Self> {
        Arc::new(Self { mender, verified: Mutex::default() })
    }

    /// Verifies an image in the background and mends it, unless that was done within the hour.
    pub(super) fn raise(&self, digest: Digest, why: &str) {
        let mut verified = self.verified.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_due(&mut verified, digest, Instant::now()) {
            return;
        }
        drop(verified);
        tracing::warn!(image = %digest, why, "the image may be damaged: verifying it");
        let mender = Arc::clone(&self.mender);
        tokio::spawn(async move {
            let images = mender.disk.images_of(&[]).into_iter().filter(|image| image.digest == digest).collect();
            mender.verify(images, true).await;
        });
    }

    /// Verifies and mends the images that are needed, each time that the file system of `path` finds errors in itself; never ends.
    pub(super) async fn watch(&self, path: &Path) -> Infallible {
        let mut errors = match DiskErrors::watch(path) {
            Ok(Some(errors)) => errors,
            Ok(None) => return std::future::pending().await,
            Err(error) => {
                tracing::warn!(%error, "cannot watch the file system of the image store for errors");
                return std::future::pending().await;
            }
        };
        loop {
            if let Err(error) = errors.more().await {
                tracing::warn!(%error, "cannot watch the file system of the image store for errors any more");
                return std::future::pending().await;
            }
            tracing::warn!("the file system of the image store has found errors in itself: verifying the images that are needed");
            let mut needed = Vec::new();
            for image in self.mender.disk.images_of(&[]) {
                if self.is_needed(&image.references).await {
                    needed.push(image);
                }
            }
            self.mender.verify(needed, true).await;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Returns true of an image that somebody needs, and of each as long as that is not known.
    async fn is_needed(&self, references: &[String]) -> bool {
        for reference in references.iter().filter_map(|reference| reference.parse::<Reference>().ok()) {
            if !matches!(self.mender.collector.mark_of(&reference).await, Ok(None)) {
                return true;
            }
        }
        false
    }
}

/// Returns true, and takes note of it, if an image was not verified within the hour.
fn is_due(verified: &mut BTreeMap<Digest, Instant>, digest: Digest, now: Instant) -> bool {
    verified.retain(|_, begun| now.duration_since(*begun) < PAUSE);
    let is_due = !verified.contains_key(&digest);
    if is_due {
        verified.insert(digest, now);
    }
    is_due
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn image_is_verified_once_an_hour() {
        let (mut verified, begun) = (BTreeMap::new(), Instant::now());
        let mut due =
            |image: &[u8], minutes: u64| is_due(&mut verified, Digest::of(image), begun + Duration::from_secs(60 * minutes));
        assert!(due(b"a", 0) && due(b"b", 30));
        assert!(!due(b"a", 59) && due(b"a", 60) && !due(b"b", 61));
    }
}
