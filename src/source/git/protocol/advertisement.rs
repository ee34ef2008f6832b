//! The first message of a server: its capabilities and, in version 0, all its references.

use super::{MAX_REFERENCES, Pkt, ProtocolError, Reference, not_git, object_id, text};

/// First message of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::git) enum Advertisement {
    /// It speaks version 2: references are asked for.
    Current {
        /// True if it supports shallow fetches.
        shallow: bool,
    },
    /// It speaks version 0 or 1.
    Old {
        /// All its references.
        references: Vec<Reference>,
        /// Its capabilities.
        capabilities: OldCapabilities,
    },
}

/// Relevant capabilities of a server with protocol version 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::git) struct OldCapabilities {
    /// It can send a part of the history only.
    pub(super) shallow: bool,
    /// It sends packs in pieces with errors between them.
    pub(super) side_band: bool,
    /// Some servers insist on it.
    pub(super) multi_ack: bool,
}

/// Parser of an advertisement, fed line by line.
#[derive(Debug, Default)]
pub(in crate::git) struct AdvertisementReader {
    state: State,
}

#[derive(Debug, Default)]
enum State {
    /// Nothing but, over HTTP, the name of the service has come.
    #[default]
    Begin,
    /// Capabilities of version 2 are coming.
    Current { shallow: bool },
    /// References of version 0 are coming.
    Old { references: Vec<Reference>, capabilities: OldCapabilities },
}

impl AdvertisementReader {
    /// Parses the next line; returns the advertisement when it is complete.
    pub(in crate::git) fn take(&mut self, pkt: &Pkt) -> Result<Option<Advertisement>, ProtocolError> {
        match (&mut self.state, pkt) {
            (State::Begin, Pkt::Line(line)) => self.state = first_line(line)?,
            // After the name of the service.
            (State::Begin, Pkt::Flush) => {}
            (State::Current { shallow }, Pkt::Line(line)) => capability(text(line)?, shallow)?,
            (State::Current { shallow }, Pkt::Flush) => return Ok(Some(Advertisement::Current { shallow: *shallow })),
            (State::Old { references, .. }, Pkt::Line(line)) => old_reference(text(line)?, references)?,
            (State::Old { references, capabilities }, Pkt::Flush) => {
                return Ok(Some(Advertisement::Old { references: std::mem::take(references), capabilities: *capabilities }));
            }
            (_, Pkt::Delimiter | Pkt::ResponseEnd) => return Err(not_git("expected a reference, got a special packet")),
        }
        Ok(None)
    }
}

fn first_line(line: &[u8]) -> Result<State, ProtocolError> {
    let line = text(line)?;
    if line == "# service=git-upload-pack" || line == "version 1" {
        return Ok(State::Begin);
    }
    if line == "version 2" {
        return Ok(State::Current { shallow: false });
    }
    let (reference, capabilities) = line.split_once('\0').ok_or_else(|| not_git("the first reference has no capabilities"))?;
    let mut found = OldCapabilities::default();
    for word in capabilities.split(' ') {
        match word {
            "shallow" => found.shallow = true,
            "side-band-64k" => found.side_band = true,
            "multi_ack_detailed" => found.multi_ack = true,
            _ => {}
        }
        object_format(word)?;
    }
    let mut references = Vec::new();
    old_reference(reference, &mut references)?;
    Ok(State::Old { references, capabilities: found })
}

fn object_format(capability: &str) -> Result<(), ProtocolError> {
    match capability.strip_prefix("object-format=") {
        None | Some("sha1") => Ok(()),
        Some(other) => Err(ProtocolError::Unsupported(format!(
            "the repository's object format is {}; only SHA-1 is supported",
            super::said(other.as_bytes())
        ))),
    }
}

fn capability(line: &str, shallow: &mut bool) -> Result<(), ProtocolError> {
    if let Some(features) = line.strip_prefix("fetch=") {
        *shallow = features.split(' ').any(|feature| feature == "shallow");
    }
    object_format(line)
}

/// `<id> <name>`, or `<id> <name>^{}` for what an annotated tag leads to.
fn old_reference(line: &str, references: &mut Vec<Reference>) -> Result<(), ProtocolError> {
    let (id, name) = line.split_once(' ').ok_or_else(|| not_git("a reference has no name"))?;
    // The server's own boundary of history, if its repository is shallow itself.
    if id == "shallow" {
        return Ok(());
    }
    let id = object_id(id)?;
    if let Some(tag) = name.strip_suffix("^{}") {
        if let Some(last) = references.last_mut().filter(|last| last.name == tag) {
            last.peeled = Some(id);
        }
        // Without references, capabilities have to stand somewhere: `capabilities^{}` with an id of zeros.
        return Ok(());
    }
    if references.len() >= MAX_REFERENCES {
        return Err(ProtocolError::TooMuch(format!("the repository has more than {MAX_REFERENCES} references")));
    }
    references.push(Reference { name: name.to_owned(), id, peeled: None });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

    fn read(lines: &[&str]) -> Result<Option<Advertisement>, ProtocolError> {
        let mut reader = AdvertisementReader::default();
        for line in lines {
            let pkt = if line.is_empty() { Pkt::Flush } else { Pkt::Line(Bytes::from(format!("{line}\n"))) };
            if let Some(advertisement) = reader.take(&pkt)? {
                return Ok(Some(advertisement));
            }
        }
        Ok(None)
    }

    #[test]
    fn version_two_is_known_with_and_without_the_head_of_http() {
        let expected = Some(Advertisement::Current { shallow: true });
        let plain = ["version 2", "agent=git/2", "ls-refs=unborn", "fetch=shallow wait-for-done", "object-format=sha1", ""];
        assert_eq!(read(&plain).unwrap(), expected);
        let http: Vec<&str> = ["# service=git-upload-pack", ""].into_iter().chain(plain).collect();
        assert_eq!(read(&http).unwrap(), expected);
        assert_eq!(read(&http[..http.len() - 1]).unwrap(), None, "not complete");
    }

    #[test]
    fn version_zero_lists_references_and_what_tags_lead_to() {
        let head = format!("{A} HEAD\0multi_ack side-band-64k shallow object-format=sha1");
        let (main, tag, peeled) = (format!("{A} refs/heads/main"), format!("{B} refs/tags/v1"), format!("{A} refs/tags/v1^{{}}"));
        let Some(Advertisement::Old { references, capabilities }) = read(&[&head, &main, &tag, &peeled, ""]).unwrap() else {
            panic!()
        };
        assert_eq!(
            references.iter().map(|reference| reference.name.as_str()).collect::<Vec<_>>(),
            ["HEAD", "refs/heads/main", "refs/tags/v1"]
        );
        assert_eq!((references[2].id.to_string(), references[2].peeled.unwrap().to_string()), (B.to_owned(), A.to_owned()));
        assert!(capabilities.shallow && capabilities.side_band && !capabilities.multi_ack);
    }

    #[test]
    fn a_repository_without_commits_has_no_references() {
        let zeros = "0".repeat(40);
        let line = format!("{zeros} capabilities^{{}}\0side-band-64k");
        let Some(Advertisement::Old { references, .. }) = read(&[&line, ""]).unwrap() else { panic!() };
        assert_eq!(references, []);
    }

    #[test]
    fn what_a_server_says_against_it_is_told_and_sha256_is_refused() {
        assert_eq!(read(&["ERR access denied\x1b[2J"]), Err(ProtocolError::Refused("access denied [2J".to_owned())));
        assert!(matches!(read(&["version 2", "object-format=sha256"]), Err(ProtocolError::Unsupported(_))));
        let line = format!("{} HEAD\0object-format=sha256", "a".repeat(64));
        assert!(matches!(read(&[&line]), Err(ProtocolError::Unsupported(_))));
        assert!(matches!(read(&["<html>"]), Err(ProtocolError::NotGit(_))));
    }
}
