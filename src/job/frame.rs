//! Frames between daemon and job: a length of four bytes (big endian), then JSON.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The longest message to a job.
pub const TO_JOB: usize = 64 << 10;
/// The longest message from a job.
pub const FROM_JOB: usize = 256 << 10;
/// Bytes in front of a message.
const HEADER: usize = 4;

/// Reason why bytes are no messages. Nothing after it can be understood.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The message is longer than any may be.
    #[error("a message of {length} bytes is longer than the limit of {limit}")]
    TooLong {
        /// Its length.
        length: usize,
        /// The limit.
        limit: usize,
    },
    /// The message is not of its form.
    #[error("a message is not of its form")]
    Json(#[from] serde_json::Error),
}

/// A message as bytes, at most `limit` without the length.
pub fn encode(message: &impl Serialize, limit: usize) -> Result<Vec<u8>, FrameError> {
    let json = serde_json::to_vec(message)?;
    let too_long = || FrameError::TooLong { length: json.len(), limit };
    let length = u32::try_from(json.len()).ok().filter(|_| json.len() <= limit).ok_or_else(too_long)?;
    Ok([&length.to_be_bytes(), &json[..]].concat())
}

/// Cuts a stream of bytes into messages, however the transport cut it. Holds no more than one message and what came with it.
#[derive(Debug)]
pub struct Decoder {
    limit: usize,
    buffer: Vec<u8>,
}

impl Decoder {
    /// A decoder of messages with at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, buffer: Vec::new() }
    }

    /// Adds what was read.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next message, or `None` until more is pushed.
    pub fn next_message<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        let Some((header, rest)) = self.buffer.split_first_chunk::<HEADER>() else { return Ok(None) };
        let length = u32::from_be_bytes(*header) as usize;
        if length > self.limit {
            return Err(FrameError::TooLong { length, limit: self.limit });
        }
        let Some(json) = rest.get(..length) else { return Ok(None) };
        let message = serde_json::from_slice(json)?;
        self.buffer.drain(..HEADER + length);
        Ok(Some(message))
    }

    /// Returns true if there is a part of a message.
    pub fn has_rest(&self) -> bool {
        !self.buffer.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn messages_arrive_however_they_are_cut(texts in proptest::collection::vec(".{0,40}", 0..8), size in 1_usize..16) {
            let bytes: Vec<u8> = texts.iter().flat_map(|text| encode(text, 1024).unwrap()).collect();
            let mut decoder = Decoder::new(1024);
            let mut found: Vec<String> = Vec::new();
            for piece in bytes.chunks(size) {
                decoder.push(piece);
                while let Some(text) = decoder.next_message().unwrap() {
                    found.push(text);
                }
            }
            prop_assert_eq!(found, texts);
            prop_assert!(!decoder.has_rest());
        }
    }

    #[test]
    fn longer_message_is_refused_by_its_length() {
        assert!(matches!(encode(&"x".repeat(9), 10), Err(FrameError::TooLong { length: 11, limit: 10 })));
        let mut decoder = Decoder::new(10);
        decoder.push(&[0, 0, 0, 11]);
        assert!(matches!(decoder.next_message::<String>(), Err(FrameError::TooLong { length: 11, limit: 10 })));
    }
}
