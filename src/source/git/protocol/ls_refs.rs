//! Asking for references in version 2: the one small request that an unchanged poll costs.

use super::pkt_line::{DELIMITER, FLUSH};
use super::{AGENT, MAX_REFERENCES, Pkt, ProtocolError, Reference, encode, not_git, object_id, text};

/// Asks for the references whose names begin with one of `prefixes`.
pub(in crate::git) fn ls_refs_request(prefixes: &[String]) -> Vec<u8> {
    let mut request = Vec::new();
    encode(&mut request, "command=ls-refs\n");
    encode(&mut request, AGENT);
    request.extend_from_slice(DELIMITER);
    encode(&mut request, "peel\n");
    for prefix in prefixes {
        encode(&mut request, &format!("ref-prefix {prefix}\n"));
    }
    request.extend_from_slice(FLUSH);
    request
}

/// Parser of the response, fed line by line.
#[derive(Debug, Default)]
pub(in crate::git) struct LsRefsReader {
    references: Vec<Reference>,
}

impl LsRefsReader {
    /// Parses the next line; returns the references after the last one.
    pub(in crate::git) fn take(&mut self, pkt: &Pkt) -> Result<Option<Vec<Reference>>, ProtocolError> {
        match pkt {
            Pkt::Line(line) => {
                if self.references.len() >= MAX_REFERENCES {
                    return Err(ProtocolError::TooMuch(format!("the repository has more than {MAX_REFERENCES} references")));
                }
                self.references.extend(reference(text(line)?)?);
                Ok(None)
            }
            Pkt::Flush => Ok(Some(std::mem::take(&mut self.references))),
            Pkt::Delimiter | Pkt::ResponseEnd => Err(not_git("expected a reference, got a special packet")),
        }
    }
}

/// `<id> <name>[ <attribute>]...`
fn reference(line: &str) -> Result<Option<Reference>, ProtocolError> {
    let mut words = line.split(' ');
    let (id, name) = (words.next().unwrap_or_default(), words.next().ok_or_else(|| not_git("a reference has no name"))?);
    if id == "unborn" {
        return Ok(None);
    }
    let peeled = words.find_map(|word| word.strip_prefix("peeled:")).map(object_id).transpose()?;
    Ok(Some(Reference { name: name.to_owned(), id: object_id(id)?, peeled }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn a_request_for_one_branch_is_small() {
        let request = ls_refs_request(&["refs/heads/main".to_owned()]);
        assert!(request.starts_with(b"0014command=ls-refs\n") && request.ends_with(b"ref-prefix refs/heads/main\n0000"));
        assert!(request.len() < 120, "{}", request.len());
    }

    #[test]
    fn references_come_with_what_annotated_tags_lead_to() {
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        let mut reader = LsRefsReader::default();
        for line in
            [format!("{a} HEAD symref-target:refs/heads/main\n"), format!("{b} refs/tags/v1 peeled:{a}\n"), "unborn HEAD\n".into()]
        {
            assert_eq!(reader.take(&Pkt::Line(Bytes::from(line))).unwrap(), None);
        }
        let references = reader.take(&Pkt::Flush).unwrap().unwrap();
        assert_eq!(references.len(), 2);
        assert_eq!(references[0], Reference { name: "HEAD".into(), id: a.parse().unwrap(), peeled: None });
        assert_eq!(references[1].peeled, Some(a.parse().unwrap()));
    }

    #[test]
    fn an_answer_of_something_else_is_an_error() {
        for line in ["unpack ok", "", "zz refs/heads/main", "ERR no"] {
            assert!(LsRefsReader::default().take(&Pkt::Line(Bytes::from(line.to_owned()))).is_err(), "{line}");
        }
    }
}
