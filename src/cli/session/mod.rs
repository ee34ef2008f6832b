//! `podstead exec` and `podstead attach`: this terminal's streams, connected to a container's.

pub(super) mod attach;
pub(super) mod copy;
mod detach;
pub(super) mod exec;
mod input;
mod terminal;

use super::client::ClientError;
use bytes::Bytes;
use detach::DetachKeys;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use podstead_api::channels::{ClientMessage, Ending, ServerMessage, TerminalSize};
use std::io::{self, Write};
use std::process::ExitCode;
use terminal::RawTerminal;
use tokio::net::UnixStream;
use tokio::signal::unix::{SignalKind, signal};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;

/// Streams to connect.
#[derive(Clone, Copy, Debug)]
struct Streams {
    /// Send this terminal's input.
    stdin: bool,
    /// The container has a terminal: send single keys and terminal sizes.
    tty: bool,
    /// Leave the container alone on ctrl-p ctrl-q.
    detachable: bool,
}

/// End of a session.
#[derive(Debug)]
enum End {
    Process(Ending),
    Detached,
    Signalled,
}

/// The user typed the keys that leave the container alone.
#[derive(Clone, Copy, Debug)]
struct Detached;

type Socket = WebSocketStream<UnixStream>;

/// Runs until the process ends, the user detaches or a signal asks to stop. The terminal is restored on every way out.
async fn run(socket: Socket, streams: Streams) -> anyhow::Result<ExitCode> {
    let raw = if streams.tty && streams.stdin { RawTerminal::enter()? } else { None };
    let end = connect(socket, streams).await;
    drop(raw);
    match end? {
        End::Process(Ending::Exited(code)) => Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))),
        End::Process(Ending::Failed(message)) => anyhow::bail!(message),
        End::Detached => {
            writeln!(io::stderr(), "detached; the container keeps running")?;
            Ok(ExitCode::SUCCESS)
        }
        // The exit code that a shell uses.
        End::Signalled => Ok(ExitCode::from(130)),
    }
}

async fn connect(socket: Socket, streams: Streams) -> anyhow::Result<End> {
    let (mut sink, mut stream) = socket.split();
    let mut stops = [signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?, signal(SignalKind::hangup())?];
    let [interrupt, terminate, hangup] = &mut stops;
    // Both directions run concurrently, because a daemon that waits until its output is read accepts no input.
    // Cancel-safe: when one arm is done, the session is over and nothing of the others is needed.
    let ending = tokio::select! {
        ending = receive_output(&mut stream) => ending?,
        detached = send_input(&mut sink, streams) => return detached.map(|Detached| End::Detached),
        _ = interrupt.recv() => return Ok(End::Signalled),
        _ = terminate.recv() => return Ok(End::Signalled),
        _ = hangup.recv() => return Ok(End::Signalled),
    };
    close(&mut sink, &mut stream).await;
    Ok(End::Process(ending))
}

/// Copies output until the daemon reports the result of the process.
async fn receive_output(stream: &mut SplitStream<Socket>) -> anyhow::Result<Ending> {
    loop {
        match stream.next().await {
            Some(Ok(Message::Binary(bytes))) => {
                if let Some(ending) = output(&bytes)? {
                    return Ok(ending);
                }
            }
            Some(Ok(Message::Close(_))) | None => {
                return Ok(Ending::Failed("the daemon closed the session before reporting the exit code of the process".into()));
            }
            Some(Ok(Message::Text(_) | Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => {}
            Some(Err(error)) => return Err(session_error(error).into()),
        }
    }
}

/// Copies input and changes of the terminal's size; returns when the user detaches.
async fn send_input(sink: &mut SplitSink<Socket, Message>, streams: Streams) -> anyhow::Result<Detached> {
    let mut resized = signal(SignalKind::window_change())?;
    let mut input = streams.stdin.then(input::read_stdin);
    let mut keys = streams.detachable.then(DetachKeys::default);
    if streams.tty {
        send_size(sink).await;
    }
    loop {
        // Cancel-safe: channels and signals lose nothing when the other arm wins.
        tokio::select! {
            bytes = input::next(&mut input) => match bytes {
                Some(bytes) => match keys.as_mut().map_or(Some(bytes.clone()), |keys| keys.filter(&bytes)) {
                    Some(bytes) if bytes.is_empty() => {}
                    Some(bytes) => send(sink, &ClientMessage::Stdin(bytes)).await,
                    None => return Ok(Detached),
                },
                None => {
                    input = None;
                    send(sink, &ClientMessage::CloseStdin).await;
                }
            },
            Some(()) = resized.recv(), if streams.tty => send_size(sink).await,
        }
    }
}

async fn send_size(sink: &mut SplitSink<Socket, Message>) {
    if let Some((width, height)) = terminal::size() {
        send(sink, &ClientMessage::Resize(TerminalSize { width, height })).await;
    }
}

/// Writes what came; the ending if it was that.
fn output(message: &Bytes) -> io::Result<Option<Ending>> {
    match ServerMessage::decode(message) {
        Some(ServerMessage::Stdout(bytes)) => write(&mut io::stdout().lock(), &bytes)?,
        Some(ServerMessage::Stderr(bytes)) => write(&mut io::stderr().lock(), &bytes)?,
        Some(ServerMessage::Ended(ending)) => return Ok(Some(ending)),
        None => {}
    }
    Ok(None)
}

fn write(out: &mut impl Write, bytes: &[u8]) -> io::Result<()> {
    out.write_all(bytes)?;
    out.flush()
}

async fn send(sink: &mut SplitSink<Socket, Message>, message: &ClientMessage) {
    // When it fails, the process has ended; how, is about to be read.
    sink.send(Message::Binary(message.encode())).await.ok();
}

async fn close(sink: &mut SplitSink<Socket, Message>, stream: &mut SplitStream<Socket>) {
    if sink.send(Message::Close(None)).await.is_ok() {
        while let Some(Ok(_)) = stream.next().await {}
    }
}

fn session_error(source: tokio_tungstenite::tungstenite::Error) -> ClientError {
    ClientError::Session { source: Box::new(source) }
}
