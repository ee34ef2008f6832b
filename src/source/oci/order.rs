//! Check that an artifact is not older than the last delivered one. **Pure**.
//!
//! A version says so itself. A signature does not say which tag it is for: whoever controls the registry can let any tag name any artifact
//! that was ever signed. But the time of the push is a part of what is signed, so among signed artifacts it decides.

use super::memory::Label;
use jiff::Timestamp;
use semver::Version;

/// Reason why an artifact may not follow the last delivered one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum OrderError {
    /// A lower version.
    #[error("the highest version in the range is {found}, lower than {accepted}, which was accepted before; {TO_GO_BACK}")]
    Version {
        /// The highest one now.
        found: String,
        /// That of the last delivered artifact.
        accepted: String,
    },
    /// Pushed earlier.
    #[error("the signed artifact is of {found}, earlier than the accepted one of {accepted}; {TO_GO_BACK}")]
    Created {
        /// The stated time.
        found: Timestamp,
        /// That of the last delivered artifact.
        accepted: Timestamp,
    },
    /// No time, where the last one had one.
    #[error("the signed artifact states no time (org.opencontainers.image.created), and the accepted one is of {0}; {TO_GO_BACK}")]
    NoTime(Timestamp),
}

const TO_GO_BACK: &str = "to go back, set allowRollback, or set digest in the source's configuration";

/// Checks the version of what is followed now. `last` is the label of the last delivered artifact.
pub(super) fn check_version(now: &Label, last: &Label) -> Result<(), OrderError> {
    let version = |label: &Label| Version::parse(label.version.as_ref()?).ok();
    match (version(now), version(last)) {
        // Another range or repository is a decision of whoever configured it.
        _ if now.what != last.what => Ok(()),
        (Some(found), Some(accepted)) if found < accepted => {
            Err(OrderError::Version { found: found.to_string(), accepted: accepted.to_string() })
        }
        (Some(_) | None, _) => Ok(()),
    }
}

/// Checks the stated times of two signed artifacts.
pub(super) fn check_created(found: Option<Timestamp>, accepted: Option<Timestamp>) -> Result<(), OrderError> {
    match (found, accepted) {
        (Some(found), Some(accepted)) if found < accepted => Err(OrderError::Created { found, accepted }),
        (None, Some(accepted)) => Err(OrderError::NoTime(accepted)),
        (Some(_) | None, _) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn label(what: &str, version: Option<&str>) -> Label {
        Label { what: what.into(), tag: None, version: version.map(str::to_owned) }
    }

    #[test]
    fn lower_version_of_the_same_range_is_refused() {
        let check = |now: &Label, last: &Label| check_version(now, last).map_err(|error| error.to_string());
        let accepted = label("1", Some("1.2.0"));
        assert_eq!(check(&label("1", Some("1.3.0")), &accepted), Ok(()));
        assert_eq!(check(&label("1", Some("1.2.0")), &accepted), Ok(()));
        assert_eq!(check(&label("~1.1", Some("1.1.0")), &accepted), Ok(()));
        assert_eq!(check(&label("latest", None), &accepted), Ok(()));
        let told = check(&label("1", Some("1.1.9")), &accepted).unwrap_err();
        assert!(told.contains("1.1.9, lower than 1.2.0") && told.contains("allowRollback"), "{told}");
    }

    #[test]
    fn signed_artifacts_go_forward_in_time() {
        let [one, two] = ["2026-01-01T00:00:00Z", "2026-01-02T00:00:00Z"].map(|text| Some(text.parse::<Timestamp>().unwrap()));
        assert_eq!(check_created(two, one), Ok(()));
        assert_eq!(check_created(one, one), Ok(()));
        assert_eq!(check_created(None, None), Ok(()));
        assert_eq!(check_created(one, None), Ok(()));
        assert!(matches!(check_created(one, two), Err(OrderError::Created { .. })));
        assert!(matches!(check_created(None, two), Err(OrderError::NoTime(_))));
    }
}
