//! The bundle of sigstore, version 0.3, which cosign 3 writes: a DSSE envelope with an in-toto statement, or a signature of the manifest itself.

use super::{COSIGN_SIGN, DOCUMENT_MAX, ImageKey, SignatureFault, Signed, Subject, shown, signer};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde::de::IgnoredAny;
use std::collections::BTreeMap;

/// Media types of version 0.3: the one that writers should use, and the older spelling.
const MEDIA_TYPES: [&str; 2] =
    ["application/vnd.dev.sigstore.bundle.v0.3+json", "application/vnd.dev.sigstore.bundle+json;version=0.3"];
/// Payload of an envelope that is a statement.
const IN_TOTO: &str = "application/vnd.in-toto+json";
/// Types of a statement.
const STATEMENTS: [&str; 2] = ["https://in-toto.io/Statement/v1", "https://in-toto.io/Statement/v0.1"];
/// Digests of a statement that a message repeats.
const SUBJECTS_SHOWN: usize = 3;

/// A parsed bundle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bundle {
    content: Content,
    /// It has a certificate instead of the name of a key.
    is_keyless: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Content {
    /// A signed statement about digests.
    Statement { signed: Vec<u8>, signature: Vec<u8>, predicate_type: String, digests: Vec<String> },
    /// A signature of the manifest itself.
    Message { signature: Vec<u8> },
}

impl Bundle {
    /// Reads the JSON of a bundle.
    pub fn parse(bytes: &[u8]) -> Result<Self, SignatureFault> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Written {
            media_type: String,
            verification_material: Option<Material>,
            dsse_envelope: Option<Envelope>,
            message_signature: Option<Message>,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Material {
            certificate: Option<IgnoredAny>,
            x509_certificate_chain: Option<IgnoredAny>,
        }
        #[derive(Deserialize)]
        struct Message {
            signature: String,
        }
        if bytes.len() > DOCUMENT_MAX {
            return Err(SignatureFault::TooLarge);
        }
        let written: Written =
            serde_json::from_slice(bytes).map_err(|_| SignatureFault::Malformed("it is not a bundle of sigstore"))?;
        if !MEDIA_TYPES.contains(&written.media_type.as_str()) {
            return Err(SignatureFault::Unsupported("a bundle of another version than 0.3"));
        }
        let has_certificate = |material: Material| material.certificate.is_some() || material.x509_certificate_chain.is_some();
        let is_keyless = written.verification_material.is_some_and(has_certificate);
        let content = match (written.dsse_envelope, written.message_signature) {
            (Some(envelope), None) => envelope.content()?,
            (None, Some(message)) => Content::Message { signature: decode(&message.signature)? },
            (Some(_), Some(_)) => return Err(SignatureFault::Malformed("it has two contents")),
            (None, None) => return Err(SignatureFault::Malformed("it has no content")),
        };
        Ok(Self { content, is_keyless })
    }

    /// Reports whether its statement is about `subject`, true or not. A signature of a manifest itself may be about any.
    pub fn is_about(&self, subject: &Subject<'_>) -> bool {
        match &self.content {
            Content::Message { .. } => true,
            Content::Statement { digests, .. } => digests.contains(&subject.digest()),
        }
    }

    /// The key that signed exactly `subject`. An attestation counts if its predicate type is one of `predicate_types`; without any, only that of
    /// `cosign sign` does, since whoever attests what an image contains does not release it.
    pub fn verify(&self, keys: &[ImageKey], subject: &Subject<'_>, predicate_types: &[String]) -> Result<Signed, SignatureFault> {
        let no_key = || if self.is_keyless { SignatureFault::Keyless } else { SignatureFault::OtherKey };
        match &self.content {
            // A signature of other content cannot be told from one of another key.
            Content::Message { signature } => {
                let key = signer(keys, subject.content, signature).ok_or_else(no_key)?;
                Ok(Signed { key, name: None })
            }
            Content::Statement { signed, signature, predicate_type, digests } => {
                let key = signer(keys, signed, signature).ok_or_else(no_key)?;
                let name = || keys.get(key).map(|key| key.fingerprint().to_string()).unwrap_or_default();
                let counts = match predicate_types {
                    [] => predicate_type == COSIGN_SIGN,
                    types => types.contains(predicate_type),
                };
                if !counts {
                    return Err(SignatureFault::OtherPredicate { key: name(), found: shown(predicate_type) });
                }
                if !digests.contains(&subject.digest()) {
                    let found: Vec<String> = digests.iter().take(SUBJECTS_SHOWN).map(|digest| shown(digest)).collect();
                    return Err(SignatureFault::OtherContent { key: name(), found: found.join(", ") });
                }
                Ok(Signed { key, name: None })
            }
        }
    }
}

/// A DSSE envelope.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Envelope {
    payload: String,
    payload_type: String,
    signatures: Vec<EnvelopeSignature>,
}

#[derive(Deserialize)]
struct EnvelopeSignature {
    sig: String,
}

impl Envelope {
    fn content(self) -> Result<Content, SignatureFault> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Statement {
            #[serde(rename = "_type")]
            kind: String,
            subject: Vec<StatementSubject>,
            predicate_type: String,
        }
        #[derive(Deserialize)]
        struct StatementSubject {
            #[serde(default)]
            digest: BTreeMap<String, String>,
        }
        let [EnvelopeSignature { sig }] = self.signatures.as_slice() else {
            return Err(SignatureFault::Malformed("its envelope must have exactly one signature"));
        };
        if self.payload_type != IN_TOTO {
            return Err(SignatureFault::Unsupported("an envelope with something other than an in-toto statement"));
        }
        let (payload, signature) = (decode(&self.payload)?, decode(sig)?);
        let statement: Statement =
            serde_json::from_slice(&payload).map_err(|_| SignatureFault::Malformed("it holds no in-toto statement"))?;
        if !STATEMENTS.contains(&statement.kind.as_str()) {
            return Err(SignatureFault::Unsupported("an in-toto statement of another version than 1"));
        }
        let digest = |subject: StatementSubject| Some(format!("sha256:{}", subject.digest.get("sha256")?));
        Ok(Content::Statement {
            signed: pre_authentication(&self.payload_type, &payload),
            signature,
            predicate_type: statement.predicate_type,
            digests: statement.subject.into_iter().filter_map(digest).collect(),
        })
    }
}

/// The bytes that DSSE signs.
fn pre_authentication(payload_type: &str, payload: &[u8]) -> Vec<u8> {
    let head = format!("DSSEv1 {} {payload_type} {} ", payload_type.len(), payload.len());
    [head.as_bytes(), payload].concat()
}

fn decode(text: &str) -> Result<Vec<u8>, SignatureFault> {
    STANDARD.decode(text).map_err(|_| SignatureFault::Malformed("it has something that is not base64"))
}
