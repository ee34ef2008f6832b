//! The listener itself.

use super::payload::repository_urls;
use super::repository::same_repository;
use super::verify::{SignatureHeaders, verify};
use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::header::HeaderMap;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use podstead_artifact::Wakers;
use podstead_outbound::Secret;
use podstead_sys_async::tcp_listener;
use podstead_telemetry::error_chain;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

/// Git hosts send one request after the other; more connections wait in the kernel.
const CONNECTIONS: usize = 8;
/// A push of many commits has some hundred kilobytes.
const MAX_BODY: usize = 2 << 20;
const MAX_HEAD: usize = 64 << 10;
/// For a connection as a whole.
const CONNECTION_LIMIT: Duration = Duration::from_secs(15);
/// Time to the next attempt to listen, and to accept.
const RETRY: Duration = Duration::from_secs(5);

/// Address to listen at, and the shared secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WebhookOptions {
    /// Address and port; 0 for any port.
    pub listen: SocketAddr,
    /// File with the shared secret; read for each request.
    pub secret_file: PathBuf,
}

/// Listens and wakes sources for ever. If the address cannot be bound, it tries again; `listening` is called when it succeeds.
pub async fn serve(options: WebhookOptions, wakers: Wakers, listening: impl FnOnce(SocketAddr) + Send) -> Infallible {
    let address = options.listen;
    let listener = tcp_listener::listen(address, RETRY, |error| {
        tracing::warn!(%address, %error, "webhook cannot listen; retrying");
    })
    .await;
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, "webhook is listening");
        listening(address);
    }
    let hook = Arc::new(Hook { options, wakers, complained: AtomicBool::new(false) });
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        // Nobody closes the semaphore.
        let place = Arc::clone(&places).acquire_owned().await.ok();
        match listener.accept().await {
            Ok((stream, peer)) => {
                let hook = Arc::clone(&hook);
                tokio::spawn(async move {
                    hook.connection(stream, peer).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "webhook cannot accept a connection");
                tokio::time::sleep(RETRY).await;
            }
        }
    }
}

#[derive(Debug)]
struct Hook {
    options: WebhookOptions,
    wakers: Wakers,
    /// A request was refused, and none was good since: the log has it once.
    complained: AtomicBool,
}

type Refusal = (StatusCode, String);

impl Hook {
    async fn connection(&self, stream: TcpStream, peer: SocketAddr) {
        let service = service_fn(|request| async move { Ok::<_, Infallible>(self.answer(request, peer).await) });
        let mut server = http1::Builder::new();
        server.timer(TokioTimer::new()).header_read_timeout(CONNECTION_LIMIT).max_buf_size(MAX_HEAD).keep_alive(false);
        let served = tokio::time::timeout(CONNECTION_LIMIT, server.serve_connection(TokioIo::new(stream), service)).await;
        if let Ok(Err(error)) = served {
            tracing::debug!(%peer, error = %error_chain(&error), "webhook connection failed");
        }
    }

    async fn answer(&self, request: Request<Incoming>, peer: SocketAddr) -> Response<Full<Bytes>> {
        let (status, text) = match self.take(request).await {
            Ok(text) => {
                self.complained.store(false, Ordering::Relaxed);
                tracing::info!(%peer, "webhook: {text}");
                (StatusCode::ACCEPTED, text)
            }
            Err((status, text)) => {
                if self.complained.swap(true, Ordering::Relaxed) {
                    tracing::debug!(%peer, %status, "webhook request refused: {text}");
                } else {
                    tracing::warn!(%peer, %status, "webhook request refused: {text}");
                }
                (status, text)
            }
        };
        let mut response = Response::new(Full::new(Bytes::from(text + "\n")));
        *response.status_mut() = status;
        response
    }

    /// Wakes what the request names; says what.
    async fn take(&self, request: Request<Incoming>) -> Result<String, Refusal> {
        if request.method() != Method::POST {
            return Err((StatusCode::METHOD_NOT_ALLOWED, "only POST is supported".into()));
        }
        let (head, body) = request.into_parts();
        let body = Limited::new(body, MAX_BODY).collect().await;
        let body =
            body.map_err(|_| (StatusCode::PAYLOAD_TOO_LARGE, format!("the body is incomplete or larger than {MAX_BODY} bytes")))?;
        let body = body.to_bytes();
        let path = self.options.secret_file.clone();
        let secret = tokio::task::spawn_blocking(move || Secret::read(&path)).await;
        let secret = match secret {
            Ok(Ok(secret)) => secret,
            // Not the sender's concern where it lies.
            Ok(Err(error)) => {
                tracing::error!(error = %error_chain(&error), "cannot read the webhook secret");
                return Err((StatusCode::INTERNAL_SERVER_ERROR, "the webhook secret cannot be read on the host".into()));
            }
            Err(_) => return Err((StatusCode::INTERNAL_SERVER_ERROR, "the webhook secret cannot be read on the host".into())),
        };
        // Before anything else is told, such as which sources there are.
        verify(&signatures(&head.headers), &body, &secret).map_err(|error| (StatusCode::UNAUTHORIZED, error.to_string()))?;
        if head.headers.get("x-github-event").is_some_and(|event| event == "ping") {
            return Ok("pong".into());
        }
        match head.uri.path().trim_matches('/').split('/').collect::<Vec<_>>().as_slice() {
            [""] => self.wake_readers_of(&body),
            ["sources", name] => {
                let waker = self.wakers.get(name).ok_or_else(|| (StatusCode::NOT_FOUND, "source not found".to_owned()))?;
                waker.wake();
                Ok(format!("triggered source {name}"))
            }
            _ => Err((StatusCode::NOT_FOUND, "unknown path: use / or /sources/NAME".into())),
        }
    }

    fn wake_readers_of(&self, body: &[u8]) -> Result<String, Refusal> {
        let urls = repository_urls(body);
        let woken = self.wakers.with_url(|url| urls.iter().any(|pushed| same_repository(pushed, url)));
        if woken.is_empty() {
            return Err((StatusCode::NOT_FOUND, "no source follows the repository of this payload".into()));
        }
        woken.iter().for_each(|(_, waker)| waker.wake());
        let names: Vec<_> = woken.iter().map(|(name, _)| name.as_str()).collect();
        Ok(format!("triggered sources: {}", names.join(", ")))
    }
}

fn signatures(headers: &HeaderMap) -> SignatureHeaders<'_> {
    let header = |name: &str| headers.get(name).map(|value| value.as_bytes());
    SignatureHeaders {
        hub: header("x-hub-signature-256"),
        generic: header("x-podstead-signature"),
        gitea: header("x-gitea-signature").or_else(|| header("x-forgejo-signature")),
        gitlab: header("x-gitlab-token"),
    }
}
