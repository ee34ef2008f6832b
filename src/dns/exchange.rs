//! A query forwarded to another name server, and the matching of its response. **Pure**.

use hickory_proto::op::{Query, ResponseCode};
use hickory_proto::serialize::binary::{BinDecodable, BinDecoder};

/// Length of the header of a message.
const HEADER: usize = 12;

/// Kind of a name server's response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It does not match the query: it is forged or late.
    Unrelated,
    /// It cannot or will not say; another one may.
    Unable,
    /// An answer.
    Answer,
}

/// The question under another identifier.
pub(super) fn renumbered(message: &[u8], id: u16) -> Vec<u8> {
    let mut renumbered = message.to_vec();
    if let Some(place) = renumbered.first_chunk_mut::<2>() {
        *place = id.to_be_bytes();
    }
    renumbered
}

/// Judges what came in return for `question`, which has one query and was read before. Beyond header and query it is for the asker to understand.
pub(super) fn judge(question: &[u8], answer: &[u8]) -> Verdict {
    let Some(header) = answer.first_chunk::<HEADER>() else { return Verdict::Unrelated };
    let is_response = header[2] & 0x80 != 0;
    if question.first_chunk::<2>() != Some(&[header[0], header[1]]) || !is_response {
        return Verdict::Unrelated;
    }
    let code = ResponseCode::from_low(header[3] & 0x0f);
    let is_unable = matches!(code, ResponseCode::FormErr | ResponseCode::ServFail | ResponseCode::NotImp | ResponseCode::Refused);
    match (query(question), query(answer)) {
        (Some(asked), Some(said)) if asked == said => {
            if is_unable {
                Verdict::Unable
            } else {
                Verdict::Answer
            }
        }
        // Some say no more than that they cannot.
        (Some(_), None) if is_unable && header[4..6] == [0, 0] => Verdict::Unable,
        (_, Some(_) | None) => Verdict::Unrelated,
    }
}

/// The only query of a message. Names are equal in upper and lower case.
fn query(message: &[u8]) -> Option<Query> {
    let counts = message.get(4..6)?;
    let mut decoder = BinDecoder::new(message);
    decoder.read_slice(HEADER).ok()?;
    (counts == [0, 1]).then(|| Query::read(&mut decoder).ok())?
}

/// Returns true if a response says that the rest is available by TCP.
pub(super) fn is_truncated(answer: &[u8]) -> bool {
    answer.get(2).is_some_and(|flags| flags & 0x02 != 0)
}

/// A message that asks for a name.
#[cfg(test)]
pub(super) fn question(name: &str, kind: hickory_proto::rr::RecordType, id: u16) -> hickory_proto::op::Message {
    use hickory_proto::op::{Message, MessageType, OpCode};
    let mut message = Message::new(id, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    let name = hickory_proto::rr::Name::from_ascii(name).unwrap();
    message.add_query(Query::query(name, kind));
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use hickory_proto::op::MessageType;
    use hickory_proto::rr::RecordType;

    fn answer(name: &str, id: u16, code: ResponseCode) -> Vec<u8> {
        let mut answer = question(name, RecordType::A, id);
        answer.metadata.message_type = MessageType::Response;
        answer.metadata.response_code = code;
        answer.to_vec().unwrap()
    }

    #[test]
    fn only_an_answer_to_the_question_under_its_number_counts() {
        let asked = question("Example.org.", RecordType::A, 7).to_vec().unwrap();
        let ok = ResponseCode::NoError;
        for (answer, verdict) in [
            (answer("Example.org.", 7, ok), Verdict::Answer),
            (answer("example.ORG.", 7, ResponseCode::NXDomain), Verdict::Answer),
            (answer("example.org.", 7, ResponseCode::ServFail), Verdict::Unable),
            (answer("example.org.", 7, ResponseCode::Refused), Verdict::Unable),
            (answer("example.org.", 8, ok), Verdict::Unrelated),
            (answer("example.com.", 7, ok), Verdict::Unrelated),
            (asked.clone(), Verdict::Unrelated),
            (answer("example.org.", 7, ok)[..14].to_vec(), Verdict::Unrelated),
            (vec![0, 7, 0x80, 0x05, 0, 0, 0, 0, 0, 0, 0, 0], Verdict::Unable),
            (vec![0, 7, 0x80, 0x00, 0, 0, 0, 0, 0, 0, 0, 0], Verdict::Unrelated),
            (Vec::new(), Verdict::Unrelated),
        ] {
            assert_eq!(judge(&asked, &answer), verdict, "{answer:?}");
        }
    }

    #[test]
    fn a_question_goes_out_under_another_number_and_is_otherwise_the_same() {
        let asked = question("Example.org.", RecordType::A, 7).to_vec().unwrap();
        let sent = renumbered(&asked, 0x1234);
        assert_eq!((&sent[..2], &sent[2..]), (&[0x12, 0x34][..], &asked[2..]));
        assert_eq!(renumbered(&sent, 7), asked);
    }
}
