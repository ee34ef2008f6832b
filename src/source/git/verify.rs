//! Verification of the signature of a revision.

use super::error::GitError;
use super::objects::{Objects, Peeled};
use super::protocol::ObjectId;
use super::select::Target;
use crate::SignatureRequirement;
use jiff::Timestamp;
use podstead_telemetry::error_chain;
use podstead_trust::{ObjectKind, Signer, Trusted, judged_at, signed_parts};

/// A signature that was verified.
#[derive(Clone, Debug)]
pub(super) struct Signature {
    pub(super) signer: Signer,
    /// Time of signature that the signer states.
    pub(super) signed_at: Timestamp,
    /// True if the signed data includes the name of the followed tag.
    pub(super) names_the_tag: bool,
}

/// The signature of the annotated tag that is followed, or else of the commit.
pub(super) fn verify(
    objects: &Objects,
    peeled: &Peeled,
    target: &Target,
    required: &SignatureRequirement,
    last: Option<Timestamp>,
    now: Timestamp,
) -> Result<Signature, GitError> {
    let trusted = required.trusted().map_err(GitError::Signers)?;
    let signers = Signers { trusted, last, now };
    let commit = || signers.verify(objects, peeled.commit, None);
    let Some(tag) = peeled.tags.first() else {
        return commit().map_err(|reason| GitError::Rejected(format!("commit {}: {reason}", peeled.commit)));
    };
    let name = target.reference.as_ref().and_then(|reference| reference.strip_prefix("refs/tags/"));
    let next = peeled.tags.get(1).copied().unwrap_or(peeled.commit);
    match signers.verify(objects, *tag, Some((name, next))) {
        Ok(signature) => Ok(signature),
        Err(tag_reason) => commit().map_err(|reason| {
            GitError::Rejected(format!(
                "tag {}: {tag_reason}; its commit {}: {reason}",
                name.unwrap_or("without a name"),
                peeled.commit
            ))
        }),
    }
}

/// Trusted signers, and the times for the validity check.
struct Signers {
    trusted: Trusted,
    last: Option<Timestamp>,
    now: Timestamp,
}

impl Signers {
    /// `tag`: the name and target that the object has to have, if it is a tag.
    fn verify(&self, objects: &Objects, id: ObjectId, tag: Option<(Option<&str>, ObjectId)>) -> Result<Signature, String> {
        let raw = objects.raw(id).map_err(|error| error_chain(&error).to_string())?;
        let parts = signed_parts(&raw).map_err(|error| error.to_string())?;
        let at = judged_at(self.now, self.last, Some(parts.stated_at));
        let signer = self.trusted.verify(&parts.payload, &parts.signature, at);
        let signer = signer.map_err(|error| error.to_string())?;
        let names_the_tag = match (&parts.kind, tag) {
            (ObjectKind::Tag { name, .. }, Some((wanted, _))) if Some(name.as_str()) != wanted => {
                return Err(format!("the signature is for the tag name {name:?}"));
            }
            (ObjectKind::Tag { target, .. }, Some((_, next))) if *target != next.to_string() => {
                return Err("the signature is for another object".to_owned());
            }
            (ObjectKind::Tag { .. }, Some(_)) => true,
            (ObjectKind::Commit, None) => false,
            (ObjectKind::Tag { .. }, None) | (ObjectKind::Commit, Some(_)) => {
                return Err("unexpected object type".to_owned());
            }
        };
        Ok(Signature { signer, signed_at: parts.stated_at, names_the_tag })
    }
}
