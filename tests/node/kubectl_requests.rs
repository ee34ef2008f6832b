//! Requests that kubectl 1.36 was seen to send, and those that k9s sends by its source: they need no such client.
//!
//! `kubectl-1.36.txt` and `k9s-0.51.txt` have them command by command: method and path, headers, body, and behind `=` the status and the shape of the answer: the kind,
//! the columns of a table, and the names of objects. `!` is a warning. `{version}` is the resource
//! version of the answer before, `{uid}` its uid.

use crate::support::{TestHost, eventually};
use base64::Engine as _;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::{Method, Request, Response, body::Incoming};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use std::collections::BTreeSet;

const KUBECTL: &str = include_str!("kubectl-1.36.txt");
const K9S: &str = include_str!("k9s-0.51.txt");

const ACCEPTED: [(&str, &str); 5] = [
    ("table", "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"),
    (
        "discovery",
        "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json",
    ),
    ("protobuf", "application/vnd.kubernetes.protobuf,application/json"),
    ("any", "application/json, */*"),
    ("json", "application/json"),
];

const CONTENT_TYPES: [(&str, &str); 6] = [
    ("protobuf", "application/vnd.kubernetes.protobuf"),
    ("json", "application/json"),
    ("strategic", "application/strategic-merge-patch+json"),
    ("merge", "application/merge-patch+json"),
    ("json-patch", "application/json-patch+json"),
    ("apply", "application/apply-patch+yaml"),
];

/// The header that a word stands for; other words are headers themselves.
fn whole<'a>(words: &[(&str, &'a str)], word: &'a str) -> &'a str {
    words.iter().find(|(short, _)| *short == word).map_or(word, |(_, header)| header)
}

/// A request, and what is expected.
#[derive(Default)]
struct Recorded<'a> {
    command: &'a str,
    method: &'a str,
    path: &'a str,
    accept: &'a str,
    content_type: &'a str,
    body: Vec<u8>,
    expected: &'a str,
    warnings: Vec<&'a str>,
}

fn recorded(requests: &'static str) -> Vec<Recorded<'static>> {
    let mut all: Vec<Recorded<'_>> = Vec::new();
    let mut command = "";
    for line in requests.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let (word, rest) = line.split_once(' ').unwrap();
        match (word, all.last_mut()) {
            ("$", _) => command = rest,
            ("accept", Some(last)) => last.accept = rest,
            ("content-type", Some(last)) => last.content_type = rest,
            ("body", Some(last)) => last.body = rest.as_bytes().to_vec(),
            ("base64", Some(last)) => last.body = base64::engine::general_purpose::STANDARD.decode(rest).unwrap(),
            ("=", Some(last)) => last.expected = rest,
            ("!", Some(last)) => last.warnings.push(rest),
            (method, _) => all.push(Recorded { command, method, path: rest, ..Recorded::default() }),
        }
    }
    all
}

/// An answer: status, warnings, and the body; none of a watch, which does not end.
struct Answer {
    status: u16,
    warnings: Vec<String>,
    body: Bytes,
}

/// Identity of the object that was answered last.
#[derive(Default)]
struct Last {
    version: String,
    uid: String,
}

impl Last {
    fn fill(&self, text: &str) -> String {
        text.replace("{version}", &self.version).replace("{uid}", &self.uid)
    }
}

async fn respond(host: &TestHost, recorded: &Recorded<'_>, last: &Last) -> Response<Incoming> {
    let stream = tokio::net::UnixStream::connect(host.path("run/podstead.sock")).await.unwrap();
    let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    let request = Request::builder().method(Method::from_bytes(recorded.method.as_bytes()).unwrap());
    let request = request.uri(last.fill(recorded.path));
    let request = request.header("host", "podstead").header("user-agent", "kubectl/v1.36.3 (linux/amd64) kubernetes/0f29094");
    let request = request.header("accept", whole(&ACCEPTED, recorded.accept));
    let request = request.header("content-type", whole(&CONTENT_TYPES, recorded.content_type));
    let body = match std::str::from_utf8(&recorded.body) {
        Ok(text) => last.fill(text).into_bytes(),
        Err(_) => recorded.body.clone(),
    };
    sender.send_request(request.body(Full::new(Bytes::from(body))).unwrap()).await.unwrap()
}

async fn ask(host: &TestHost, recorded: &Recorded<'_>, last: &Last) -> Answer {
    let response = respond(host, recorded, last).await;
    let status = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter();
    let warnings =
        warnings.map(|value| value.to_str().unwrap().trim_start_matches("299 - ").trim_matches('"').to_owned()).collect();
    let is_watch = recorded.expected.ends_with(" watch") && status == 200;
    let body = if is_watch { Bytes::new() } else { response.into_body().collect().await.unwrap().to_bytes() };
    Answer { status, warnings, body }
}

fn name_of(object: &Value) -> String {
    object["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

/// The shape of an answer, as the file has it.
fn shape(body: &Bytes) -> String {
    if body.is_empty() {
        return "watch".to_owned();
    }
    let Ok(object) = serde_json::from_slice::<Value>(body) else { return "text".to_owned() };
    let kind = object["kind"].as_str().unwrap_or_default();
    let words = |before: &str, names: BTreeSet<String>| [before.to_owned()].into_iter().chain(names).collect::<Vec<_>>().join(" ");
    let array = |field: &str| object[field].as_array().cloned().unwrap_or_default();
    match kind {
        "Table" => {
            let columns: Vec<String> =
                array("columnDefinitions").iter().map(|column| column["name"].as_str().unwrap().replace(' ', "_")).collect();
            let rows = array("rows");
            let names = rows.iter().filter(|_| columns[0] == "Name").filter_map(|row| row["cells"][0].as_str()).map(str::to_owned);
            words(&format!("Table {}", columns.join(",")), names.collect())
        }
        "Status" => format!("Status {}", object["reason"].as_str().or_else(|| object["status"].as_str()).unwrap_or_default()),
        // Clients in Rust refuse a list that is null.
        "APIGroupDiscoveryList" | "APIResourceList" if body.windows(5).any(|text| text == b":null") => format!("{kind} with null"),
        "EventList" | "APIGroupDiscoveryList" | "APIResourceList" => kind.to_owned(),
        "SelfSubjectAccessReview" => format!("{kind} {}", if object["status"]["allowed"] == true { "allowed" } else { "denied" }),
        "" => {
            let members: BTreeSet<&String> = object.as_object().into_iter().flat_map(|members| members.keys()).collect();
            format!("json {}", members.into_iter().take(3).cloned().collect::<Vec<_>>().join(","))
        }
        kind if object["items"].is_array() => words(kind, array("items").iter().map(name_of).collect()),
        kind => words(kind, BTreeSet::from([name_of(&object)]).into_iter().filter(|name| !name.is_empty()).collect()),
    }
}

#[test]
fn requests_of_kubectl_1_36_are_answered() {
    let requests = recorded(KUBECTL);
    assert!(requests.len() > 150, "{}", requests.len());
    replay(&requests);
}

/// At its start, and in its views of pods, deployments, nodes and events; describe, YAML, logs, scale, restart, set image, kill, run a CronJob, delete.
#[test]
fn requests_of_k9s_are_answered() {
    let requests = recorded(K9S);
    assert!(requests.len() > 60, "{}", requests.len());
    replay(&requests);
}

fn replay(requests: &[Recorded<'_>]) {
    let host = TestHost::start_with("    writable: true\n");
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let mut last = Last::default();
    for recorded in requests {
        let Recorded { command, method, path, expected, .. } = recorded;
        let look = || {
            let answer = tokio.block_on(ask(&host, recorded, &last));
            let found = format!("{} {}", answer.status, shape(&answer.body));
            if found == *expected && answer.warnings == recorded.warnings {
                return Ok(answer);
            }
            Err(format!(
                "expected {expected} {:?}, not {found} {:?}: {}",
                recorded.warnings,
                answer.warnings,
                String::from_utf8_lossy(&answer.body)
            ))
        };
        // What is read may need a moment; what changes something is sent once.
        let what = format!("{command}: {method} {path}");
        let answer = match *method {
            "GET" => eventually(&what, look),
            _ => look().unwrap_or_else(|error| panic!("{what}: {error}\n{}", host.daemon_log())),
        };
        let object: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let found = |field: &str, known: &mut String| {
            if let Some(found) = object["metadata"][field].as_str() {
                found.clone_into(known);
            }
        };
        found("resourceVersion", &mut last.version);
        found("uid", &mut last.uid);
    }
}
