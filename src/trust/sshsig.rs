//! The signature format of `ssh-keygen -Y sign` (`PROTOCOL.sshsig`), which git uses for commits and tags.

use super::TrustError;
use super::key::{PublicKey, shown};
use super::wire::{Reader, put_string};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::digest::{SHA256, SHA512, digest};

/// First line of an armoured signature.
pub(super) const BEGIN: &[u8] = b"-----BEGIN SSH SIGNATURE-----";
const END: &[u8] = b"-----END SSH SIGNATURE-----";
const MAGIC: &[u8] = b"SSHSIG";
const VERSION: u32 = 1;
/// Bytes of an armoured signature; that of the largest RSA key has about 4 KiB.
const MAX_ARMOURED: usize = 16 << 10;

/// A well-formed signature. Says nothing yet about who made it and whether it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshSignature {
    key: PublicKey,
    namespace: Vec<u8>,
    hash: Hash,
    /// Algorithm and value, as the key reads them.
    value: Vec<u8>,
}

/// Hash of the message, which is signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hash {
    Sha256,
    Sha512,
}

impl Hash {
    fn name(self) -> &'static [u8] {
        match self {
            Self::Sha256 => b"sha256",
            Self::Sha512 => b"sha512",
        }
    }
}

impl SshSignature {
    /// Parses an armoured signature; nothing may stand before or after it but an end of line.
    pub fn parse(armoured: &[u8]) -> Result<Self, TrustError> {
        Self::of_blob(&blob(armoured)?)
    }

    fn of_blob(blob: &[u8]) -> Result<Self, TrustError> {
        const SHORT: TrustError = TrustError::MalformedSignature { fault: "it is truncated" };
        let mut reader = Reader::new(blob);
        if reader.take(MAGIC.len()) != Some(MAGIC) {
            return Err(TrustError::MalformedSignature { fault: "it does not start with SSHSIG" });
        }
        if reader.number().ok_or(SHORT)? != VERSION {
            return Err(TrustError::MalformedSignature { fault: "its version is not 1" });
        }
        let mut string = || reader.string().ok_or(SHORT);
        let (key, namespace, reserved, hash, value) = (string()?, string()?, string()?, string()?, string()?);
        if !reader.is_at_end() {
            return Err(TrustError::MalformedSignature { fault: "it has data after its end" });
        }
        if namespace.is_empty() {
            return Err(TrustError::MalformedSignature { fault: "it has no namespace" });
        }
        // OpenSSH ignores it. What is meant by it is not known, so it is not taken for nothing.
        if !reserved.is_empty() {
            return Err(TrustError::MalformedSignature { fault: "its reserved field is not empty" });
        }
        let hash = match hash {
            b"sha256" => Hash::Sha256,
            b"sha512" => Hash::Sha512,
            other => {
                return Err(TrustError::Algorithm {
                    what: "hash",
                    name: shown(other),
                    reason: "only sha256 and sha512 are supported",
                });
            }
        };
        Ok(Self { key: PublicKey::parse(key)?, namespace: namespace.to_vec(), hash, value: value.to_vec() })
    }

    pub(super) fn key(&self) -> &PublicKey {
        &self.key
    }

    pub(super) fn namespace(&self) -> &[u8] {
        &self.namespace
    }

    /// Verifies that the key made this signature over `message`.
    pub(super) fn verify(&self, message: &[u8]) -> Result<(), TrustError> {
        let hashed = match self.hash {
            Hash::Sha256 => digest(&SHA256, message),
            Hash::Sha512 => digest(&SHA512, message),
        };
        let mut signed = MAGIC.to_vec();
        for part in [&self.namespace, b"".as_slice(), self.hash.name(), hashed.as_ref()] {
            put_string(&mut signed, part);
        }
        self.key.verify(&signed, &self.value)
    }
}

/// Removes the armour.
fn blob(armoured: &[u8]) -> Result<Vec<u8>, TrustError> {
    let malformed = |fault| TrustError::MalformedSignature { fault };
    if armoured.len() > MAX_ARMOURED {
        return Err(TrustError::TooLarge { what: "the signature", limit: MAX_ARMOURED });
    }
    let mut lines = armoured.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    if lines.next() != Some(BEGIN) {
        return Err(malformed("its first line is not -----BEGIN SSH SIGNATURE-----"));
    }
    let mut encoded = Vec::new();
    loop {
        match lines.next() {
            Some(line) if line == END => break,
            Some(line) => encoded.extend_from_slice(line),
            None => return Err(malformed("its last line is not -----END SSH SIGNATURE-----")),
        }
    }
    if lines.any(|line| !line.is_empty()) {
        return Err(malformed("it has data after -----END SSH SIGNATURE-----"));
    }
    STANDARD.decode(encoded).map_err(|_| malformed("it is not base64"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ring::signature::{Ed25519KeyPair, KeyPair};

    fn pair() -> Ed25519KeyPair {
        Ed25519KeyPair::from_seed_unchecked(&[3; 32]).unwrap()
    }

    fn string(out: &mut Vec<u8>, bytes: &[u8]) {
        put_string(out, bytes);
    }

    /// A signature over `message` with these fields.
    fn signature(namespace: &[u8], reserved: &[u8], hash: &[u8], message: &[u8]) -> Vec<u8> {
        let mut signed = MAGIC.to_vec();
        let hashed = if hash == b"sha256" { digest(&SHA256, message) } else { digest(&SHA512, message) };
        for part in [namespace, reserved, hash, hashed.as_ref()] {
            string(&mut signed, part);
        }
        let mut value = Vec::new();
        string(&mut value, b"ssh-ed25519");
        string(&mut value, pair().sign(&signed).as_ref());
        let mut key = Vec::new();
        string(&mut key, b"ssh-ed25519");
        string(&mut key, pair().public_key().as_ref());
        let mut blob = [MAGIC, &VERSION.to_be_bytes()].concat();
        for part in [&key, namespace, reserved, hash, &value] {
            string(&mut blob, part);
        }
        blob
    }

    fn armour(blob: &[u8]) -> String {
        format!("-----BEGIN SSH SIGNATURE-----\n{}\n-----END SSH SIGNATURE-----\n", STANDARD.encode(blob))
    }

    #[test]
    fn both_hashes_are_verified() {
        for hash in [b"sha256", b"sha512"] {
            let parsed = SshSignature::parse(armour(&signature(b"git", b"", hash, b"text")).as_bytes()).unwrap();
            parsed.verify(b"text").unwrap();
            assert!(matches!(parsed.verify(b"texT"), Err(TrustError::Mismatch { .. })));
        }
    }

    #[test]
    fn what_openssh_does_not_write_is_refused() {
        let good = signature(b"git", b"", b"sha512", b"text");
        let refused = |blob: &[u8], word: &str| {
            let error = SshSignature::parse(armour(blob).as_bytes()).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        };
        refused(&signature(b"git", b"x", b"sha512", b"text"), "reserved");
        refused(&signature(b"", b"", b"sha512", b"text"), "namespace");
        refused(&signature(b"git", b"", b"sha1", b"text"), "sha1");
        refused(&[&good[..], b"x"].concat(), "after its end");
        refused(b"", "SSHSIG");
        let mut other_version = good.clone();
        other_version[9] = 2;
        refused(&other_version, "version");
        for length in 0..good.len() {
            assert!(SshSignature::parse(armour(&good[..length]).as_bytes()).is_err(), "{length}");
        }
    }

    #[test]
    fn the_armour_is_whole_and_alone() {
        let good = armour(&signature(b"git", b"", b"sha512", b"text"));
        SshSignature::parse(good.replace('\n', "\r\n").as_bytes()).unwrap();
        SshSignature::parse(good.trim_end().as_bytes()).unwrap();
        for bad in [
            format!("x{good}"),
            format!("\n{good}"),
            format!("{good}x"),
            format!("{good}{good}"),
            good.replace("END", "FIN"),
            good.replace("U1NI", "U1N*"),
            String::new(),
        ] {
            assert!(matches!(SshSignature::parse(bad.as_bytes()), Err(TrustError::MalformedSignature { .. })), "{bad}");
        }
        let large = SshSignature::parse(&[b'A'; MAX_ARMOURED + 1]).unwrap_err();
        assert!(matches!(large, TrustError::TooLarge { .. }));
    }
}
