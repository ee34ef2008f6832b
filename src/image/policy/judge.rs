//! The verdict on an image: the keys that signed it are as many as its rule demands, or not. **Pure**.

use super::key_file::FileKey;
use super::record::{Evidence, Parsed, Subject};
use podstead_settings::SignatureDemand;
use podstead_trust::image::{ImageKey, SignatureFault, Signed};
use std::collections::BTreeSet;
use std::fmt::Write as _;

/// Findings that a message repeats.
const FINDINGS_SHOWN: usize = 5;

/// Reason why an image may not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// No image of its name may.
    #[error("refused by {rule}")]
    Refused {
        /// The rule.
        rule: String,
    },
    /// It is not named by a digest.
    #[error("{rule} requires a digest in the name of the image (name@sha256:...)")]
    NoDigest {
        /// The rule.
        rule: String,
    },
    /// The keys that could have signed it are not known.
    #[error("{rule} requires a signature, but its keys cannot be read: {problem}")]
    Keys {
        /// The rule.
        rule: String,
        /// The file and the reason.
        problem: String,
    },
    /// Not enough keys have signed it.
    #[error("{rule} requires a signature by {wanted}; found: {found}")]
    Unsigned {
        /// The rule.
        rule: String,
        /// Keys, and how many of them.
        wanted: String,
        /// Signatures that were found instead.
        found: String,
    },
}

/// A demand for signatures with the keys that count.
#[derive(Debug)]
pub(in super::super) struct Trusted {
    pub(super) demand: SignatureDemand,
    pub(super) rule: String,
    pub(super) keys: Vec<FileKey>,
}

/// The files of the keys that signed the image, if they are enough. `subjects` are its manifest and the indexes that lead to it, `problems` what
/// could not be read as a signature.
pub(in super::super) fn judge(trusted: &Trusted, subjects: &[Subject], problems: &[String]) -> Result<Vec<String>, Refusal> {
    let Trusted { demand, rule, keys } = trusted;
    let bare: Vec<ImageKey> = keys.iter().map(|key| key.key.clone()).collect();
    let (mut signers, mut findings) = (BTreeSet::new(), Vec::new());
    for subject in subjects {
        for evidence in &subject.evidence {
            match verify(demand, &bare, subject, evidence) {
                Ok(key) => drop(signers.insert(key)),
                Err(reason) => findings.push(format!("{}: {reason}", evidence.place)),
            }
        }
    }
    let named = |key: usize| keys.get(key).map(|key| key.path.display().to_string()).unwrap_or_default();
    if signers.len() >= demand.threshold {
        return Ok(signers.into_iter().map(named).collect());
    }
    let signed = signers.into_iter().map(|key| format!("a signature by {}", named(key)));
    let found = told(signed.chain(findings).chain(problems.iter().cloned()).collect());
    Err(Refusal::Unsigned { rule: rule.clone(), wanted: wanted(demand, keys), found })
}

/// Index of the key that made this signature of the subject; the reason why it does not count.
fn verify(demand: &SignatureDemand, keys: &[ImageKey], subject: &Subject, evidence: &Evidence) -> Result<usize, String> {
    let content = podstead_trust::image::Subject::of(&subject.content);
    let verified = match evidence.parse() {
        Ok(Parsed::Simple(document)) => document.verify(keys, &content),
        Ok(Parsed::Bundle(document)) => document.verify(keys, &content, &demand.predicate_types),
        Err(fault) => Err(fault),
    };
    let Signed { key, name } = verified.map_err(|fault: SignatureFault| fault.to_string())?;
    match name {
        _ if !demand.wants_name() => Ok(key),
        Some(name) if demand.allows_name(&name) => Ok(key),
        Some(name) => {
            let shown: String = name.chars().filter(|c| !c.is_control()).take(200).collect();
            Err(format!("made for image {shown:?}, which signedAs does not have"))
        }
        None => Err("it states no image name, which signedAs demands".to_owned()),
    }
}

fn wanted(demand: &SignatureDemand, keys: &[FileKey]) -> String {
    let names: Vec<String> = keys.iter().map(|key| format!("{} ({})", key.path.display(), key.key.fingerprint())).collect();
    match (demand.threshold, names.as_slice()) {
        (1, [only]) => only.clone(),
        (1, _) => format!("one of {}", names.join(", ")),
        (several, _) => format!("{several} of {}", names.join(", ")),
    }
}

fn told(findings: Vec<String>) -> String {
    if findings.is_empty() {
        return "no signature".to_owned();
    }
    let more = findings.len().saturating_sub(FINDINGS_SHOWN);
    let mut text = findings.into_iter().take(FINDINGS_SHOWN).collect::<Vec<_>>().join("; ");
    if more > 0 {
        let _infallible = write!(text, "; and {more} more");
    }
    text
}
