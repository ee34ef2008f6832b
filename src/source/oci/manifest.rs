//! The manifest of an artifact: the layer with the manifests of Kubernetes, and where they come from. **Pure**.
//!
//! Taken are artifacts of `flux push artifact`, and any other with a tar archive as a layer, as `oras push` makes of a directory. Read
//! leniently, as registries store them: unknown fields are ignored.

use crate::one_line::one_line;
use jiff::Timestamp;
use podstead_artifact::CommitSummary;
use podstead_image::document::Descriptor;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// Layer of `flux push artifact`.
const FLUX_CONTENT: &str = "application/vnd.cncf.flux.content.v1.tar+gzip";
/// Configurations of container images, whose layers are parts of one file system.
const IMAGE_CONFIGS: [&str; 2] = ["application/vnd.oci.image.config.v1+json", "application/vnd.docker.container.image.v1+json"];
/// More layers than any artifact has.
const LAYERS_MAX: usize = 500;
/// Media types that a message lists.
const TYPES_SHOWN: usize = 5;

const REVISION: &str = "org.opencontainers.image.revision";
const SOURCE: &str = "org.opencontainers.image.source";
const CREATED: &str = "org.opencontainers.image.created";

/// Reason why a manifest is not one of an artifact with manifests.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// Not JSON of its shape.
    #[error("its manifest cannot be read: {0}")]
    Malformed(String),
    /// A list of manifests.
    #[error("it is an index, not an artifact: set digest to one of its manifests, or push the artifact itself")]
    Index,
    /// A container image.
    #[error(
        "it is a container image with {0} layers, not an artifact with manifests (push one with flux push artifact, or oras push)"
    )]
    Image(usize),
    /// None of its layers is an archive.
    #[error("it has no layer with a tar archive, only {0}")]
    NoLayer(String),
    /// More than an artifact has.
    #[error("it has {0} layers, more than {LAYERS_MAX}")]
    TooMany(usize),
}

/// The manifest of an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArtifactManifest {
    /// The layer with the archive.
    pub layer: Descriptor,
    /// Time of the push, if it is stated.
    pub created: Option<Timestamp>,
    /// Revision of the sources, as stated: `main@sha1:...`.
    revision: Option<String>,
    /// URL of the sources, as stated.
    source: Option<String>,
}

impl ArtifactManifest {
    /// Reads a manifest.
    pub fn parse(bytes: &[u8]) -> Result<Self, ManifestError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Written {
            schema_version: u32,
            #[serde(default, deserialize_with = "null_is_default")]
            manifests: Option<serde::de::IgnoredAny>,
            #[serde(default)]
            config: Option<Descriptor>,
            #[serde(default, deserialize_with = "null_is_default")]
            layers: Vec<Descriptor>,
            #[serde(default, deserialize_with = "null_is_default")]
            annotations: BTreeMap<String, String>,
        }
        let written: Written = serde_json::from_slice(bytes).map_err(|error| ManifestError::Malformed(error.to_string()))?;
        let Written { schema_version, manifests, config, layers, mut annotations } = written;
        if schema_version != 2 {
            return Err(ManifestError::Malformed(format!("it has schema version {schema_version}, only 2 is supported")));
        }
        // Also both at once, which others could read as something else (CVE-2021-41190).
        if manifests.is_some() {
            return Err(ManifestError::Index);
        }
        if layers.len() > LAYERS_MAX {
            return Err(ManifestError::TooMany(layers.len()));
        }
        let is_image = config.is_some_and(|config| IMAGE_CONFIGS.contains(&config.media_type.as_str()));
        if is_image && layers.len() > 1 {
            return Err(ManifestError::Image(layers.len()));
        }
        let layer = choose(layers)?;
        let mut stated = |name: &str| annotations.remove(name).filter(|text| !text.is_empty());
        Ok(Self {
            layer,
            created: stated(CREATED).and_then(|text| text.parse().ok()),
            revision: stated(REVISION),
            source: stated(SOURCE),
        })
    }

    /// The revision and the origin as they are stated, for people; whoever may push writes what they like here.
    pub(super) fn summary(&self, tag: Option<&str>) -> CommitSummary {
        let subject = match (tag, &self.revision) {
            (Some(tag), Some(revision)) => format!("{tag} ({revision})"),
            (Some(text), None) => text.to_owned(),
            (None, Some(text)) => text.clone(),
            (None, None) => String::new(),
        };
        let origin = self.source.clone().unwrap_or_default();
        CommitSummary { subject: one_line(subject.as_bytes()), author: one_line(origin.as_bytes()) }
    }
}

/// The layer of `flux push artifact`, else the first one with an archive.
fn choose(layers: Vec<Descriptor>) -> Result<Descriptor, ManifestError> {
    let found = layers.iter().position(|layer| layer.media_type == FLUX_CONTENT);
    let found = found.or_else(|| layers.iter().position(|layer| is_archive(&layer.media_type)));
    let types: Vec<String> =
        layers.iter().take(TYPES_SHOWN).map(|layer| format!("{:?}", one_line(layer.media_type.as_bytes()))).collect();
    match found.and_then(|index| layers.into_iter().nth(index)) {
        Some(layer) => Ok(layer),
        None if types.is_empty() => Err(ManifestError::NoLayer("none at all".to_owned())),
        None => Err(ManifestError::NoLayer(types.join(", "))),
    }
}

/// Reports whether a media type is one of tar archives, compressed or not: `application/vnd.oci.image.layer.v1.tar+gzip`, `application/x-tar`.
fn is_archive(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim();
    let bare = ["+gzip", ".gzip", "+zstd"].iter().find_map(|suffix| essence.strip_suffix(suffix)).unwrap_or(essence);
    bare.strip_suffix("tar").is_some_and(|before| before.ends_with(['.', '/', '-']))
}

/// Go writes absent lists and maps as `null`.
fn null_is_default<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_container::digest::Digest;
    use serde_json::{Value, json};

    fn descriptor(media_type: &str) -> Value {
        json!({"mediaType": media_type, "digest": Digest::of(media_type.as_bytes()), "size": 3})
    }

    fn artifact(config: &str, layers: &[&str]) -> Value {
        let layers: Vec<Value> = layers.iter().map(|layer| descriptor(layer)).collect();
        json!({"schemaVersion": 2, "config": descriptor(config), "layers": layers})
    }

    fn parse(value: &Value) -> Result<ArtifactManifest, ManifestError> {
        ArtifactManifest::parse(value.to_string().as_bytes())
    }

    #[test]
    fn artifact_of_flux_is_read() {
        let mut value =
            artifact("application/vnd.cncf.flux.config.v1+json", &["application/vnd.oci.image.layer.v1.tar", FLUX_CONTENT]);
        value["annotations"] = json!({
            CREATED: "2026-11-28T12:00:00Z", REVISION: "main@sha1:abc\n", SOURCE: "https://git.lan/fleet",
        });
        let found = parse(&value).unwrap();
        assert_eq!(found.layer.media_type, FLUX_CONTENT);
        assert_eq!(found.created, Some("2026-11-28T12:00:00Z".parse().unwrap()));
        let summary = found.summary(Some("1.2.0"));
        assert_eq!((summary.subject.as_str(), summary.author.as_str()), ("1.2.0 (main@sha1:abc )", "https://git.lan/fleet"));
    }

    #[test]
    fn first_archive_is_taken_of_others() {
        for (layers, chosen) in [
            (vec!["text/plain", "application/vnd.oci.image.layer.v1.tar+gzip", "application/x-tar"], 1),
            (vec!["application/x-tar"], 0),
            (vec!["application/tar+gzip"], 0),
            (vec!["application/vnd.oci.image.layer.v1.tar+zstd"], 0),
            (vec!["application/vnd.docker.image.rootfs.diff.tar.gzip"], 0),
        ] {
            let found = parse(&artifact("application/vnd.oci.empty.v1+json", &layers)).unwrap();
            assert_eq!(found.layer.media_type, layers[chosen], "{layers:?}");
            assert_eq!(found.summary(None), CommitSummary { subject: String::new(), author: String::new() });
        }
    }

    #[test]
    fn other_things_are_refused_by_name() {
        let refused = |value: Value| parse(&value).unwrap_err().to_string();
        let image = artifact(IMAGE_CONFIGS[0], &["application/x-tar", "application/x-tar"]);
        assert!(refused(image).contains("container image with 2 layers"));
        assert!(parse(&artifact(IMAGE_CONFIGS[0], &["application/x-tar"])).is_ok());
        assert!(refused(artifact("x", &["text/plain", "guitar"])).ends_with("only \"text/plain\", \"guitar\""));
        assert!(refused(artifact("x", &[])).ends_with("only none at all"));
        assert!(refused(artifact("x", &vec!["application/x-tar"; 501])).contains("501 layers"));
        assert_eq!(refused(json!({"schemaVersion": 2, "manifests": []})), ManifestError::Index.to_string());
        let both =
            json!({"schemaVersion": 2, "manifests": [], "config": descriptor("x"), "layers": [descriptor("application/x-tar")]});
        assert_eq!(refused(both), ManifestError::Index.to_string());
        assert!(refused(json!({"schemaVersion": 1})).contains("schema version 1"));
        assert!(ArtifactManifest::parse(b"<html>").unwrap_err().to_string().contains("cannot be read"));
        let twice = br#"{"schemaVersion":2,"layers":[],"layers":[]}"#;
        assert!(ArtifactManifest::parse(twice).unwrap_err().to_string().contains("duplicate field"));
    }
}
