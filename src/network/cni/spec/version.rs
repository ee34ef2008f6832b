//! Versions of the specification. **Pure**.

use std::fmt;

/// A version that podstead speaks. Later ones are greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum CniVersion {
    /// The first one with chains of plugins.
    V0_3_0,
    /// Corrects 0.3.0.
    V0_3_1,
    /// Brings CHECK, and earlier results to DEL.
    V0_4_0,
    /// Addresses no longer say which version of IP they are of.
    V1_0_0,
    /// Brings GC and STATUS, and more about routes and interfaces.
    V1_1_0,
}

impl CniVersion {
    /// All of them, the earliest first.
    pub(crate) const ALL: [Self; 5] = [Self::V0_3_0, Self::V0_3_1, Self::V0_4_0, Self::V1_0_0, Self::V1_1_0];

    /// As it is written.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::V0_3_0 => "0.3.0",
            Self::V0_3_1 => "0.3.1",
            Self::V0_4_0 => "0.4.0",
            Self::V1_0_0 => "1.0.0",
            Self::V1_1_0 => "1.1.0",
        }
    }

    /// Reads a version; `None` if podstead does not speak it.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.as_str() == text)
    }

    /// Returns true if plugins support CHECK, and get the result of ADD at DEL.
    pub(crate) fn has_check(self) -> bool {
        self >= Self::V0_4_0
    }

    /// Returns true if plugins support GC and STATUS.
    pub(crate) fn has_status(self) -> bool {
        self >= Self::V1_1_0
    }

    /// Returns true if an address includes its IP version.
    pub(crate) fn marks_families(self) -> bool {
        self < Self::V1_0_0
    }
}

impl fmt::Display for CniVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_version_is_read_as_it_is_written_and_no_other_is() {
        for version in CniVersion::ALL {
            assert_eq!(CniVersion::parse(version.as_str()), Some(version));
        }
        for other in ["", "0.1.0", "0.2.0", "1.0", "1.2.0", "v1.0.0"] {
            assert_eq!(CniVersion::parse(other), None, "{other}");
        }
        assert!(CniVersion::ALL.is_sorted());
        assert!(!CniVersion::V0_3_1.has_check() && CniVersion::V0_4_0.has_check());
        assert!(!CniVersion::V1_0_0.has_status() && CniVersion::V1_1_0.has_status());
    }
}
