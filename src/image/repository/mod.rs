//! Repositories of registries for content that is no image: tags, manifests, blobs, and signatures of a manifest.
//!
//! Registries are reached as for images, with their mirrors and the credentials of this host. Nothing is kept here: each question is asked
//! anew, of all hosts and with all credentials in their order. Whatever has a digest is verified. [`copy`] is about copies of whole images.

mod copy;

pub use copy::{CopyError, ImageCopy, LayerContent, measure};

use crate::ask::Ask;
use crate::document::Descriptor;
use crate::explain::explain;
use crate::policy::record::{SignatureRecord, Subject};
use crate::policy::search::{Place, SearchError, search};
use crate::policy::{Refusal, Wanted, judge};
use crate::registry::login::{HELPER_DIRECTORIES, Logins};
use crate::registry::{Caller, HostLogin, HostLogins, Registries, Registry, RegistryError, Who};
use crate::registry_config::RegistryConfig;
use bytes::Bytes;
use podstead_container::digest::Digest;
use podstead_container::reference::Reference;
use podstead_fetch::Requester;
use podstead_telemetry::events::EventRecorder;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Time that a registry may be silent before its connection is closed.
const STALL: Duration = Duration::from_secs(30);

/// Repositories of all registries.
#[derive(Clone, Debug)]
pub struct Repositories {
    registry: Arc<dyn Registry>,
}

/// Reason for a failed question. The same text for the same reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RepositoryError {
    /// The registry did not answer as it should.
    #[error("{reason}")]
    Registry {
        /// The failure of each host, with each of the credentials.
        reason: String,
        /// Time that the registry asked to wait.
        retry_after: Option<Duration>,
    },
    /// The signatures of a manifest do not suffice.
    #[error(transparent)]
    Refused(#[from] Refusal),
}

/// Signatures that suffice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// Files of the keys that signed.
    pub keys: Vec<String>,
    /// The signatures, to be verified again later, see [`Signed::verify_again`].
    pub record: Vec<u8>,
}

/// Attempts of one question, one with each of the credentials of this host, the last one without any.
struct Attempts<'a> {
    registry: &'a dyn Registry,
    /// The present one, and those that are left, the next one last.
    caller: Caller,
    login: HostLogin,
    left: Vec<HostLogin>,
    reasons: Vec<(HostLogin, String)>,
    /// Credentials that could not be read.
    problems: Vec<String>,
}

impl Repositories {
    /// Repositories of registries that are reached so, without a store of images and without the usual auth files.
    pub fn new(registries: &[RegistryConfig], events: Arc<dyn EventRecorder>, requester: Requester) -> Self {
        let logins = Logins::new(&[], HELPER_DIRECTORIES.map(PathBuf::from).to_vec());
        Self::of(Arc::new(Registries::new(registries, None, STALL, logins, events, requester)))
    }

    /// Repositories of registries that a command of a user reaches as a daemon does: with these auth files, and containerd's directory of hosts.
    pub fn of_host(
        registries: &[RegistryConfig],
        auth_files: &[PathBuf],
        hosts: Option<PathBuf>,
        events: Arc<dyn EventRecorder>,
    ) -> Self {
        let logins = Logins::new(auth_files, HELPER_DIRECTORIES.map(PathBuf::from).to_vec());
        Self::of(Arc::new(Registries::new(registries, hosts, STALL, logins, events, Requester::here())))
    }

    pub(super) fn of(registry: Arc<dyn Registry>) -> Self {
        Self { registry }
    }

    /// The tags of a repository.
    pub async fn tags(&self, repository: &Reference) -> Result<Vec<String>, RepositoryError> {
        let mut attempts = self.attempts(repository).await;
        loop {
            match attempts.ask().tags(repository).await {
                Ok(tags) => return Ok(tags),
                Err(error) => attempts.failed(&error)?,
            }
        }
    }

    /// Digest of the manifest or index that a reference names now. A request without a body, where the registry knows these.
    pub async fn digest(&self, reference: &Reference) -> Result<Digest, RepositoryError> {
        let mut attempts = self.attempts(reference).await;
        loop {
            match attempts.ask().digest(reference).await {
                Ok((digest, _)) => return Ok(digest),
                Err(error) => attempts.failed(&error)?,
            }
        }
    }

    /// The manifest or index of a reference; with the digest of the reference, if that has one.
    pub async fn manifest(&self, reference: &Reference) -> Result<Bytes, RepositoryError> {
        let mut attempts = self.attempts(reference).await;
        loop {
            match attempts.ask().manifest(reference).await {
                Ok((manifest, _)) => return Ok(manifest),
                Err(error) => attempts.failed(&error)?,
            }
        }
    }

    /// A blob of at most `limit` bytes, from a host that takes no longer than `timeout`; `what` names it in messages.
    pub async fn blob(
        &self,
        repository: &Reference,
        descriptor: &Descriptor,
        what: &'static str,
        limit: u64,
        timeout: Duration,
    ) -> Result<Bytes, RepositoryError> {
        let mut attempts = self.attempts(repository).await;
        loop {
            match attempts.ask().blob(repository, descriptor, what, limit, timeout).await {
                Ok(blob) => return Ok(blob),
                Err(error) => attempts.failed(&error)?,
            }
        }
    }

    /// Looks for signatures of a manifest by one of the keys, in the places where cosign puts them. `rule` names in messages what demands
    /// them.
    pub async fn signed(
        &self,
        repository: &Reference,
        manifest: &Bytes,
        keys: Vec<PathBuf>,
        rule: &str,
    ) -> Result<Signed, RepositoryError> {
        let wanted = Wanted::by_any_of(keys, rule);
        let trusted = match tokio::task::spawn_blocking(move || wanted.trusted()).await {
            Ok(trusted) => trusted?,
            Err(error) => std::panic::resume_unwind(error.into_panic()),
        };
        let documents = std::slice::from_ref(manifest);
        let mut attempts = self.attempts(repository).await;
        let subjects = loop {
            let place = Place { ask: attempts.ask(), reference: repository };
            match search(place, documents, Vec::new(), &trusted).await {
                Ok(subjects) => break subjects,
                Err(SearchError::Refused(refusal)) => return Err(refusal.into()),
                Err(SearchError::Registry(error)) => attempts.failed(&error)?,
            }
        };
        let keys = judge(&trusted, &subjects, &[])?;
        let record = SignatureRecord::merged(&subjects, Vec::new()).and_then(|record| serde_json::to_vec(&record).ok());
        Ok(Signed { keys, record: record.unwrap_or_default() })
    }

    async fn attempts(&self, reference: &Reference) -> Attempts<'_> {
        let HostLogins { logins, problems } = self.registry.host_logins(reference).await;
        let mut left: Vec<HostLogin> = [HostLogin::Nobody].into_iter().chain(logins.into_iter().rev()).collect();
        let login = left.pop().unwrap_or(HostLogin::Nobody);
        let caller = Caller { who: Who::Host(login.clone()), of_host: true, session: self.registry.session() };
        Attempts { registry: &*self.registry, caller, login, left, reasons: Vec::new(), problems }
    }
}

impl Attempts<'_> {
    fn ask(&self) -> Ask<'_> {
        Ask { registry: self.registry, caller: &self.caller }
    }

    /// Goes on to the next credentials; an error where there are none, or where they would fail in the same way.
    fn failed(&mut self, error: &RegistryError) -> Result<(), RepositoryError> {
        self.reasons.push((self.login.clone(), explain(&error.without_wait())));
        match self.left.pop().filter(|_| error.is_about_access()) {
            Some(login) => {
                // A process gets one of the credentials.
                self.caller = Caller { who: Who::Host(login.clone()), of_host: true, session: self.registry.session() };
                self.login = login;
                Ok(())
            }
            None => Err(RepositoryError::Registry {
                reason: self.told(),
                retry_after: error.is_transient().filter(|wait| !wait.is_zero()),
            }),
        }
    }

    fn told(&mut self) -> String {
        let is_named = self.reasons.len() > 1;
        let told = |(login, reason): (HostLogin, String)| if is_named { format!("with {login}: {reason}") } else { reason };
        let reasons: Vec<String> = self.reasons.drain(..).map(told).chain(self.problems.drain(..)).collect();
        reasons.join("; ")
    }
}

impl Signed {
    /// Verifies signatures again that were found earlier, with the keys as they are now. Returns the files of the keys that signed. Blocks.
    pub fn verify_again(record: &[u8], manifest: &[u8], keys: Vec<PathBuf>, rule: &str) -> Result<Vec<String>, Refusal> {
        let subjects: Vec<Subject> = SignatureRecord::subjects(record, Digest::of(manifest));
        judge(&Wanted::by_any_of(keys, rule).trusted()?, &subjects, &[])
    }
}
