//! Signature packets of version 4 (RFC 9580, 5.2.3): what they say, and over what bytes they are made.

use super::key::{Hash, PublicKey, seconds};
use super::packet::subpacket_length;
use crate::TrustError;
use jiff::{SignedDuration, Timestamp};

/// Over the bytes of a document; commits, tags and detached signatures have it.
pub(super) const DOCUMENT: u8 = 0x00;
pub(super) const CERTIFICATIONS: std::ops::RangeInclusive<u8> = 0x10..=0x13;
pub(super) const SUBKEY_BINDING: u8 = 0x18;
const BACK_SIGNATURE: u8 = 0x19;
pub(super) const DIRECT: u8 = 0x1f;
pub(super) const KEY_REVOCATION: u8 = 0x20;
pub(super) const SUBKEY_REVOCATION: u8 = 0x28;
pub(super) const CERTIFICATION_REVOCATION: u8 = 0x30;
/// In the key flags: it may sign documents.
const MAY_SIGN: u8 = 2;

/// A well-formed signature. Says nothing yet about whether it matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signature {
    pub(super) kind: u8,
    algorithm: u8,
    hash: u8,
    /// From the version to the end of the hashed subpackets.
    hashed: Vec<u8>,
    value: Vec<u8>,
    pub(super) says: Says,
}

/// Content of the subpackets. Of those that are not hashed, only the issuer and the back signature are read, which are verified otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Says {
    pub(super) created: Option<Timestamp>,
    /// Time from its creation until it expires.
    pub(super) lasts: Option<SignedDuration>,
    /// Time from the key's creation until the key expires.
    pub(super) key_lasts: Option<SignedDuration>,
    issuer: Option<[u8; 8]>,
    issuer_fingerprint: Option<[u8; 20]>,
    flags: Option<u8>,
    pub(super) is_primary_user: bool,
    /// Fingerprints of keys that may revoke this one.
    pub(super) revokers: Vec<[u8; 20]>,
    embedded: Option<Vec<u8>>,
    /// It demands to be understood, and is not.
    has_unknown_demand: bool,
}

impl Signature {
    /// Parses the body of a packet.
    pub(super) fn parse(body: &[u8]) -> Result<Self, &'static str> {
        const SHORT: &str = "it is truncated";
        match body.first() {
            Some(4) => {}
            Some(_) => return Err("its version is not 4"),
            None => return Err(SHORT),
        }
        let [_, kind, algorithm, hash, high, low, ref rest @ ..] = *body else { return Err(SHORT) };
        let length = usize::from(u16::from_be_bytes([high, low]));
        let (hashed, rest) = rest.split_at_checked(length).ok_or(SHORT)?;
        let [high, low, ref rest @ ..] = *rest else { return Err(SHORT) };
        let (unhashed, rest) = rest.split_at_checked(usize::from(u16::from_be_bytes([high, low]))).ok_or(SHORT)?;
        // The first two bytes of the hash only save time.
        let value = rest.get(2..).ok_or(SHORT)?;
        let mut says = Says::default();
        says.read(hashed, true).ok_or("its subpackets are malformed")?;
        says.read(unhashed, false).ok_or("its subpackets are malformed")?;
        Ok(Self { kind, algorithm, hash, hashed: body[..6 + length].to_vec(), value: value.to_vec(), says })
    }

    /// Reports whether it names this key as its issuer, or names none.
    pub(super) fn is_by(&self, key: &PublicKey) -> bool {
        match (self.says.issuer_fingerprint, self.says.issuer) {
            (Some(fingerprint), _) => fingerprint == key.fingerprint_bytes(),
            (None, Some(id)) => id == key.id(),
            (None, None) => true,
        }
    }

    /// The fingerprint or else the identity of the key that it says to be made by, in hexadecimal digits.
    pub(super) fn issuer(&self) -> Option<String> {
        let fingerprint = self.says.issuer_fingerprint.map(hex::encode_upper);
        fingerprint.or_else(|| self.says.issuer.map(hex::encode_upper))
    }

    pub(super) fn issuer_fingerprint(&self) -> Option<[u8; 20]> {
        self.says.issuer_fingerprint
    }

    /// Reports whether the key that it is about may sign; `None` if it has no key flags.
    pub(super) fn may_sign(&self) -> Option<bool> {
        self.says.flags.map(|flags| flags & MAY_SIGN != 0)
    }

    /// The hash, or why it is not taken.
    pub(super) fn hash(&self) -> Result<Hash, TrustError> {
        let reason = "only SHA-256, SHA-384 and SHA-512 are supported";
        Hash::numbered(self.hash).map_err(|name| TrustError::Algorithm { what: "hash", name: name.to_owned(), reason })
    }

    /// Verifies that `key` made it over these bytes, and that it has no unknown critical subpacket.
    pub(super) fn verify(&self, key: &PublicKey, signed: &[&[u8]]) -> Result<(), TrustError> {
        let hash = self.hash()?;
        if self.says.has_unknown_demand {
            return Err(TrustError::MalformedSignature { fault: "it has an unknown critical subpacket" });
        }
        let length = u32::try_from(self.hashed.len()).unwrap_or(u32::MAX);
        let message = [&signed.concat()[..], &self.hashed, &[4, 0xff], &length.to_be_bytes()].concat();
        key.verify(self.algorithm, hash, &message, &self.value)
    }

    /// Time of creation, if it is a valid self-signature of `key`.
    pub(super) fn stated_by(&self, key: &PublicKey, signed: &[&[u8]]) -> Result<Timestamp, TrustError> {
        self.verify(key, signed)?;
        self.says.created.ok_or(TrustError::MalformedSignature { fault: "it has no creation time" })
    }

    /// Reports whether the subkey has signed that it belongs to `primary`, so that another owner's subkey cannot be claimed.
    pub(super) fn has_back_signature(&self, primary: &PublicKey, subkey: &PublicKey) -> bool {
        let Some(back) = self.says.embedded.as_deref().and_then(|body| Self::parse(body).ok()) else { return false };
        back.kind == BACK_SIGNATURE && back.verify(subkey, &[primary.framed(), subkey.framed()]).is_ok()
    }

    /// Returns the time when it expires.
    pub(super) fn lasts_until(&self) -> Option<Timestamp> {
        self.says.created.zip(self.says.lasts).map(|(created, lasts)| later(created, lasts))
    }
}

/// The end of a time that begins at `from`.
pub(super) fn later(from: Timestamp, by: SignedDuration) -> Timestamp {
    from.checked_add(by).unwrap_or(Timestamp::MAX)
}

impl Says {
    /// Reads an area of subpackets; `None` where it is malformed.
    fn read(&mut self, mut area: &[u8], is_hashed: bool) -> Option<()> {
        while !area.is_empty() {
            let (length, rest) = subpacket_length(area)?;
            let (subpacket, after) = rest.split_at_checked(length)?;
            let (kind, body) = subpacket.split_first()?;
            self.take(kind & 0x7f, kind & 0x80 != 0, body, is_hashed)?;
            area = after;
        }
        Some(())
    }

    fn take(&mut self, kind: u8, is_critical: bool, body: &[u8], is_hashed: bool) -> Option<()> {
        match kind {
            16 => {
                let issuer = body.try_into().ok()?;
                self.issuer = self.issuer.or(Some(issuer));
            }
            32 => self.embedded = self.embedded.take().or_else(|| Some(body.to_vec())),
            33 => {
                // Those of other versions are of other lengths, and of no key that is taken.
                let fingerprint = body.strip_prefix(&[4]).and_then(|fingerprint| fingerprint.try_into().ok());
                self.issuer_fingerprint = self.issuer_fingerprint.or(fingerprint);
            }
            _ if !is_hashed => {}
            2 => self.created = Some(seconds(four(body)?)),
            3 => self.lasts = duration(body)?,
            9 => self.key_lasts = duration(body)?,
            12 => self.revokers.extend(body.get(2..).and_then(|fingerprint| <[u8; 20]>::try_from(fingerprint).ok())),
            25 => self.is_primary_user = body.first().is_some_and(|flag| *flag != 0),
            27 => self.flags = Some(body.first().copied().unwrap_or(0)),
            // Exportable, trust, revocable, preferences, policy, the signer's name, the reason of a revocation, features: they change
            // nothing here.
            4 | 5 | 7 | 11 | 21..=24 | 26 | 28..=30 | 34 | 39 => {}
            _ => self.has_unknown_demand |= is_critical,
        }
        Some(())
    }
}

fn four(body: &[u8]) -> Option<&[u8]> {
    (body.len() == 4).then_some(body)
}

/// None for one that does not end.
fn duration(body: &[u8]) -> Option<Option<SignedDuration>> {
    let seconds = u32::from_be_bytes(body.try_into().ok()?);
    Some((seconds != 0).then(|| SignedDuration::from_secs(seconds.into())))
}
