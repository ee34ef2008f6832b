//! Frames of SPDY/3.1, as far as kubectl sends and understands them. **Pure**.
//!
//! Bytes go in as they come, frames come out. Nothing is kept but what is left of a control frame, whose size is limited; data come out in the
//! pieces that went in. There is no flow control: kubectl's side of SPDY does not know it.

use bytes::{Buf, BufMut, Bytes, BytesMut};

const HEADER: usize = 8;
/// Largest control frame; that of a stream's opening with three headers has about 100 bytes.
const MAX_CONTROL: usize = 16 << 10;
const VERSION: u16 = 0x8003;
const OPEN: u16 = 1;
const REPLY: u16 = 2;
const RESET: u16 = 3;
const PING: u16 = 6;
const LAST: u8 = 1;
const STREAM_MASK: u32 = 0x7fff_ffff;
/// `REFUSED_STREAM`.
const REFUSED: u32 = 3;

/// Frames from the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frame {
    /// A stream is opened; its headers are compressed.
    Open { stream: u32, headers: Bytes },
    /// Data of a stream, perhaps a piece of them, perhaps the last.
    Data { stream: u32, bytes: Bytes, is_last: bool },
    /// A stream is given up in both directions.
    Reset { stream: u32 },
    /// To be echoed.
    Ping { id: u32 },
}

/// The client does not speak SPDY/3.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FrameError {
    #[error("version {0:#x}, not SPDY/3.1")]
    Version(u16),
    #[error("a control frame of {0} bytes")]
    TooLarge(usize),
    #[error("a control frame that ends too early")]
    Short,
}

/// Cuts bytes into frames.
#[derive(Debug, Default)]
pub(super) struct Decoder {
    buffer: BytesMut,
    /// The data frame under way: its stream, bytes that are missing, whether it is the last.
    data: Option<(u32, usize, bool)>,
}

impl Decoder {
    /// Takes bytes in; [`Decoder::next`] has to be called until it returns `None` before there are more.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next frame, or piece of one.
    pub(super) fn next(&mut self) -> Result<Option<Frame>, FrameError> {
        loop {
            if let Some((stream, missing, is_last)) = self.data {
                let length = missing.min(self.buffer.len());
                if length == 0 && missing > 0 {
                    return Ok(None);
                }
                let bytes = self.buffer.split_to(length).freeze();
                let ends = missing == length;
                self.data = (!ends).then_some((stream, missing - length, is_last));
                return Ok(Some(Frame::Data { stream, bytes, is_last: is_last && ends }));
            }
            let Some(mut header) = self.buffer.get(..HEADER) else { return Ok(None) };
            let (first, second) = (header.get_u32(), header.get_u32());
            let [flags, ..] = second.to_be_bytes();
            let length = (second & 0x00ff_ffff) as usize;
            if first & !STREAM_MASK == 0 {
                self.buffer.advance(HEADER);
                self.data = Some((first, length, flags & LAST != 0));
                continue;
            }
            let [.., kind_high, kind_low] = first.to_be_bytes();
            let version = (first >> 16) as u16;
            if version != VERSION {
                return Err(FrameError::Version(version));
            }
            if length > MAX_CONTROL {
                return Err(FrameError::TooLarge(length));
            }
            if self.buffer.len() < HEADER + length {
                return Ok(None);
            }
            self.buffer.advance(HEADER);
            let body = self.buffer.split_to(length).freeze();
            if let Some(frame) = control(u16::from_be_bytes([kind_high, kind_low]), body)? {
                return Ok(Some(frame));
            }
        }
    }
}

/// A control frame; `None` for one that has no meaning here (settings, windows, a farewell before the connection is closed).
fn control(kind: u16, mut body: Bytes) -> Result<Option<Frame>, FrameError> {
    let mut number = || body.try_get_u32().map_err(|_| FrameError::Short);
    Ok(match kind {
        OPEN => {
            let stream = number()? & STREAM_MASK;
            let _associated = number()?;
            // Priority and slot.
            if body.len() < 2 {
                return Err(FrameError::Short);
            }
            body.advance(2);
            Some(Frame::Open { stream, headers: body })
        }
        RESET => Some(Frame::Reset { stream: number()? & STREAM_MASK }),
        PING => Some(Frame::Ping { id: number()? }),
        _ => None,
    })
}

fn control_frame(kind: u16, words: &[u32], rest: &[u8]) -> Bytes {
    let length = words.len() * 4 + rest.len();
    let mut frame = BytesMut::with_capacity(HEADER + length);
    frame.put_u16(VERSION);
    frame.put_u16(kind);
    frame.put_u32((length as u32) & 0x00ff_ffff);
    words.iter().for_each(|word| frame.put_u32(*word));
    frame.put_slice(rest);
    frame.freeze()
}

/// Accepts a stream; the headers are compressed.
pub(super) fn reply(stream: u32, headers: &[u8]) -> Bytes {
    control_frame(REPLY, &[stream], headers)
}

/// Refuses a stream.
pub(super) fn refuse(stream: u32) -> Bytes {
    control_frame(RESET, &[stream, REFUSED], &[])
}

/// The answer to a ping.
pub(super) fn pong(id: u32) -> Bytes {
    control_frame(PING, &[id], &[])
}

/// Asks the other end whether it is there.
pub(super) fn ping(id: u32) -> Bytes {
    control_frame(PING, &[id], &[])
}

/// Room for a data frame of a stream: bytes are appended to it, and [`close_data`] makes it whole.
pub(super) fn open_data(stream: u32, capacity: usize) -> BytesMut {
    let mut frame = BytesMut::with_capacity(HEADER + capacity);
    frame.put_u32(stream & STREAM_MASK);
    frame.put_u32(0);
    frame
}

/// Writes the length into a frame of [`open_data`].
pub(super) fn close_data(mut frame: BytesMut, is_last: bool) -> Bytes {
    let length = (frame.len() - HEADER) as u32 & 0x00ff_ffff;
    let flags = if is_last { u32::from(LAST) << 24 } else { 0 };
    frame[4..HEADER].copy_from_slice(&(flags | length).to_be_bytes());
    frame.freeze()
}

/// The last data of a stream.
pub(super) fn last(stream: u32, bytes: &[u8]) -> Bytes {
    let mut frame = open_data(stream, bytes.len());
    frame.put_slice(bytes);
    close_data(frame, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(pieces: &[&[u8]]) -> Result<Vec<Frame>, FrameError> {
        let mut decoder = Decoder::default();
        let mut frames = Vec::new();
        for piece in pieces {
            decoder.push(piece);
            while let Some(frame) = decoder.next()? {
                frames.push(frame);
            }
        }
        Ok(frames)
    }

    #[test]
    fn frames_are_cut_wherever_the_bytes_are() {
        let mut bytes = control_frame(OPEN, &[3, 0], b"\0\0compressed").to_vec();
        bytes.extend(last(3, b"hello"));
        bytes.extend(pong(7));
        bytes.extend(control_frame(4, &[1, 2], &[]));
        bytes.extend(refuse(3));
        let whole = frames(&[&bytes]).unwrap();
        let expected = [
            Frame::Open { stream: 3, headers: Bytes::from_static(b"compressed") },
            Frame::Data { stream: 3, bytes: Bytes::from_static(b"hello"), is_last: true },
            Frame::Ping { id: 7 },
            Frame::Reset { stream: 3 },
        ];
        assert_eq!(whole, expected);
        // Byte by byte: data come in pieces, of which the last is the last.
        let pieces: Vec<&[u8]> = bytes.chunks(1).collect();
        let single = frames(&pieces).unwrap();
        let data: Vec<bool> =
            single.iter().filter_map(|frame| if let Frame::Data { is_last, .. } = frame { Some(*is_last) } else { None }).collect();
        assert_eq!(data, [false, false, false, false, true]);
        assert_eq!(single.len(), expected.len() + 4);
    }

    #[test]
    fn the_end_of_a_stream_may_come_without_data() {
        assert_eq!(frames(&[&last(1, b"")]).unwrap(), [Frame::Data { stream: 1, bytes: Bytes::new(), is_last: true }]);
    }

    #[test]
    fn what_is_not_spdy_is_an_error() {
        assert_eq!(frames(&[b"\x80\x02\0\x01\0\0\0\0"]), Err(FrameError::Version(0x8002)));
        assert_eq!(frames(&[b"\x80\x03\0\x01\0\xff\xff\xff"]), Err(FrameError::TooLarge(0x00ff_ffff)));
        assert_eq!(frames(&[b"\x80\x03\0\x01\0\0\0\x04abcd"]), Err(FrameError::Short));
    }
}
