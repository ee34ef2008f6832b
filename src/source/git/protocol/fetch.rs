//! Asking for objects, and taking the answer apart.

use super::pkt_line::{DELIMITER, FLUSH};
use super::{AGENT, ObjectId, OldCapabilities, Pkt, ProtocolError, encode, not_git, object_id, said, text};
use bytes::{Buf, Bytes};

/// A fetch request, for both protocol versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::git) struct Fetch {
    /// The commit or tag.
    pub(in crate::git) want: Option<ObjectId>,
    /// Commits that are here, with their history down to `shallow`.
    pub(in crate::git) have: Vec<ObjectId>,
    /// Commits that are here without their parents.
    pub(in crate::git) shallow: Vec<ObjectId>,
    /// Generations of history that are wanted, the commit itself included.
    pub(in crate::git) depth: u32,
}

impl Fetch {
    /// As a request of version 2. `shallow`: whether the server can send a part of the history.
    pub(in crate::git) fn request(&self, shallow: bool) -> Vec<u8> {
        let mut request = Vec::new();
        encode(&mut request, "command=fetch");
        encode(&mut request, AGENT);
        request.extend_from_slice(DELIMITER);
        encode(&mut request, "no-progress");
        encode(&mut request, "ofs-delta");
        if let Some(want) = self.want {
            encode(&mut request, &format!("want {want}\n"));
        }
        self.depth(&mut request, shallow);
        self.have.iter().for_each(|have| encode(&mut request, &format!("have {have}\n")));
        encode(&mut request, "done\n");
        request.extend_from_slice(FLUSH);
        request
    }

    /// As a request of version 0: all in one piece, as it must be over HTTP and may be elsewhere.
    pub(in crate::git) fn old_request(&self, capabilities: OldCapabilities) -> Result<Vec<u8>, ProtocolError> {
        if !capabilities.side_band {
            return Err(ProtocolError::Unsupported("the server is too old: it does not support side-band-64k".to_owned()));
        }
        let multi_ack = if capabilities.multi_ack { "multi_ack_detailed " } else { "" };
        let mut request = Vec::new();
        if let Some(want) = self.want {
            encode(&mut request, &format!("want {want} {multi_ack}side-band-64k ofs-delta no-progress {AGENT}\n"));
        }
        self.depth(&mut request, capabilities.shallow);
        request.extend_from_slice(FLUSH);
        self.have.iter().for_each(|have| encode(&mut request, &format!("have {have}\n")));
        encode(&mut request, "done\n");
        Ok(request)
    }

    fn depth(&self, request: &mut Vec<u8>, supported: bool) {
        if !supported {
            return;
        }
        self.shallow.iter().for_each(|id| encode(request, &format!("shallow {id}\n")));
        encode(request, &format!("deepen {}\n", self.depth));
    }
}

/// One piece of the answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::git) enum Part {
    /// Nothing that matters.
    Nothing,
    /// A commit that comes without its parents.
    Shallow(ObjectId),
    /// A commit whose parents come now.
    Unshallow(ObjectId),
    /// Bytes of the pack.
    Pack(Bytes),
    /// All has come.
    End,
}

/// Parser of the response, fed line by line.
#[derive(Debug)]
pub(in crate::git) struct AnswerReader {
    state: State,
}

#[derive(Debug)]
enum State {
    /// Version 2, before the title of a section.
    Title,
    /// Version 2, in a section of lines.
    Section,
    /// Version 0, before the boundaries.
    OldBoundaries,
    /// Version 0, between the boundaries and the pack.
    OldAcknowledgements,
    /// In the pack.
    Pack,
}

impl AnswerReader {
    /// Of an answer of version 2.
    pub(in crate::git) fn current() -> Self {
        Self { state: State::Title }
    }

    /// Of an answer of version 0.
    pub(in crate::git) fn old(capabilities: OldCapabilities) -> Self {
        // A depth is asked for wherever it is known.
        let state = if capabilities.shallow { State::OldBoundaries } else { State::OldAcknowledgements };
        Self { state }
    }

    /// Parses the next line.
    pub(in crate::git) fn take(&mut self, pkt: Pkt) -> Result<Part, ProtocolError> {
        match (&self.state, pkt) {
            (State::Title, Pkt::Line(line)) => {
                self.state = match text(&line)? {
                    "packfile" => State::Pack,
                    "acknowledgments" | "shallow-info" | "wanted-refs" | "packfile-uris" => State::Section,
                    _ => return Err(not_git("the response has an unexpected section")),
                };
                Ok(Part::Nothing)
            }
            (State::Section, Pkt::Line(line)) => boundary(text(&line)?),
            (State::Section, Pkt::Delimiter) => {
                self.state = State::Title;
                Ok(Part::Nothing)
            }
            (State::OldBoundaries, Pkt::Line(line)) => boundary(text(&line)?),
            (State::OldBoundaries, Pkt::Flush) => {
                self.state = State::OldAcknowledgements;
                Ok(Part::Nothing)
            }
            (State::OldAcknowledgements, Pkt::Line(line)) if line.starts_with(b"ACK ") || line.starts_with(b"NAK") => {
                Ok(Part::Nothing)
            }
            (State::OldAcknowledgements, Pkt::Line(line)) => {
                if line.first().is_none_or(|band| *band > 3) {
                    text(&line)?;
                    return Err(not_git("expected an acknowledgement or a pack"));
                }
                self.state = State::Pack;
                band(line)
            }
            (State::Pack, Pkt::Line(line)) => band(line),
            (State::Pack, Pkt::Flush) => Ok(Part::End),
            (_, Pkt::Flush | Pkt::Delimiter | Pkt::ResponseEnd) => Err(not_git("the response ended before the pack")),
        }
    }
}

fn boundary(line: &str) -> Result<Part, ProtocolError> {
    match line.split_once(' ') {
        Some(("shallow", id)) => object_id(id).map(Part::Shallow),
        Some(("unshallow", id)) => object_id(id).map(Part::Unshallow),
        _ => Ok(Part::Nothing),
    }
}

/// A piece of the pack, a word about progress or the server's last words.
fn band(mut line: Bytes) -> Result<Part, ProtocolError> {
    if line.is_empty() {
        return Ok(Part::Nothing);
    }
    match line.get_u8() {
        1 => Ok(Part::Pack(line)),
        2 => Ok(Part::Nothing),
        3 => Err(ProtocolError::Refused(said(&line))),
        _ => Err(not_git("a packet has an unknown side band")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(digit: char) -> ObjectId {
        digit.to_string().repeat(40).parse().unwrap()
    }

    fn line(bytes: &[u8]) -> Pkt {
        Pkt::Line(Bytes::copy_from_slice(bytes))
    }

    fn parts(mut reader: AnswerReader, pkts: Vec<Pkt>) -> Result<Vec<Part>, ProtocolError> {
        let all: Result<Vec<Part>, ProtocolError> = pkts.into_iter().map(|pkt| reader.take(pkt)).collect();
        all.map(|parts| parts.into_iter().filter(|part| *part != Part::Nothing).collect())
    }

    #[test]
    fn the_request_names_what_is_wanted_and_what_is_here() {
        let fetch = Fetch { want: Some(id('a')), have: vec![id('b')], shallow: vec![id('c')], depth: 1 };
        let text = String::from_utf8(fetch.request(true)).unwrap();
        for part in
            [format!("want {}\n", id('a')), format!("have {}\n", id('b')), format!("shallow {}\n", id('c')), "deepen 1\n".into()]
        {
            assert!(text.contains(&part), "{text}");
        }
        assert!(text.ends_with("0009done\n0000") && !text.contains("thin-pack"), "{text}");
        let text = String::from_utf8(fetch.request(false)).unwrap();
        assert!(!text.contains("deepen") && !text.contains("shallow"), "{text}");
    }

    #[test]
    fn boundaries_and_pack_of_version_two_are_told_apart() {
        let shallow = format!("shallow {}", id('a'));
        let pkts = vec![
            line(b"shallow-info\n"),
            line(shallow.as_bytes()),
            line(format!("unshallow {}", id('b')).as_bytes()),
            Pkt::Delimiter,
            line(b"packfile\n"),
            line(b"\x02counting\n"),
            line(b"\x01PACK"),
            line(b""),
            Pkt::Flush,
        ];
        let expected = [Part::Shallow(id('a')), Part::Unshallow(id('b')), Part::Pack(Bytes::from_static(b"PACK")), Part::End];
        assert_eq!(parts(AnswerReader::current(), pkts).unwrap(), expected);
    }

    #[test]
    fn boundaries_and_pack_of_version_zero_are_told_apart() {
        let capabilities = OldCapabilities { shallow: true, side_band: true, ..OldCapabilities::default() };
        let shallow = format!("shallow {}", id('a'));
        let pkts = vec![line(shallow.as_bytes()), Pkt::Flush, line(b"NAK\n"), line(b"\x01PACK"), Pkt::Flush];
        let expected = [Part::Shallow(id('a')), Part::Pack(Bytes::from_static(b"PACK")), Part::End];
        assert_eq!(parts(AnswerReader::old(capabilities), pkts).unwrap(), expected);
        let all = OldCapabilities { shallow: false, ..capabilities };
        let pkts = vec![line(b"ACK x common\n"), line(b"ACK x\n"), line(b"\x01PACK"), Pkt::Flush];
        assert_eq!(parts(AnswerReader::old(all), pkts).unwrap(), expected[1..]);
        assert!(Fetch::default().old_request(OldCapabilities::default()).is_err(), "without side bands");
    }

    #[test]
    fn the_servers_last_words_are_the_error() {
        let refused = |text: &str| Err(ProtocolError::Refused(text.to_owned()));
        let pkts = vec![line(b"packfile"), line(b"\x03out of\nmemory")];
        assert_eq!(parts(AnswerReader::current(), pkts), refused("out of memory"));
        assert_eq!(parts(AnswerReader::current(), vec![line(b"ERR not our ref")]), refused("not our ref"));
        let old = AnswerReader::old(OldCapabilities::default());
        assert_eq!(parts(old, vec![line(b"ERR not our ref")]), refused("not our ref"));
    }

    #[test]
    fn an_answer_without_a_pack_is_an_error() {
        for pkts in [vec![Pkt::Flush], vec![line(b"packfile"), Pkt::Delimiter], vec![line(b"shallow-info"), Pkt::Flush]] {
            assert!(parts(AnswerReader::current(), pkts).is_err());
        }
    }
}
