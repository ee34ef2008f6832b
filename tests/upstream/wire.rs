//! The server over TLS, as the daemon meets it: HTTP/1.1, bearer tokens or client certificates, watches as chunks of lines.

use crate::malice::{Malice, Mood};
use crate::relay::Background;
use crate::server::{Asked, Change, Refusal, Server, refusal};
use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::RootCertStore;
use rustls::pki_types::PrivateKeyDer;
use rustls::server::WebPkiClientVerifier;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;

/// A name of the server that no resolver knows.
pub(crate) const NAME: &str = "api.cluster.example";

pub(crate) type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Credentials that the server knows.
#[derive(Debug, Default)]
pub(crate) struct Known {
    pub(crate) token: Option<String>,
    /// The client certificate, DER.
    pub(crate) certificate: Option<Vec<u8>>,
    /// The error that answers every request.
    pub(crate) refuses: Option<Refuses>,
}

/// An answer that is no success, in the terms of HTTP.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Refuses {
    pub(crate) code: u16,
    pub(crate) retry_after: &'static str,
    pub(crate) body: &'static str,
}

/// A server that listens; dropping it ends all connections.
pub(crate) struct Wire {
    pub(crate) port: u16,
    pub(crate) known: Arc<Mutex<Known>>,
    pub(crate) mood: Mood,
    /// Of everything that is signed here, PEM.
    pub(crate) authority: String,
    issuer: Issuer<'static, KeyPair>,
    _background: Background,
}

/// A client certificate with its key, PEM, and the certificate, DER.
pub(crate) struct ClientPair {
    pub(crate) pem: String,
    pub(crate) certificate: String,
    pub(crate) key: String,
    pub(crate) der: Vec<u8>,
}

impl Wire {
    /// Listens on a port of its own.
    pub(crate) fn start(server: Server) -> Self {
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = authority.self_signed(&key).unwrap();
        let issuer = Issuer::new(authority, key);
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(certificate.der().clone()).unwrap();
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone()).allow_unauthenticated().build();
        let server_key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned(), NAME.to_owned()]).unwrap();
        let server_certificate = params.signed_by(&server_key, &issuer).unwrap();
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier.unwrap())
            .with_single_cert(vec![server_certificate.der().clone()], PrivateKeyDer::try_from(server_key.serialize_der()).unwrap())
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let known = Arc::new(Mutex::new(Known::default()));
        let mood = Mood::default();
        let (for_connections, of_connections) = (known.clone(), mood.clone());
        let (port, background) = Background::serve(move |listener| async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(serve(connection, acceptor.clone(), server.clone(), for_connections.clone(), of_connections.clone()));
            }
        });
        Self { port, known, mood, authority: certificate.pem(), issuer, _background: background }
    }

    /// A new client certificate.
    pub(crate) fn client_pair(&self) -> ClientPair {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let (certificate_pem, key) = (certificate.pem(), key.serialize_pem());
        ClientPair { pem: format!("{certificate_pem}{key}"), certificate: certificate_pem, key, der: certificate.der().to_vec() }
    }
}

async fn serve(connection: TcpStream, acceptor: TlsAcceptor, server: Server, known: Arc<Mutex<Known>>, mood: Mood) {
    // A client that does not trust the server ends here.
    let Ok(stream) = acceptor.accept(connection).await else { return };
    let presented = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first()).map(|certificate| certificate.to_vec());
    if mood.get() == Some(Malice::Head) {
        return mood.send_head(stream).await;
    }
    let answer = service_fn(move |request: Request<Incoming>| {
        let (server, known, presented, mood) = (server.clone(), known.clone(), presented.clone(), mood.clone());
        async move {
            let is_watch = request.uri().query().is_some_and(|query| query.contains("watch=true"));
            let malicious = mood.answer(request.uri().path(), is_watch);
            Ok::<_, Infallible>(match malicious {
                Some(response) => response,
                None => answer(request, &server, &known, presented.as_deref()).await,
            })
        }
    });
    let served = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), answer);
    drop(served.await);
}

async fn answer(request: Request<Incoming>, server: &Server, known: &Mutex<Known>, presented: Option<&[u8]>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let refuses = known.lock().unwrap().refuses;
    if let Some(Refuses { code, retry_after, body }) = refuses {
        let body = Full::new(Bytes::from(body)).boxed_unsync();
        let response = Response::builder().status(code).header("location", "/elsewhere");
        return response.header("retry-after", retry_after).body(body).unwrap();
    }
    let is_known = {
        let known = known.lock().unwrap();
        let token =
            head.headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok()).and_then(|value| value.strip_prefix("Bearer "));
        (token.is_some() && token == known.token.as_deref()) || (presented.is_some() && presented == known.certificate.as_deref())
    };
    if !is_known {
        return refused(refusal(401, "Unauthorized", "", "Unauthorized"));
    }
    let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let bytes = body.collect().await.map(|body| body.to_bytes()).unwrap_or_default();
    let query = form_urlencoded::parse(head.uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
    let asked = Asked {
        method: head.method.as_str(),
        path: head.uri.path(),
        query,
        content_type: &content_type,
        body: serde_json::from_slice(&bytes).ok(),
    };
    let watch = server.store().watch_from(&asked);
    match watch {
        Some(Ok(version)) => watched(server.clone(), version),
        Some(Err(refusal)) => refused(refusal),
        None => match server.answer(&asked) {
            Ok(object) => whole(if asked.method == "POST" { 201 } else { 200 }, &object),
            Err(refusal) => refused(refusal),
        },
    }
}

fn whole(code: u16, object: &Value) -> Response<Body> {
    let body = Full::new(Bytes::from(object.to_string())).boxed_unsync();
    Response::builder().status(code).header(CONTENT_TYPE, "application/json").body(body).unwrap()
}

fn refused(Refusal(code, status): Refusal) -> Response<Body> {
    whole(code, &status)
}

struct Following {
    server: Server,
    version: u64,
    ready: VecDeque<Change>,
    latest: tokio::sync::watch::Receiver<u64>,
    is_over: bool,
}

fn watched(server: Server, version: u64) -> Response<Body> {
    let latest = server.store().subscribe();
    let following = Following { server, version, ready: VecDeque::new(), latest, is_over: false };
    let lines = stream::unfold(following, |mut following| async move {
        if following.is_over {
            return None;
        }
        let line = following.next().await;
        Some((Ok::<_, Infallible>(Frame::data(Bytes::from(line))), following))
    });
    let body = StreamBody::new(lines).boxed_unsync();
    Response::builder().header(CONTENT_TYPE, "application/json").body(body).unwrap()
}

impl Following {
    async fn next(&mut self) -> String {
        loop {
            if let Some(change) = self.ready.pop_front() {
                self.version = change.version;
                return format!("{}\n", json!({"type": change.kind, "object": change.object}));
            }
            self.latest.borrow_and_update();
            let changes = self.server.store().since(self.version);
            match changes {
                Ok(changes) if changes.is_empty() => drop(self.latest.changed().await),
                Ok(changes) => self.ready.extend(changes),
                Err(Refusal(_, status)) => {
                    self.is_over = true;
                    return format!("{}\n", json!({"type": "ERROR", "object": status}));
                }
            }
        }
    }
}
