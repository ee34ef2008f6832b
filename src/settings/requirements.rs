//! Requirements for the pods of a source: a level of the Pod Security Standards (`podSecurity`), and those that the standards
//! lack (`require`). Pure.

use super::images::ImagePatterns;
use crate::ConfigError;
use crate::check::Check;
use podstead_container::reference::Reference;
use podstead_pod::standards::{Level, Version};
use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Resources that a limit can be required of.
const LIMITS: [&str; 3] = ["cpu", "ephemeral-storage", "memory"];

/// `sources[].podSecurity`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenPodSecurity {
    /// Level.
    pub level: Level,
    /// Kubernetes release that the rules are taken from, such as `v1.34`. Default: latest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// `sources[].require`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenRequire {
    /// Pods must have a user namespace: `hostUsers: false`. Default: false.
    #[serde(default)]
    pub user_namespace: bool,
    /// Resources that every container must have a limit of, its own or for `cpu` and `memory` its pod's: `cpu`, `memory`,
    /// `ephemeral-storage`. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
    /// Images must be referenced by digest (`nginx@sha256:...`). Default: false.
    #[serde(default)]
    pub image_digest: bool,
    /// Images that pods must use, as in `allow.images`. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<Vec<String>>,
    /// Containers must have a read-only root filesystem: `readOnlyRootFilesystem: true`. Default: false.
    #[serde(default)]
    pub read_only_root_filesystem: bool,
}

/// Reads a level, or the fields.
pub fn level_or_fields<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<WrittenPodSecurity>, D::Error> {
    struct LevelOrFields;
    impl<'de> Visitor<'de> for LevelOrFields {
        type Value = WrittenPodSecurity;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("privileged, baseline or restricted, or {level, version}")
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Self::Value, E> {
            Ok(WrittenPodSecurity { level: Level::deserialize(StrDeserializer::new(text))?, version: None })
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
            WrittenPodSecurity::deserialize(MapAccessDeserializer::new(map))
        }
    }
    deserializer.deserialize_any(LevelOrFields).map(Some)
}

/// Requirements for the pods of a source, valid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requirements {
    level: Level,
    version: Version,
    require: WrittenRequire,
    images: Option<ImagePatterns>,
}

impl Requirements {
    /// Checks every value of the source at `field`.
    pub fn resolve(
        check: &Check<'_>,
        field: &str,
        pod_security: Option<&WrittenPodSecurity>,
        require: Option<&WrittenRequire>,
    ) -> Result<Self, ConfigError> {
        let (level, version) = match pod_security {
            None => (Level::default(), Version::default()),
            Some(WrittenPodSecurity { level, version: None }) => (*level, Version::default()),
            Some(WrittenPodSecurity { level, version: Some(text) }) => {
                let problem = |rule| check.invalid(&format!("{field}.podSecurity.version"), format!("{text:?} {rule}"));
                (*level, text.parse().map_err(problem)?)
            }
        };
        let require = require.cloned().unwrap_or_default();
        for (index, name) in require.limits.iter().enumerate() {
            if !LIMITS.contains(&name.as_str()) {
                let message = format!("{name:?} is not one of {}", LIMITS.join(", "));
                return Err(check.invalid(&format!("{field}.require.limits[{index}]"), message));
            }
        }
        let patterns = |images| ImagePatterns::resolve(check, &format!("{field}.require.images"), images);
        let images = require.images.as_deref().map(patterns).transpose()?;
        Ok(Self { level, version, require, images })
    }

    /// As they are written; `None` for what asks for nothing.
    pub fn to_written(&self) -> (Option<WrittenPodSecurity>, Option<WrittenRequire>) {
        let Self { level, version, require, images: _ } = self;
        let pod_security = WrittenPodSecurity { level: *level, version: Some(version.to_string()) };
        ((*level != Level::default()).then_some(pod_security), (*require != WrittenRequire::default()).then(|| require.clone()))
    }

    /// The level of the Pod Security Standards.
    pub fn level(&self) -> Level {
        self.level
    }

    /// The version of the Pod Security Standards.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Reports whether pods must have a user namespace.
    pub fn user_namespace(&self) -> bool {
        self.require.user_namespace
    }

    /// Resources of which every container has to have a limit.
    pub fn limits(&self) -> &[String] {
        &self.require.limits
    }

    /// Reports whether an image has to be named by digest and is not. False for a text that is no image name, which validation refuses.
    pub fn lacks_digest(&self, image: &str) -> bool {
        self.require.image_digest && image.parse::<Reference>().is_ok_and(|reference| reference.digest().is_none())
    }

    /// Reports whether a container may run this image. True for a text that is no image name, which validation refuses.
    pub fn image(&self, image: &str) -> bool {
        self.images.as_ref().is_none_or(|patterns| patterns.match_image(image))
    }

    /// Reports whether containers must have a read-only root filesystem.
    pub fn read_only_root_filesystem(&self) -> bool {
        self.require.read_only_root_filesystem
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Source {
        #[serde(default, deserialize_with = "level_or_fields")]
        pod_security: Option<WrittenPodSecurity>,
        #[serde(default)]
        require: Option<WrittenRequire>,
    }

    fn requirements(text: &str) -> Result<Requirements, String> {
        let Source { pod_security, require } = serde_yaml::from_str(text).map_err(|error| error.to_string())?;
        let check = Check { path: Path::new("/c") };
        Requirements::resolve(&check, "s", pod_security.as_ref(), require.as_ref()).map_err(|error| error.to_string())
    }

    #[test]
    fn a_level_is_written_alone_or_with_a_version() {
        for (text, level, version) in [
            ("{}", Level::Privileged, Version::Latest),
            ("{podSecurity: baseline}", Level::Baseline, Version::Latest),
            ("{podSecurity: {level: restricted}}", Level::Restricted, Version::Latest),
            ("{podSecurity: {level: restricted, version: v1.34}}", Level::Restricted, Version::Minor(34)),
            ("{podSecurity: {level: privileged, version: latest}}", Level::Privileged, Version::Latest),
        ] {
            let read = requirements(text).unwrap();
            assert_eq!((read.level(), read.version()), (level, version), "{text}");
        }
    }

    #[test]
    fn images_are_required_by_digest_and_by_name() {
        let both = requirements("{require: {imageDigest: true, images: [registry.lan/apps/]}}").unwrap();
        let digest = format!("sha256:{}", "0".repeat(64));
        for (image, lacks, fits) in [
            ("registry.lan/apps/web".to_owned(), true, true),
            (format!("registry.lan/apps/web@{digest}"), false, true),
            (format!("registry.lan/apps/web:1@{digest}"), false, true),
            (format!("nginx@{digest}"), false, false),
        ] {
            assert_eq!((both.lacks_digest(&image), both.image(&image)), (lacks, fits), "{image}");
        }
        let none = requirements("{require: {}}").unwrap();
        assert!(!none.lacks_digest("nginx") && none.image("nginx") && none == Requirements::default());
    }

    #[test]
    fn mistakes_name_their_field() {
        for (text, expected) in [
            ("{podSecurity: strict}", "unknown variant `strict`, expected one of `privileged`, `baseline`, `restricted`"),
            ("{podSecurity: {version: v1.34}}", "missing field `level`"),
            ("{podSecurity: {level: baseline, versoin: v1.34}}", "unknown field"),
            ("{podSecurity: {level: baseline, version: '1.34'}}", "s.podSecurity.version: \"1.34\" must be latest or a release"),
            ("{podSecurity: 3}", "expected privileged, baseline or restricted, or {level, version}"),
            ("{require: {limits: [memory, gpu]}}", "s.require.limits[1]: \"gpu\" is not one of cpu, ephemeral-storage, memory"),
            ("{require: {images: ['a b']}}", "s.require.images[0]"),
            ("{require: {userNamespaces: true}}", "unknown field"),
        ] {
            let error = requirements(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
