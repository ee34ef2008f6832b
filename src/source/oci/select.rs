//! The artifact to follow: a tag, the highest version, one digest. **Pure**.

use podstead_container::digest::Digest;
use semver::{Version, VersionReq};
use std::fmt;

/// Artifact to follow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OciFollow {
    /// A tag, whatever it names.
    Tag(String),
    /// The tag with the highest version in a range; `v` before the version is allowed.
    Semver(VersionReq),
    /// One manifest, for ever.
    Digest(Digest),
}

/// The tag with the highest version in the range. Among equal versions (`v1.0.0` and `1.0.0`) the one whose name comes last, so that the
/// choice does not depend on the order.
pub(super) fn highest(tags: &[String], range: &VersionReq) -> Option<(Version, String)> {
    let candidates =
        tags.iter().filter_map(|tag| Some((version_of(tag)?, tag.clone()))).filter(|(version, _)| range.matches(version));
    candidates.max_by(|(one, a), (two, b)| one.cmp(two).then_with(|| a.cmp(b)))
}

/// The version of a tag. No tag has a `+`: those who push write `_` for it.
fn version_of(tag: &str) -> Option<Version> {
    Version::parse(&tag.strip_prefix('v').unwrap_or(tag).replacen('_', "+", 1)).ok()
}

impl fmt::Display for OciFollow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tag(tag) => write!(f, "tag {tag}"),
            Self::Semver(range) => write!(f, "a version in {range}"),
            Self::Digest(digest) => write!(f, "{digest}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn highest_version_in_the_range_is_chosen() {
        let tags = ["v1.2.0", "v1.10.0", "1.9.9", "v2.0.0", "v1.11.0-rc.1", "latest", "sha256-ab.sig", "1", "1.9.9_build.2"];
        let tags = tags.map(str::to_owned);
        let chosen = |range: &str| highest(&tags, &range.parse().unwrap()).map(|(_, tag)| tag);
        assert_eq!(chosen("^1").unwrap(), "v1.10.0");
        assert_eq!(chosen("~1.9").unwrap(), "1.9.9_build.2");
        assert_eq!(chosen(">=1").unwrap(), "v2.0.0");
        assert_eq!(chosen(">=1.11.0-rc, <2").unwrap(), "v1.11.0-rc.1");
        assert_eq!(chosen("^3"), None);
    }

    #[test]
    fn choice_among_equal_versions_is_fixed() {
        let range: VersionReq = "1".parse().unwrap();
        let chosen = |tags: [&str; 2]| highest(&tags.map(str::to_owned), &range).unwrap().1;
        assert_eq!(chosen(["v1.0.0", "1.0.0"]), "v1.0.0");
        assert_eq!(chosen(["1.0.0", "v1.0.0"]), "v1.0.0");
    }
}
