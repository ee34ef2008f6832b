//! Images that are pulled before pods are replaced (W14).

use crate::plan::Warm;
use async_trait::async_trait;
use podstead_manifest::ObjectKey;
use podstead_pod::containers::PullPolicy;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

/// Pause after a pull that failed, doubled up to [`LONGEST_PAUSE`], as between pulls of a pod.
const FIRST_PAUSE: Duration = Duration::from_secs(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(300);

/// The image store, as the expansion uses it.
#[async_trait]
pub trait TemplateImages: Send + Sync + fmt::Debug + 'static {
    /// Makes an image of a workload present by its policy. On failure, the reason.
    async fn ensure(&self, image: &str, policy: PullPolicy, of: &Warm) -> Result<(), String>;

    /// Waits for an occasion to ask again before a pause is over. Cancel-safe.
    async fn again(&self);
}

/// Data of claims on this host.
#[async_trait]
pub trait ClaimData: Send + Sync + fmt::Debug + 'static {
    /// Returns true if there are data of the claim that are deleted when no source has it.
    fn is_disposable(&self, namespace: &str, name: &str) -> bool;

    /// Waits until such data were deleted. Cancel-safe.
    async fn deleted(&self);
}

/// Result of one attempt.
#[derive(Debug)]
pub(crate) enum Warmed {
    /// All images are in the image store.
    Present(ObjectKey, Vec<String>),
    /// An image cannot be pulled at present; it is tried again.
    Failed(ObjectKey, String),
}

/// Pulls under way, at most one set of images for each workload.
#[derive(Debug)]
pub(crate) struct Warming {
    images: Arc<dyn TemplateImages>,
    results: mpsc::UnboundedSender<Warmed>,
    running: BTreeMap<ObjectKey, (Warm, AbortHandle)>,
}

impl Warming {
    /// Reports to `results`: at most one result for each attempt, so that it needs no bound.
    pub(crate) fn new(images: Arc<dyn TemplateImages>, results: mpsc::UnboundedSender<Warmed>) -> Self {
        Self { images, results, running: BTreeMap::new() }
    }

    /// Makes images present, unless that is under way. Other images of the same workload are not needed any more.
    pub(crate) fn start(&mut self, warm: Warm) {
        if self.running.get(&warm.key).is_some_and(|(running, _)| *running == warm) {
            return;
        }
        let (images, results, work) = (Arc::clone(&self.images), self.results.clone(), warm.clone());
        let task = tokio::spawn(async move { pull(images, work, results).await });
        if let Some((_, earlier)) = self.running.insert(warm.key.clone(), (warm, task.abort_handle())) {
            earlier.abort();
        }
    }

    /// Ends the pull of a workload that needs no images any more, or has them.
    pub(crate) fn stop(&mut self, key: &ObjectKey) {
        if let Some((_, task)) = self.running.remove(key) {
            task.abort();
        }
    }
}

async fn pull(images: Arc<dyn TemplateImages>, warm: Warm, results: mpsc::UnboundedSender<Warmed>) {
    let mut pause = FIRST_PAUSE;
    loop {
        match pull_all(images.as_ref(), &warm).await {
            Ok(()) => {
                let present = warm.images.into_iter().map(|(image, _)| image).collect();
                // An error means that the task has ended.
                results.send(Warmed::Present(warm.key, present)).ok();
                return;
            }
            Err(reason) => {
                if results.send(Warmed::Failed(warm.key.clone(), reason)).is_err() {
                    return;
                }
            }
        }
        // Either way the next attempt begins.
        drop(tokio::time::timeout(pause, images.again()).await);
        pause = (2 * pause).min(LONGEST_PAUSE);
    }
}

async fn pull_all(images: &dyn TemplateImages, warm: &Warm) -> Result<(), String> {
    for (image, policy) in &warm.images {
        images.ensure(image, *policy, warm).await?;
    }
    Ok(())
}
