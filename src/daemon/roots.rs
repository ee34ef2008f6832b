//! Images that the daemon needs, for the collection of images.

use async_trait::async_trait;
use podstead_api::Published;
use podstead_container::digest::Digest;
use podstead_image::{ImageRoots, Root, RootTarget, UnknownRoots};
use podstead_store::{images_of, kept_images};
use podstead_sys::layout::Paths;
use std::sync::Arc;
use tokio::sync::watch;

/// Images of pods that exist, and of revisions that are in force or can be restored.
#[derive(Debug)]
pub(super) struct NeededImages {
    pub(super) published: Arc<Published>,
    pub(super) paths: Paths,
    /// Earlier revisions of a source that count.
    pub(super) keep_revisions: usize,
    /// True once every source was heard.
    pub(super) sources_ready: watch::Receiver<bool>,
}

#[async_trait]
impl ImageRoots for NeededImages {
    async fn roots(&self) -> Result<Vec<Root>, UnknownRoots> {
        if !*self.sources_ready.borrow() {
            return Err("not every source has been read yet".into());
        }
        let mut roots = self.of_pods();
        for source in self.published.sources() {
            let (paths, keep, id) = (self.paths.clone(), self.keep_revisions, source.id.clone());
            let kept = tokio::task::spawn_blocking(move || kept_images(&paths, &id, keep)).await??;
            roots.extend(kept.into_iter().map(|kept| Root {
                reason: match kept.in_force {
                    true => format!("source {}", source.id),
                    false => format!("source {}, revision {} of its history", source.id, kept.number),
                },
                target: RootTarget::Reference(kept.image),
            }));
        }
        Ok(roots)
    }
}

impl NeededImages {
    fn of_pods(&self) -> Vec<Root> {
        let mut roots = Vec::new();
        for pod in self.published.pods().list().1 {
            let reason = format!("pod {}/{}", pod.desired.full_name.namespace, pod.desired.full_name.name);
            let mut add = |target| roots.push(Root { target, reason: reason.clone() });
            let spec = pod.desired.pod.spec.iter();
            spec.flat_map(images_of).for_each(|image| add(RootTarget::Reference(image.to_owned())));
            // The tag may mean another image by now.
            let statuses = [&pod.status.init_container_statuses, &pod.status.container_statuses];
            let running = statuses.into_iter().flatten().flatten();
            running.filter_map(|status| digest_of(&status.image_id)).for_each(|digest| add(RootTarget::Digest(digest)));
        }
        roots
    }
}

/// The digest in `sha256:...` or `NAME@sha256:...`.
fn digest_of(image_id: &str) -> Option<Digest> {
    image_id.rsplit('@').next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digest_of_an_image_id_is_found() {
        let digest = Digest::of(b"x");
        assert_eq!(digest_of(&digest.to_string()), Some(digest));
        assert_eq!(digest_of(&format!("docker.io/library/a@{digest}")), Some(digest));
        assert_eq!(digest_of(""), None);
    }
}
