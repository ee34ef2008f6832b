//! The bundle to take among those that were found. **Pure**.

use super::document::BundleDocument;
use super::order::{Last, OrderError, Rules, check};
use podstead_container::digest::Digest;

/// A bundle whose signature was verified.
#[derive(Clone, Debug)]
pub(super) struct Verified<T> {
    pub(super) document: BundleDocument,
    pub(super) digest: Digest,
    /// The file.
    pub(super) file: T,
}

/// Decision about all bundles.
#[derive(Clone, Debug)]
pub(super) enum Choice<T> {
    /// None of them is new.
    Nothing,
    /// The last one is still there.
    Last,
    /// This one is new.
    Take(Box<Verified<T>>),
    /// None may be taken, for this reason of this one.
    Refuse(Box<Verified<T>>, OrderError),
}

/// Chooses the highest serial among the bundles that may be taken; where none may, the reason of the one with the highest serial.
pub(super) fn choose<T>(mut found: Vec<Verified<T>>, rules: Rules<'_>, last: Option<&Last>) -> Choice<T> {
    // Equal serials: by digest, so that the order of files does not matter.
    found.sort_by(|a, b| (b.document.serial, &b.digest).cmp(&(a.document.serial, &a.digest)));
    let mut refused = None;
    let mut is_last_there = false;
    for bundle in found {
        let is_last = last.is_some_and(|last| last.digest == bundle.digest);
        match check(&bundle.document, bundle.digest, rules, last) {
            // What has a lower serial than the last one does not count beside it.
            Ok(()) if is_last => return Choice::Last,
            Ok(()) => return Choice::Take(Box::new(bundle)),
            Err(_) if is_last => is_last_there = true,
            Err(error) => {
                refused.get_or_insert((bundle, error));
            }
        }
    }
    match refused {
        _ if is_last_there => Choice::Last,
        Some((bundle, error)) => Choice::Refuse(Box::new(bundle), error),
        None => Choice::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bundle::document::{API_VERSION, KIND};

    const RULES: Rules<'_> = Rules { name: None, host: "edge-1", allow_rollback: false, digests_only: false };

    fn bundle(host: &str, serial: u64) -> Verified<u64> {
        let digest = Digest::of(format!("{host} {serial}").as_bytes());
        let document = BundleDocument {
            api_version: API_VERSION.into(),
            kind: KIND.into(),
            name: "fleet".into(),
            serial,
            created: jiff::Timestamp::UNIX_EPOCH,
            hosts: vec![host.to_owned()],
            revision: String::new(),
            manifests: Digest::of(b"m"),
            images: Vec::new(),
            signatures: Vec::new(),
            blobs: Vec::new(),
        };
        Verified { document, digest, file: serial }
    }

    fn chosen(found: &[(&str, u64)], rules: Rules<'_>) -> String {
        let last = Last { name: "fleet".into(), serial: 5, digest: bundle("edge-1", 5).digest };
        match choose(found.iter().map(|(host, serial)| bundle(host, *serial)).collect(), rules, Some(&last)) {
            Choice::Nothing => "nothing".into(),
            Choice::Last => "last".into(),
            Choice::Take(bundle) => format!("take {}", bundle.file),
            Choice::Refuse(bundle, error) => format!("refuse {}: {error}", bundle.file),
        }
    }

    #[test]
    fn highest_serial_for_this_host_is_taken() {
        assert_eq!(chosen(&[], RULES), "nothing");
        assert_eq!(chosen(&[("edge-1", 6), ("edge-1", 8), ("edge-2", 9), ("edge-1", 4)], RULES), "take 8");
        assert_eq!(chosen(&[("edge-1", 4), ("edge-1", 5), ("edge-2", 9)], RULES), "last");
        assert!(chosen(&[("edge-1", 3), ("edge-1", 4)], RULES).starts_with("refuse 4: its serial is 4, lower than 5"));
        assert!(chosen(&[("edge-2", 9)], RULES).starts_with("refuse 9: it is for"));
    }

    #[test]
    fn older_bundle_is_taken_where_that_is_allowed() {
        let rules = Rules { allow_rollback: true, ..RULES };
        assert_eq!(chosen(&[("edge-1", 3), ("edge-1", 4)], rules), "take 4");
        assert_eq!(chosen(&[("edge-1", 3), ("edge-1", 5)], rules), "last");
    }
}
