//! A health check over gRPC: one unary call of `grpc.health.v1.Health/Check` over HTTP/2 without TLS.
//!
//! The two messages of that call have one field each, so they are written and read here by hand.

use super::connect::{PodAddress, authority, connect};
use super::request::GrpcCheck;
use super::{KUBERNETES_VERSION, OUTPUT_LIMIT};
use bytes::{BufMut, Bytes, BytesMut};
use h2::RecvStream;
use hyper::http::{HeaderMap, Request};
use std::pin::pin;

/// Health that a server reports of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GrpcAnswer {
    /// It serves.
    Serving,
    /// It answered with another state: `UNKNOWN`, `NOT_SERVING`, `SERVICE_UNKNOWN`, or a number.
    NotServing(String),
    /// The call ended with this code and message.
    Status(u32, String),
}

/// The code of a call to something that the server does not have.
pub const UNIMPLEMENTED: u32 = 12;

/// Sends the request. The error gives the reason for a missing answer.
pub async fn check(pod: &PodAddress, request: &GrpcCheck) -> Result<GrpcAnswer, String> {
    let stream = connect(pod, None, request.port).await?;
    let said = |error: h2::Error| error.to_string();
    let mut builder = h2::client::Builder::new();
    builder.max_header_list_size(64 * 1024).initial_window_size(64 * 1024).enable_push(false);
    let (client, connection) = builder.handshake::<_, Bytes>(stream).await.map_err(said)?;
    let mut connection = pin!(connection);
    let mut talk = pin!(async {
        let mut client = client.ready().await.map_err(said)?;
        let message = head(&authority(&pod.ip().to_string(), request.port)).map_err(|error| error.to_string())?;
        let (response, mut body) = client.send_request(message, false).map_err(said)?;
        body.send_data(encode(&request.service), true).map_err(said)?;
        let response = response.await.map_err(said)?;
        if response.status().as_u16() != 200 {
            return Err(format!("unexpected HTTP status code received from server: {}", response.status()));
        }
        // A call that fails at once has its status among the headers.
        if let Some(status) = status(response.headers()).filter(|status| *status != GrpcAnswer::Serving) {
            return Ok(status);
        }
        answer(response.into_body()).await
    });
    tokio::select! {
        ended = &mut connection => match ended {
            // Its data must still be read.
            Ok(()) => talk.await,
            Err(error) => Err(error.to_string()),
        },
        answer = &mut talk => answer,
    }
}

fn head(authority: &str) -> Result<Request<()>, hyper::http::Error> {
    Request::post(format!("http://{authority}/grpc.health.v1.Health/Check"))
        .header("content-type", "application/grpc")
        .header("user-agent", format!("kube-probe/{KUBERNETES_VERSION}"))
        .header("te", "trailers")
        .body(())
}

/// `HealthCheckRequest {service}` behind the length prefix of gRPC.
fn encode(service: &str) -> Bytes {
    let mut message = BytesMut::new();
    if !service.is_empty() {
        // Field 1, length-delimited.
        message.put_u8(0x0a);
        let mut length = service.len();
        while length >= 0x80 {
            message.put_u8((length & 0x7f) as u8 | 0x80);
            length >>= 7;
        }
        message.put_u8(length as u8);
        message.put_slice(service.as_bytes());
    }
    let mut framed = BytesMut::new();
    framed.put_u8(0);
    framed.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    framed.put_slice(&message);
    framed.freeze()
}

async fn answer(mut body: RecvStream) -> Result<GrpcAnswer, String> {
    let mut message = Vec::new();
    while let Some(piece) = body.data().await {
        let piece = piece.map_err(|error| error.to_string())?;
        if message.len() + piece.len() > OUTPUT_LIMIT {
            return Err("the response is too long".to_owned());
        }
        body.flow_control().release_capacity(piece.len()).map_err(|error| error.to_string())?;
        message.extend_from_slice(&piece);
    }
    let trailers = body.trailers().await.map_err(|error| error.to_string())?.unwrap_or_default();
    match status(&trailers) {
        Some(GrpcAnswer::Serving) => decode(&message).ok_or_else(|| "the response is not a HealthCheckResponse".to_owned()),
        Some(status) => Ok(status),
        None => Err("server closed the stream without sending trailers".to_owned()),
    }
}

/// The status of the call, `Serving` standing for OK.
fn status(headers: &HeaderMap) -> Option<GrpcAnswer> {
    let code = headers.get("grpc-status")?.to_str().ok()?.parse().ok()?;
    if code == 0 {
        return Some(GrpcAnswer::Serving);
    }
    let message = headers.get("grpc-message").map(|message| String::from_utf8_lossy(message.as_bytes()).into_owned());
    Some(GrpcAnswer::Status(code, message.unwrap_or_default()))
}

/// `HealthCheckResponse {status}` behind the length prefix of gRPC. An absent status is 0, unknown fields are passed over.
fn decode(framed: &[u8]) -> Option<GrpcAnswer> {
    let (is_compressed, rest) = framed.split_first()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let mut message = rest.get(..usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
    if *is_compressed != 0 {
        return None;
    }
    let mut state = 0;
    while !message.is_empty() {
        let key = varint(&mut message)?;
        match key & 7 {
            0 => {
                let value = varint(&mut message)?;
                if key >> 3 == 1 {
                    state = value;
                }
            }
            1 => message = message.get(8..)?,
            2 => {
                let length = usize::try_from(varint(&mut message)?).ok()?;
                message = message.get(length..)?;
            }
            5 => message = message.get(4..)?,
            _ => return None,
        }
    }
    Some(match state {
        0 => GrpcAnswer::NotServing("UNKNOWN".to_owned()),
        1 => GrpcAnswer::Serving,
        2 => GrpcAnswer::NotServing("NOT_SERVING".to_owned()),
        3 => GrpcAnswer::NotServing("SERVICE_UNKNOWN".to_owned()),
        other => GrpcAnswer::NotServing(other.to_string()),
    })
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
