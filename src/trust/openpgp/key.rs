//! Public keys of OpenPGP: what a packet of version 4 holds, and the arithmetic behind a signature (RFC 9580, 5.5.2).

use super::packet::{integer, number};
use crate::wire::padded;
use crate::{Fingerprint, TrustError};
use jiff::Timestamp;
use ring::digest::{self, SHA1_FOR_LEGACY_USE_ONLY, digest};
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};

/// Algorithms, as RFC 9580 numbers them (9.1).
const RSA: u8 = 1;
const RSA_SIGN_ONLY: u8 = 3;
const ECDSA: u8 = 19;
const EDDSA: u8 = 22;
const ED25519: u8 = 27;
/// Sizes of an RSA modulus in bytes, 2048 to 8192 bits.
const RSA_BYTES: std::ops::RangeInclusive<usize> = 256..=1024;
const OID_P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const OID_P384: &[u8] = &[0x2b, 0x81, 0x04, 0x00, 0x22];
const OID_ED25519: &[u8] = &[0x2b, 0x06, 0x01, 0x04, 0x01, 0xda, 0x47, 0x0f, 0x01];

/// A hash that is strong enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

impl Hash {
    /// The hash with this number (RFC 9580, 9.5), or the name of one that is not taken.
    pub(super) fn numbered(number: u8) -> Result<Self, &'static str> {
        match number {
            8 => Ok(Self::Sha256),
            9 => Ok(Self::Sha384),
            10 => Ok(Self::Sha512),
            1 => Err("MD5"),
            2 => Err("SHA-1"),
            3 => Err("RIPEMD-160"),
            11 => Err("SHA-224"),
            12 | 14 => Err("SHA-3"),
            _ => Err("unknown"),
        }
    }

    pub(super) fn of(self, message: &[u8]) -> digest::Digest {
        match self {
            Self::Sha256 => digest(&digest::SHA256, message),
            Self::Sha384 => digest(&digest::SHA384, message),
            Self::Sha512 => digest(&digest::SHA512, message),
        }
    }
}

/// A primary key or a subkey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PublicKey {
    /// The packet, as it is hashed for signatures over it.
    framed: Vec<u8>,
    fingerprint: [u8; 20],
    pub(super) created: Timestamp,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Rsa {
        modulus: Vec<u8>,
        exponent: Vec<u8>,
    },
    P256(Vec<u8>),
    P384(Vec<u8>),
    /// With the algorithm: the same arithmetic is in two of them.
    Ed25519(u8, Vec<u8>),
    /// A key that cannot verify, with the reason.
    Other(&'static str),
}

impl PublicKey {
    /// Parses the body of a packet. A key of another algorithm is one that verifies nothing; a file may well have some to encrypt to.
    pub(super) fn parse(body: &[u8]) -> Result<Self, &'static str> {
        const SHORT: &str = "it has a truncated key";
        let (&version, rest) = body.split_first().ok_or(SHORT)?;
        if version != 4 {
            return Err("it has a key with a version other than 4");
        }
        let (created, rest) = rest.split_at_checked(4).ok_or(SHORT)?;
        let (&algorithm, material) = rest.split_first().ok_or(SHORT)?;
        let length = u16::try_from(body.len()).map_err(|_| "it has a key that is too long")?;
        let framed = [&[0x99][..], &length.to_be_bytes(), body].concat();
        let mut fingerprint = [0; 20];
        fingerprint.copy_from_slice(digest(&SHA1_FOR_LEGACY_USE_ONLY, &framed).as_ref());
        Ok(Self { framed, fingerprint, created: seconds(created), kind: kind(algorithm, material).ok_or(SHORT)? })
    }

    pub(super) fn framed(&self) -> &[u8] {
        &self.framed
    }

    pub(super) fn fingerprint_bytes(&self) -> [u8; 20] {
        self.fingerprint
    }

    pub(super) fn fingerprint(&self) -> Fingerprint {
        Fingerprint::openpgp(&self.fingerprint)
    }

    /// The last eight bytes of the fingerprint.
    pub(super) fn id(&self) -> [u8; 8] {
        let mut id = [0; 8];
        id.copy_from_slice(&self.fingerprint[12..]);
        id
    }

    /// Verifies the value of a signature, in its algorithm's own form, over `message`.
    pub(super) fn verify(&self, algorithm: u8, hash: Hash, message: &[u8], value: &[u8]) -> Result<(), TrustError> {
        const MALFORMED: TrustError = TrustError::MalformedSignature { fault: "its value is truncated or too long" };
        let refused = |name: &str, reason| TrustError::Algorithm { what: "algorithm", name: name.to_owned(), reason };
        let of_another_key = || refused(&format!("number {algorithm}"), "it does not belong to the signing key");
        let verdict = match &self.kind {
            Kind::Rsa { modulus, exponent } => {
                matches!(algorithm, RSA | RSA_SIGN_ONLY).then_some(()).ok_or_else(of_another_key)?;
                let parameters = match hash {
                    Hash::Sha256 => &signature::RSA_PKCS1_2048_8192_SHA256,
                    Hash::Sha384 => &signature::RSA_PKCS1_2048_8192_SHA384,
                    Hash::Sha512 => &signature::RSA_PKCS1_2048_8192_SHA512,
                };
                let value = only_integer(value).and_then(|value| padded(value, modulus.len())).ok_or(MALFORMED)?;
                RsaPublicKeyComponents { n: modulus, e: exponent }.verify(parameters, message, &value)
            }
            Kind::P256(point) | Kind::P384(point) => {
                (algorithm == ECDSA).then_some(()).ok_or_else(of_another_key)?;
                let (parameters, width) = match (&self.kind, hash) {
                    (Kind::P256(_), Hash::Sha256) => (&signature::ECDSA_P256_SHA256_FIXED, 32),
                    (Kind::P384(_), Hash::Sha384) => (&signature::ECDSA_P384_SHA384_FIXED, 48),
                    _ => return Err(refused("ECDSA", "it is supported only with SHA-256 on P-256 and with SHA-384 on P-384")),
                };
                let value = two_integers(value, width).ok_or(MALFORMED)?;
                UnparsedPublicKey::new(parameters, point).verify(message, &value)
            }
            Kind::Ed25519(own, point) => {
                (algorithm == *own).then_some(()).ok_or_else(of_another_key)?;
                let value = match algorithm {
                    ED25519 => value.to_vec(),
                    _ => two_integers(value, 32).ok_or(MALFORMED)?,
                };
                // What is signed is the hash.
                UnparsedPublicKey::new(&signature::ED25519, point).verify(hash.of(message).as_ref(), &value)
            }
            Kind::Other(why) => {
                return Err(TrustError::KeyUnusable { key: self.fingerprint(), reason: why });
            }
        };
        verdict.map_err(|_| TrustError::Mismatch { key: self.fingerprint() })
    }
}

/// Seconds since 1970 in four bytes.
pub(super) fn seconds(bytes: &[u8]) -> Timestamp {
    i64::try_from(number(bytes)).ok().and_then(|seconds| Timestamp::from_second(seconds).ok()).unwrap_or(Timestamp::MAX)
}

/// `None` where the material is cut short.
fn kind(algorithm: u8, material: &[u8]) -> Option<Kind> {
    Some(match algorithm {
        RSA | RSA_SIGN_ONLY => {
            let (modulus, rest) = integer(material)?;
            let (exponent, _) = integer(rest)?;
            if !RSA_BYTES.contains(&modulus.len()) || modulus.len() == *RSA_BYTES.start() && modulus[0] < 0x80 {
                return Some(Kind::Other("is an RSA key that does not have 2048 to 8192 bits"));
            }
            Kind::Rsa { modulus: modulus.to_vec(), exponent: exponent.to_vec() }
        }
        ECDSA | EDDSA => {
            let (length, rest) = material.split_first()?;
            let (oid, rest) = rest.split_at_checked(usize::from(*length))?;
            let (point, _) = integer(rest)?;
            match (algorithm, oid) {
                (ECDSA, OID_P256) => Kind::P256(point.to_vec()),
                (ECDSA, OID_P384) => Kind::P384(point.to_vec()),
                // 0x40 says that the point is in its own form.
                (EDDSA, OID_ED25519) if point.len() == 33 && point[0] == 0x40 => Kind::Ed25519(EDDSA, point[1..].to_vec()),
                _ => Kind::Other("uses an unsupported curve; supported are Ed25519, P-256 and P-384"),
            }
        }
        ED25519 => Kind::Ed25519(ED25519, material.get(..32)?.to_vec()),
        17 => Kind::Other("is a DSA key, which is not supported; use Ed25519"),
        _ => Kind::Other("uses an unsupported algorithm; use Ed25519"),
    })
}

fn only_integer(value: &[u8]) -> Option<&[u8]> {
    integer(value).filter(|(_, rest)| rest.is_empty()).map(|(integer, _)| integer)
}

/// Two integers side by side, each of `width` bytes.
fn two_integers(value: &[u8], width: usize) -> Option<Vec<u8>> {
    let (first, rest) = integer(value)?;
    Some([padded(first, width)?, padded(only_integer(rest)?, width)?].concat())
}
