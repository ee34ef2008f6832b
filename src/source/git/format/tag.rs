//! An annotated tag.

use super::header::{Fault, id_of, line};
use crate::git::protocol::ObjectId;

/// Content of an annotated tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::git) struct Tag {
    /// Object that it names.
    pub(in crate::git) target: ObjectId,
}

impl Tag {
    /// Reads a tag.
    pub(in crate::git) fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let (first, mut rest) = line(bytes).ok_or(Fault("it has no object"))?;
        let target = id_of(first, "object").ok_or(Fault("it does not begin with its object"))?;
        while let Some((header, after)) = line(rest) {
            rest = after;
            if header.is_empty() {
                break;
            }
            if header.starts_with(b"object ") {
                return Err(Fault("it has more than one object"));
            }
        }
        Ok(Self { target })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn target_is_read_and_must_be_one() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        let tag = Tag::parse(format!("object {id}\ntype commit\ntag v1\n\nobject {id}\n").as_bytes()).unwrap();
        assert_eq!(tag.target.to_string(), id);
        for text in [String::new(), "type commit\n".into(), format!("object {id} \n"), format!("object {id}\nobject {id}\n")] {
            assert!(Tag::parse(text.as_bytes()).is_err(), "{text:?}");
        }
    }
}
