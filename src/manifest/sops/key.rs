//! Identities and data keys; with the feature, what they open, and without it, that they cannot.

use super::{Plain, SopsError};
use std::fmt;

/// Recipients that are named in one message.
const MAX_NAMED: usize = 3;
/// Longest name of a recipient in a message: an X25519 recipient has 62 characters.
const MAX_NAME: usize = 70;

/// A data key, wrapped for one recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrapped<'a> {
    /// The recipient, `age1...`, as the document says.
    pub recipient: &'a str,
    /// An armoured age file.
    pub file: &'a str,
}

/// The age identities of this host.
#[derive(Clone, Default)]
pub struct Identities {
    #[cfg(feature = "sops")]
    keys: Vec<age::x25519::Identity>,
    /// Their recipients.
    recipients: Vec<String>,
}

impl PartialEq for Identities {
    fn eq(&self, other: &Self) -> bool {
        self.recipients == other.recipients
    }
}

impl Eq for Identities {}

impl fmt::Debug for Identities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Identities").field(&self.recipients).finish()
    }
}

/// Key of one document.
#[derive(Clone)]
pub struct DataKey {
    #[cfg(feature = "sops")]
    cipher: Box<cipher::Ciphers>,
    #[cfg(not(feature = "sops"))]
    never: std::convert::Infallible,
}

impl fmt::Debug for DataKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DataKey")
    }
}

impl Identities {
    /// The recipients of the identities, `age1...`.
    pub fn recipients(&self) -> &[String] {
        &self.recipients
    }

    /// Returns the error for a document with these wrapped keys.
    fn refusal(&self, wrapped: &[Wrapped<'_>]) -> SopsError {
        let wanted = named(wrapped.iter().map(|wrapped| wrapped.recipient));
        match self.recipients.as_slice() {
            _ if cfg!(not(feature = "sops")) => SopsError::NotBuiltIn { wanted },
            [] => SopsError::NoIdentity { wanted },
            present => SopsError::NotForThisHost { wanted, present: named(present.iter().map(String::as_str)) },
        }
    }
}

/// Some of the names, and how many more there are.
fn named<'a>(names: impl ExactSizeIterator<Item = &'a str>) -> String {
    let more = names.len().saturating_sub(MAX_NAMED);
    let short = |name: &str| name.chars().take(MAX_NAME).collect::<String>();
    let mut text = names.take(MAX_NAMED).map(short).collect::<Vec<_>>().join(", ");
    if more > 0 {
        text.push_str(&format!(" and {more} more"));
    }
    text
}

#[cfg(feature = "sops")]
mod cipher {
    use aes_gcm::AesGcm;
    use aes_gcm::aead::consts::{U12, U32};
    use aes_gcm::aead::{Aead, KeyInit, Payload};
    use aes_gcm::aes::Aes256;

    /// AES-256-GCM with the nonce of 32 bytes that SOPS uses, and with the usual one.
    #[derive(Clone)]
    pub(super) struct Ciphers {
        long: AesGcm<Aes256, U32>,
        usual: AesGcm<Aes256, U12>,
    }

    impl Ciphers {
        pub(super) fn new(key: &[u8; 32]) -> Self {
            Self { long: AesGcm::new(key.into()), usual: AesGcm::new(key.into()) }
        }

        pub(super) fn open(&self, nonce: &[u8], sealed: &[u8], place: &str) -> Option<Vec<u8>> {
            let payload = Payload { msg: sealed, aad: place.as_bytes() };
            match nonce.len() {
                32 => self.long.decrypt(nonce.into(), payload).ok(),
                12 => self.usual.decrypt(nonce.into(), payload).ok(),
                _ => None,
            }
        }
    }
}

#[cfg(feature = "sops")]
mod opening {
    use super::super::value;
    use super::cipher::Ciphers;
    use super::{DataKey, Identities, Plain, SopsError, Wrapped};
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use std::io::Read;

    /// Bytes of a wrapped key: a header line per recipient, of which SOPS writes one, and 32 bytes.
    const MAX_WRAPPED: usize = 8 << 10;

    impl Identities {
        /// Reads the lines of an identity file: identities, empty lines and comments.
        pub fn parse(text: &str) -> Result<Self, SopsError> {
            let mut identities = Self::default();
            for (index, line) in text.lines().enumerate() {
                let line = line.trim();
                if line.is_empty() || line.starts_with('#') {
                    continue;
                }
                let key: age::x25519::Identity = line.parse().map_err(|_| SopsError::Identity(index + 1))?;
                identities.recipients.push(key.to_public().to_string());
                identities.keys.push(key);
            }
            Ok(identities)
        }

        /// All of both.
        #[must_use]
        pub fn with(mut self, other: Self) -> Self {
            self.keys.extend(other.keys);
            self.recipients.extend(other.recipients);
            self
        }

        /// The data key that is wrapped for one of these.
        pub fn open(&self, wrapped: &[Wrapped<'_>]) -> Result<DataKey, SopsError> {
            // The one that names us is most likely ours.
            let (ours, others): (Vec<_>, Vec<_>) =
                wrapped.iter().partition(|wrapped| self.recipients.iter().any(|recipient| recipient == wrapped.recipient));
            let key = ours.into_iter().chain(others).find_map(|wrapped: &Wrapped<'_>| self.unwrap(wrapped.file));
            key.map(|key| DataKey { cipher: Box::new(Ciphers::new(&key)) }).ok_or_else(|| self.refusal(wrapped))
        }

        fn unwrap(&self, file: &str) -> Option<[u8; 32]> {
            // SOPS ends it with a line end or two, and age is strict about what is behind the end.
            let file = file.trim();
            if file.len() > MAX_WRAPPED {
                return None;
            }
            let keys = || self.keys.iter().map(|key| key as &dyn age::Identity);
            let decryptor = age::Decryptor::new_buffered(age::armor::ArmoredReader::new(file.as_bytes())).ok()?;
            let mut key = Vec::with_capacity(33);
            decryptor.decrypt(keys()).ok()?.take(33).read_to_end(&mut key).ok()?;
            key.try_into().ok()
        }
    }

    impl DataKey {
        /// Opens a value at its place: the keys that lead to it, each with a colon behind it. What it was, and as text.
        pub fn open(&self, sealed: &str, place: &str) -> Result<(Plain, String), SopsError> {
            let parts = value::parts(sealed).ok_or(SopsError::Malformed)?;
            let decoded = |text: &str| STANDARD.decode(text).map_err(|_| SopsError::Malformed);
            let (mut sealed, nonce) = (decoded(parts.data)?, decoded(parts.nonce)?);
            sealed.extend(decoded(parts.tag)?);
            let plain = self.cipher.open(&nonce, &sealed, place).ok_or(SopsError::Forged)?;
            let text = String::from_utf8(plain).map_err(|_| SopsError::Malformed)?;
            Ok((Plain::new(text.clone(), parts.kind)?, text))
        }
    }
}

#[cfg(not(feature = "sops"))]
impl Identities {
    /// Not without the feature: nothing is read.
    pub fn parse(_: &str) -> Result<Self, SopsError> {
        Ok(Self::default())
    }

    /// All of both.
    #[must_use]
    pub fn with(self, _: Self) -> Self {
        self
    }

    /// Not without the feature.
    pub fn open(&self, wrapped: &[Wrapped<'_>]) -> Result<DataKey, SopsError> {
        Err(self.refusal(wrapped))
    }
}

#[cfg(not(feature = "sops"))]
impl DataKey {
    /// There is no data key without the feature.
    pub fn open(&self, _: &str, _: &str) -> Result<(Plain, String), SopsError> {
        match self.never {}
    }
}

#[cfg(test)]
#[cfg(feature = "sops")]
pub(crate) mod tests {
    use super::*;
    use crate::sops::is_sealed;
    use aes_gcm::AesGcm;
    use aes_gcm::aead::consts::U32;
    use aes_gcm::aead::{Aead, KeyInit, Payload};
    use aes_gcm::aes::Aes256;
    use base64::Engine;

    pub(crate) const DATA_KEY: [u8; 32] = [9; 32];
    /// Made for the tests.
    pub(crate) const IDENTITY: &str = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";

    /// Seals a value as SOPS does.
    pub(crate) fn seal(plain: &str, kind: &str, place: &str) -> String {
        let encode = |bytes: &[u8]| base64::engine::general_purpose::STANDARD.encode(bytes);
        let nonce = [5; 32];
        let cipher = AesGcm::<Aes256, U32>::new((&DATA_KEY).into());
        let sealed = cipher.encrypt(&nonce.into(), Payload { msg: plain.as_bytes(), aad: place.as_bytes() }).unwrap();
        let (data, tag) = sealed.split_at(sealed.len() - 16);
        format!("ENC[AES256_GCM,data:{},iv:{},tag:{},type:{kind}]", encode(data), encode(&nonce), encode(tag))
    }

    /// A data key, wrapped for the recipient of `identity`.
    pub(crate) fn wrapped(identity: &str, key: &[u8]) -> String {
        let identity: age::x25519::Identity = identity.parse().unwrap();
        age::encrypt_and_armor(&identity.to_public(), key).unwrap()
    }

    fn key() -> DataKey {
        let identities = Identities::parse(IDENTITY).unwrap();
        identities.open(&[Wrapped { recipient: "", file: &wrapped(IDENTITY, &DATA_KEY) }]).unwrap()
    }

    #[test]
    fn a_value_is_opened_at_its_place_and_nowhere_else() {
        let sealed = seal("hunter2", "str", "stringData:password:");
        assert!(is_sealed(&sealed));
        let (plain, text) = key().open(&sealed, "stringData:password:").unwrap();
        assert!(plain == Plain::Text("hunter2".into()) && text == "hunter2");
        assert_eq!(key().open(&sealed, "stringData:user:").unwrap_err(), SopsError::Forged);
        for kind in ["set", "int", "float", "bool", "comment"] {
            let other = sealed.replace("type:str", &format!("type:{kind}"));
            assert_eq!(key().open(&other, "stringData:password:").unwrap_err(), SopsError::Malformed, "{kind}");
        }
        for garbled in ["ENC[AES256_GCM,]", "ENC[AES256_GCM,data:!,iv:,tag:,type:str]", "ENC[]", "", "ENC[AES256_GCM,data:ü]"] {
            assert_eq!(key().open(garbled, "a:").unwrap_err(), SopsError::Malformed, "{garbled}");
        }
        assert_eq!(key().open("ENC[AES256_GCM,data:AA==,iv:AA==,tag:AA==,type:str]", "a:").unwrap_err(), SopsError::Forged);
    }

    #[test]
    fn values_get_their_types_back() {
        for (text, kind, expected) in [
            ("42", "int", Plain::Int(42)),
            ("-1.5", "float", Plain::Float(-1.5)),
            ("True", "bool", Plain::Bool(true)),
            ("False", "bool", Plain::Bool(false)),
            ("2025-01-01T00:00:00Z", "time", Plain::Text("2025-01-01T00:00:00Z".into())),
        ] {
            assert!(key().open(&seal(text, kind, "a:"), "a:").unwrap().0 == expected, "{text}");
        }
    }

    #[test]
    fn identities_are_read_as_age_keygen_writes_them() {
        let file = format!("# created: 2025-01-01\n# public key: age1...\n\n{IDENTITY}\r\n");
        let identities = Identities::parse(&file).unwrap();
        assert!(identities.recipients()[0].starts_with("age1"));
        assert!(!format!("{identities:?}").contains("SECRET"));
        assert_eq!(Identities::parse("# nothing\nAGE-SECRET-KEY-1NOPE\n").unwrap_err(), SopsError::Identity(2));
        assert_eq!(Identities::parse("AGE-PLUGIN-YUBIKEY-1QQP\n").unwrap_err(), SopsError::Identity(1));
    }

    #[test]
    fn a_key_for_others_is_refused_with_their_names() {
        let other = "AGE-SECRET-KEY-184JMZMVQH3E6U0PSL869004Y3U2NYV7R30EU99CSEDNPH02YUVFSZW44VU";
        let identities = Identities::parse(other).unwrap();
        let file = wrapped(IDENTITY, &DATA_KEY);
        let refused = |identities: &Identities, file: &str| {
            identities.open(&[Wrapped { recipient: "age1wanted", file }]).unwrap_err().to_string()
        };
        let told = refused(&identities, &file);
        assert!(told.contains("for age1wanted, but this host is age1"), "{told}");
        assert!(refused(&Identities::default(), &file).contains("for age1wanted, but this host has no age identity"));
        let both = identities.with(Identities::parse(IDENTITY).unwrap());
        assert!(both.open(&[Wrapped { recipient: "age1wanted", file: &format!("{file}\n") }]).is_ok());
        for bad in ["garbage", "", &wrapped(IDENTITY, &[9; 31]), &wrapped(IDENTITY, &[9; 33]), &"x".repeat(100_000)] {
            assert!(refused(&both, bad).contains("age1wanted"));
        }
    }
}
