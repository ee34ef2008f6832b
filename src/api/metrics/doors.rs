//! The pages for monitoring over TCP, where the configuration asks for it. Reading alone: `/pods` shows manifests and status as the kubelet does
//! there, and nothing shows logs or Secrets.

use super::super::access::Caller;
use super::super::dispatch::{answer, refuse};
use super::super::request::Connection;
use super::super::route::Route;
use super::super::server::{ACCEPT_PAUSE, HEADER_TIMEOUT};
use super::super::{Backend, respond};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use podstead_sys_async::tcp_listener;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

/// Connections at one time; a scraper has one.
const MAX_CONNECTIONS: usize = 16;
/// Largest head of a request.
const MAX_HEAD_BYTES: usize = 16 << 10;
/// Pause before an address that cannot be had is tried again.
const RETRY: Duration = Duration::from_secs(10);

/// Serves the pages at `address` until the future is dropped. An address that is not there (yet) is tried again: nothing else waits for it.
pub async fn serve_monitoring(address: SocketAddr, backend: Backend) -> Infallible {
    let backend = Arc::new(backend);
    let slots = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let listener = tcp_listener::listen(address, RETRY, |error| {
        tracing::warn!(%address, %error, "cannot listen for monitoring requests; retrying");
    })
    .await;
    tracing::info!(%address, "serving monitoring endpoints");
    let mut connections = JoinSet::new();
    loop {
        while connections.try_join_next().is_some() {}
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else { return std::future::pending().await };
        match listener.accept().await {
            Ok((stream, _)) => {
                let backend = Arc::clone(&backend);
                connections.spawn(async move {
                    connection(stream, backend).await;
                    drop(slot);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a monitoring connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn connection(stream: TcpStream, backend: Arc<Backend>) {
    let service = service_fn(move |request: Request<Incoming>| {
        let backend = Arc::clone(&backend);
        async move { Ok::<_, Infallible>(door(&backend, request).await) }
    });
    let builder = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .max_buf_size(MAX_HEAD_BYTES)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = builder.await {
        tracing::debug!(%error, "a monitoring connection ended early");
    }
}

async fn door(backend: &Backend, request: Request<Incoming>) -> Response<respond::Body> {
    let open = match Route::parse(request.uri().path()) {
        Some(Route::Healthz | Route::Readyz | Route::Metrics(_)) => request.method() == Method::GET,
        Some(Route::Pods(None)) if request.uri().path() == "/pods" => request.method() == Method::GET,
        _ => false,
    };
    if open { answer(backend, &Caller::monitoring(), Connection::Monitoring, request).await } else { refuse(&request) }
}
