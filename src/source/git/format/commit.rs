//! A commit.

use super::header::{Fault, id_of, line};
use crate::git::protocol::ObjectId;

/// Content of a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::git) struct Commit {
    /// Its files.
    pub(in crate::git) tree: ObjectId,
    /// The commits before it.
    pub(in crate::git) parents: Vec<ObjectId>,
    /// Name and address of its author; empty if it has none.
    pub(in crate::git) author: Vec<u8>,
    /// The first paragraph of its message, in one line.
    pub(in crate::git) subject: Vec<u8>,
}

impl Commit {
    /// Reads a commit.
    pub(in crate::git) fn parse(bytes: &[u8]) -> Result<Self, Fault> {
        let (first, mut rest) = line(bytes).ok_or(Fault("it has no tree"))?;
        let tree = id_of(first, "tree").ok_or(Fault("it does not begin with its tree"))?;
        let (mut parents, mut author, mut may_have_parents) = (Vec::new(), None, true);
        // A commit without a message may end with its headers.
        while let Some((header, after)) = line(rest) {
            rest = after;
            if header.is_empty() {
                break;
            }
            if header.starts_with(b"parent ") {
                // As git reads them: what comes later is no parent, and two readers must not see two histories.
                let parent = id_of(header, "parent").filter(|_| may_have_parents);
                parents.push(parent.ok_or(Fault("it has a parent without an id, or behind other headers"))?);
                continue;
            }
            may_have_parents = false;
            if header.starts_with(b"tree ") {
                return Err(Fault("it has more than one tree"));
            }
            if let Some(person) = header.strip_prefix(b"author ")
                && author.is_none()
            {
                author = Some(person_of(person).to_vec());
            }
        }
        Ok(Self { tree, parents, author: author.unwrap_or_default(), subject: subject_of(rest) })
    }
}

/// Name and address without the time.
fn person_of(text: &[u8]) -> &[u8] {
    memchr::memrchr(b'>', text).map_or(text, |end| &text[..=end])
}

fn subject_of(message: &[u8]) -> Vec<u8> {
    let lines = message.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let paragraph = lines.skip_while(|line| line.is_empty()).take_while(|line| !line.is_empty());
    paragraph.collect::<Vec<_>>().join(&b' ')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ID: &str = "0123456789abcdef0123456789abcdef01234567";

    fn fault(text: &str) -> &'static str {
        Commit::parse(text.as_bytes()).unwrap_err().0
    }

    #[test]
    fn headers_and_subject_are_read() {
        let text = format!(
            "tree {ID}\nparent {ID}\nparent {}\nauthor A B <a@x> 1 +0000\ncommitter c <c> 1 +0000\ngpgsig -----BEGIN\n parent x\n\n\n one\ntwo \n\nthree\n",
            ID.replace('0', "a")
        );
        let commit = Commit::parse(text.as_bytes()).unwrap();
        assert_eq!((commit.tree.to_string(), commit.parents.len()), (ID.to_owned(), 2));
        assert_eq!(commit.parents[1].to_string(), ID.replace('0', "a"));
        assert_eq!((&commit.author[..], &commit.subject[..]), (&b"A B <a@x>"[..], &b"one two"[..]));
        let bare = Commit::parse(format!("tree {ID}\n").as_bytes()).unwrap();
        assert_eq!((bare.parents.len(), bare.author.len(), bare.subject.len()), (0, 0, 0));
    }

    #[test]
    fn what_two_readers_may_read_differently_is_refused() {
        assert!(fault("").contains("no tree"));
        assert!(fault("parent x\n").contains("begin with its tree"));
        assert!(fault(&format!("tree {ID}x\n")).contains("begin with its tree"));
        assert!(fault(&format!("tree {ID}\nparent {ID}x\n")).contains("parent"));
        assert!(fault(&format!("tree {ID}\nauthor a <a> 1 +0000\nparent {ID}\n")).contains("parent"));
        assert!(fault(&format!("tree {ID}\ntree {ID}\n")).contains("more than one tree"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_commit_or_a_fault(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let text = [format!("tree {ID}\nparent {ID}\n").as_bytes(), &bytes].concat();
            let _any = Commit::parse(&bytes);
            if let Ok(commit) = Commit::parse(&text) {
                prop_assert!(!commit.parents.is_empty() && !commit.subject.contains(&b'\n'));
            }
        }
    }
}
