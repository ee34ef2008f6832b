//! Public keys of OpenSSH: what a blob holds, and the arithmetic behind a signature (RFC 4253, 5656, 8332, 8709; `PROTOCOL.u2f`).

use super::TrustError;
use super::wire::{Reader, padded};
use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::digest::{SHA256, digest};
use ring::signature::{self, RsaPublicKeyComponents, UnparsedPublicKey};
use std::fmt;

/// Sizes of an RSA modulus in bits: shorter ones are too weak, longer ones are not implemented.
const RSA_BITS: std::ops::RangeInclusive<usize> = 2048..=8192;
/// Flag of a security key's signature: a person touched the key.
const USER_PRESENT: u8 = 1;

/// The hash of a public key as people compare it: `SHA256:` and base64 as OpenSSH shows it, 40 hexadecimal digits for OpenPGP.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Fingerprint(String);

impl Fingerprint {
    pub(crate) fn of(blob: &[u8]) -> Self {
        Self(format!("SHA256:{}", STANDARD_NO_PAD.encode(digest(&SHA256, blob))))
    }

    /// That of an OpenPGP key of version 4.
    #[cfg(feature = "openpgp")]
    pub(super) fn openpgp(hash: &[u8; 20]) -> Self {
        Self(hex::encode_upper(hash))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A public key that can be verified with. Equal when the blobs are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PublicKey {
    blob: Vec<u8>,
    kind: Kind,
}

/// Content of the blob.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    Ed25519([u8; 32]),
    /// Uncompressed point on the curve.
    Ecdsa(Curve, Vec<u8>),
    Rsa {
        exponent: Vec<u8>,
        modulus: Vec<u8>,
    },
    /// A key in a security token; the application is part of what it signs.
    SecurityKey {
        inner: TokenKey,
        application: Vec<u8>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum TokenKey {
    Ed25519([u8; 32]),
    P256(Vec<u8>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Curve {
    P256,
    P384,
}

impl Curve {
    fn named(name: &[u8]) -> Option<Self> {
        match name {
            b"nistp256" => Some(Self::P256),
            b"nistp384" => Some(Self::P384),
            _ => None,
        }
    }

    /// Bytes of a coordinate.
    fn width(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
        }
    }
}

/// Reason why a blob is not a usable key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeyFault {
    /// Not a public key.
    Malformed(&'static str),
    /// A key of a type that is not taken; the type and the reason.
    Refused(String, &'static str),
}

impl From<KeyFault> for TrustError {
    fn from(fault: KeyFault) -> Self {
        match fault {
            KeyFault::Malformed(fault) => Self::MalformedSignature { fault },
            KeyFault::Refused(name, reason) => Self::Algorithm { what: "key", name, reason },
        }
    }
}

/// Returns why a key type is not supported; `None` for a supported one.
pub(super) fn refusal(name: &[u8]) -> Option<&'static str> {
    match name {
        b"ssh-ed25519"
        | b"ecdsa-sha2-nistp256"
        | b"ecdsa-sha2-nistp384"
        | b"ssh-rsa"
        | b"sk-ssh-ed25519@openssh.com"
        | b"sk-ecdsa-sha2-nistp256@openssh.com" => None,
        b"ecdsa-sha2-nistp521" => Some("the curve P-521 is not supported, use ssh-ed25519 or ecdsa-sha2-nistp384"),
        b"ssh-dss" => Some("DSA is broken, use ssh-ed25519"),
        other if other.ends_with(b"-cert-v01@openssh.com") => Some("certificates are not supported, list the key itself"),
        _ => Some("keys of this type are not supported, use ssh-ed25519"),
    }
}

/// Converts foreign bytes to a name for a message.
pub(super) fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(&name[..name.len().min(64)]).into_owned()
}

impl PublicKey {
    /// Parses a key blob without trailing bytes.
    pub(super) fn parse(blob: &[u8]) -> Result<Self, KeyFault> {
        const SHORT: KeyFault = KeyFault::Malformed("the key is truncated");
        let mut reader = Reader::new(blob);
        let name = reader.string().ok_or(SHORT)?;
        if let Some(reason) = refusal(name) {
            return Err(KeyFault::Refused(shown(name), reason));
        }
        let kind = match name {
            b"ssh-ed25519" => Kind::Ed25519(ed25519(reader.string().ok_or(SHORT)?)?),
            b"ssh-rsa" => {
                let (exponent, modulus) = (reader.magnitude(), reader.magnitude());
                let (Some(exponent), Some(modulus)) = (exponent, modulus) else {
                    return Err(KeyFault::Malformed("the RSA key has no exponent or modulus"));
                };
                if !RSA_BITS.contains(&bits(modulus)) {
                    return Err(KeyFault::Refused(shown(name), "RSA keys must have 2048 to 8192 bits"));
                }
                Kind::Rsa { exponent: exponent.to_vec(), modulus: modulus.to_vec() }
            }
            b"sk-ssh-ed25519@openssh.com" => {
                let inner = TokenKey::Ed25519(ed25519(reader.string().ok_or(SHORT)?)?);
                Kind::SecurityKey { inner, application: reader.string().ok_or(SHORT)?.to_vec() }
            }
            b"sk-ecdsa-sha2-nistp256@openssh.com" => {
                let (_, point) = point(&mut reader, b"nistp256")?;
                Kind::SecurityKey { inner: TokenKey::P256(point), application: reader.string().ok_or(SHORT)?.to_vec() }
            }
            ecdsa => {
                let (curve, point) = point(&mut reader, &ecdsa["ecdsa-sha2-".len()..])?;
                Kind::Ecdsa(curve, point)
            }
        };
        if !reader.is_at_end() {
            return Err(KeyFault::Malformed("the key has data after its end"));
        }
        Ok(Self { blob: blob.to_vec(), kind })
    }

    /// The name of the key as people compare it.
    pub(super) fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.blob)
    }

    /// Verifies `signature` (algorithm and blob, as OpenSSH encodes them) over `message`.
    pub(super) fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), TrustError> {
        const MALFORMED: TrustError = TrustError::MalformedSignature { fault: "its value is truncated or too long" };
        let mut reader = Reader::new(signature);
        let algorithm = reader.string().ok_or(MALFORMED)?;
        let value = reader.string().ok_or(MALFORMED)?;
        let other = |reason| TrustError::Algorithm { what: "algorithm", name: shown(algorithm), reason };
        let of_another_key = || other("it does not belong to the signing key");
        let verdict = match &self.kind {
            Kind::Ed25519(key) => {
                (algorithm == b"ssh-ed25519" && reader.is_at_end()).then_some(()).ok_or_else(of_another_key)?;
                UnparsedPublicKey::new(&signature::ED25519, key).verify(message, value)
            }
            Kind::Ecdsa(curve, point) => {
                let name: &[u8] = match curve {
                    Curve::P256 => b"ecdsa-sha2-nistp256",
                    Curve::P384 => b"ecdsa-sha2-nistp384",
                };
                (algorithm == name && reader.is_at_end()).then_some(()).ok_or_else(of_another_key)?;
                ecdsa(*curve, point, message, value).ok_or(MALFORMED)?
            }
            Kind::Rsa { exponent, modulus } => {
                let parameters = match algorithm {
                    b"rsa-sha2-512" => &signature::RSA_PKCS1_2048_8192_SHA512,
                    b"rsa-sha2-256" => &signature::RSA_PKCS1_2048_8192_SHA256,
                    b"ssh-rsa" => return Err(other("SHA-1 is broken, sign with rsa-sha2-512")),
                    _ => return Err(of_another_key()),
                };
                if !reader.is_at_end() {
                    return Err(MALFORMED);
                }
                // Some signers leave leading zeros out.
                let value = padded(value, modulus.len()).ok_or(MALFORMED)?;
                RsaPublicKeyComponents { n: modulus, e: exponent }.verify(parameters, message, &value)
            }
            Kind::SecurityKey { inner, application } => {
                let name: &[u8] = match inner {
                    TokenKey::Ed25519(_) => b"sk-ssh-ed25519@openssh.com",
                    TokenKey::P256(_) => b"sk-ecdsa-sha2-nistp256@openssh.com",
                };
                (algorithm == name).then_some(()).ok_or_else(of_another_key)?;
                let flags_and_counter = reader.take(5).filter(|_| reader.is_at_end()).ok_or(MALFORMED)?;
                if flags_and_counter[0] & USER_PRESENT == 0 {
                    return Err(TrustError::MalformedSignature { fault: "the security key was not touched" });
                }
                let signed = [digest(&SHA256, application).as_ref(), flags_and_counter, digest(&SHA256, message).as_ref()].concat();
                match inner {
                    TokenKey::Ed25519(key) => UnparsedPublicKey::new(&signature::ED25519, key).verify(&signed, value),
                    TokenKey::P256(point) => ecdsa(Curve::P256, point, &signed, value).ok_or(MALFORMED)?,
                }
            }
        };
        verdict.map_err(|_| TrustError::Mismatch { key: self.fingerprint() })
    }
}

fn bits(magnitude: &[u8]) -> usize {
    match magnitude.first() {
        Some(first) => magnitude.len() * 8 - first.leading_zeros() as usize,
        None => 0,
    }
}

fn ed25519(bytes: &[u8]) -> Result<[u8; 32], KeyFault> {
    bytes.try_into().map_err(|_| KeyFault::Malformed("an ed25519 key must have 32 bytes"))
}

/// A curve and an uncompressed point on it.
fn point(reader: &mut Reader<'_>, curve: &[u8]) -> Result<(Curve, Vec<u8>), KeyFault> {
    let named = reader.string().filter(|name| *name == curve).and_then(Curve::named);
    let named = named.ok_or(KeyFault::Malformed("the key's curve does not match its type"))?;
    let point = reader.string().filter(|point| point.len() == 1 + 2 * named.width() && point[0] == 4);
    let point = point.ok_or(KeyFault::Malformed("the key is not an uncompressed point on its curve"))?;
    Ok((named, point.to_vec()))
}

/// `None` for a signature that is not two numbers of the curve's size.
fn ecdsa(curve: Curve, point: &[u8], message: &[u8], value: &[u8]) -> Option<Result<(), ring::error::Unspecified>> {
    let mut reader = Reader::new(value);
    let (r, s) = (reader.magnitude()?, reader.magnitude()?);
    let fixed = [padded(r, curve.width())?, padded(s, curve.width())?].concat();
    if !reader.is_at_end() {
        return None;
    }
    let parameters = match curve {
        Curve::P256 => &signature::ECDSA_P256_SHA256_FIXED,
        Curve::P384 => &signature::ECDSA_P384_SHA384_FIXED,
    };
    Some(UnparsedPublicKey::new(parameters, point).verify(message, &fixed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::put_string;
    use ring::rand::SystemRandom;
    use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};

    fn strings(parts: &[&[u8]]) -> Vec<u8> {
        parts.iter().fold(Vec::new(), |mut out, part| {
            put_string(&mut out, part);
            out
        })
    }

    fn number(bytes: &[u8]) -> Vec<u8> {
        let start = bytes.iter().position(|byte| *byte != 0).unwrap();
        let mut out = if bytes[start] >= 0x80 { vec![0] } else { Vec::new() };
        out.extend_from_slice(&bytes[start..]);
        out
    }

    /// Data that a token signs, with flags and counter.
    fn token_message(message: &[u8], tail: [u8; 5]) -> Vec<u8> {
        [digest(&SHA256, b"ssh:").as_ref(), &tail, digest(&SHA256, message).as_ref()].concat()
    }

    #[test]
    fn a_token_with_ed25519_must_have_been_touched() {
        let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let name = b"sk-ssh-ed25519@openssh.com";
        let key = PublicKey::parse(&strings(&[name, pair.public_key().as_ref(), b"ssh:"])).unwrap();
        let signature = |tail: [u8; 5]| {
            let mut signature = strings(&[name, pair.sign(&token_message(b"text", tail)).as_ref()]);
            signature.extend_from_slice(&tail);
            signature
        };
        let touched = signature([1, 0, 0, 0, 9]);
        key.verify(b"text", &touched).unwrap();
        assert!(matches!(key.verify(b"other", &touched), Err(TrustError::Mismatch { .. })));
        assert!(key.verify(b"text", &touched[..touched.len() - 1]).is_err());
        let untouched = key.verify(b"text", &signature([0; 5])).unwrap_err();
        assert!(untouched.to_string().contains("touched"), "{untouched}");
    }

    #[test]
    fn a_token_with_ecdsa_is_verified() {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, document.as_ref(), &random).unwrap();
        let name = b"sk-ecdsa-sha2-nistp256@openssh.com";
        let key = PublicKey::parse(&strings(&[name, b"nistp256", pair.public_key().as_ref(), b"ssh:"])).unwrap();
        let tail = [1, 0, 0, 0, 9];
        let value = pair.sign(&random, &token_message(b"text", tail)).unwrap();
        let (r, s) = value.as_ref().split_at(32);
        let mut signature = strings(&[name, &strings(&[&number(r), &number(s)])]);
        signature.extend_from_slice(&tail);
        key.verify(b"text", &signature).unwrap();
        assert!(matches!(key.verify(b"Text", &signature), Err(TrustError::Mismatch { .. })));
    }

    #[test]
    fn keys_that_are_weak_cut_or_of_another_type_are_refused_with_the_reason() {
        let fault = |parts: &[&[u8]]| PublicKey::parse(&strings(parts)).unwrap_err();
        let refused = |parts: &[&[u8]], word: &str| match fault(parts) {
            KeyFault::Refused(_, reason) => assert!(reason.contains(word), "{reason}"),
            KeyFault::Malformed(fault) => panic!("{fault}"),
        };
        refused(&[b"ssh-rsa", &[1, 0, 1], &[0x7f; 128]], "2048");
        refused(&[b"ssh-rsa", &[1, 0, 1], &[0x7f; 255]], "2048");
        refused(&[b"ssh-rsa", &[1, 0, 1], &[0x7f; 1025]], "8192");
        refused(&[b"ecdsa-sha2-nistp521", b"nistp521", &[4; 133]], "P-521");
        refused(&[b"ssh-dss"], "DSA");
        refused(&[b"ssh-ed25519-cert-v01@openssh.com"], "certificates");
        refused(&[b"x"], "not supported");
        for malformed in [
            &[b"ssh-ed25519".as_slice(), &[0; 31]][..],
            &[b"ssh-ed25519", &[0; 32], b""],
            &[b"ssh-ed25519"],
            &[b"ssh-rsa", &[1, 0, 1]],
            &[b"ssh-rsa", &[0], &[0x7f; 256]],
            &[b"ecdsa-sha2-nistp256", b"nistp384", &[4; 97]],
            &[b"ecdsa-sha2-nistp256", b"nistp256", &[4; 64]],
            &[b"ecdsa-sha2-nistp256", b"nistp256", &[2; 65]],
            &[],
        ] {
            assert!(matches!(fault(malformed), KeyFault::Malformed(_)), "{malformed:?}");
        }
    }
}
