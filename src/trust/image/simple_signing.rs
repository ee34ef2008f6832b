//! Simple signing, cosign's format before version 3: a JSON payload and, in an annotation beside it, the signature over its bytes.

use super::{DOCUMENT_MAX, ImageKey, SignatureFault, Signed, Subject, shown, signer};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

/// `type` of what cosign signs.
const TYPE: &str = "cosign container image signature";
/// Longest signature in base64: that of an RSA key of 8192 bits.
const SIGNATURE_MAX: usize = 1400;

/// A payload with its signature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimpleSigning {
    payload: Vec<u8>,
    signature: Vec<u8>,
    statement: Statement,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Statement {
    /// `sha256:` and 64 digits.
    digest: String,
    name: String,
}

impl SimpleSigning {
    /// Reads a payload and the base64 of its signature.
    pub fn parse(payload: &[u8], signature: &str) -> Result<Self, SignatureFault> {
        if payload.len() > DOCUMENT_MAX || signature.len() > SIGNATURE_MAX {
            return Err(SignatureFault::TooLarge);
        }
        let signature = STANDARD.decode(signature.trim()).map_err(|_| SignatureFault::Malformed("its signature is not base64"))?;
        Ok(Self { statement: Statement::parse(payload)?, payload: payload.to_vec(), signature })
    }

    /// Reports whether its statement is about `subject`, true or not.
    pub fn is_about(&self, subject: &Subject<'_>) -> bool {
        self.statement.digest == subject.digest()
    }

    /// The key that signed exactly `subject`, and the image name that was signed with it.
    pub fn verify(&self, keys: &[ImageKey], subject: &Subject<'_>) -> Result<Signed, SignatureFault> {
        let key = signer(keys, &self.payload, &self.signature).ok_or(SignatureFault::OtherKey)?;
        if self.statement.digest != subject.digest() {
            let name = keys.get(key).map(|key| key.fingerprint().to_string()).unwrap_or_default();
            return Err(SignatureFault::OtherContent { key: name, found: shown(&self.statement.digest) });
        }
        Ok(Signed { key, name: Some(self.statement.name.clone()) })
    }
}

impl Statement {
    fn parse(payload: &[u8]) -> Result<Self, SignatureFault> {
        #[derive(Deserialize)]
        struct Payload {
            critical: Critical,
        }
        // What is critical and unknown is not understood.
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Critical {
            identity: Identity,
            image: Image,
            r#type: String,
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Identity {
            #[serde(rename = "docker-reference", default)]
            docker_reference: String,
        }
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Image {
            #[serde(rename = "docker-manifest-digest")]
            as_written: Option<String>,
            #[serde(rename = "Docker-manifest-digest")]
            as_specified: Option<String>,
        }
        let malformed = |_| SignatureFault::Malformed("its payload is not one of simple signing");
        let Payload { critical: Critical { identity, image, r#type } } = serde_json::from_slice(payload).map_err(malformed)?;
        if r#type != TYPE {
            return Err(SignatureFault::Malformed("its payload has another type than \"cosign container image signature\""));
        }
        // cosign's code and its specification differ in the name; both at once could be read in two ways.
        let digest = match (image.as_written, image.as_specified) {
            (Some(digest), None) | (None, Some(digest)) => digest,
            (Some(_), Some(_)) => return Err(SignatureFault::Malformed("its payload has two digests")),
            (None, None) => return Err(SignatureFault::Malformed("its payload has no digest")),
        };
        Ok(Self { digest, name: identity.docker_reference })
    }
}
