//! Text that takes no memory of its own while it is short.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;

/// Bytes of a text that is kept in its place.
const SHORT: usize = 22;

/// A text that does not change: a name, a namespace, a path. It is as large as a [`String`]; the daemon keeps many thousands of them, and most are so short
/// that they need no memory beside it. Copies of a longer one share it.
#[derive(Clone)]
pub struct ShortText(Content);

#[derive(Clone)]
enum Content {
    /// UTF-8, of this length.
    Here(u8, [u8; SHORT]),
    Beside(Arc<str>),
}

impl ShortText {
    /// The text.
    pub fn as_str(&self) -> &str {
        match &self.0 {
            // It was made of a text, so that it is one.
            Content::Here(length, bytes) => {
                bytes.get(..usize::from(*length)).and_then(|bytes| std::str::from_utf8(bytes).ok()).unwrap_or_default()
            }
            Content::Beside(text) => text,
        }
    }
}

impl From<&str> for ShortText {
    fn from(text: &str) -> Self {
        let mut bytes = [0; SHORT];
        match (bytes.get_mut(..text.len()), u8::try_from(text.len())) {
            (Some(here), Ok(length)) => {
                here.copy_from_slice(text.as_bytes());
                Self(Content::Here(length, bytes))
            }
            (None, _) | (_, Err(_)) => Self(Content::Beside(text.into())),
        }
    }
}

impl From<String> for ShortText {
    fn from(text: String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&String> for ShortText {
    fn from(text: &String) -> Self {
        Self::from(text.as_str())
    }
}

impl From<&Self> for ShortText {
    fn from(text: &Self) -> Self {
        text.clone()
    }
}

impl From<ShortText> for String {
    fn from(text: ShortText) -> Self {
        text.as_str().to_owned()
    }
}

impl From<&ShortText> for String {
    fn from(text: &ShortText) -> Self {
        text.as_str().to_owned()
    }
}

impl Default for ShortText {
    fn default() -> Self {
        Self(Content::Here(0, [0; SHORT]))
    }
}

impl Deref for ShortText {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<str> for ShortText {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

impl AsRef<Path> for ShortText {
    fn as_ref(&self) -> &Path {
        Path::new(self.as_str())
    }
}

impl Borrow<str> for ShortText {
    fn borrow(&self) -> &str {
        self.as_str()
    }
}

impl PartialEq for ShortText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Eq for ShortText {}

impl PartialEq<str> for ShortText {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for ShortText {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl PartialEq<String> for ShortText {
    fn eq(&self, other: &String) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<ShortText> for str {
    fn eq(&self, other: &ShortText) -> bool {
        self == other.as_str()
    }
}

impl PartialEq<ShortText> for &str {
    fn eq(&self, other: &ShortText) -> bool {
        *self == other.as_str()
    }
}

impl PartialEq<ShortText> for String {
    fn eq(&self, other: &ShortText) -> bool {
        self == other.as_str()
    }
}

impl PartialOrd for ShortText {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ShortText {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl Hash for ShortText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl fmt::Display for ShortText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(f)
    }
}

impl fmt::Debug for ShortText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Serialize for ShortText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for ShortText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::hash::DefaultHasher;

    fn hashed(text: impl Hash) -> u64 {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn short_text_is_no_larger_than_a_string() {
        assert_eq!(size_of::<ShortText>(), size_of::<String>());
        for (text, is_here) in
            [("", true), ("0123456789012345678901", true), ("01234567890123456789012", false), ("äöüäöüäöüäöü", false)]
        {
            let short = ShortText::from(text);
            assert_eq!((matches!(short.0, Content::Here(..)), short.as_str()), (is_here, text));
        }
        assert_eq!(ShortText::default(), "");
    }

    proptest! {
        #[test]
        fn short_text_is_the_text(one in ".{0,30}", other in ".{0,30}") {
            let (short, others) = (ShortText::from(&one), ShortText::from(&other));
            prop_assert_eq!(short.as_str(), &one);
            prop_assert_eq!(short.cmp(&others), one.cmp(&other));
            prop_assert_eq!(short == others, one == other);
            prop_assert_eq!(hashed(&short), hashed(&one));
            prop_assert_eq!(format!("{short} {short:?}"), format!("{one} {one:?}"));
            let json = serde_json::to_string(&short).unwrap();
            prop_assert_eq!(&json, &serde_json::to_string(&one).unwrap());
            prop_assert_eq!(serde_json::from_str::<ShortText>(&json).unwrap(), one);
        }
    }
}
