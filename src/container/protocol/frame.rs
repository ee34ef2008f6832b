//! Frames: one byte of kind, four bytes of length (big endian), payload.

/// The longest payload that is accepted. A container's environment may hold whole ConfigMaps (1 MiB each), escaped as JSON.
pub const MAX_PAYLOAD: usize = 8 << 20;

/// Bytes in front of a payload.
pub const HEADER: usize = 5;

/// Type of a frame's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum FrameKind {
    /// A JSON message.
    Message = 0,
    /// Bytes for the process.
    Stdin = 1,
    /// Bytes from the process, or from its terminal.
    Stdout = 2,
    /// Bytes from the process.
    Stderr = 3,
    /// No more stdin; empty.
    CloseStdin = 4,
    /// Columns and rows, two bytes each, big endian.
    Resize = 5,
    /// The process ended: its code, four bytes, big endian. The last frame of an exec.
    Exit = 6,
    /// Times of steps, as JSON; only to subscribers.
    Times = 7,
}

impl FrameKind {
    fn from_byte(byte: u8) -> Option<Self> {
        [Self::Message, Self::Stdin, Self::Stdout, Self::Stderr, Self::CloseStdin, Self::Resize, Self::Exit, Self::Times]
            .into_iter()
            .find(|kind| *kind as u8 == byte)
    }
}

/// Reason why a byte stream is not one of frames. Nothing after it can be understood: the connection is closed.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The length is over [`MAX_PAYLOAD`].
    #[error("a frame of {0} bytes is longer than the limit of {MAX_PAYLOAD}")]
    TooLong(usize),
}

/// Appends a frame to `out`. `payload` is at most [`MAX_PAYLOAD`] long; a longer one is refused and `out` is left as it was.
pub fn encode(kind: FrameKind, payload: &[u8], out: &mut Vec<u8>) -> Result<(), FrameError> {
    let length =
        u32::try_from(payload.len()).ok().filter(|_| payload.len() <= MAX_PAYLOAD).ok_or(FrameError::TooLong(payload.len()))?;
    out.reserve(HEADER + payload.len());
    out.push(kind as u8);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(payload);
    Ok(())
}

/// Cuts a byte stream into frames, however it was cut by the transport. Holds no more than one frame and what came with it.
#[derive(Debug, Default)]
pub struct FrameDecoder {
    buffer: Vec<u8>,
    consumed: usize,
}

impl FrameDecoder {
    /// Adds what was read.
    pub fn push(&mut self, bytes: &[u8]) {
        if self.consumed > 0 {
            self.buffer.drain(..self.consumed);
            self.consumed = 0;
        }
        self.buffer.extend_from_slice(bytes);
    }

    /// The next whole frame, or `None` until more is pushed. Frames of unknown kind are skipped.
    pub fn next_frame(&mut self) -> Result<Option<(FrameKind, &[u8])>, FrameError> {
        loop {
            let rest = &self.buffer[self.consumed..];
            let Some((&[kind, a, b, c, d], payload)) = rest.split_first_chunk::<HEADER>() else {
                self.release();
                return Ok(None);
            };
            let length = u32::from_be_bytes([a, b, c, d]) as usize;
            if length > MAX_PAYLOAD {
                return Err(FrameError::TooLong(length));
            }
            if payload.len() < length {
                return Ok(None);
            }
            let start = self.consumed + HEADER;
            self.consumed = start + length;
            if let Some(kind) = FrameKind::from_byte(kind) {
                return Ok(Some((kind, &self.buffer[start..start + length])));
            }
        }
    }

    /// Gives memory back once all is consumed: connections live as long as pods and are mostly idle.
    fn release(&mut self) {
        if self.consumed == self.buffer.len() {
            self.buffer = Vec::new();
            self.consumed = 0;
        }
    }
}

/// Payload of [`FrameKind::Resize`].
pub fn resize_payload(columns: u16, rows: u16) -> [u8; 4] {
    let ([a, b], [c, d]) = (columns.to_be_bytes(), rows.to_be_bytes());
    [a, b, c, d]
}

/// Columns and rows of a [`FrameKind::Resize`]; `None` if it is malformed.
pub fn parse_resize(payload: &[u8]) -> Option<(u16, u16)> {
    let &[a, b, c, d] = payload.first_chunk::<4>()?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

/// The code of a [`FrameKind::Exit`]; `None` if it is malformed.
pub fn parse_exit(payload: &[u8]) -> Option<i32> {
    payload.first_chunk::<4>().map(|bytes| i32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn drain(decoder: &mut FrameDecoder) -> Vec<(FrameKind, Vec<u8>)> {
        let mut frames = Vec::new();
        while let Some((kind, payload)) = decoder.next_frame().unwrap() {
            frames.push((kind, payload.to_vec()));
        }
        frames
    }

    #[test]
    fn a_length_over_the_limit_is_refused_before_its_payload_arrives() {
        let mut decoder = FrameDecoder::default();
        decoder.push(&[0, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(decoder.next_frame(), Err(FrameError::TooLong(u32::MAX as usize)));
        assert_eq!(
            encode(FrameKind::Message, &vec![0; MAX_PAYLOAD + 1], &mut Vec::new()),
            Err(FrameError::TooLong(MAX_PAYLOAD + 1))
        );
    }

    #[test]
    fn a_frame_of_unknown_kind_is_skipped() {
        let mut bytes = vec![200, 0, 0, 0, 2, 1, 2];
        encode(FrameKind::Exit, &7_i32.to_be_bytes(), &mut bytes).unwrap();
        let mut decoder = FrameDecoder::default();
        decoder.push(&bytes);
        let (kind, payload) = decoder.next_frame().unwrap().unwrap();
        assert_eq!((kind, parse_exit(payload)), (FrameKind::Exit, Some(7)));
    }

    #[test]
    fn memory_is_given_back_when_all_is_consumed() {
        let mut bytes = Vec::new();
        encode(FrameKind::Stdin, &[1; 100_000], &mut bytes).unwrap();
        let mut decoder = FrameDecoder::default();
        decoder.push(&bytes);
        assert_eq!(drain(&mut decoder).len(), 1);
        assert_eq!(decoder.buffer.capacity(), 0);
    }

    proptest! {
        #[test]
        fn frames_survive_any_cut_of_the_stream(
            frames in prop::collection::vec((0_u8..8, prop::collection::vec(any::<u8>(), 0..300)), 0..20),
            cuts in prop::collection::vec(1_usize..200, 1..50),
        ) {
            let frames: Vec<_> = frames.into_iter().map(|(kind, payload)| (FrameKind::from_byte(kind).unwrap(), payload)).collect();
            let mut bytes = Vec::new();
            for (kind, payload) in &frames {
                encode(*kind, payload, &mut bytes).unwrap();
            }
            let (mut decoder, mut seen, mut rest, mut cuts) = (FrameDecoder::default(), Vec::new(), bytes.as_slice(), cuts.iter().cycle());
            while !rest.is_empty() {
                let (head, tail) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
                decoder.push(head);
                seen.extend(drain(&mut decoder));
                rest = tail;
            }
            prop_assert_eq!(seen, frames);
        }

        #[test]
        fn arbitrary_bytes_never_make_it_hold_more_than_was_pushed(bytes in prop::collection::vec(any::<u8>(), 0..2000)) {
            let mut decoder = FrameDecoder::default();
            decoder.push(&bytes);
            while let Ok(Some((_, payload))) = decoder.next_frame() {
                prop_assert!(payload.len() + HEADER <= bytes.len());
            }
        }
    }
}
