//! One attempt to deliver a notification: a command without a shell, or a POST.

use super::tracker::{Notice, State};
use podstead_config::notify::{Hook, HookTarget, HookUrl, Template, parse_url};
use podstead_fetch::Requester;
use podstead_outbound::Secret;
use podstead_source::credentials::{AuthFiles, CredentialFiles};
use podstead_source::http_client::{HttpAccess, HttpClient, HttpRequest};
use podstead_telemetry::error_chain;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

/// Search path of commands.
const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Header with the ID of the notification, the same for each attempt.
const DELIVERY: HeaderName = HeaderName::from_static("x-podstead-delivery");

/// Result of an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum Attempt {
    /// It was delivered.
    Delivered,
    /// It was not, and another attempt may succeed; the receiver may have asked to wait.
    Failed(String, Option<Duration>),
    /// The receiver refused it for good.
    Refused(String),
}

/// A notification with all that its receivers may see.
#[derive(Clone, Debug)]
pub(super) struct Message {
    pub(super) notice: Notice,
    /// Number of notifications that were dropped before it.
    pub(super) dropped: u64,
    /// Name of this host.
    pub(super) node: String,
}

impl Message {
    /// The value of a field of a template.
    fn field(&self, name: &str) -> String {
        let Notice { id, state, subject, failure, since, time: _ } = &self.notice;
        match name {
            "id" => id.clone(),
            "state" => state.as_str().to_owned(),
            "kind" => subject.kind.as_str().to_owned(),
            "namespace" => subject.namespace.clone(),
            "name" => subject.name.clone(),
            "object" => subject.object(),
            "reason" => failure.reason.clone(),
            "message" => failure.message.clone(),
            "source" => failure.source.clone(),
            "revision" => failure.revision.clone(),
            "since" => since.to_string(),
            "node" => self.node.clone(),
            "summary" => self.summary(),
            // The configuration admits no other.
            _ => String::new(),
        }
    }

    fn summary(&self) -> String {
        let Notice { state, subject, failure, .. } = &self.notice;
        match state {
            State::Failing => format!("{}: {} fails: {}: {}", self.node, subject.object(), failure.reason, failure.message),
            State::Recovered => format!("{}: {} recovered from {}", self.node, subject.object(), failure.reason),
        }
    }

    /// All fields.
    pub(super) fn json(&self) -> Value {
        let names =
            ["id", "state", "kind", "namespace", "name", "object", "reason", "message", "source", "revision", "since", "node"];
        let mut object: serde_json::Map<String, Value> =
            names.into_iter().map(|name| (name.to_owned(), Value::String(self.field(name)))).collect();
        object.insert("summary".to_owned(), self.summary().into());
        object.insert("time".to_owned(), self.notice.time.to_string().into());
        if self.dropped > 0 {
            object.insert("dropped".to_owned(), json!(self.dropped));
        }
        Value::Object(object)
    }
}

impl State {
    /// The word in notifications.
    const fn as_str(self) -> &'static str {
        match self {
            Self::Failing => "failing",
            Self::Recovered => "recovered",
        }
    }
}

/// Tries once, within the time limit of the hook.
pub(super) async fn attempt(hook: &Hook, message: &Message) -> Attempt {
    match &hook.target {
        HookTarget::Command { program, arguments } => run(program, arguments, message, hook.timeout).await,
        HookTarget::Http { url, token_file, ca_file, body } => {
            let body = match body {
                Some(template) => template.render_json(|field| message.field(field)),
                None => message.json().to_string(),
            };
            let access = HttpAccess {
                credentials: CredentialFiles { auth: token_file.clone().map(AuthFiles::Token), ..CredentialFiles::default() },
                ca_file: ca_file.clone(),
                ..HttpAccess::default()
            };
            post(url, access, body, message, hook.timeout).await
        }
    }
}

/// Runs the program with an environment of its own and the notification as standard input; its process group is killed at the end of
/// the time limit.
async fn run(program: &Path, arguments: &[Template], message: &Message, timeout: Duration) -> Attempt {
    let arguments = arguments.iter().map(|argument| argument.render(|field| message.field(field)).replace('\0', " "));
    let mut command = Command::new(program);
    command.args(arguments).env_clear().env("PATH", PATH).current_dir("/").process_group(0);
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => return Attempt::Failed(format!("cannot start {}: {error}", program.display()), None),
    };
    let group = child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(rustix::process::Pid::from_raw);
    let (mut input, text) = (child.stdin.take(), format!("{}\n", message.json()));
    let work = async {
        if let Some(mut input) = input.take() {
            // A program that does not read its input has what it needs.
            input.write_all(text.as_bytes()).await.ok();
        }
        child.wait().await
    };
    let ended = tokio::time::timeout(timeout, work).await;
    match ended {
        Ok(Ok(status)) if status.success() => Attempt::Delivered,
        Ok(Ok(status)) => Attempt::Failed(format!("{} ended with {status}", program.display()), None),
        Ok(Err(error)) => Attempt::Failed(format!("wait for {}: {error}", program.display()), None),
        Err(_) => {
            if let Some(group) = group {
                // It may have ended just now.
                rustix::process::kill_process_group(group, rustix::process::Signal::KILL).ok();
            }
            // Reaped here, so that no zombie stays.
            child.wait().await.ok();
            Attempt::Failed(format!("{} did not end within {} s", program.display(), timeout.as_secs()), None)
        }
    }
}

async fn post(url: &HookUrl, access: HttpAccess, body: String, message: &Message, timeout: Duration) -> Attempt {
    let (url, is_secret) = match url {
        HookUrl::Written(url) => (url.clone(), false),
        HookUrl::File(file) => match read_url(file.clone()).await {
            Ok(url) => (url, true),
            Err(reason) => return Attempt::Failed(reason, None),
        },
    };
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Ok(id) = HeaderValue::from_str(&message.notice.id) {
        headers.insert(DELIVERY, id);
    }
    let body = body.into_bytes().into();
    let request = HttpRequest { method: Method::POST, url, headers, is_led: false, body, unpack: None, timeout };
    match HttpClient::new(access, Requester::here()).send(request).await {
        // The body of the answer means nothing, and is not read.
        Ok(answer) => judge(answer.status(), answer.retry_after()),
        // Its text has parts of the URL.
        Err(_) if is_secret => {
            Attempt::Failed("the server in urlFile cannot be reached, or does not answer in time".to_owned(), None)
        }
        Err(error) => Attempt::Failed(error_chain(&error).to_string(), None),
    }
}

async fn read_url(file: PathBuf) -> Result<reqwest::Url, String> {
    let path = file.clone();
    let read = tokio::task::spawn_blocking(move || Secret::read(&path)).await;
    let secret = read.map_err(|error| error.to_string())?.map_err(|error| error_chain(&error).to_string())?;
    parse_url(secret.expose().trim()).map_err(|problem| format!("the URL in {} {problem}", file.display()))
}

/// Meaning of the status of an answer.
pub(in super::super) fn judge(status: StatusCode, retry_after: Option<Duration>) -> Attempt {
    let text = format!("the server answered {status}");
    match status {
        _ if status.is_success() => Attempt::Delivered,
        // The credentials may be replaced, and the receiver may be set up later.
        StatusCode::UNAUTHORIZED
        | StatusCode::FORBIDDEN
        | StatusCode::NOT_FOUND
        | StatusCode::REQUEST_TIMEOUT
        | StatusCode::TOO_MANY_REQUESTS => Attempt::Failed(text, retry_after),
        _ if status.is_client_error() => Attempt::Refused(text),
        _ => Attempt::Failed(text, retry_after),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tracker::{Failure, Subject};
    use super::*;
    use jiff::Timestamp;
    use podstead_config::notify::NotifyKind;

    fn message() -> Message {
        let [reason, source, revision] = ["CrashLoopBackOff", "fleet", "abc"].map(str::to_owned);
        let failure = Failure { reason, message: "a \"b\"\nc".to_owned(), source, revision, is_progress: false };
        let subject = Subject { kind: NotifyKind::Pod, namespace: "default".to_owned(), name: "web-edge".to_owned() };
        let (since, time) = (Timestamp::UNIX_EPOCH, Timestamp::UNIX_EPOCH);
        let notice = Notice { id: "1".to_owned(), state: State::Failing, subject, failure, since, time };
        Message { notice, dropped: 2, node: "edge".to_owned() }
    }

    async fn shell(script: &str, timeout: u64) -> Attempt {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("hook");
        std::fs::write(&file, script).unwrap();
        let target = HookTarget::Command { program: file.clone(), arguments: Vec::new() };
        std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let hook = Hook { name: "a".to_owned(), on: Default::default(), target, timeout: Duration::from_secs(timeout) };
        attempt(&hook, &message()).await
    }

    #[tokio::test]
    async fn command_gets_notification_as_input() {
        let directory = tempfile::tempdir().unwrap();
        let out = directory.path().join("out");
        let script = format!("#!/bin/sh\ncat >{}; env >>{}\n", out.display(), out.display());
        assert_eq!(shell(&script, 20).await, Attempt::Delivered);
        let text = std::fs::read_to_string(out).unwrap();
        let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        assert_eq!(
            (&first["state"], &first["object"], &first["dropped"]),
            (&json!("failing"), &json!("pod default/web-edge"), &json!(2))
        );
        assert!(!text.contains("CARGO"), "the environment is not the daemon's: {text}");
    }

    #[tokio::test]
    async fn failing_commands_are_tried_again() {
        assert!(
            matches!(shell("#!/bin/sh\nexit 3\n", 20).await, Attempt::Failed(reason, None) if reason.contains("exit status: 3"))
        );
        assert!(
            matches!(shell("#!/bin/sh\nsleep 1000\n", 1).await, Attempt::Failed(reason, None) if reason.contains("within 1 s"))
        );
    }

    #[test]
    fn answers_are_judged_by_status() {
        let judged = |code: u16| judge(StatusCode::from_u16(code).unwrap(), None);
        assert_eq!(judged(204), Attempt::Delivered);
        assert!(matches!(judged(400), Attempt::Refused(_)));
        for code in [301, 401, 404, 429, 500, 503] {
            assert!(matches!(judged(code), Attempt::Failed(..)), "{code}");
        }
    }
}
