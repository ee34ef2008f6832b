//! The job itself.

use crate::engine::{self, Engine};
use crate::files;
use crate::message::{Begin, BodyEnd, Open, PIECE_MAX, QUESTION_MAX, Question, Refusal, Reply};
use crate::request::Request;
use crate::setup::Setup;
use bytes::{Buf, Bytes};
use podstead_job::channel::Channel;
use podstead_job::child::{self, Begun};
use podstead_job::confine::{self, ConfineError};
use podstead_job::frame;
use podstead_job::user::JobUser;
use podstead_outbound::Failure;
use podstead_telemetry::error_chain;
use rustls::ClientConfig;
use serde::Serialize;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::runtime::Runtime;
use tokio::sync::mpsc;

/// Threads that wait for the resolver, at most.
const RESOLVERS: usize = 8;
/// Stack of a thread: the resolver needs some.
const STACK: usize = 512 << 10;

/// Sends the requests that the daemon has, until it has no more.
pub fn run() -> ExitCode {
    let Some(Begun { channel, request: begin, descriptors }) = child::begin::<Begin>() else { return ExitCode::FAILURE };
    let Some(setup) = descriptors.into_iter().next().and_then(read_setup) else { return ExitCode::FAILURE };
    child::tell_panics(&channel, Refusal::Panic);
    // Of the host, as the files of the resolver: nobody else wrote them.
    let tls = engine::tls(&setup);
    // It makes sockets of its own, which the job may not do. Its threads begin later.
    let Ok(runtime) = runtime() else { return ExitCode::FAILURE };
    if let Err(error) = confined(&begin) {
        let _daemon_gone = channel.send(&Refusal::Confine(error_chain(&error).to_string()));
        return ExitCode::FAILURE;
    }
    if serve(channel, runtime, setup, tls).is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn read_setup(file: OwnedFd) -> Option<Setup> {
    serde_json::from_reader(io::BufReader::new(File::from(file))).ok()
}

fn runtime() -> io::Result<Runtime> {
    let mut builder = tokio::runtime::Builder::new_current_thread();
    builder.enable_io().enable_time().max_blocking_threads(RESOLVERS).thread_stack_size(STACK).build()
}

/// Gives up all rights but those to connect to servers.
fn confined(begin: &Begin) -> Result<(), ConfineError> {
    let copies = files::read(Path::new("/etc"));
    let user = JobUser { uid: begin.uid, gid: begin.gid, is_own: true };
    confine::confine_in_network(user, &begin.rlimits, || files::enter_root(&copies))
}

/// Waits for requests.
fn serve(mut channel: Channel, runtime: Runtime, setup: Setup, tls: Result<ClientConfig, Failure>) -> io::Result<()> {
    let (open, opened) = mpsc::unbounded_channel();
    let asking = move || runtime.block_on(ask(setup, tls, opened));
    std::thread::Builder::new().stack_size(STACK * 4).spawn(asking)?;
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    while let Some((Open {}, mut descriptors)) = channel.receive_with::<Open>().map_err(io::Error::other)? {
        open.send(descriptors.pop().ok_or_else(invalid)?).map_err(|_| invalid())?;
    }
    Ok(())
}

async fn ask(setup: Setup, tls: Result<ClientConfig, Failure>, mut opened: mpsc::UnboundedReceiver<OwnedFd>) {
    let engine = Arc::new(tls.and_then(|tls| Engine::with(&setup, tls)));
    while let Some(descriptor) = opened.recv().await {
        let engine = Arc::clone(&engine);
        tokio::spawn(async move {
            // Whoever asked may have gone.
            let _gone = answer(&engine, descriptor).await;
        });
    }
}

/// Answers one request.
async fn answer(engine: &Result<Engine, Failure>, descriptor: OwnedFd) -> io::Result<()> {
    let stream = std::os::unix::net::UnixStream::from(descriptor);
    stream.set_nonblocking(true)?;
    let (mut from, mut to) = UnixStream::from_std(stream)?.into_split();
    let request = read_question(&mut from).await?;
    tokio::select! {
        biased;
        // The daemon says no more, but for the end.
        _ = from.read_u8() => Ok(()),
        sent = pass_on(engine, request, &mut to) => sent,
    }
}

async fn read_question(from: &mut OwnedReadHalf) -> io::Result<Request> {
    let invalid = || io::Error::from(io::ErrorKind::InvalidData);
    let length = from.read_u32().await? as usize;
    if length > QUESTION_MAX {
        return Err(invalid());
    }
    let mut json = vec![0; length];
    from.read_exact(&mut json).await?;
    let question: Question = serde_json::from_slice(&json)?;
    let mut body = vec![0; usize::try_from(question.body).map_err(|_| invalid())?];
    from.read_exact(&mut body).await?;
    Ok(Request { body: body.into(), ..question.request().ok_or_else(invalid)? })
}

async fn pass_on(engine: &Result<Engine, Failure>, request: Request, to: &mut OwnedWriteHalf) -> io::Result<()> {
    let answered = match engine {
        Ok(engine) => engine.send(request).await,
        Err(failure) => Err(failure.clone()),
    };
    let (head, mut coming) = match answered {
        Ok((head, coming)) => (head, coming),
        Err(failure) => return say(to, &Reply::Failed(failure)).await,
    };
    #[cfg(feature = "testing")]
    crate::attack::attack(coming.response().headers(), to).await?;
    let Ok(reply) = encoded(&Reply::Head(head)) else { return say(to, &Reply::Failed(Failure::Headers)).await };
    to.write_all(&reply).await?;
    let end = loop {
        match coming.chunk().await {
            Ok(Some(chunk)) => pieces(chunk, to).await?,
            Ok(None) => break BodyEnd::Whole,
            Err(failure) => break BodyEnd::Failed(failure),
        }
    };
    to.write_u32(0).await?;
    say(to, &end).await
}

async fn pieces(mut chunk: Bytes, to: &mut OwnedWriteHalf) -> io::Result<()> {
    while !chunk.is_empty() {
        let piece = chunk.split_to(chunk.len().min(PIECE_MAX));
        let length = u32::try_from(piece.len()).map_err(io::Error::other)?.to_be_bytes();
        to.write_all_buf(&mut Buf::chain(length.as_slice(), piece)).await?;
    }
    Ok(())
}

pub(crate) async fn say(to: &mut OwnedWriteHalf, message: &impl Serialize) -> io::Result<()> {
    to.write_all(&encoded(message)?).await
}

fn encoded(message: &impl Serialize) -> io::Result<Vec<u8>> {
    frame::encode(message, frame::FROM_JOB).map_err(io::Error::other)
}
