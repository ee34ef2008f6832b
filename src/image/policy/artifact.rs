//! Manifests of signatures and lists of referrers, as registries and archives have them. **Pure**.

use crate::document::{Descriptor, OCI_INDEX};
use podstead_container::digest::Digest;
use serde::Deserialize;

/// Most layers of a manifest of signatures, and entries of a list of referrers.
const ENTRIES_MAX: usize = 1000;
/// Signatures of one manifest or list that are looked at: the last ones, since writers append.
pub const LOOKED_AT: usize = 16;
/// Payload of simple signing.
const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
/// Annotation with the signature over such a payload.
const SIGNATURE: &str = "dev.cosignproject.cosign/signature";
/// Referrer with layers of simple signing.
const COSIGN_ARTIFACT: &str = "application/vnd.dev.cosign.artifact.sig.v1+json";
/// Bundle of sigstore.
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
/// Type of a referrer that some registries give for any.
const EMPTY: &str = "application/vnd.oci.empty.v1+json";
/// Signature of Notary.
const NOTATION: &str = "application/vnd.cncf.notary.signature";

/// Reason why a document has no signatures.
#[derive(Debug, thiserror::Error)]
pub enum ArtifactError {
    /// Not JSON of its shape.
    #[error("it is not a {0}")]
    Malformed(&'static str),
    /// More than such a document has.
    #[error("it has {0} entries, more than {ENTRIES_MAX}")]
    TooMany(usize),
    /// A manifest of something else.
    #[error("it has no signature of cosign")]
    NoSignature,
    /// Notary's.
    #[error("it is a signature of notation, which is not supported")]
    Notation,
}

/// A layer of a manifest of signatures.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureLayer {
    /// Position in the manifest, from 1.
    pub number: usize,
    /// Digest and size of the document.
    pub descriptor: Descriptor,
    /// Format of the document.
    pub format: LayerFormat,
}

/// Format of a signature document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LayerFormat {
    /// A payload of simple signing; the base64 of its signature.
    Simple(String),
    /// A bundle.
    Bundle,
}

/// The signatures of a manifest; the last ones first.
pub fn signatures(manifest: &[u8]) -> Result<Vec<SignatureLayer>, ArtifactError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Written {
        #[serde(default)]
        artifact_type: Option<String>,
        #[serde(default)]
        layers: Option<Vec<Descriptor>>,
    }
    let Written { artifact_type, layers } =
        serde_json::from_slice(manifest).map_err(|_| ArtifactError::Malformed("manifest of signatures"))?;
    let layers = layers.unwrap_or_default();
    if layers.len() > ENTRIES_MAX {
        return Err(ArtifactError::TooMany(layers.len()));
    }
    let layer = |(index, descriptor): (usize, Descriptor)| {
        let format = match descriptor.media_type.as_str() {
            SIMPLE_SIGNING => LayerFormat::Simple(descriptor.annotations.get(SIGNATURE)?.clone()),
            BUNDLE => LayerFormat::Bundle,
            _ => return None,
        };
        Some(SignatureLayer { number: index + 1, descriptor, format })
    };
    let found: Vec<SignatureLayer> = layers.into_iter().enumerate().rev().filter_map(layer).take(LOOKED_AT).collect();
    match found.is_empty() {
        false => Ok(found),
        true if artifact_type.as_deref() == Some(NOTATION) => Err(ArtifactError::Notation),
        true => Err(ArtifactError::NoSignature),
    }
}

/// The referrers that may be signatures, the last ones first; and the number of those that are signatures of notation.
pub fn referrers(list: &[u8]) -> Result<(Vec<Digest>, usize), ArtifactError> {
    #[derive(Deserialize)]
    struct Written {
        #[serde(default)]
        manifests: Option<Vec<Entry>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Entry {
        digest: Digest,
        #[serde(default)]
        media_type: Option<String>,
        #[serde(default)]
        artifact_type: Option<String>,
    }
    let Written { manifests } = serde_json::from_slice(list).map_err(|_| ArtifactError::Malformed("list of referrers"))?;
    let entries = manifests.unwrap_or_default();
    if entries.len() > ENTRIES_MAX {
        return Err(ArtifactError::TooMany(entries.len()));
    }
    let kind = |entry: &Entry| entry.artifact_type.clone().unwrap_or_else(|| EMPTY.to_owned());
    let notation = entries.iter().filter(|entry| kind(entry) == NOTATION).count();
    let may_sign = |entry: &&Entry| {
        entry.media_type.as_deref() != Some(OCI_INDEX) && [COSIGN_ARTIFACT, BUNDLE, EMPTY].contains(&kind(entry).as_str())
    };
    let found = entries.iter().rev().filter(may_sign).map(|entry| entry.digest).take(LOOKED_AT).collect();
    Ok((found, notation))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn layer(kind: &str, signature: &str) -> Value {
        let digest = Digest::of(signature.as_bytes());
        json!({"mediaType": kind, "digest": digest, "size": 1, "annotations": {SIGNATURE: signature}})
    }

    #[test]
    fn last_signatures_are_looked_at() {
        let layers: Vec<Value> = (0..100).map(|number| layer(SIMPLE_SIGNING, &number.to_string())).collect();
        let found = signatures(json!({"schemaVersion": 2, "layers": layers}).to_string().as_bytes()).unwrap();
        assert_eq!(found.len(), LOOKED_AT);
        assert_eq!((found[0].number, &found[0].format), (100, &LayerFormat::Simple("99".into())));
        let mixed = json!({"layers": [layer("application/octet-stream", "x"), layer(BUNDLE, "y")]});
        assert_eq!(signatures(mixed.to_string().as_bytes()).unwrap()[0].format, LayerFormat::Bundle);
    }

    #[test]
    fn other_manifests_have_no_signature() {
        let error = |value: Value| signatures(value.to_string().as_bytes()).unwrap_err().to_string();
        assert_eq!(error(json!({"layers": [layer("text/plain", "x")]})), "it has no signature of cosign");
        assert_eq!(error(json!({"artifactType": NOTATION, "layers": null})), ArtifactError::Notation.to_string());
        assert_eq!(error(json!([1])), "it is not a manifest of signatures");
        let many = vec![layer(SIMPLE_SIGNING, "x"); ENTRIES_MAX + 1];
        assert_eq!(error(json!({"layers": many})), "it has 1001 entries, more than 1000");
    }

    #[test]
    fn referrers_are_chosen_by_type() {
        let entry = |kind: Option<&str>, text: &str| json!({"mediaType": "application/vnd.oci.image.manifest.v1+json", "digest": Digest::of(text.as_bytes()), "artifactType": kind});
        let list = json!({"manifests": [
            entry(Some(BUNDLE), "a"), entry(Some("application/spdx+json"), "b"), entry(Some(COSIGN_ARTIFACT), "c"), entry(None, "d"),
            entry(Some(NOTATION), "e"),
        ]});
        let (found, notation) = referrers(list.to_string().as_bytes()).unwrap();
        assert_eq!(found, ["d", "c", "a"].map(|text| Digest::of(text.as_bytes())));
        assert_eq!(notation, 1);
        let many = json!({"manifests": vec![entry(Some(BUNDLE), "a"); 100]});
        assert_eq!(referrers(many.to_string().as_bytes()).unwrap().0.len(), LOOKED_AT);
        let endless = json!({"manifests": vec![entry(Some(BUNDLE), "a"); 1001]});
        assert!(matches!(referrers(endless.to_string().as_bytes()), Err(ArtifactError::TooMany(1001))));
        assert!(matches!(referrers(b"<html>"), Err(ArtifactError::Malformed(_))));
    }
}
