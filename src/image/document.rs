//! The JSON documents of images: index, manifest, configuration, and what `docker save` writes. **Pure**.
//!
//! Read leniently, as everybody reads them: unknown fields are ignored, `null` is absence.

use podstead_container::ImageConfig;
use podstead_container::digest::Digest;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeMap;

/// Media types that a manifest request accepts.
pub const MANIFEST_MEDIA_TYPES: [&str; 4] = [OCI_MANIFEST, OCI_INDEX, DOCKER_MANIFEST, DOCKER_INDEX];
/// OCI image manifest.
pub const OCI_MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
/// OCI image index: one manifest per platform.
pub const OCI_INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// Docker image manifest, schema 2.
pub const DOCKER_MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
/// Docker manifest list.
pub const DOCKER_INDEX: &str = "application/vnd.docker.distribution.manifest.list.v2+json";
const OCI_CONFIG: &str = "application/vnd.oci.image.config.v1+json";
const DOCKER_CONFIG: &str = "application/vnd.docker.container.image.v1+json";
/// Begin of all types of configurations that somebody has defined.
const DEFINED: &str = "application/vnd.";
/// End of the types of layers that are encrypted.
const ENCRYPTED: &str = "+encrypted";
/// Words in the types of layers that come from elsewhere: those of Docker and OCI.
const FOREIGN: [&str; 2] = [".foreign.", ".nondistributable."];
const OCI_LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
/// More layers than any overlay mount takes.
const LAYERS_MAX: usize = 500;
/// Entries of an index: more than any image has variants, signatures and attestations.
const INDEX_MAX: usize = 1000;

/// Reason why a document cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DocumentError {
    /// Not JSON, or not of the expected shape.
    #[error("parse {what}")]
    Json {
        /// The document.
        what: &'static str,
        /// The parse error, with its position.
        #[source]
        source: serde_json::Error,
    },
    /// Not a document of an image, but one for browsers.
    #[error("the answer is a web page instead of a manifest: a proxy or a login page may be between this host and the registry")]
    WebPage,
    /// Schema version 1, withdrawn by everybody.
    #[error(
        "manifest has schema version {0}, only 2 is supported (push the image again: skopeo copy --format v2s2, or docker 1.10 and later)"
    )]
    SchemaVersion(u32),
    /// Not an image, e.g. a Helm chart or a signature.
    #[error("{0:?} is not a container image")]
    NotAnImage(String),
    /// A layer that needs a key.
    #[error("layer {0} is encrypted, and podstead decrypts no layers (push the image unencrypted)")]
    Encrypted(Digest),
    /// Manifest and configuration disagree.
    #[error("manifest has {layers} layers, but the configuration has {diff_ids} diff IDs")]
    LayerCount {
        /// In the manifest.
        layers: usize,
        /// In the configuration.
        diff_ids: usize,
    },
    /// More than can be mounted.
    #[error("image has {0} layers, more than can be mounted")]
    TooManyLayers(usize),
    /// More than an index has.
    #[error("image index has {0} entries, more than {INDEX_MAX}")]
    TooManyEntries(usize),
    /// Nothing in the index is for this host.
    #[error("image has no variant for {wanted}, only for {offered}")]
    NoPlatform {
        /// This host's.
        wanted: String,
        /// Those in the index.
        offered: String,
    },
}

/// A pointer to content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Descriptor {
    /// Media type of the content.
    #[serde(default, deserialize_with = "null_is_default")]
    pub media_type: String,
    /// Its digest.
    pub digest: Digest,
    /// Its size in bytes.
    pub size: u64,
    /// Type of an artifact that is no image, in an index.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "String::is_empty")]
    pub artifact_type: String,
    /// For which platform, in an index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<Platform>,
    /// Free text, e.g. the image's name.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
}

/// Operating system and processor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Platform {
    /// `linux`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub os: String,
    /// Go's name: `amd64`, `arm64`, `arm`.
    #[serde(default, deserialize_with = "null_is_default")]
    pub architecture: String,
    /// `v7`, `v8`.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "String::is_empty")]
    pub variant: String,
}

/// A manifest or an index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Manifest {
    /// One image.
    Image(Box<ImageManifest>),
    /// Images for several platforms.
    Index(Vec<Descriptor>),
}

/// The manifest of one image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageManifest {
    /// Always 2.
    pub schema_version: u32,
    /// Its media type.
    #[serde(default, deserialize_with = "null_is_default")]
    pub media_type: String,
    /// The type of the artifact, if it is one.
    #[serde(default, deserialize_with = "null_is_default", skip_serializing_if = "String::is_empty")]
    pub artifact_type: String,
    /// The image's configuration.
    pub config: Descriptor,
    /// Its layers, lowest first.
    #[serde(default, deserialize_with = "null_is_default")]
    pub layers: Vec<Descriptor>,
}

/// The part of an image's configuration that podstead uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// Of the content.
    pub platform: Platform,
    /// Of the process.
    pub process: ImageConfig,
    /// Digests of the uncompressed layers, lowest first.
    pub diff_ids: Vec<Digest>,
}

/// An entry of `manifest.json`, the table of contents of `docker save`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct SavedImage {
    /// Path of the configuration in the archive.
    pub config: String,
    /// References.
    #[serde(default, deserialize_with = "null_is_default")]
    pub repo_tags: Vec<String>,
    /// Paths of the layers in the archive, lowest first.
    #[serde(default, deserialize_with = "null_is_default")]
    pub layers: Vec<String>,
}

impl Manifest {
    /// Reads a manifest or an index; tells them apart by what they contain, since media types are often missing or wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, DocumentError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Either {
            schema_version: u32,
            #[serde(default)]
            media_type: Option<String>,
            #[serde(default)]
            artifact_type: Option<String>,
            #[serde(default)]
            manifests: Option<Vec<Descriptor>>,
            #[serde(default)]
            config: Option<Descriptor>,
            #[serde(default)]
            layers: Option<Vec<Descriptor>>,
        }
        if bytes.trim_ascii_start().starts_with(b"<") {
            return Err(DocumentError::WebPage);
        }
        let json = |source| DocumentError::Json { what: "manifest", source };
        let Either { schema_version, media_type, artifact_type, manifests, config, layers } =
            serde_json::from_slice(bytes).map_err(json)?;
        if schema_version != 2 {
            return Err(DocumentError::SchemaVersion(schema_version));
        }
        let (media_type, artifact_type) = (media_type.unwrap_or_default(), artifact_type.unwrap_or_default());
        match (manifests, config) {
            (Some(manifests), None) if manifests.len() > INDEX_MAX => Err(DocumentError::TooManyEntries(manifests.len())),
            (Some(manifests), None) => Ok(Self::Index(manifests)),
            (None, Some(config)) => {
                let layers = layers.unwrap_or_default();
                if layers.len() > LAYERS_MAX {
                    return Err(DocumentError::TooManyLayers(layers.len()));
                }
                Ok(Self::Image(Box::new(ImageManifest { schema_version, media_type, artifact_type, config, layers })))
            }
            // Both at once is how one content could be read as two different images (CVE-2021-41190).
            (Some(_), Some(_)) | (None, None) => Err(DocumentError::NotAnImage(media_type)),
        }
    }
}

impl Descriptor {
    /// Returns true for an index, as far as its type tells.
    pub fn is_index(&self) -> bool {
        self.media_type == OCI_INDEX || self.media_type == DOCKER_INDEX
    }

    /// Returns true for a layer that registries need not have, since its owner distributes it.
    pub fn is_foreign(&self) -> bool {
        FOREIGN.iter().any(|word| self.media_type.contains(word))
    }
}

impl ImageManifest {
    /// Refuses a manifest of an artifact, such as a Helm chart, and layers that cannot be read. Types that nobody has defined are believed to be wrong.
    pub fn check(&self) -> Result<(), DocumentError> {
        let config = &self.config.media_type;
        if config.starts_with(DEFINED) && config != OCI_CONFIG && config != DOCKER_CONFIG {
            let stated = if self.artifact_type.is_empty() { config } else { &self.artifact_type };
            return Err(DocumentError::NotAnImage(stated.clone()));
        }
        match self.layers.iter().find(|layer| layer.media_type.ends_with(ENCRYPTED)) {
            Some(layer) => Err(DocumentError::Encrypted(layer.digest)),
            None => Ok(()),
        }
    }

    /// The manifest of an image that came without one, from `docker save`: its layers are named by their diff ids.
    pub fn of_saved(config: &[u8], layers: &[(Digest, u64)]) -> Self {
        let descriptor = |media_type: &str, digest, size| Descriptor {
            media_type: media_type.to_owned(),
            digest,
            size,
            artifact_type: String::new(),
            platform: None,
            annotations: BTreeMap::new(),
        };
        Self {
            schema_version: 2,
            media_type: OCI_MANIFEST.to_owned(),
            artifact_type: String::new(),
            config: descriptor(OCI_CONFIG, Digest::of(config), config.len() as u64),
            layers: layers.iter().map(|(digest, size)| descriptor(OCI_LAYER, *digest, *size)).collect(),
        }
    }
}

impl Configuration {
    /// Reads a configuration; `layers` is how many layers the manifest has.
    pub fn parse(bytes: &[u8], layers: usize) -> Result<Self, DocumentError> {
        #[derive(Deserialize)]
        struct Written {
            #[serde(flatten)]
            platform: Platform,
            #[serde(default, deserialize_with = "null_is_default")]
            config: Process,
            #[serde(default)]
            rootfs: Option<RootFs>,
        }
        #[derive(Deserialize)]
        struct RootFs {
            #[serde(default, deserialize_with = "null_is_default")]
            diff_ids: Vec<Digest>,
        }
        #[derive(Default, Deserialize)]
        #[serde(rename_all = "PascalCase", default)]
        struct Process {
            #[serde(deserialize_with = "null_is_default")]
            entrypoint: Vec<String>,
            #[serde(deserialize_with = "null_is_default")]
            cmd: Vec<String>,
            #[serde(deserialize_with = "null_is_default")]
            env: Vec<String>,
            #[serde(deserialize_with = "null_is_default")]
            user: String,
            #[serde(deserialize_with = "null_is_default")]
            working_dir: String,
            #[serde(deserialize_with = "null_is_default")]
            stop_signal: String,
            #[serde(deserialize_with = "null_is_default")]
            labels: BTreeMap<String, String>,
        }
        let json = |source| DocumentError::Json { what: "image configuration", source };
        let Written { platform, config, rootfs } = serde_json::from_slice(bytes).map_err(json)?;
        let diff_ids =
            rootfs.ok_or_else(|| DocumentError::NotAnImage("a manifest whose configuration has no rootfs".into()))?.diff_ids;
        if diff_ids.len() != layers {
            return Err(DocumentError::LayerCount { layers, diff_ids: diff_ids.len() });
        }
        let Process { entrypoint, cmd, env, user, working_dir, stop_signal, labels } = config;
        let stop_signal = Some(stop_signal).filter(|signal| !signal.is_empty());
        Ok(Self { platform, process: ImageConfig { entrypoint, cmd, env, user, working_dir, stop_signal, labels }, diff_ids })
    }

    /// The names of the layers on disk, lowest first.
    pub fn chain_ids(&self) -> Vec<Digest> {
        let mut parent = None;
        let link = |diff_id: &Digest| {
            let chain = Digest::chain(parent, *diff_id);
            parent = Some(chain);
            chain
        };
        self.diff_ids.iter().map(link).collect()
    }
}

/// Reads `manifest.json` of `docker save`.
pub fn parse_saved(bytes: &[u8]) -> Result<Vec<SavedImage>, DocumentError> {
    serde_json::from_slice(bytes).map_err(|source| DocumentError::Json { what: "manifest.json", source })
}

/// Go writes absent lists and maps as `null`.
fn null_is_default<'de, T: Default + Deserialize<'de>, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ZERO: &str = "sha256:0000000000000000000000000000000000000000000000000000000000000000";

    fn manifest(text: &str) -> Result<Manifest, DocumentError> {
        Manifest::parse(text.replace("ZERO", ZERO).as_bytes())
    }

    #[test]
    fn manifest_and_index_are_told_apart_by_content() {
        let image = manifest(
            r#"{"schemaVersion":2,"config":{"digest":"ZERO","size":3},"layers":[{"mediaType":"x","digest":"ZERO","size":4}]}"#,
        );
        assert!(matches!(image.unwrap(), Manifest::Image(image) if image.layers.len() == 1));
        let index = manifest(r#"{"schemaVersion":2,"manifests":[{"digest":"ZERO","size":3,"platform":null,"annotations":null}]}"#);
        assert!(matches!(index.unwrap(), Manifest::Index(entries) if entries.len() == 1));
    }

    #[test]
    fn a_document_that_is_manifest_and_index_at_once_is_refused() {
        let both = r#"{"schemaVersion":2,"config":{"digest":"ZERO","size":3},"layers":[],"manifests":[]}"#;
        assert!(matches!(manifest(both), Err(DocumentError::NotAnImage(_))));
    }

    #[test]
    fn an_index_or_manifest_with_too_many_entries_is_refused() {
        let many = |count: usize| vec![r#"{"digest":"ZERO","size":3}"#; count].join(",");
        let index = |count| manifest(&format!(r#"{{"schemaVersion":2,"manifests":[{}]}}"#, many(count)));
        assert!(index(INDEX_MAX).is_ok());
        assert!(matches!(index(INDEX_MAX + 1), Err(DocumentError::TooManyEntries(1001))));
        let layers = format!(r#"{{"schemaVersion":2,"config":{{"digest":"ZERO","size":3}},"layers":[{}]}}"#, many(LAYERS_MAX + 1));
        assert!(matches!(manifest(&layers), Err(DocumentError::TooManyLayers(501))));
    }

    #[test]
    fn schema_one_and_other_things_are_refused() {
        assert!(matches!(manifest(r#"{"schemaVersion":1}"#), Err(DocumentError::SchemaVersion(1))));
        assert!(
            matches!(manifest(r#"{"schemaVersion":2,"mediaType":"text/plain"}"#), Err(DocumentError::NotAnImage(t)) if t == "text/plain")
        );
        assert!(matches!(manifest("[]"), Err(DocumentError::Json { .. })));
        assert!(matches!(manifest("\n<!DOCTYPE html><html>"), Err(DocumentError::WebPage)));
    }

    #[test]
    fn artifacts_and_encrypted_layers_are_refused_by_type() {
        let check = |types: [&str; 3]| {
            let [artifact, config, layer] = types;
            let text = format!(
                r#"{{"schemaVersion":2,"artifactType":"{artifact}","config":{{"mediaType":"{config}","digest":"ZERO","size":3}},
                "layers":[{{"mediaType":"{layer}","digest":"ZERO","size":4}}]}}"#
            );
            let Manifest::Image(image) = manifest(&text).unwrap() else { panic!("an index") };
            image.check().map_err(|error| error.to_string())
        };
        for config in ["", "text/plain", OCI_CONFIG, DOCKER_CONFIG] {
            assert_eq!(check(["", config, "application/vnd.oci.image.layer.v1.tar+zstd"]), Ok(()));
        }
        let chart = "application/vnd.cncf.helm.config.v1+json";
        assert_eq!(check(["", chart, ""]), Err(format!("{chart:?} is not a container image")));
        let empty = "application/vnd.oci.empty.v1+json";
        assert_eq!(check(["text/x", empty, ""]), Err("\"text/x\" is not a container image".into()));
        let encrypted = check(["", OCI_CONFIG, "application/vnd.oci.image.layer.v1.tar+gzip+encrypted"]).unwrap_err();
        assert!(encrypted.contains(ZERO) && encrypted.contains("is encrypted"), "{encrypted}");
    }

    #[test]
    fn the_configuration_gives_process_and_layers_and_null_is_absence() {
        let text = format!(
            r#"{{"architecture":"arm64","os":"linux","variant":null,"config":{{"Entrypoint":null,"Cmd":["a","b"],"Env":["X=1"],"User":"www",
            "WorkingDir":"/srv","StopSignal":"SIGQUIT","Labels":null,"ExposedPorts":{{"80/tcp":{{}}}}}},"rootfs":{{"type":"layers","diff_ids":["{ZERO}"]}},"history":[]}}"#
        );
        let configuration = Configuration::parse(text.as_bytes(), 1).unwrap();
        assert_eq!(configuration.platform.architecture, "arm64");
        assert_eq!(configuration.process.cmd, ["a", "b"]);
        assert_eq!(configuration.process.entrypoint, [""; 0]);
        assert_eq!(configuration.process.stop_signal.as_deref(), Some("SIGQUIT"));
        assert_eq!(configuration.chain_ids(), configuration.diff_ids);
        assert!(matches!(Configuration::parse(text.as_bytes(), 2), Err(DocumentError::LayerCount { layers: 2, diff_ids: 1 })));
        assert!(matches!(Configuration::parse(b"{}", 0), Err(DocumentError::NotAnImage(_))));
    }
}
