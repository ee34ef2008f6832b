//! One exec or attach over SPDY/3.1, as kubectl before 1.30 asks for it: a stream for each of error, stdin, stdout, stderr and resize.

use super::channels::{Ending, TerminalSize};
use super::input::{Ahead, PROBE};
use crate::spdy::{self, Decoder, Frame, FrameError};
use crate::spdy_headers::{HeaderError, Reader, Writer};
use crate::upgrade::Stream;
use bytes::{BufMut, Bytes, BytesMut};
use podstead_runtime::{ExecInput, ExecOutput, ExecSession};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};
use tokio::time::Instant;

/// The only version that is spoken: the end of the process is a `Status`.
pub(super) const V4: &str = "v4.channel.k8s.io";
/// Time for all streams to be opened.
const OPEN_TIMEOUT: Duration = Duration::from_secs(30);
/// Time for the client to close its end after the result was sent.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);
/// Bytes read at once.
const PIECE: usize = 32 << 10;
/// Number of a question to the client; those of a server are even.
const PROBE_ID: u32 = 2;
/// Longest message about the size of a terminal.
const MAX_RESIZE: usize = 256;

/// Reasons for ending a session before its process.
#[derive(Debug, thiserror::Error)]
pub(super) enum SpdyError {
    #[error("read a frame")]
    Frame(#[from] FrameError),
    #[error("read or write a stream's headers")]
    Headers(#[from] HeaderError),
    #[error("the client has disconnected")]
    Left,
    #[error("the client did not open its streams in time")]
    NotOpened,
}

/// Streams that the query asks for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    pub(super) stdin: bool,
    pub(super) stdout: bool,
    pub(super) stderr: bool,
    pub(super) tty: bool,
}

/// Streams that the client has opened.
#[derive(Debug, Default)]
pub(super) struct Streams {
    error: Option<u32>,
    stdin: Option<u32>,
    stdout: Option<u32>,
    stderr: Option<u32>,
    resize: Option<u32>,
}

impl Streams {
    /// Takes a stream of a type; returns false for one that is unknown, not wanted, or open already.
    fn open(&mut self, wanted: Wanted, kind: &str, stream: u32) -> bool {
        let (place, is_wanted) = match kind {
            "error" => (&mut self.error, true),
            "stdin" => (&mut self.stdin, wanted.stdin),
            "stdout" => (&mut self.stdout, wanted.stdout),
            "stderr" => (&mut self.stderr, wanted.stderr && !wanted.tty),
            "resize" => (&mut self.resize, wanted.tty),
            _ => return false,
        };
        let is_free = is_wanted && place.is_none();
        if is_free {
            *place = Some(stream);
        }
        is_free
    }

    fn are_complete(&self, wanted: Wanted) -> bool {
        let Wanted { stdin, stdout, stderr, tty } = wanted;
        self.error.is_some()
            && (self.stdin.is_some() || !stdin)
            && (self.stdout.is_some() || !stdout)
            && (self.stderr.is_some() || !stderr || tty)
            && (self.resize.is_some() || !tty)
    }
}

/// Input of the client: frames in, input for the process and answers out. **Pure**.
struct Incoming {
    wanted: Wanted,
    streams: Streams,
    decoder: Decoder,
    reader: Reader,
    writer: Writer,
    /// A message about the size that is not complete.
    resize: Vec<u8>,
}

impl Incoming {
    fn new(wanted: Wanted) -> Result<Self, SpdyError> {
        Ok(Self {
            wanted,
            streams: Streams::default(),
            decoder: Decoder::default(),
            reader: Reader::new(),
            writer: Writer::new()?,
            resize: Vec::new(),
        })
    }

    /// Takes bytes of the client; returns the frames to answer with.
    fn take(&mut self, bytes: &[u8], ahead: &mut Ahead) -> Result<Vec<Bytes>, SpdyError> {
        let mut answers = Vec::new();
        self.decoder.push(bytes);
        while let Some(frame) = self.decoder.next()? {
            match frame {
                Frame::Open { stream, headers } => {
                    let headers = self.reader.read(&headers)?;
                    let kind = headers.get("streamtype").unwrap_or_default();
                    answers.push(match self.streams.open(self.wanted, kind, stream) {
                        true => spdy::reply(stream, &self.writer.none()?),
                        false => spdy::refuse(stream),
                    });
                }
                Frame::Data { stream, bytes, is_last } if self.streams.stdin == Some(stream) => {
                    if !bytes.is_empty() {
                        ahead.push(ExecInput::Stdin(bytes));
                    }
                    if is_last {
                        ahead.push(ExecInput::CloseStdin);
                    }
                }
                Frame::Data { stream, bytes, .. } if self.streams.resize == Some(stream) => self.take_sizes(&bytes, ahead),
                // A client that gives its stdin up has ended it.
                Frame::Reset { stream } if self.streams.stdin == Some(stream) => ahead.push(ExecInput::CloseStdin),
                Frame::Data { .. } | Frame::Reset { .. } => {}
                Frame::Ping { id } => answers.push(spdy::pong(id)),
            }
        }
        Ok(answers)
    }

    /// Sizes of the terminal, a line of JSON each. One that cannot be read is skipped.
    fn take_sizes(&mut self, bytes: &[u8], ahead: &mut Ahead) {
        for byte in bytes {
            if *byte != b'\n' {
                if self.resize.len() < MAX_RESIZE {
                    self.resize.push(*byte);
                }
                continue;
            }
            if let Ok(TerminalSize { width, height }) = serde_json::from_slice(&self.resize) {
                ahead.push(ExecInput::Resize(width, height));
            }
            self.resize.clear();
        }
    }
}

/// Runs until the process ended or the client left. A client that leaves drops the session, which kills an exec.
pub(super) async fn connect(stream: Stream, session: ExecSession, wanted: Wanted) {
    let (mut from_client, mut to_client) = tokio::io::split(stream);
    match run(&mut from_client, &mut to_client, session, wanted).await {
        Ok(()) => {
            // The client reads the result first and closes then.
            let mut rest = [0; 1024];
            let closes = async { while from_client.read(&mut rest).await.is_ok_and(|length| length > 0) {} };
            tokio::time::timeout(CLOSE_TIMEOUT, closes).await.ok();
        }
        Err(error) => {
            tracing::debug!(error = %podstead_telemetry::error_chain(&error), "an exec session over SPDY ended early");
        }
    }
}

async fn run(
    from_client: &mut ReadHalf<Stream>,
    to_client: &mut WriteHalf<Stream>,
    session: ExecSession,
    wanted: Wanted,
) -> Result<(), SpdyError> {
    let ExecSession { input, mut output } = session;
    let mut incoming = Incoming::new(wanted)?;
    let mut ahead = Ahead::default();
    let mut piece = BytesMut::with_capacity(PIECE);
    let opened_by = Instant::now() + OPEN_TIMEOUT;
    loop {
        let is_open = incoming.streams.are_complete(wanted);
        let mut frames = Vec::new();
        let mut has_ended = false;
        // Cancel-safe: bytes that were read are in `piece`, input is in `ahead` until a permit takes it, and output is sent before the next turn.
        tokio::select! {
            () = ahead.forward(&input) => {}
            read = from_client.read_buf(&mut piece), if ahead.has_room() => {
                if !read.is_ok_and(|length| length > 0) {
                    return Err(SpdyError::Left);
                }
                frames = incoming.take(&piece.split(), &mut ahead)?;
            }
            said = output.recv(), if is_open => {
                has_ended = !matches!(said, Some(ExecOutput::Stdout(_) | ExecOutput::Stderr(_)));
                frames = frames_of(said, &incoming.streams);
            }
            () = tokio::time::sleep_until(opened_by), if !is_open => return Err(SpdyError::NotOpened),
            // Sending to a client that has left fails.
            () = tokio::time::sleep(PROBE), if !ahead.has_room() => frames.push(spdy::ping(PROBE_ID)),
        }
        for frame in frames {
            to_client.write_all(&frame).await.map_err(|_| SpdyError::Left)?;
        }
        if has_ended {
            return Ok(());
        }
        piece.reserve(PIECE);
    }
}

/// The frames for an output of the process; its end closes all streams.
fn frames_of(output: Option<ExecOutput>, streams: &Streams) -> Vec<Bytes> {
    let data = |stream: Option<u32>, bytes: &[u8]| {
        let frame = |stream| {
            let mut frame = spdy::open_data(stream, bytes.len());
            frame.put_slice(bytes);
            spdy::close_data(frame, false)
        };
        stream.map(frame).into_iter().collect()
    };
    let ending = match output {
        Some(ExecOutput::Stdout(bytes)) => return data(streams.stdout, &bytes),
        Some(ExecOutput::Stderr(bytes)) => return data(streams.stderr, &bytes),
        Some(ExecOutput::Exited(code)) => Ending::Exited(code),
        None => Ending::unknown(),
    };
    let closed = [streams.stdout, streams.stderr].into_iter().flatten().map(|stream| spdy::last(stream, b""));
    let status = streams.error.map(|stream| spdy::last(stream, ending.status().to_string().as_bytes()));
    closed.chain(status).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: Wanted = Wanted { stdin: true, stdout: true, stderr: true, tty: false };

    #[test]
    fn streams_are_opened_once_as_asked() {
        let mut streams = Streams::default();
        for (kind, stream, taken) in [
            ("error", 1, true),
            ("stdin", 3, true),
            ("stdin", 5, false),
            ("resize", 7, false),
            ("x", 9, false),
            ("stdout", 11, true),
        ] {
            assert_eq!(streams.open(ALL, kind, stream), taken, "{kind}");
        }
        assert!(!streams.are_complete(ALL));
        assert!(streams.open(ALL, "stderr", 13) && streams.are_complete(ALL));
    }

    #[test]
    fn input_and_sizes_reach_process() {
        let wanted = Wanted { tty: true, ..ALL };
        let mut incoming = Incoming::new(wanted).unwrap();
        incoming.streams = Streams { stdin: Some(3), resize: Some(7), ..Streams::default() };
        let mut ahead = Ahead::default();
        let data = |stream, bytes: &[u8]| {
            let mut frame = spdy::open_data(stream, bytes.len());
            frame.put_slice(bytes);
            spdy::close_data(frame, false)
        };
        incoming.take(&data(7, b"{\"Width\":120,\"Hei"), &mut ahead).unwrap();
        incoming.take(&data(7, b"ght\":40}\nnonsense\n"), &mut ahead).unwrap();
        incoming.take(&data(7, &[b'x'; 5000]), &mut ahead).unwrap();
        assert!(incoming.resize.len() <= MAX_RESIZE);
        incoming.take(&spdy::last(3, b"ls"), &mut ahead).unwrap();
        assert!(incoming.take(&data(99, b"of no stream"), &mut ahead).unwrap().is_empty());
        let seen: Vec<String> = ahead.take_all().iter().map(|input| format!("{input:?}")).collect();
        assert_eq!(seen, ["Resize(120, 40)", "Stdin(b\"ls\")", "CloseStdin"]);
        assert!(incoming.take(b"\x80\x02\0\x01\0\0\0\0", &mut ahead).is_err());
    }

    #[test]
    fn end_closes_every_stream() {
        let streams = Streams { error: Some(1), stdout: Some(5), stderr: Some(7), ..Streams::default() };
        let frames = frames_of(Some(ExecOutput::Exited(3)), &streams);
        assert_eq!(frames.len(), 3);
        assert!(String::from_utf8_lossy(&frames[2]).contains("NonZeroExitCode"));
        assert!(frames_of(Some(ExecOutput::Stderr(Bytes::from_static(b"x"))), &Streams::default()).is_empty());
    }
}
