//! Polling a repository: resolve the reference, fetch missing objects, verify the revision, read its files.

use super::bring::{Bringing, bring};
use super::error::GitError;
use super::floor::{Floor, Followed, floor};
use super::job::ObjectJobs;
use super::judge::{Judged, Rules, judge};
use super::objects::{Store, open_repository, references};
use super::options::GitOptions;
use super::protocol::ObjectId;
use super::remote::{Remote, RemoteUrl, Session, Way};
use super::select::{Follow, Target};
use crate::polling::{Pollable, Polled};
use crate::tree_rules::TreeFiles;
use async_trait::async_trait;
use jiff::Timestamp;
use podstead_artifact::Artifact;
use podstead_pod::Revision;
use podstead_telemetry::error_chain;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Time that an earlier instance of the source has to release the directory.
const HANDOVER: Duration = Duration::from_secs(10);
const HANDOVER_STEP: Duration = Duration::from_millis(100);

/// A repository that is asked from time to time.
pub(super) struct Follower {
    options: GitOptions,
    place: Place,
    /// Repository and reference as text, compared with the record.
    what: String,
    followed: Option<Followed>,
    accepted: Option<ObjectId>,
    /// Target that was delivered in this run.
    delivered: Option<Target>,
    /// Target that is not fetched again because it exceeded a limit.
    too_much: Option<(Target, String)>,
}

/// Location of the repository.
enum Place {
    Remote { remote: Box<Remote>, store: Option<Store> },
    Local(PathBuf),
}

impl Follower {
    pub(super) fn new(options: GitOptions) -> Self {
        let location = options.url.to_string();
        let remote = |way| Place::Remote { remote: Box::new(Remote::new(location.clone(), way, options.timeout)), store: None };
        let place = match options.url.clone() {
            RemoteUrl::Http(_) => remote(Way::Http(Box::new(options.http.clone()), options.jobs.requester())),
            RemoteUrl::Ssh(url) => remote(Way::Ssh(url, options.ssh.clone(), Arc::clone(&options.jobs))),
            RemoteUrl::Daemon { host, port, path } => remote(Way::Daemon { host, port, path }),
            RemoteUrl::Local(path) => Place::Local(path),
        };
        let what = format!("{} of {location}", options.follow);
        let accepted = options.last_accepted.as_ref().and_then(|revision| revision.0.parse().ok());
        let followed = Followed::load(&options.store);
        Self { options, place, what, followed, accepted, delivered: None, too_much: None }
    }

    async fn look(&mut self) -> Result<Option<Artifact>, GitError> {
        let (target, session) = self.locate().await?;
        if self.delivered.as_ref() == Some(&target) {
            return Ok(None);
        }
        let judged = self.judged(&target, session).await?;
        let Judged { commit, summary, files, signature } = judged;
        let signed_at = signature.as_ref().map(|signature| signature.signed_at);
        if let Some(signature) = signature {
            tracing::info!(revision = %commit, signer = %signature.signer, "signature verified");
        }
        let followed = Followed::new(self.what.clone(), commit, target.version.as_ref(), signed_at);
        self.record(followed, commit).await?;
        self.delivered = Some(target);
        let TreeFiles { files, beside, around } = files;
        Ok(Some(Artifact { revision: Revision(commit.to_string()), place: None, commit: Some(summary), files, beside, around }))
    }

    /// Resolves the reference.
    async fn locate(&mut self) -> Result<(Target, Option<Session>), GitError> {
        let follow = &self.options.follow;
        match &mut self.place {
            _ if let Follow::Commit(_) = follow => Ok((follow.choose(&[])?, None)),
            Place::Remote { remote, .. } => {
                let (references, session) = remote.references(&follow.prefixes()).await?;
                Ok((follow.choose(&references)?, Some(session)))
            }
            Place::Local(path) => {
                let path = path.clone();
                let references = blocking(move || references(&path)).await?;
                Ok((follow.choose(&references)?, None))
            }
        }
    }

    async fn judged(&mut self, target: &Target, session: Option<Session>) -> Result<Judged, GitError> {
        let rules = Rules {
            trust: self.options.trust.clone(),
            floor: self.floor(),
            last_signed_at: self.followed.as_ref().and_then(|followed| followed.signed_at),
            path: self.options.path.clone(),
            limits: self.options.limits.read,
        };
        let (judging, wanted) = (rules.clone(), target.clone());
        let (remote, store) = match &mut self.place {
            Place::Local(path) => {
                let (path, jobs) = (path.clone(), self.options.jobs.clone());
                return blocking(move || {
                    // Whoever packs the repository anew meanwhile takes files away that are open here.
                    match judge_in_place(&path, &jobs, &wanted, &judging) {
                        Err(GitError::Damaged { .. }) => judge_in_place(&path, &jobs, &wanted, &judging),
                        judged => judged,
                    }
                })
                .await;
            }
            Place::Remote { remote, store } => (remote, store),
        };
        let store = match store {
            Some(store) => store.clone(),
            None => store.insert(taken(&self.options.store, &self.options.jobs).await?).clone(),
        };
        let bringing = Bringing {
            remote,
            store: &store,
            target,
            floor: &rules.floor,
            signed_names: rules.trust.is_some(),
            limit: self.options.limits.max_fetch_bytes,
        };
        if let Some((before, reason)) = &self.too_much
            && before == target
        {
            return Err(GitError::Limit(reason.clone()));
        }
        match bring(bringing, session, move |objects| judge(objects, &wanted, &judging, Timestamp::now())).await {
            Err(GitError::Limit(reason)) => {
                self.too_much = Some((target.clone(), reason.clone()));
                Err(GitError::Limit(reason))
            }
            other => other,
        }
    }

    fn floor(&self) -> Floor {
        let GitOptions { follow, allow_rollback, .. } = &self.options;
        floor(follow, &self.what, *allow_rollback, self.accepted, self.followed.as_ref())
    }

    /// Makes it durable that `commit` is what was delivered, before it is.
    async fn record(&mut self, followed: Followed, commit: ObjectId) -> Result<(), GitError> {
        let store = match &self.place {
            Place::Remote { store, .. } => store.clone(),
            Place::Local(_) => None,
        };
        if self.followed.as_ref() != Some(&followed) || store.is_some() {
            let (directory, record) = (self.options.store.clone(), followed.clone());
            let known = self.followed.as_ref() == Some(&followed);
            blocking(move || {
                if !known {
                    record.save(&directory)?;
                }
                // A copy that cannot be made smaller is as useful as before.
                if let Some(Err(error)) = store.map(|store| store.compact(commit)) {
                    tracing::warn!(error = %error_chain(&error), "cannot compact the local copy of the repository");
                }
                Ok(())
            })
            .await?;
        }
        (self.followed, self.accepted) = (Some(followed), Some(commit));
        Ok(())
    }
}

#[async_trait]
impl Pollable for Follower {
    async fn poll(&mut self) -> Polled {
        let looked = self.look().await;
        if let Place::Remote { remote, .. } = &self.place {
            remote.rest();
        }
        match looked {
            Ok(Some(artifact)) => Polled::New(artifact),
            Ok(None) => Polled::Unchanged,
            Err(error) => {
                let retry_after = match &error {
                    GitError::Busy { retry_after, .. } => *retry_after,
                    _ => None,
                };
                Polled::Failed { reason: error_chain(&error).to_string(), retry_after }
            }
        }
    }
}

fn judge_in_place(path: &Path, jobs: &Arc<ObjectJobs>, target: &Target, rules: &Rules) -> Result<Judged, GitError> {
    let objects = open_repository(path, jobs)?;
    if !objects.has(target.id)? {
        return Err(GitError::NoReference(format!("object {}", target.id)));
    }
    judge(&objects, target, rules, Timestamp::now())
}

/// Locks the source's directory.
async fn taken(directory: &Path, jobs: &Arc<ObjectJobs>) -> Result<Store, GitError> {
    let deadline = tokio::time::Instant::now() + HANDOVER;
    loop {
        let (path, jobs) = (directory.to_owned(), jobs.clone());
        if let Some(store) = blocking(move || Store::open(&path, &jobs)).await? {
            return Ok(store);
        }
        if tokio::time::Instant::now() >= deadline {
            return Err(GitError::Setup(format!("{} is in use by another process", directory.display())));
        }
        tokio::time::sleep(HANDOVER_STEP).await;
    }
}

/// Runs blocking work on the blocking pool.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, GitError> + Send + 'static,
) -> Result<T, GitError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => Err(GitError::Setup(format!("read the repository: {error}"))),
    }
}
