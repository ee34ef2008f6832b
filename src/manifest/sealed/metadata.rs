//! The mapping `sops` of a document.

use crate::node::{Node, Value};
use crate::sops::{Rule, RuleKind, SopsError, Wrapped};

/// Recipients of one document that are looked at.
const MAX_RECIPIENTS: usize = 64;

/// Services that can hold a data key, beside age.
const OTHER_SERVICES: [(&str, &str); 6] = [
    ("pgp", "PGP"),
    ("kms", "AWS KMS"),
    ("gcp_kms", "GCP KMS"),
    ("azure_kv", "Azure Key Vault"),
    ("hc_vault", "HashiCorp Vault"),
    ("hckms", "HuaweiCloud KMS"),
];

/// The ways to say which values are encrypted; a document has at most one.
const RULES: [(&str, RuleKind); 6] = [
    ("unencrypted_suffix", RuleKind::UnencryptedSuffix),
    ("encrypted_suffix", RuleKind::EncryptedSuffix),
    ("unencrypted_regex", RuleKind::UnencryptedRegex),
    ("encrypted_regex", RuleKind::EncryptedRegex),
    ("unencrypted_comment_regex", RuleKind::Comments),
    ("encrypted_comment_regex", RuleKind::Comments),
];

/// Metadata that SOPS adds to a document.
#[derive(Debug)]
pub(super) struct Metadata<'a> {
    /// Its data key, wrapped for one age recipient each.
    pub(super) wrapped: Vec<Wrapped<'a>>,
    /// Rule that selects the encrypted values.
    pub(super) rule: Rule,
    /// The MAC is over what is encrypted, not over what is in clear.
    pub(super) is_of_sealed_only: bool,
    /// The sealed MAC.
    pub(super) mac: &'a str,
    pub(super) mac_at: Option<u32>,
    /// Time of encryption: additional data of the encrypted MAC.
    pub(super) last_modified: &'a str,
}

impl<'a> Metadata<'a> {
    pub(super) fn of(node: &'a Node) -> Result<Self, SopsError> {
        let text = |name: &str| node.entry(name).and_then(|entry| entry.value.as_str()).filter(|text| !text.is_empty());
        let mac = text("mac").ok_or(SopsError::Metadata("it has no MAC"))?;
        let last_modified = text("lastmodified").ok_or(SopsError::Metadata("it has no lastmodified"))?;
        let mut rules = RULES.iter().filter_map(|(name, kind)| Some((*kind, text(name)?)));
        let rule = match (rules.next(), rules.next()) {
            (None, _) => Rule::usual(),
            (Some((kind, text)), None) => Rule::new(kind, text)?,
            (Some(_), Some(_)) => return Err(SopsError::Metadata("it has more than one encryption rule")),
        };
        Ok(Self {
            wrapped: wrapped(node)?,
            rule,
            is_of_sealed_only: node.entry("mac_only_encrypted").is_some_and(|entry| entry.value.value == Value::Bool(true)),
            mac,
            mac_at: node.entry("mac").and_then(|entry| entry.value.at),
            last_modified,
        })
    }
}

/// The keys for age recipients.
fn wrapped(metadata: &Node) -> Result<Vec<Wrapped<'_>>, SopsError> {
    let holder = match list(metadata, "key_groups") {
        [] => metadata,
        // One group alone holds the whole key.
        [group] => group,
        [_, _, ..] => return Err(SopsError::KeyGroups),
    };
    let recipients = list(holder, "age");
    if recipients.is_empty() {
        let services = OTHER_SERVICES.iter().filter(|(name, _)| !list(holder, name).is_empty()).map(|(_, name)| *name);
        let services = services.collect::<Vec<_>>().join(", ");
        return Err(match services.is_empty() {
            true => SopsError::Metadata("it has no recipients"),
            false => SopsError::OtherService { services },
        });
    }
    let wrapped = recipients.iter().take(MAX_RECIPIENTS).map(|recipient| {
        let text = |name| recipient.entry(name).and_then(|entry| entry.value.as_str());
        Some(Wrapped { recipient: text("recipient")?, file: text("enc")? })
    });
    wrapped.collect::<Option<_>>().ok_or(SopsError::Metadata("an age recipient has no encrypted data key"))
}

/// The items of a list; none for anything else.
fn list<'a>(node: &'a Node, name: &str) -> &'a [Node] {
    match node.entry(name).map(|entry| &entry.value.value) {
        Some(Value::List(items)) => items,
        Some(_) | None => &[],
    }
}
