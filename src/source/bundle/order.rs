//! Check that a bundle is not older than the last one. **Pure**.

use super::document::BundleDocument;
use podstead_container::digest::Digest;

/// The last bundle that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Last {
    pub(super) name: String,
    pub(super) serial: u64,
    /// Of its document.
    pub(super) digest: Digest,
}

/// Reason why a bundle may not follow the last one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum OrderError {
    /// For other hosts.
    #[error("it is for {0}, not for this host")]
    Host(String),
    /// Of another series than the configured one.
    #[error("its name is {found:?}, and this source takes bundles of the name {wanted:?}")]
    Name {
        /// Its name.
        found: String,
        /// The configured one.
        wanted: String,
    },
    /// Of another series than the last one.
    #[error("its name is {found:?}, and the last bundle has the name {last:?}; to change the name, set bundle.name")]
    OtherName {
        /// Its name.
        found: String,
        /// That of the last one.
        last: String,
    },
    /// Older.
    #[error(
        "its serial is {found}, lower than {last} of the last bundle; to go back, use podstead rollback, or set allowRollback: true"
    )]
    Older {
        /// Its serial.
        found: u64,
        /// That of the last one.
        last: u64,
    },
    /// As old, and another one.
    #[error("its serial is {0}, as in the last bundle, but the content differs; create it with a higher serial")]
    Same(u64),
    /// An image that pods of other sources may use.
    #[error("its image {0} is named without a digest; a source with allow takes only images with a digest in their name")]
    Tag(String),
}

/// Rules of a source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rules<'a> {
    pub(super) name: Option<&'a str>,
    pub(super) host: &'a str,
    pub(super) allow_rollback: bool,
    pub(super) digests_only: bool,
}

/// Checks everything that a verified document says of itself.
pub(super) fn check(document: &BundleDocument, digest: Digest, rules: Rules<'_>, last: Option<&Last>) -> Result<(), OrderError> {
    if !document.is_for(rules.host) {
        return Err(OrderError::Host(hosts(&document.hosts)));
    }
    if let Some(wanted) = rules.name.filter(|wanted| *wanted != document.name) {
        return Err(OrderError::Name { found: document.name.clone(), wanted: wanted.to_owned() });
    }
    if rules.digests_only
        && let Some(reference) = document.without_digest()
    {
        return Err(OrderError::Tag(reference.to_owned()));
    }
    match last {
        Some(last) if last.name != document.name => match rules.name {
            // Whoever configured the name has decided.
            Some(_) => Ok(()),
            None => Err(OrderError::OtherName { found: document.name.clone(), last: last.name.clone() }),
        },
        _ if rules.allow_rollback => Ok(()),
        Some(last) if document.serial < last.serial => Err(OrderError::Older { found: document.serial, last: last.serial }),
        Some(last) if document.serial == last.serial && digest != last.digest => Err(OrderError::Same(document.serial)),
        Some(_) | None => Ok(()),
    }
}

/// Names of hosts in a message.
fn hosts(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut shown: Vec<String> = names.iter().take(SHOWN).map(|name| format!("{name:?}")).collect();
    if names.len() > SHOWN {
        shown.push(format!("{} more", names.len() - SHOWN));
    }
    shown.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::document::{API_VERSION, BundleImage, KIND};

    fn document(name: &str, serial: u64) -> BundleDocument {
        BundleDocument {
            api_version: API_VERSION.into(),
            kind: KIND.into(),
            name: name.into(),
            serial,
            created: jiff::Timestamp::UNIX_EPOCH,
            hosts: vec!["edge-1".into()],
            revision: String::new(),
            manifests: Digest::of(b"m"),
            images: Vec::new(),
            signatures: Vec::new(),
            blobs: Vec::new(),
        }
    }

    const RULES: Rules<'_> = Rules { name: None, host: "edge-1", allow_rollback: false, digests_only: false };

    fn told(document: &BundleDocument, rules: Rules<'_>) -> String {
        let last = Last { name: "fleet".into(), serial: 5, digest: Digest::of(b"5") };
        check(document, Digest::of(b"new"), rules, Some(&last)).map_or_else(|error| error.to_string(), |()| "taken".into())
    }

    #[test]
    fn serials_go_up() {
        assert_eq!(told(&document("fleet", 6), RULES), "taken");
        assert!(told(&document("fleet", 4), RULES).contains("lower than 5"));
        assert!(told(&document("fleet", 5), RULES).contains("the content differs"));
        assert_eq!(told(&document("fleet", 4), Rules { allow_rollback: true, ..RULES }), "taken");
        let last = Last { name: "fleet".into(), serial: 5, digest: Digest::of(b"new") };
        assert_eq!(check(&document("fleet", 5), Digest::of(b"new"), RULES, Some(&last)), Ok(()));
        assert_eq!(check(&document("other", 1), Digest::of(b"new"), RULES, None), Ok(()));
    }

    #[test]
    fn bundles_of_others_are_refused() {
        assert!(told(&document("fleet", 6), Rules { host: "edge-2", ..RULES }).contains("for \"edge-1\", not for this host"));
        assert!(told(&document("other", 6), RULES).contains("set bundle.name"));
        assert!(told(&document("other", 6), Rules { name: Some("fleet"), ..RULES }).contains("takes bundles of the name"));
        assert_eq!(told(&document("other", 1), Rules { name: Some("other"), ..RULES }), "taken");
    }

    #[test]
    fn restricted_source_takes_digests_only() {
        let rules = Rules { digests_only: true, ..RULES };
        let image = |reference: String| BundleImage { reference, digest: Digest::of(b"i") };
        let mut found = document("fleet", 6);
        found.images = vec![image(format!("nginx:1@{}", Digest::of(b"i")))];
        assert_eq!(told(&found, rules), "taken");
        found.images.push(image("redis:7".into()));
        assert!(told(&found, rules).contains("redis:7"));
        assert_eq!(told(&found, RULES), "taken");
    }
}
