//! Levels and versions of the standards.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A level of the Pod Security Standards.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// Everything is allowed.
    #[default]
    Privileged,
    /// Known ways out of a container are refused.
    Baseline,
    /// As `baseline`; containers have to give up what they need not.
    Restricted,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Privileged => "privileged",
            Self::Baseline => "baseline",
            Self::Restricted => "restricted",
        })
    }
}

/// The release of Kubernetes whose form of the standards counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// `v1.<minor>`. A release after the newest known one has the rules of that one.
    Minor(u32),
    /// The newest known one.
    #[default]
    Latest,
}

impl Version {
    /// Tells if rules that came with `v1.<minor>` are part of this version.
    pub fn includes(self, minor: u32) -> bool {
        match self {
            Self::Minor(own) => own >= minor,
            Self::Latest => true,
        }
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Minor(minor) => write!(f, "v1.{minor}"),
            Self::Latest => f.write_str("latest"),
        }
    }
}

impl FromStr for Version {
    /// The rule, for a person.
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const RULE: &str = "must be latest or a release such as v1.34";
        if text == "latest" {
            return Ok(Self::Latest);
        }
        let minor = text.strip_prefix("v1.").ok_or(RULE)?;
        let is_number = !minor.is_empty() && minor.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number || (minor.len() > 1 && minor.starts_with('0')) {
            return Err(RULE);
        }
        minor.parse().map(Self::Minor).map_err(|_| RULE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_kubernetes_reads_them() {
        for (text, version) in
            [("latest", Version::Latest), ("v1.0", Version::Minor(0)), ("v1.9", Version::Minor(9)), ("v1.34", Version::Minor(34))]
        {
            assert_eq!(text.parse(), Ok(version));
            assert_eq!(version.to_string(), text);
        }
        for text in ["", "Latest", "1.34", "v1", "v1.", "v1.034", "v2.1", "v1.34.1", "v1.+3", "v1.-3", "v1.99999999999"] {
            assert!(text.parse::<Version>().is_err(), "{text}");
        }
    }

    #[test]
    fn versions_include_the_rules_of_earlier_ones() {
        for (version, minor, expected) in [
            (Version::Latest, 37, true),
            (Version::Minor(34), 35, false),
            (Version::Minor(35), 35, true),
            (Version::Minor(999), 37, true),
        ] {
            assert_eq!(version.includes(minor), expected, "{version} {minor}");
        }
    }
}
