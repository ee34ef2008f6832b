//! The revision of content that has no name of its own: a hash over names and bytes.

use podstead_pod::Revision;
use ring::digest::{Context, SHA256, digest};

/// Hash of one file's content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct ContentHash([u8; 32]);

impl ContentHash {
    /// Of bytes that were read.
    pub(super) fn of_bytes(bytes: &[u8]) -> Self {
        Self::tagged(b"content", bytes)
    }

    /// Of a file that could not be read: the reason stands for the content.
    pub(super) fn of_failure(reason: &str) -> Self {
        Self::tagged(b"failure", reason.as_bytes())
    }

    fn tagged(tag: &[u8], bytes: &[u8]) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(tag);
        context.update(bytes);
        Self::finished(context)
    }

    fn finished(context: Context) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(context.finish().as_ref());
        Self(hash)
    }
}

/// Revision of files, given in lexical order. A file that is renamed is another revision.
pub(super) fn revision_of<'a>(files: impl Iterator<Item = (&'a str, ContentHash)>) -> Revision {
    let mut context = Context::new(&SHA256);
    for (name, content) in files {
        // The name's hash has a fixed length, so that no name can look like another name and its content.
        context.update(digest(&SHA256, name.as_bytes()).as_ref());
        context.update(&content.0);
    }
    Revision(format!("sha256:{}", hex::encode(ContentHash::finished(context).0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn revision(files: &[(&str, &str)]) -> Revision {
        revision_of(files.iter().map(|(name, text)| (*name, ContentHash::of_bytes(text.as_bytes()))))
    }

    #[test]
    fn names_and_contents_make_the_revision() {
        let base = revision(&[("a", "1"), ("b", "2")]);
        assert_eq!(base, revision(&[("a", "1"), ("b", "2")]));
        for other in [&[("a", "1"), ("b", "3")][..], &[("a", "1"), ("c", "2")], &[("a", "1")], &[("a", "2"), ("b", "1")], &[]] {
            assert_ne!(base, revision(other));
        }
        assert!(base.0.starts_with("sha256:") && base.0.len() == 71, "{base}");
    }

    #[test]
    fn a_file_that_cannot_be_read_is_not_one_that_holds_the_reason() {
        assert_ne!(ContentHash::of_failure("x"), ContentHash::of_bytes(b"x"));
    }
}
