//! The file of keys that may sign: what `gpg --export` writes, with or without `--armor`; blocks may follow each other.

use super::armour;
use super::certificate::{About, Certificate};
use super::key::PublicKey;
use super::packet::{PUBLIC_KEY, PUBLIC_SUBKEY, Packet, SECRET_KEY, SECRET_SUBKEY, SIGNATURE, USER_ATTRIBUTE, USER_ID, packets};
use super::signature::{DOCUMENT, KEY_REVOCATION, Signature};
use crate::{KeyringProblem, Signer, TrustError};
use jiff::Timestamp;

/// Bytes of the file. Keys that many people have signed reach a few hundred KiB.
const MAX_SIZE: usize = 4 << 20;
/// Bytes of a signature; that of the largest RSA key has about 2 KiB in armour.
const MAX_SIGNATURE: usize = 16 << 10;
/// Magic bytes of gpg's keybox files.
const KEYBOX: &[u8] = b"KBXf";

/// Keys that may sign.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyring {
    certificates: Vec<Certificate>,
}

impl Keyring {
    /// Reads a keyring; on any fault, gives nothing.
    pub fn parse(bytes: &[u8]) -> Result<Self, KeyringProblem> {
        let problem = |message: &str| KeyringProblem(message.to_owned());
        if bytes.len() > MAX_SIZE {
            return Err(KeyringProblem(format!("it is larger than {MAX_SIZE} bytes")));
        }
        if bytes.get(8..12) == Some(KEYBOX) {
            return Err(problem("it is a keybox of gpg; export the keys with gpg --export"));
        }
        let blocks = match bytes.first() {
            Some(0x80..) => vec![bytes.to_vec()],
            Some(_) | None => armour::removed(bytes, "PUBLIC KEY BLOCK").map_err(problem)?,
        };
        let mut keyring = Self { certificates: Vec::new() };
        let mut loose = Vec::new();
        for block in &blocks {
            keyring.add(&packets(block).map_err(problem)?, &mut loose).map_err(problem)?;
        }
        for body in loose {
            keyring.revoke(&body);
        }
        match keyring.certificates.is_empty() {
            true => Err(problem("it has no keys")),
            false => Ok(keyring),
        }
    }

    /// Adds the keys of a block. Revocations before the first key, as `gpg --gen-revoke` writes them, go to `loose`.
    fn add(&mut self, packets: &[Packet<'_>], loose: &mut Vec<Vec<u8>>) -> Result<(), &'static str> {
        let mut current: Option<usize> = None;
        let mut about = About::Nothing;
        for Packet { tag, body } in packets {
            if *tag == PUBLIC_KEY {
                current = Some(self.certificate(PublicKey::parse(body)?));
                about = About::Key;
                continue;
            }
            let certificate = current.and_then(|index| self.certificates.get_mut(index));
            match (*tag, certificate) {
                (SECRET_KEY | SECRET_SUBKEY, _) => return Err(armour::SECRET),
                (SIGNATURE, Some(certificate)) => certificate.add_signature(about, body),
                (SIGNATURE, None) => loose.push(body.to_vec()),
                (USER_ID, Some(certificate)) => {
                    certificate.add_user(0xb4, body, Some(String::from_utf8_lossy(body).into_owned()));
                    about = About::User;
                }
                (USER_ATTRIBUTE, Some(certificate)) => {
                    certificate.add_user(0xd1, body, None);
                    about = About::User;
                }
                (PUBLIC_SUBKEY, Some(certificate)) => {
                    about = match PublicKey::parse(body) {
                        Ok(key) => {
                            certificate.add_subkey(key);
                            About::Subkey
                        }
                        // A signature by it has no key then, which is told.
                        Err(_) => About::Nothing,
                    };
                }
                (USER_ID | USER_ATTRIBUTE | PUBLIC_SUBKEY, None) => return Err("it does not start with a key"),
                // Encrypted, compressed and literal content, and what announces it.
                (1 | 3 | 4 | 8 | 9 | 11 | 18 | 20, _) => return Err("it contains something other than keys"),
                // Marks of other programs.
                _ => {}
            }
        }
        Ok(())
    }

    /// Index of the certificate with this primary key. The same key may occur again, with further statements of its owner.
    fn certificate(&mut self, primary: PublicKey) -> usize {
        match self.certificates.iter().position(|known| *known.primary() == primary) {
            Some(index) => index,
            None => {
                self.certificates.push(Certificate::new(primary));
                self.certificates.len() - 1
            }
        }
    }

    fn revoke(&mut self, body: &[u8]) {
        let Ok(signature) = Signature::parse(body) else { return };
        if signature.kind == KEY_REVOCATION {
            let mut owners = self.certificates.iter_mut().filter(|certificate| signature.is_by(certificate.primary()));
            owners.by_ref().for_each(|certificate| certificate.add_signature(About::Key, body));
        }
    }

    /// Verifies a detached signature, in armour or binary, over `signed`: made by a key of this ring that may sign at the latest of `at`
    /// and the time that the signature says it was made at.
    pub fn verify(&self, signed: &[u8], signature: &[u8], at: Timestamp) -> Result<Signer, TrustError> {
        let signature = detached(signature)?;
        let made = signature.says.created.ok_or(TrustError::MalformedSignature { fault: "it has no creation time" })?;
        signature.hash()?;
        let at = at.max(made);
        let mut refusal = None;
        for found in self.certificates.iter().filter_map(|certificate| certificate.signer(&signature, at)) {
            // Check that the signer is allowed before verifying the signature: unknown keys do not reach the cryptography.
            let judged = found.and_then(|(signer, key)| {
                signature.verify(key, &[signed])?;
                match signature.lasts_until() {
                    Some(until) if at >= until => Err(TrustError::SignatureExpired { until, at }),
                    _ if made < key.created => Err(super::certificate::unusable(key, "was created after the signature")),
                    Some(_) | None => Ok(signer),
                }
            });
            match judged {
                Ok(signer) => return Ok(signer),
                Err(error) => refusal = refusal.or(Some(error)),
            }
        }
        let unknown = || match signature.issuer() {
            Some(issuer) => TrustError::NotInKeyring { issuer },
            None => TrustError::MalformedSignature { fault: "it does not name the signing key" },
        };
        Err(refusal.unwrap_or_else(unknown))
    }
}

/// The one signature in these bytes.
fn detached(bytes: &[u8]) -> Result<Signature, TrustError> {
    if bytes.len() > MAX_SIGNATURE {
        return Err(TrustError::TooLarge { what: "the signature", limit: MAX_SIGNATURE });
    }
    let malformed = |fault| TrustError::MalformedSignature { fault };
    let blocks = match bytes.first() {
        Some(0x80..) => vec![bytes.to_vec()],
        Some(_) | None => armour::removed(bytes, "SIGNATURE").map_err(malformed)?,
    };
    let [block] = blocks.as_slice() else { return Err(malformed("it is not exactly one signature")) };
    match packets(block).map_err(malformed)?.as_slice() {
        [Packet { tag: SIGNATURE, body }] => {
            let signature = Signature::parse(body).map_err(malformed)?;
            match signature.kind {
                DOCUMENT => Ok(signature),
                _ => Err(malformed("it is not a signature of a binary document; sign with gpg --detach-sign, not in text mode")),
            }
        }
        _ => Err(malformed("it is not exactly one signature")),
    }
}
