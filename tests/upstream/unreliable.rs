//! The server behind a connection that fails: slow, dropped before or after the server has done its work, silent, refused, flapping.

use crate::server::{Asked, Change, Refusal, Server, refusal};
use async_trait::async_trait;
use podstead::upstream::cluster::{ApiError, ApiRequest, Cluster, Verb, Watch, WatchEvent, WatchKind};
use serde_json::Value;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::watch;

/// Numbers that look random and are the same in every run.
#[derive(Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// From 0 to below `sides`.
    pub(crate) fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % sides
    }
}

/// States of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weather {
    Fair,
    /// Every request and every event may meet any fault.
    Foul,
    /// Nothing is reached.
    Down,
    /// Everything is taken, and nothing is answered until the client gives up.
    Stuck,
    /// Everything is refused by one code.
    Refusing {
        code: u16,
        retry_after: Option<u64>,
    },
}

#[derive(Debug)]
struct Air {
    weather: watch::Sender<Weather>,
    dice: Mutex<Dice>,
    attempts: AtomicU64,
}

/// The transport.
#[derive(Clone, Debug)]
pub(crate) struct Unreliable {
    server: Server,
    air: Arc<Air>,
}

fn unreachable(what: &str) -> ApiError {
    ApiError::Unreachable(what.to_owned())
}

fn refused(code: u16, retry_after: Option<u64>) -> ApiError {
    ApiError::of_status(code, &Value::Null, retry_after.map(Duration::from_secs))
}

fn api_error(Refusal(code, status): Refusal) -> ApiError {
    ApiError::of_status(code, &status, None)
}

impl Unreliable {
    pub(crate) fn new(server: Server, seed: u64) -> Self {
        let air =
            Air { weather: watch::Sender::new(Weather::Fair), dice: Mutex::new(Dice::new(seed)), attempts: AtomicU64::new(0) };
        Self { server, air: Arc::new(air) }
    }

    pub(crate) fn set(&self, weather: Weather) {
        self.air.weather.send_replace(weather);
    }

    /// Requests, whether anybody heard them or not.
    pub(crate) fn attempts(&self) -> u64 {
        self.air.attempts.load(Ordering::Relaxed)
    }

    fn roll(&self, sides: u64) -> u64 {
        self.air.dice.lock().unwrap().roll(sides)
    }

    fn weather(&self) -> Weather {
        *self.air.weather.borrow()
    }

    /// A fault before the server hears anything.
    async fn meet_fault(&self) -> Result<(), ApiError> {
        self.air.attempts.fetch_add(1, Ordering::Relaxed);
        match self.weather() {
            Weather::Fair => return Ok(()),
            Weather::Down => {
                tokio::time::sleep(Duration::from_millis(self.roll(10_000))).await;
                return Err(unreachable("no connection"));
            }
            Weather::Stuck => {
                tokio::time::sleep(Duration::from_secs(30)).await;
                return Err(unreachable("stalled"));
            }
            Weather::Refusing { code, retry_after } => return Err(refused(code, retry_after)),
            Weather::Foul => {}
        }
        tokio::time::sleep(Duration::from_millis(self.roll(3000))).await;
        match self.roll(20) {
            0 => Err(unreachable("reset")),
            1 => {
                tokio::time::sleep(Duration::from_secs(30)).await;
                Err(unreachable("stalled"))
            }
            2 => Err(api_error(refusal(401, "Unauthorized", "", "Unauthorized"))),
            3 => Err(api_error(refusal(403, "Forbidden", "pods", "not now"))),
            4 => Err(ApiError::of_status(429, &Value::Null, Some(Duration::from_secs(self.roll(60))))),
            5 => Err(api_error(refusal(500, "InternalError", "", "etcdserver: leader changed"))),
            6 => Err(api_error(refusal(503, "ServiceUnavailable", "", "apiserver is shutting down"))),
            7 => Err(api_error(refusal(409, "Conflict", "pods", "the object has been modified"))),
            8 => Err(api_error(refusal(422, "Invalid", "pods", "a state that cannot follow"))),
            _ => Ok(()),
        }
    }
}

/// A request as HTTP has it.
pub(crate) fn asked(request: &ApiRequest) -> Asked<'_> {
    let (method, content_type) = match request.verb {
        Verb::Get => ("GET", ""),
        Verb::Create => ("POST", "application/json"),
        Verb::Replace => ("PUT", "application/json"),
        Verb::Patch => ("PATCH", "application/strategic-merge-patch+json"),
        Verb::Delete => ("DELETE", "application/json"),
    };
    let query = request.query.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
    Asked { method, path: &request.path, query, content_type, body: request.body.clone() }
}

#[async_trait]
impl Cluster for Unreliable {
    async fn send(&self, request: ApiRequest) -> Result<Value, ApiError> {
        self.meet_fault().await?;
        let answer = self.server.answer(&asked(&request)).map_err(api_error);
        if self.weather() == Weather::Foul && self.roll(12) == 0 {
            return Err(unreachable("the answer was lost"));
        }
        answer
    }

    async fn watch(&self, request: ApiRequest) -> Result<Box<dyn Watch>, ApiError> {
        self.meet_fault().await?;
        let asked = asked(&request);
        let store = self.server.store();
        let version = store.watch_from(&asked).expect("a watch").map_err(api_error)?;
        store.since(version).map_err(api_error)?;
        let latest = store.subscribe();
        drop(store);
        Ok(Box::new(FaultyWatch { transport: self.clone(), version, latest, ready: VecDeque::new() }))
    }

    async fn address(&self) -> Option<String> {
        Some("in memory".into())
    }
}

struct FaultyWatch {
    transport: Unreliable,
    version: u64,
    latest: watch::Receiver<u64>,
    ready: VecDeque<Change>,
}

#[async_trait]
impl Watch for FaultyWatch {
    async fn next(&mut self) -> Option<Result<WatchEvent, ApiError>> {
        let mut weather = self.transport.air.weather.subscribe();
        loop {
            let present = *weather.borrow_and_update();
            match present {
                Weather::Fair => {}
                Weather::Down => return Some(Err(unreachable("cut off"))),
                Weather::Stuck => {
                    tokio::time::sleep(Duration::from_secs(180)).await;
                    return Some(Err(unreachable("silent")));
                }
                Weather::Refusing { code, retry_after } => return Some(Err(refused(code, retry_after))),
                Weather::Foul => match self.transport.roll(30) {
                    0 => return None,
                    1 => return Some(Err(unreachable("reset"))),
                    2 => {
                        // Half open: silent until the client gives up.
                        tokio::time::sleep(Duration::from_secs(180)).await;
                        return Some(Err(unreachable("silent")));
                    }
                    _ => {}
                },
            }
            if let Some(change) = self.ready.pop_front() {
                self.version = change.version;
                let kind = if change.kind == "DELETED" { WatchKind::Deleted } else { WatchKind::Present };
                return Some(Ok(WatchEvent { kind, object: change.object }));
            }
            self.latest.borrow_and_update();
            match self.transport.server.store().since(self.version) {
                Ok(changes) => self.ready.extend(changes),
                Err(expired) => return Some(Err(api_error(expired))),
            }
            if self.ready.is_empty() {
                // A version that the server does not have yet.
                let is_ahead = self.version > self.transport.server.store().version();
                tokio::select! {
                    _ = self.latest.changed() => {}
                    _ = weather.changed() => {}
                    () = tokio::time::sleep(Duration::from_secs(60)), if !is_ahead => {
                        let object = serde_json::json!({"kind": "Pod", "metadata": {"resourceVersion": self.version.to_string()}});
                        return Some(Ok(WatchEvent { kind: WatchKind::Bookmark, object }));
                    }
                }
            }
        }
    }
}
