//! The name of an object: SHA-1 of its content.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The SHA-1 that names a commit, tag, tree or blob.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ObjectId([u8; 20]);

/// The text is not 40 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be 40 hexadecimal digits")]
pub struct NotAnObjectId;

impl ObjectId {
    /// From its bytes.
    pub fn from_bytes(bytes: [u8; 20]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }
}

impl FromStr for ObjectId {
    type Err = NotAnObjectId;

    fn from_str(text: &str) -> Result<Self, NotAnObjectId> {
        let mut bytes = [0; 20];
        hex::decode_to_slice(text, &mut bytes).map_err(|_| NotAnObjectId)?;
        Ok(Self(bytes))
    }
}

impl TryFrom<String> for ObjectId {
    type Error = NotAnObjectId;

    fn try_from(text: String) -> Result<Self, NotAnObjectId> {
        text.parse()
    }
}

impl From<ObjectId> for String {
    fn from(id: ObjectId) -> Self {
        id.to_string()
    }
}

impl fmt::Display for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl fmt::Debug for ObjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forty_digits_and_nothing_else_are_an_object_id() {
        let text = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(text.parse::<ObjectId>().unwrap().to_string(), text);
        assert_eq!(text.to_uppercase().parse::<ObjectId>().unwrap().to_string(), text);
        for wrong in ["", "0123", &text[1..], &format!("{text}0"), &text.replace('f', "g"), &format!("+{}", &text[1..])] {
            assert_eq!(wrong.parse::<ObjectId>(), Err(NotAnObjectId), "{wrong}");
        }
    }
}
