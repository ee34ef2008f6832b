//! One line: `principals [options] type key [comment]`.

use super::option::{self, Options};
use super::pattern;
use crate::key::{KeyFault, PublicKey, refusal, shown};
use crate::{Signer, TrustError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;

const WHITE: [char; 3] = [' ', '\t', '\r'];

/// A key, its owner and its options.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    principals: String,
    pub(super) key: PublicKey,
    options: Options,
}

impl Line {
    /// Returns the signer, if this line allows `namespace` at `at`.
    pub(super) fn judge(&self, namespace: &str, at: Timestamp) -> Result<Signer, TrustError> {
        let (key, principal) = (self.key.fingerprint(), self.principals.clone());
        let Options { namespaces, valid_after, valid_before } = &self.options;
        if namespaces.as_ref().is_some_and(|list| !pattern::list_matches(list, namespace)) {
            return Err(TrustError::NamespaceNotAllowed { key, principal, namespace: namespace.to_owned() });
        }
        if let Some(from) = valid_after.filter(|from| at < *from) {
            return Err(TrustError::NotYetValid { key, principal, from, at });
        }
        if let Some(until) = valid_before.filter(|until| at > *until) {
            return Err(TrustError::Expired { key, principal, until, at });
        }
        Ok(Signer { principal, key })
    }
}

/// `None` for an empty line or a comment; the fault otherwise.
pub(super) fn parse(text: &str) -> Result<Option<Line>, String> {
    let text = text.trim_matches(WHITE);
    if text.is_empty() || text.starts_with('#') {
        return Ok(None);
    }
    let (principals, rest) = principals(text)?;
    let (options, rest) = if is_key_type(word(rest).0) { (Options::default(), rest) } else { option::parse(rest)? };
    let (name, rest) = word(rest.trim_start_matches(WHITE));
    let (encoded, _comment) = word(rest);
    if let Some(reason) = refusal(name.as_bytes()).filter(|_| is_key_type(name)) {
        return Err(format!("key type {:?}: {reason}", shown(name.as_bytes())));
    }
    if !is_key_type(name) || encoded.is_empty() {
        return Err("the line has no key (expected principals, options, key type and key, in this order)".to_owned());
    }
    let blob = STANDARD.decode(encoded).map_err(|_| "the key is not base64".to_owned())?;
    let key = PublicKey::parse(&blob).map_err(|fault| match fault {
        KeyFault::Malformed(fault) => fault.to_owned(),
        KeyFault::Refused(name, reason) => format!("key type {name:?}: {reason}"),
    })?;
    // The blob was parsed: it begins with its type's length and name.
    let inner = blob.get(4..).unwrap_or_default();
    if !inner.starts_with(name.as_bytes()) || blob.get(..4) != Some(&(name.len() as u32).to_be_bytes()) {
        return Err(format!("the line says key type {:?}, but the key has another type", shown(name.as_bytes())));
    }
    Ok(Some(Line { principals, key, options }))
}

/// The first word, which may stand in quotation marks, and the rest.
fn principals(text: &str) -> Result<(String, &str), String> {
    let (principals, rest) = match text.strip_prefix('"') {
        Some(quoted) => quoted.split_once('"').ok_or("the principals have no closing quotation mark")?,
        None => word(text),
    };
    if principals.split(',').any(str::is_empty) || principals.chars().any(char::is_control) {
        return Err("a principal is empty or contains a control character".to_owned());
    }
    Ok((principals.to_owned(), rest.trim_start_matches(WHITE)))
}

/// The first word and the rest without the white space between.
fn word(text: &str) -> (&str, &str) {
    let (word, rest) = text.split_at(text.find(WHITE).unwrap_or(text.len()));
    (word, rest.trim_start_matches(WHITE))
}

/// Reports whether a word is a key type and not a list of options; no option begins like this.
fn is_key_type(word: &str) -> bool {
    ["ssh-", "ecdsa-", "sk-"].iter().any(|prefix| word.starts_with(prefix))
}
