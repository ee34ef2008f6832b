//! An exec or attach: a connection of its own that carries streams.

use super::connection::Line;
use super::{PROMPT, START, misunderstood, refused};
use crate::{ExecInput, ExecOutput, ExecSession, RuntimeError};
use bytes::Bytes;
use podstead_container::protocol::frame::{self, FrameDecoder, FrameKind, parse_exit, resize_payload};
use podstead_container::protocol::{Answer, Operation};
use podstead_pod::PodUid;
use podstead_sys::layout::Paths;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Chunks that wait in each direction: enough to keep both sides busy, few enough that a slow reader slows the writer.
const CHUNKS: usize = 16;

/// The most that is sent to stdin in one frame.
const STDIN_CHUNK: usize = 32 * 1024;

/// Opens a session for an exec or attach operation.
pub(super) async fn open(paths: &Paths, uid: &PodUid, operation: Operation) -> Result<ExecSession, RuntimeError> {
    let (what, patience): (_, Duration) = match &operation {
        Operation::Attach { container } => (format!("attach to container {container}"), PROMPT),
        Operation::Exec { container, .. } => (format!("exec in container {container}"), START),
        Operation::Start(_)
        | Operation::Signal { .. }
        | Operation::Kill { .. }
        | Operation::Resize { .. }
        | Operation::Status
        | Operation::Subscribe
        | Operation::Remove { .. }
        | Operation::Shutdown => return Err(misunderstood("open a session")),
    };
    let (mut line, _) = Line::open(paths, uid).await?;
    let gone = |error: io::Error| RuntimeError::shim_gone(uid, error);
    let answer = timeout(patience, line.ask(1, operation)).await;
    match answer.map_err(|late| gone(late.into()))?.map_err(gone)? {
        Ok(Answer::SessionOpen) => {}
        Ok(Answer::Done | Answer::Container(_) | Answer::Status(_)) => return Err(misunderstood(&what)),
        Err(refusal) => return Err(refused(&what, refusal)),
    }
    let (input, from_user) = mpsc::channel(CHUNKS);
    let (to_user, output) = mpsc::channel(CHUNKS);
    let Line { stream, decoder } = line;
    let (reader, writer) = stream.into_split();
    // The writer's half keeps the connection open, so it ends with the reader.
    tokio::spawn(async move {
        let writing = tokio::spawn(write(writer, from_user));
        read(reader, decoder, to_user).await;
        writing.abort();
    });
    Ok(ExecSession { input, output })
}

/// From the process to the user, until the process has ended, the shim is gone or the user has dropped the session.
async fn read(mut reader: OwnedReadHalf, mut decoder: FrameDecoder, to_user: mpsc::Sender<ExecOutput>) {
    let mut buffer = vec![0; STDIN_CHUNK];
    loop {
        loop {
            let output = match decoder.next_frame() {
                Ok(Some((FrameKind::Stdout, payload))) => ExecOutput::Stdout(Bytes::copy_from_slice(payload)),
                Ok(Some((FrameKind::Stderr, payload))) => ExecOutput::Stderr(Bytes::copy_from_slice(payload)),
                Ok(Some((FrameKind::Exit, payload))) => match parse_exit(payload) {
                    Some(code) => ExecOutput::Exited(code),
                    None => return,
                },
                Ok(Some((
                    FrameKind::Message | FrameKind::Stdin | FrameKind::CloseStdin | FrameKind::Resize | FrameKind::Times,
                    _,
                ))) => continue,
                Ok(None) => break,
                Err(_) => return,
            };
            let is_last = matches!(output, ExecOutput::Exited(_));
            // A user who does not read makes the process wait.
            if to_user.send(output).await.is_err() || is_last {
                return;
            }
        }
        tokio::select! {
            // Cancel safe: nothing is read when it is cancelled.
            count = reader.read(&mut buffer) => match count {
                Ok(count) if count > 0 => decoder.push(&buffer[..count]),
                Ok(_) | Err(_) => return,
            },
            () = to_user.closed() => return,
        }
    }
}

/// From the user to the process. Ends with the user's sender, but leaves the connection open: no more input is not the end.
async fn write(mut writer: OwnedWriteHalf, mut from_user: mpsc::Receiver<ExecInput>) {
    while let Some(input) = from_user.recv().await {
        let mut bytes = Vec::new();
        let encoded = match &input {
            ExecInput::Stdin(data) => {
                data.chunks(STDIN_CHUNK).try_for_each(|chunk| frame::encode(FrameKind::Stdin, chunk, &mut bytes))
            }
            ExecInput::CloseStdin => frame::encode(FrameKind::CloseStdin, &[], &mut bytes),
            ExecInput::Resize(columns, rows) => frame::encode(FrameKind::Resize, &resize_payload(*columns, *rows), &mut bytes),
        };
        if encoded.is_err() || writer.write_all(&bytes).await.is_err() {
            return;
        }
    }
    std::future::pending::<()>().await;
}
