//! Verification of a revision, and reading its files. Blocks.

use super::error::GitError;
use super::floor::Floor;
use super::objects::{Objects, Peeled};
use super::protocol::ObjectId;
use super::select::Target;
use super::verify::{self, Signature};
use crate::SignatureRequirement;
use crate::tree_rules::{ReadLimits, TreeFiles};
use jiff::Timestamp;
use podstead_artifact::CommitSummary;

/// Rules that a revision must meet.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    pub(super) trust: Option<SignatureRequirement>,
    pub(super) floor: Floor,
    /// Time of signature that the last accepted revision states.
    pub(super) last_signed_at: Option<Timestamp>,
    /// The directory or file in the repository.
    pub(super) path: String,
    pub(super) limits: ReadLimits,
}

/// A verified revision.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) commit: ObjectId,
    pub(super) summary: CommitSummary,
    pub(super) files: TreeFiles,
    pub(super) signature: Option<Signature>,
}

/// Verifies the revision of `target` and reads its files.
pub(super) fn judge(objects: &Objects, target: &Target, rules: &Rules, now: Timestamp) -> Result<Judged, GitError> {
    let peeled = objects.peel(target.id)?;
    let signature = match &rules.trust {
        Some(trust) => Some(verify::verify(objects, &peeled, target, trust, rules.last_signed_at, now)?),
        None => None,
    };
    check_floor(objects, target, &peeled, rules, signature.as_ref())?;
    let files = objects.files(peeled.commit, &rules.path, &rules.limits)?;
    let summary = objects.summary(peeled.commit)?;
    Ok(Judged { commit: peeled.commit, summary, files, signature })
}

fn check_floor(
    objects: &Objects,
    target: &Target,
    peeled: &Peeled,
    rules: &Rules,
    signature: Option<&Signature>,
) -> Result<(), GitError> {
    let (of, again) = match &rules.floor {
        Floor::None => return Ok(()),
        Floor::Descendant { of, again } => (*of, *again),
        Floor::Version { lowest, otherwise } => {
            // The name of a tag is anybody's word, unless it is signed.
            if rules.trust.is_none() || signature.is_some_and(|signature| signature.names_the_tag) {
                return match &target.version {
                    Some(version) if version >= lowest => Ok(()),
                    Some(version) => Err(GitError::Rejected(format!(
                        "the highest version in the range is {version}, lower than {lowest}, which was accepted before; {TO_GO_BACK}"
                    ))),
                    None => Ok(()),
                };
            }
            (*otherwise, None)
        }
    };
    if again == Some(peeled.commit) || objects.descends(peeled.commit, of)? {
        return Ok(());
    }
    Err(GitError::Rejected(format!(
        "commit {} is not a descendant of {of}, the last accepted commit (the history was rewritten or reset); {TO_GO_BACK}",
        peeled.commit
    )))
}

const TO_GO_BACK: &str = "to go back, set allowRollback, or set commit in the source's configuration";
