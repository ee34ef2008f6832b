//! The document of a bundle: its name and serial, the hosts that it is for, its manifests and images, each by digest. **Pure**.
//!
//! It is what is signed, so nothing else in a bundle counts that it does not name. Read strictly: an unknown field is a newer format.

use jiff::Timestamp;
use podstead_container::digest::Digest;
use podstead_container::reference::Reference;
use podstead_image::BundledImages;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// Largest document, in bytes.
pub const MAX_DOCUMENT: u64 = 4 << 20;
/// `apiVersion` of a document.
pub const API_VERSION: &str = "podstead.dev/v1alpha1";
/// `kind` of a document.
pub const KIND: &str = "Bundle";
/// Largest archive of manifests, in bytes.
pub const MAX_MANIFESTS: u64 = 32 << 20;
const MAX_HOSTS: usize = 10_000;
const MAX_IMAGES: usize = 1000;
const MAX_BLOBS: usize = 20_000;
const MAX_NAME: usize = 63;
const MAX_HOST: usize = 253;
const MAX_REVISION: usize = 1024;
/// More than any disk has, and far from overflowing.
const MAX_SIZE: u64 = 1 << 50;

/// The document of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BundleDocument {
    /// [`API_VERSION`].
    pub api_version: String,
    /// [`KIND`].
    pub kind: String,
    /// Name of the series of bundles that this one belongs to.
    pub name: String,
    /// Number that grows from one bundle of a series to the next.
    pub serial: u64,
    /// Time of creation, for people.
    pub created: Timestamp,
    /// Names of the hosts that it is for; empty for all.
    pub hosts: Vec<String>,
    /// Revision of the sources of the manifests, for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// The tar archive with the manifests.
    pub manifests: Digest,
    /// The images.
    pub images: Vec<BundleImage>,
    /// Manifests of signatures of the images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signatures: Vec<Digest>,
    /// All content of the bundle, and layers that are left out.
    pub blobs: Vec<BundleBlob>,
}

/// An image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BundleImage {
    /// As in the manifests, written out.
    pub reference: String,
    /// The index or manifest that it means.
    pub digest: Digest,
}

/// A piece of content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct BundleBlob {
    /// Its digest.
    pub digest: Digest,
    /// Its bytes.
    pub size: u64,
    /// Bytes of the files of a layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unpacked_bytes: Option<u64>,
    /// Entries of a layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entries: Option<u64>,
    /// True for a layer that an earlier bundle has and this one has not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub left_out: bool,
}

/// Reason why a document cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DocumentError {
    /// Not JSON of its shape.
    #[error("its document cannot be read: {0}")]
    Malformed(String),
    /// A field.
    #[error("its document has an invalid {field}: {reason}")]
    Field {
        /// Path of the field.
        field: String,
        /// The reason.
        reason: String,
    },
}

impl BundleDocument {
    /// Reads and checks a document.
    pub fn parse(bytes: &[u8]) -> Result<Self, DocumentError> {
        let document: Self = serde_json::from_slice(bytes).map_err(|error| DocumentError::Malformed(error.to_string()))?;
        document.check()?;
        Ok(document)
    }

    /// Checks what its types do not say.
    pub fn check(&self) -> Result<(), DocumentError> {
        let bad = |field: &str, reason: String| Err(DocumentError::Field { field: field.to_owned(), reason });
        if (self.api_version.as_str(), self.kind.as_str()) != (API_VERSION, KIND) {
            return bad(
                "apiVersion",
                format!("{} {}, only {API_VERSION} {KIND} is supported", shown(&self.api_version), shown(&self.kind)),
            );
        }
        if !is_name(&self.name) {
            return bad("name", format!("{} is not at most {MAX_NAME} lower-case letters, digits and '-'", shown(&self.name)));
        }
        if self.serial == 0 {
            return bad("serial", "it is 0".to_owned());
        }
        if self.revision.len() > MAX_REVISION {
            return bad("revision", format!("it has more than {MAX_REVISION} bytes"));
        }
        for (field, count, most) in [
            ("hosts", self.hosts.len(), MAX_HOSTS),
            ("images", self.images.len(), MAX_IMAGES),
            ("blobs", self.blobs.len(), MAX_BLOBS),
        ] {
            if count > most {
                return bad(field, format!("{count} entries, more than {most}"));
            }
        }
        if let Some(host) = self.hosts.iter().find(|host| host.is_empty() || host.len() > MAX_HOST) {
            return bad("hosts", format!("{} is not a name of a host", shown(host)));
        }
        self.check_content()
    }

    fn check_content(&self) -> Result<(), DocumentError> {
        let bad = |field: String, reason: String| Err(DocumentError::Field { field, reason });
        let mut blobs: BTreeMap<Digest, &BundleBlob> = BTreeMap::new();
        for (index, blob) in self.blobs.iter().enumerate() {
            if blob.size > MAX_SIZE || blob.unpacked_bytes.is_some_and(|bytes| bytes > MAX_SIZE) {
                return bad(format!("blobs[{index}].size"), format!("more than {MAX_SIZE} bytes"));
            }
            if blobs.insert(blob.digest, blob).is_some() {
                return bad(format!("blobs[{index}].digest"), format!("{} is there twice", blob.digest));
            }
        }
        let is_present = |digest: &Digest| blobs.get(digest).is_some_and(|blob| !blob.left_out);
        if !is_present(&self.manifests) {
            return bad("manifests".to_owned(), "blobs has no content for it".to_owned());
        }
        if self.size_of(self.manifests) > MAX_MANIFESTS {
            return bad("manifests".to_owned(), format!("it has more than {MAX_MANIFESTS} bytes"));
        }
        let mut names = BTreeSet::new();
        for (index, image) in self.images.iter().enumerate() {
            let field = format!("images[{index}]");
            let reference: Reference = match image.reference.parse() {
                Ok(reference) => reference,
                Err(reason) => return bad(format!("{field}.reference"), format!("{}: {reason}", shown(&image.reference))),
            };
            if reference.digest().is_some_and(|digest| digest != image.digest) {
                return bad(format!("{field}.digest"), "it is not the one in the reference".to_owned());
            }
            if !is_present(&image.digest) {
                return bad(format!("{field}.digest"), "blobs has no content for it".to_owned());
            }
            if !names.insert(reference) {
                return bad(format!("{field}.reference"), format!("{} is there twice", shown(&image.reference)));
            }
        }
        match self.signatures.iter().position(|digest| !is_present(digest)) {
            Some(index) => bad(format!("signatures[{index}]"), "blobs has no content for it".to_owned()),
            None => Ok(()),
        }
    }

    /// Bytes of a piece of content; 0 for one that it does not name.
    pub fn size_of(&self, digest: Digest) -> u64 {
        self.blobs.iter().find(|blob| blob.digest == digest).map_or(0, |blob| blob.size)
    }

    /// Reports whether it is for a host.
    pub fn is_for(&self, host: &str) -> bool {
        self.hosts.is_empty() || self.hosts.iter().any(|name| name.eq_ignore_ascii_case(host))
    }

    /// The first image that is named by a tag only.
    pub fn without_digest(&self) -> Option<&str> {
        let has_digest = |image: &&BundleImage| image.reference.parse::<Reference>().is_ok_and(|name| name.digest().is_some());
        self.images.iter().find(|image| !has_digest(image)).map(|image| image.reference.as_str())
    }

    /// The images for the store.
    pub fn bundled_images(&self) -> BundledImages {
        let images = self.images.iter().filter_map(|image| Some((image.reference.parse().ok()?, image.digest)));
        let unpacked = self.blobs.iter().filter_map(|blob| Some((blob.digest, (blob.unpacked_bytes?, blob.entries?))));
        BundledImages {
            images: images.collect(),
            signatures: self.signatures.iter().copied().collect(),
            unpacked: unpacked.collect(),
        }
    }
}

/// Reports whether a text is a name of bundles: a lower-case RFC 1123 label.
pub fn is_name(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=MAX_NAME).contains(&text.len()) && text.bytes().all(is_part) && !text.starts_with('-') && !text.ends_with('-')
}

/// A text of the document in messages.
fn shown(text: &str) -> String {
    const SHOWN: usize = 80;
    let cut: String = text.chars().take(SHOWN).collect();
    if cut.len() < text.len() { format!("{cut:?}...") } else { format!("{cut:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn digest(text: &str) -> Digest {
        Digest::of(text.as_bytes())
    }

    fn document() -> Value {
        json!({
            "apiVersion": API_VERSION, "kind": KIND, "name": "fleet", "serial": 7, "created": "2026-11-29T12:00:00Z",
            "hosts": ["edge-1"], "manifests": digest("manifests"),
            "images": [{"reference": "docker.io/library/nginx:1.27", "digest": digest("nginx")}],
            "blobs": [
                {"digest": digest("manifests"), "size": 10}, {"digest": digest("nginx"), "size": 20},
                {"digest": digest("layer"), "size": 30, "unpackedBytes": 50, "entries": 2, "leftOut": true},
            ],
        })
    }

    fn refused(change: impl Fn(&mut Value)) -> String {
        let mut changed = document();
        change(&mut changed);
        BundleDocument::parse(changed.to_string().as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn document_is_read_back_as_written() {
        let found = BundleDocument::parse(document().to_string().as_bytes()).unwrap();
        assert!(found.is_for("edge-1") && found.is_for("Edge-1") && !found.is_for("edge-2"));
        let written = serde_json::to_vec(&found).unwrap();
        assert_eq!(BundleDocument::parse(&written).unwrap(), found);
        let images = found.bundled_images();
        assert_eq!(images.unpacked[&digest("layer")], (50, 2));
        assert_eq!(images.images.len(), 1);
        assert_eq!(found.without_digest(), Some("docker.io/library/nginx:1.27"));
    }

    #[test]
    fn document_is_read_strictly() {
        assert!(refused(|value| value["extra"] = json!(1)).contains("unknown field"));
        assert!(refused(|value| value["kind"] = json!("Pod")).contains("only podstead.dev/v1alpha1 Bundle"));
        assert!(refused(|value| value["serial"] = json!(0)).contains("serial"));
        assert!(refused(|value| value["serial"] = json!(-1)).contains("cannot be read"));
        for name in ["", "A", "-a", "a-", "a/b", "..", &"x".repeat(64)] {
            assert!(refused(|value| value["name"] = json!(name)).contains("invalid name"), "{name}");
        }
        assert!(refused(|value| value["hosts"] = json!([""])).contains("hosts"));
        assert!(refused(|value| value["hosts"] = json!(vec!["x"; MAX_HOSTS + 1])).contains("more than 10000"));
        let huge = refused(|value| value["images"][0]["reference"] = json!("x y".repeat(1 << 20)));
        assert!(huge.contains("images[0].reference") && huge.len() < 400, "{}", huge.len());
    }

    #[test]
    fn everything_that_counts_has_content() {
        assert!(refused(|value| value["manifests"] = json!(digest("other"))).contains("invalid manifests"));
        assert!(refused(|value| value["blobs"][0]["size"] = json!(MAX_MANIFESTS + 1)).contains("invalid manifests"));
        assert!(refused(|value| value["blobs"][0]["leftOut"] = json!(true)).contains("invalid manifests"));
        assert!(refused(|value| value["blobs"][1]["leftOut"] = json!(true)).contains("images[0].digest"));
        assert!(refused(|value| value["blobs"][1]["digest"] = json!(digest("manifests"))).contains("there twice"));
        assert!(refused(|value| value["blobs"][2]["size"] = json!(u64::MAX)).contains("blobs[2].size"));
        assert!(refused(|value| value["signatures"] = json!([digest("other")])).contains("signatures[0]"));
        let other = format!("nginx@{}", digest("other"));
        assert!(refused(|value| value["images"][0]["reference"] = json!(other)).contains("not the one in the reference"));
        assert!(refused(|value| value["images"] = json!([value["images"][0], value["images"][0]])).contains("there twice"));
    }
}
