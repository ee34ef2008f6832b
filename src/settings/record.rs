//! The configuration that an accepted set was checked with, as it is kept beside the set. Pure.

use super::Allow;
use super::allow::WrittenAllow;
use super::requirements::{Requirements, WrittenPodSecurity, WrittenRequire};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The configuration of a source's rules when a set was accepted. A later version of podstead compares it with the configuration of its own time:
/// what was accepted under the same one stays, whatever rules came with the version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PolicyRecord(Value);

/// Fields of a source that decide what is refused.
#[derive(PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    allow: Option<WrittenAllow>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pod_security: Option<WrittenPodSecurity>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    require: Option<WrittenRequire>,
}

impl Written {
    fn of(allow: Option<&Allow>, requirements: &Requirements) -> Self {
        let (pod_security, require) = requirements.to_written();
        Self { allow: allow.map(Allow::to_written), pod_security, require }
    }
}

impl PolicyRecord {
    /// The record of a configuration.
    pub fn of(allow: Option<&Allow>, requirements: &Requirements) -> Self {
        // Structures of texts, numbers and lists are always JSON; `null` would be another policy than any.
        Self(serde_json::to_value(Written::of(allow, requirements)).unwrap_or_default())
    }

    /// Reports whether the configuration is the recorded one. Fields that are not in the record have their defaults; a record with a field
    /// that this version does not know is of another configuration.
    pub fn is_of(&self, allow: Option<&Allow>, requirements: &Requirements) -> bool {
        Written::deserialize(&self.0).is_ok_and(|written| written == Written::of(allow, requirements))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Check;
    use std::path::Path;

    fn allow(text: &str) -> Option<Allow> {
        let written: WrittenAllow = serde_yaml::from_str(text).unwrap();
        Some(Allow::resolve(&Check { path: Path::new("/c") }, "allow", &written).unwrap())
    }

    fn read(text: &str) -> PolicyRecord {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_record_is_of_its_own_configuration_alone() {
        let none = Requirements::default();
        let written = WrittenPodSecurity { level: podstead_pod::standards::Level::Baseline, version: None };
        let baseline = Requirements::resolve(&Check { path: Path::new("/c") }, "s", Some(&written), None).unwrap();
        let all = [(None, &none), (allow("{}"), &none), (allow("{images: [a]}"), &none), (allow("{}"), &baseline)];
        for (index, (allow, requirements)) in all.iter().enumerate() {
            let text = serde_json::to_string(&PolicyRecord::of(allow.as_ref(), requirements)).unwrap();
            let same = |(allow, requirements): &(Option<Allow>, &Requirements)| read(&text).is_of(allow.as_ref(), requirements);
            assert_eq!(all.iter().position(same), Some(index), "{text}");
            assert_eq!(all.iter().filter(|pair| same(pair)).count(), 1, "{text}");
        }
    }

    #[test]
    fn fields_of_other_versions_are_defaults_or_another_configuration() {
        let none = Requirements::default();
        assert!(read(r#"{"allow":{}}"#).is_of(allow("{}").as_ref(), &none), "as one that knew no field would have written it");
        assert!(!read(r#"{"allow":{"moonlight":true}}"#).is_of(allow("{}").as_ref(), &none));
        assert!(!read("7").is_of(allow("{}").as_ref(), &none));
    }
}
