//! Policy of images: whether an image may run, before anything but documents of it is fetched, and again each time that it is given out.
//!
//! In: the demand of `imagePolicy` on a reference, signature documents from a registry ([`search`]), an archive ([`archive`]) or the store
//! ([`record`]), and the files of the keys. Out: the keys that signed, or a [`Refusal`] that names the rule and what was found. The verdict itself
//! (`judge`) is pure; the formats are those of `podstead-trust`.

pub(super) mod archive;
pub mod artifact;
mod judge;
mod key_file;
pub(super) mod record;
pub(super) mod search;

pub use judge::Refusal;
pub(super) use judge::{Trusted, judge};

use key_file::read_keys;
use podstead_container::reference::Reference;
use podstead_settings::{Demand, ImagePolicy, SignatureDemand};
use record::Subject;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

/// The policy in force.
#[derive(Debug, Default)]
pub(super) struct Gate(RwLock<Arc<ImagePolicy>>);

/// A demand for signatures, and the rule that makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    demand: SignatureDemand,
    rule: String,
}

/// The pod's own part of a demand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asker {
    /// A pod, whose reference must have a digest if the rule wants one.
    Pod,
    /// An archive, whose references are tags.
    Archive,
}

impl Gate {
    pub(super) fn new(policy: ImagePolicy) -> Self {
        Self(RwLock::new(Arc::new(policy)))
    }

    /// From now on this policy counts.
    pub(super) fn set(&self, policy: ImagePolicy) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(policy);
    }

    /// The signatures that an image needs; `None` if it needs none. An error if no image of that name may run.
    pub(super) fn wanted(&self, reference: &Reference, asker: Asker) -> Result<Option<Wanted>, Refusal> {
        let policy = Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner));
        let demanded = policy.demand(reference);
        let rule = || demanded.origin.to_string();
        match demanded.demand {
            Demand::Refuse => Err(Refusal::Refused { rule: rule() }),
            Demand::Accept { digest: true, .. } if asker == Asker::Pod && reference.digest().is_none() => {
                Err(Refusal::NoDigest { rule: rule() })
            }
            Demand::Accept { signature, .. } => Ok(signature.map(|demand| Wanted { demand, rule: rule() })),
        }
    }
}

impl Wanted {
    /// A demand for a signature by one of the keys in these files; `rule` names what demands it.
    pub(super) fn by_any_of(keys: Vec<PathBuf>, rule: &str) -> Self {
        Self { demand: SignatureDemand::by_any_of(keys), rule: rule.to_owned() }
    }

    /// Reads the keys, which an administrator may have changed. Blocks.
    pub(super) fn trusted(self) -> Result<Trusted, Refusal> {
        let Self { demand, rule } = self;
        match read_keys(&demand.keys) {
            Ok(keys) => Ok(Trusted { demand, rule, keys }),
            Err(problem) => Err(Refusal::Keys { rule, problem }),
        }
    }

    /// The verdict on an image of which this is stored. Blocks.
    pub(super) fn judge_stored(self, subjects: &[Subject], problems: &[String]) -> Result<(), Refusal> {
        judge(&self.trusted()?, subjects, problems).map(drop)
    }
}

#[cfg(test)]
mod tests;
