//! `podstead page`: the status page of the daemon at a port on loopback, for one session.
//!
//! Any user of the host, and any pod on its network, may connect to the port: the page is only at a path that nobody can guess, and
//! only for a browser that was given a name of loopback, so that a page from elsewhere cannot read it.

use super::Context;
use super::client::{Client, ClientError, OWN, Target};
use anyhow::Context as _;
use bytes::Bytes;
use clap::Args;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Write};
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::Semaphore;

/// Connections at the same time.
const CONNECTIONS: usize = 16;
/// Time for the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of the token, which has two digits for each.
const TOKEN_BYTES: usize = 24;

/// Arguments.
#[derive(Debug, Args)]
#[command(
    after_help = "The page is served on 127.0.0.1 until the command is interrupted, at an address that is printed and that nobody can guess. It only shows, \
                        and loads nothing from elsewhere. On a laptop: ssh -L 8080:127.0.0.1:8080 HOST podstead page --port 8080"
)]
pub(super) struct PageArgs {
    /// Port on loopback [default: a free one]
    #[arg(long, value_name = "PORT", default_value_t = 0, hide_default_value = true)]
    port: u16,
}

/// The page that is served, and its path.
struct Door {
    client: Client,
    /// `/TOKEN/`.
    path: String,
}

pub(super) fn run(args: &PageArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    context.block_on(async {
        // An error of the daemon is better seen here than in the browser.
        client.get_whole(target()).await?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, args.port)).await;
        let listener = listener.with_context(|| format!("listen on 127.0.0.1:{}", args.port))?;
        let address = listener.local_addr()?;
        let door = Arc::new(Door { client, path: format!("/{}/", token()?) });
        let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let mut hangup = signal(SignalKind::hangup())?;
        writeln!(io::stdout(), "http://{address}{}", door.path)?;
        io::stdout().flush()?;
        // Cancel-safe: whatever ends this, nothing of the session is needed any more.
        tokio::select! {
            served = serve(&listener, &door) => served?,
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup.recv() => {}
        }
        Ok(ExitCode::SUCCESS)
    })
}

fn target() -> Target {
    Target::new(OWN, &["page"])
}

/// Random digits from the kernel.
fn token() -> io::Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().fold(String::new(), |mut token, byte| {
        // Writing to a string cannot fail.
        write!(token, "{byte:02x}").ok();
        token
    }))
}

/// Accepts connections; ends with an error only.
async fn serve(listener: &TcpListener, door: &Arc<Door>) -> io::Result<()> {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return Ok(()) };
        let (stream, _) = listener.accept().await?;
        let door = Arc::clone(door);
        tokio::spawn(async move {
            let answer = service_fn(|request| {
                let door = Arc::clone(&door);
                async move { Ok::<_, Infallible>(door.answer(&request).await) }
            });
            let mut server = http1::Builder::new();
            // A browser that keeps its connection must not keep others out.
            server.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).keep_alive(false);
            // A broken connection is the browser's own business.
            server.serve_connection(TokioIo::new(stream), answer).await.ok();
            drop(slot);
        });
    }
}

impl Door {
    async fn answer(&self, request: &Request<Incoming>) -> Response<Full<Bytes>> {
        if !Self::is_own_name(request.headers().get(header::HOST)) {
            return plain(StatusCode::FORBIDDEN, "this address is not served");
        }
        if !is_same(request.uri().path(), &self.path) {
            return plain(StatusCode::NOT_FOUND, "there is nothing here");
        }
        if request.method() != Method::GET {
            return plain(StatusCode::METHOD_NOT_ALLOWED, "the page can only be read");
        }
        match self.client.get_whole(target()).await {
            Ok(page) => shown(page),
            Err(ClientError::Refused { message, .. }) => plain(StatusCode::BAD_GATEWAY, &message),
            Err(error) => plain(StatusCode::BAD_GATEWAY, &error.to_string()),
        }
    }

    /// True for names of loopback: with another one, a page from elsewhere would have the same origin as this one.
    fn is_own_name(host: Option<&HeaderValue>) -> bool {
        let Some((name, port)) = host.and_then(|host| host.to_str().ok()).and_then(|host| host.rsplit_once(':')) else {
            return false;
        };
        // Another port is that of a tunnel.
        matches!(name, "127.0.0.1" | "localhost") && port.parse::<u16>().is_ok()
    }
}

/// Compares in a time that does not tell how much is right.
fn is_same(given: &str, wanted: &str) -> bool {
    let differing = given.bytes().zip(wanted.bytes()).fold(0, |differing, (a, b)| differing | (a ^ b));
    given.len() == wanted.len() && differing == 0
}

/// The daemon's page with the headers that it needs.
fn shown(page: Response<Bytes>) -> Response<Full<Bytes>> {
    let (head, body) = page.into_parts();
    let mut response = Response::new(Full::new(body));
    let kept: [HeaderName; 6] = [
        header::CONTENT_TYPE,
        header::CONTENT_SECURITY_POLICY,
        header::X_CONTENT_TYPE_OPTIONS,
        header::X_FRAME_OPTIONS,
        header::REFERRER_POLICY,
        header::CACHE_CONTROL,
    ];
    for name in kept {
        if let Some(value) = head.headers.get(&name) {
            response.headers_mut().insert(name, value.clone());
        }
    }
    response
}

fn plain(code: StatusCode, text: &str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(format!("{text}\n"))));
    *response.status_mut() = code;
    for (name, value) in [
        (header::CONTENT_TYPE, "text/plain; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, "default-src 'none'; frame-ancestors 'none'"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CACHE_CONTROL, "no-store"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}
