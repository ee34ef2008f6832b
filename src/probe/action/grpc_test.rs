//! Health checks against a server that h2 makes.

use super::connect::PodAddress;
use super::grpc::{GrpcAnswer, UNIMPLEMENTED, check};
use super::request::GrpcCheck;
use bytes::Bytes;
use hyper::http::{HeaderMap, HeaderValue, Response};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;
use tokio::net::TcpListener;

const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

/// Serves one call: checks the request's body against `expected`, answers with `body` and these headers or trailers.
async fn serve(listener: TcpListener, expected: Vec<u8>, status: u16, body: Option<Vec<u8>>, code: &'static str) {
    let (stream, _) = listener.accept().await.unwrap();
    let mut connection = h2::server::handshake(stream).await.unwrap();
    let (request, mut respond) = connection.accept().await.unwrap().unwrap();
    assert_eq!(request.uri().path(), "/grpc.health.v1.Health/Check");
    assert_eq!(request.headers()["te"], "trailers");
    assert_eq!(request.headers()["content-type"], "application/grpc");
    assert_eq!(request.headers()["user-agent"], "kube-probe/1.36");
    let talk = tokio::spawn(async move {
        let mut asked = request.into_body();
        let mut received = Vec::new();
        while let Some(piece) = asked.data().await {
            received.extend_from_slice(&piece.unwrap());
        }
        assert_eq!(received, expected);
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static(code));
        trailers.insert("grpc-message", HeaderValue::from_static("said so"));
        let mut response = Response::builder().status(status);
        match body {
            Some(body) => {
                let mut stream = respond.send_response(response.body(()).unwrap(), false).unwrap();
                stream.send_data(Bytes::from(body), false).unwrap();
                stream.send_trailers(trailers).unwrap();
            }
            None => {
                *response.headers_mut().unwrap() = trailers;
                respond.send_response(response.body(()).unwrap(), true).unwrap();
            }
        }
    });
    // The connection is moved on until the asker closes it.
    while connection.accept().await.is_some_and(|more| more.is_ok()) {}
    talk.await.unwrap();
}

async fn asked(service: &str, expected: &[u8], status: u16, body: Option<&[u8]>, code: &'static str) -> Result<GrpcAnswer, String> {
    let listener = TcpListener::bind((LOCAL, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(serve(listener, expected.to_vec(), status, body.map(<[u8]>::to_vec), code));
    let pod = PodAddress::new(&[LOCAL], None);
    let request = GrpcCheck { port, service: service.to_owned() };
    let answer = tokio::time::timeout(Duration::from_secs(30), check(&pod, &request)).await.unwrap();
    tokio::time::timeout(Duration::from_secs(30), server).await.unwrap().unwrap();
    answer
}

const EMPTY: &[u8] = &[0, 0, 0, 0, 0];

#[tokio::test]
async fn a_server_says_how_it_is() {
    let not_serving = |state: &str| Ok(GrpcAnswer::NotServing(state.to_owned()));
    assert_eq!(asked("", EMPTY, 200, Some(&[0, 0, 0, 0, 2, 8, 1]), "0").await, Ok(GrpcAnswer::Serving));
    assert_eq!(asked("", EMPTY, 200, Some(&[0, 0, 0, 0, 2, 8, 2]), "0").await, not_serving("NOT_SERVING"));
    assert_eq!(asked("", EMPTY, 200, Some(&[0, 0, 0, 0, 2, 8, 3]), "0").await, not_serving("SERVICE_UNKNOWN"));
    assert_eq!(asked("", EMPTY, 200, Some(EMPTY), "0").await, not_serving("UNKNOWN"));
    // An unknown field before the status.
    assert_eq!(asked("", EMPTY, 200, Some(&[0, 0, 0, 0, 6, 0x12, 2, 0xff, 0xff, 8, 1]), "0").await, Ok(GrpcAnswer::Serving));
}

#[tokio::test]
async fn the_service_is_named() {
    let request = [&[0, 0, 0, 0, 6, 0x0a, 4][..], b"shop"].concat();
    assert_eq!(asked("shop", &request, 200, Some(&[0, 0, 0, 0, 2, 8, 1]), "0").await, Ok(GrpcAnswer::Serving));
    let long = "s".repeat(200);
    let request = [&[0, 0, 0, 0, 203, 0x0a, 0xc8, 1][..], long.as_bytes()].concat();
    assert_eq!(asked(&long, &request, 200, Some(&[0, 0, 0, 0, 2, 8, 1]), "0").await, Ok(GrpcAnswer::Serving));
}

#[tokio::test]
async fn a_call_that_fails_has_a_status_in_headers_or_trailers() {
    let status = |code| Ok(GrpcAnswer::Status(code, "said so".to_owned()));
    assert_eq!(asked("", EMPTY, 200, None, "12").await, status(UNIMPLEMENTED));
    assert_eq!(asked("", EMPTY, 200, Some(EMPTY), "14").await, status(14));
}

#[tokio::test]
async fn what_is_no_answer_is_an_error() {
    for bad in [&[][..], &[1, 0, 0, 0, 0], &[0, 0, 0, 0, 2, 8], &[0, 0, 0, 0, 2, 8, 0x80], &[0, 0, 0, 0, 2, 0x12, 9]] {
        let error = asked("", EMPTY, 200, Some(bad), "0").await.unwrap_err();
        assert_eq!(error, "the response is not a HealthCheckResponse");
    }
    let error = asked("", EMPTY, 404, None, "0").await.unwrap_err();
    assert!(error.contains("404"), "{error}");
}

#[tokio::test]
async fn a_server_of_another_protocol_is_an_error() {
    let listener = TcpListener::bind((LOCAL, 0)).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
    });
    let (pod, request) = (PodAddress::new(&[LOCAL], None), GrpcCheck { port, service: String::new() });
    let asking = check(&pod, &request);
    tokio::time::timeout(Duration::from_secs(30), asking).await.unwrap().unwrap_err();
    server.await.unwrap();
}
