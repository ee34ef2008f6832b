//! Manifests in a directory, or in a single file.
//!
//! inotify (through `notify`) is only a hint, the listing is the truth: any number of events lead to one pass over the directory, and what
//! events cannot tell (mounts, symlinks that lead elsewhere, network file systems) is found by a cheap look at the path every
//! [`DirectoryOptions::look`] and a whole pass every [`DirectoryOptions::relist`]. A pass reads only files whose stamp changed.
//!
//! Rules (kubelet rules A1 to A10, except for promise P2):
//! * Files directly in the directory whose name does not begin with a dot and ends in `.yaml`, `.yml` or `.json`; a path that names a
//!   single file takes any name. Symlinks are followed; subdirectories are not entered; FIFOs, sockets and devices are refused.
//! * A file that is being written keeps its earlier content until the writer closes it.
//! * Where a directory that is read has a kustomization, all files below the path are read and watched, subdirectories included: those
//!   that are no manifests by the rules here are in [`Artifact::beside`].
//! * With layers, the directories of these are read, below one path: a missing layer is empty, and the path itself must exist.
//! * A directory that cannot be listed, or does not exist, is a failure. An empty one removes pods only if it is the same
//!   [`Place`](podstead_artifact::Place) as before.
//!
//! One thread per source does all the looking, because a file system may hang; it holds the files' content, within
//! [`DirectoryOptions::max_total_bytes`].

mod file;
mod follow;
mod hints;
mod layered;
mod listing;
mod names;
mod options;
mod place;
mod scope;
mod watch;

use super::PodSource;
use async_trait::async_trait;
use hints::Hints;
use layered::Caches;
use listing::Witness;
pub use options::{DirectoryError, DirectoryOptions};
use podstead_artifact::{Artifact, Layers, SourceReport, Wishes};
use podstead_pod::SourceId;
use scope::Scope;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// A source that follows a directory or a single file.
#[derive(Debug)]
pub struct DirectorySource {
    id: SourceId,
    path: PathBuf,
    options: DirectoryOptions,
}

impl DirectorySource {
    /// Follows `path`, which need not exist yet.
    pub fn new(id: SourceId, path: &Path, options: DirectoryOptions) -> Self {
        Self { id, path: normal(path), options }
    }
}

/// Without a trailing slash and without `.` components, so that paths in events compare equal.
fn normal(path: &Path) -> PathBuf {
    path.components().collect()
}

#[async_trait]
impl PodSource for DirectorySource {
    fn id(&self) -> SourceId {
        self.id.clone()
    }

    async fn run(self: Box<Self>, reports: mpsc::Sender<(SourceId, SourceReport)>, mut wishes: Wishes) {
        let hints = Arc::new(Hints::default());
        // Ends the thread also when this future is dropped.
        let _guard = StopOnDrop(hints.clone());
        loop {
            let (ended_sender, mut ended) = oneshot::channel::<()>();
            let (hints_of_thread, looks) = (hints.clone(), wishes.looks().clone());
            let follower = follow::Follower::new(
                self.id.clone(),
                self.path.clone(),
                self.options.clone(),
                hints_of_thread,
                reports.clone(),
                looks,
            );
            let thread = std::thread::Builder::new().name(format!("source-{}", self.id)).spawn(move || {
                // Dropped when the thread ends, in whatever way.
                let _ended = ended_sender;
                follower.run();
            });
            match thread {
                Ok(_) => {
                    loop {
                        // All arms are cancel-safe.
                        tokio::select! {
                            _ = &mut ended => return,
                            () = reports.closed() => return,
                            wish = wishes.next() => hints.wish(wishes.gather(Some(wish)), Instant::now()),
                        }
                    }
                }
                Err(error) => {
                    let text = format!("start the thread that reads {}: {error}", self.path.display());
                    if reports.send((self.id.clone(), SourceReport::Failed(text))).await.is_err() {
                        return;
                    }
                    tokio::time::sleep(self.options.relist).await;
                }
            }
        }
    }
}

struct StopOnDrop(Arc<Hints>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// Reads a directory or a file once, without following it. Blocks; a file that is being changed is waited for up to a second.
pub fn read_once(path: &Path) -> Result<Artifact, DirectoryError> {
    read_layers_once(path, &Arc::default())
}

/// Reads the layers of a directory once, as [`read_once`] does.
pub fn read_layers_once(path: &Path, layers: &Arc<Layers>) -> Result<Artifact, DirectoryError> {
    let layers = Arc::clone(layers);
    let scope = Scope { root: normal(path), layers: Arc::clone(&layers) };
    let options = DirectoryOptions { settle: Duration::from_millis(20), layers, ..DirectoryOptions::default() };
    let mut caches = Caches::new();
    let deadline = Instant::now() + Duration::from_secs(1);
    loop {
        let patience = if Instant::now() < deadline { options.patience } else { Duration::ZERO };
        let options = DirectoryOptions { patience, ..options.clone() };
        let pass = layered::pass(&scope, &scope.spots()?, &options, &mut caches, &Witness::default())?;
        if !pass.unstable || patience.is_zero() {
            return Ok(pass.artifact);
        }
        std::thread::sleep(options.settle);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn tree(files: &[&str]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for file in files {
            let path = root.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, file).unwrap();
        }
        root
    }

    fn names(path: &Path, layers: &[&str]) -> (Vec<String>, Vec<String>) {
        let layers: Vec<String> = layers.iter().map(|layer| (*layer).to_owned()).collect();
        let read = read_layers_once(path, &Arc::new(Layers::parse(&layers).unwrap())).unwrap();
        (read.files.into_keys().collect(), read.beside.into_keys().collect())
    }

    const OVERLAYS: [&str; 6] = [
        "base/kustomization.yaml",
        "base/web.yaml",
        "base/.hidden",
        "overlays/a/Kustomization",
        "overlays/a/app.conf",
        "overlays/a/patch.yaml",
    ];

    #[test]
    fn subdirectories_are_read_below_a_kustomization() {
        let root = tree(&["kustomization.yaml", "web.yaml", "app.conf", "base/web.yaml", "base/more/x", ".git/config"]);
        let beside = ["app.conf", "base/more/x", "base/web.yaml"].map(str::to_owned).to_vec();
        assert_eq!(names(root.path(), &[]), (vec!["kustomization.yaml".to_owned(), "web.yaml".to_owned()], beside));
        fs::remove_file(root.path().join("kustomization.yaml")).unwrap();
        assert_eq!(names(root.path(), &[]), (vec!["web.yaml".to_owned()], vec![]));
    }

    #[test]
    fn layers_with_a_kustomization_have_everything_beside_them() {
        let root = tree(&OVERLAYS);
        let files = ["overlays/a/Kustomization", "overlays/a/patch.yaml"].map(str::to_owned).to_vec();
        let beside = ["base/kustomization.yaml", "base/web.yaml", "overlays/a/app.conf"].map(str::to_owned).to_vec();
        assert_eq!(names(root.path(), &["overlays/a"]), (files, beside));
        assert_eq!(names(root.path(), &["overlays/b"]), (vec![], vec![]));
    }

    #[test]
    fn a_file_beside_makes_another_revision() {
        let root = tree(&OVERLAYS);
        let layers = Arc::new(Layers::parse(&["overlays/a".to_owned()]).unwrap());
        let revision = || read_layers_once(root.path(), &layers).unwrap().revision;
        let before = revision();
        assert_eq!(revision(), before);
        fs::write(root.path().join("overlays/a/app.conf"), "other").unwrap();
        assert_ne!(revision(), before);
    }

    #[test]
    fn a_single_file_has_nothing_beside_it() {
        let root = tree(&["kustomization.yaml", "app.conf"]);
        let (files, beside) = names(&root.path().join("kustomization.yaml"), &[]);
        assert_eq!((files.len(), beside.len()), (1, 0));
    }
}
