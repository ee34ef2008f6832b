//! Public keys that may sign images: PEM files of X.509 public keys (RFC 5280, 4.1), as `cosign` and `openssl` write them.

use super::der::{self, BIT_STRING, INTEGER, OBJECT, SEQUENCE};
use crate::Fingerprint;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use std::fmt;

/// Most keys of one file.
pub const KEYS_PER_FILE: usize = 16;
/// Largest file of keys in bytes.
const FILE_MAX: usize = 64 << 10;
/// Sizes of an RSA modulus in bits: shorter ones are too weak, longer ones are not implemented.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END PUBLIC KEY-----";
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
const ED25519: &[u8] = &[0x2b, 0x65, 0x70];
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];

/// A public key that may sign images. Equal when the encoded keys are.
#[derive(Clone, PartialEq, Eq)]
pub struct ImageKey {
    fingerprint: Fingerprint,
    kind: Kind,
    /// As `ring` takes it: a point, 32 bytes, or the RSA key of PKCS #1.
    value: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    P256,
    P384,
    Ed25519,
    Rsa,
}

/// Reason why a file has no usable keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyFileProblem {
    /// In a line, from 1.
    #[error("line {line}: {fault}")]
    Line {
        /// The line.
        line: usize,
        /// The reason.
        fault: &'static str,
    },
    /// About the whole file.
    #[error("{0}")]
    File(&'static str),
}

impl ImageKey {
    /// Reads all keys of a file; at least one. Empty lines and lines that begin with `#` may be between them.
    pub fn parse_file(content: &[u8]) -> Result<Vec<Self>, KeyFileProblem> {
        if content.len() > FILE_MAX {
            return Err(KeyFileProblem::File("it is larger than a file of keys is"));
        }
        let text = std::str::from_utf8(content).map_err(|_| KeyFileProblem::File("it is not a text in PEM"))?;
        let mut keys = Vec::new();
        let mut lines = text.lines().map(str::trim_end).enumerate();
        while let Some((index, line)) = lines.next() {
            let at = |fault| KeyFileProblem::Line { line: index + 1, fault };
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let label = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix("-----"));
            check_label(label.ok_or_else(|| at("it is not PEM: it must begin with -----BEGIN PUBLIC KEY-----"))?).map_err(at)?;
            let mut encoded = String::new();
            loop {
                match lines.next() {
                    Some((_, END)) => break,
                    Some((_, line)) => encoded.push_str(line),
                    None => return Err(at("the key has no end line")),
                }
            }
            let der = STANDARD.decode(encoded).map_err(|_| at("the key is not base64"))?;
            if keys.len() == KEYS_PER_FILE {
                return Err(KeyFileProblem::File("it has more than 16 keys"));
            }
            keys.push(Self::parse(&der).map_err(at)?);
        }
        if keys.is_empty() {
            return Err(KeyFileProblem::File("it has no key"));
        }
        Ok(keys)
    }

    /// Reads the DER of one key.
    fn parse(der: &[u8]) -> Result<Self, &'static str> {
        const MALFORMED: &str = "the key is not an X.509 public key";
        let mut rest = der;
        let mut body = der::take(&mut rest, SEQUENCE).filter(|_| rest.is_empty()).ok_or(MALFORMED)?;
        let mut algorithm = der::take(&mut body, SEQUENCE).ok_or(MALFORMED)?;
        let bits = der::take(&mut body, BIT_STRING).filter(|_| body.is_empty()).ok_or(MALFORMED)?;
        // The number of unused bits comes first.
        let value = bits.strip_prefix(&[0]).ok_or(MALFORMED)?;
        let object = der::take(&mut algorithm, OBJECT).ok_or(MALFORMED)?;
        let kind = match object {
            EC_PUBLIC_KEY => {
                let (kind, width) = match der::take(&mut algorithm, OBJECT) {
                    Some(P256) => (Kind::P256, 32),
                    Some(P384) => (Kind::P384, 48),
                    _ => return Err("the key is on a curve other than P-256 and P-384"),
                };
                if value.len() != 1 + 2 * width || value.first() != Some(&4) {
                    return Err("the key is not an uncompressed point on its curve");
                }
                kind
            }
            ED25519 if value.len() == 32 => Kind::Ed25519,
            ED25519 => return Err("an Ed25519 key must have 32 bytes"),
            RSA => {
                let mut rest = value;
                let mut key = der::take(&mut rest, SEQUENCE).filter(|_| rest.is_empty()).ok_or(MALFORMED)?;
                let modulus = der::take(&mut key, INTEGER).ok_or(MALFORMED)?;
                let modulus = modulus.strip_prefix(&[0]).unwrap_or(modulus);
                let zeros = modulus.first().map_or(0, |first| first.leading_zeros() as usize);
                if !RSA_BITS.contains(&(modulus.len() * 8 - zeros)) {
                    return Err("an RSA key must have 2048 to 8192 bits");
                }
                Kind::Rsa
            }
            _ => return Err("the key is not of ECDSA, Ed25519 or RSA"),
        };
        Ok(Self { fingerprint: Fingerprint::of(der), kind, value: value.to_vec() })
    }

    /// Name of the key as people compare it: the hash of its DER.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// Reports whether this key made `signature` over `message`.
    pub(super) fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        let made = |algorithm: &'static dyn VerificationAlgorithm| {
            UnparsedPublicKey::new(algorithm, &self.value).verify(message, signature).is_ok()
        };
        match self.kind {
            Kind::P256 => made(&signature::ECDSA_P256_SHA256_ASN1),
            // cosign signs SHA-256 in the one format and SHA-384 in the other.
            Kind::P384 => made(&signature::ECDSA_P384_SHA256_ASN1) || made(&signature::ECDSA_P384_SHA384_ASN1),
            Kind::Ed25519 => made(&signature::ED25519),
            Kind::Rsa => made(&signature::RSA_PKCS1_2048_8192_SHA256),
        }
    }
}

impl fmt::Debug for ImageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ImageKey").field(&self.kind).field(&self.fingerprint).finish()
    }
}

fn check_label(label: &str) -> Result<(), &'static str> {
    match label {
        "PUBLIC KEY" => Ok(()),
        "CERTIFICATE" => Err("it is a certificate; write its key: openssl x509 -pubkey -noout"),
        "RSA PUBLIC KEY" => Err("it is an RSA key in PKCS #1; convert it: openssl rsa -RSAPublicKey_in -pubout"),
        label if label.contains("PRIVATE KEY") => Err("it is a private key, which must not be on this host"),
        _ => Err("it is not a public key (-----BEGIN PUBLIC KEY-----)"),
    }
}
