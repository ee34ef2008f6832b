//! Requests as GitHub, GitLab and Gitea want them. What to send is **pure**; [`send`] sends it.
//!
//! Sources: the documentation of the REST API of GitHub ("commit statuses"), of GitLab ("commits API") and of Gitea (`repoCreateStatus`).

use super::super::notify::{Attempt, judge};
use super::course::{Report, State};
use podstead_config::{CommitStatus, Provider};
use podstead_fetch::Requester;
use podstead_source::credentials::{AuthFiles, CredentialFiles};
use podstead_source::http_client::{HttpAccess, HttpClient, HttpRequest};
use podstead_telemetry::error_chain;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, StatusCode, Url};
use serde_json::{Value, json};
use std::time::Duration;

/// Time limit of an attempt.
const TIMEOUT: Duration = Duration::from_secs(30);
/// Longest description in characters that GitHub takes.
const MAX_DESCRIPTION: usize = 140;
/// Part of an answer that is read.
const MAX_ANSWER: u64 = 16 << 10;
/// Words of GitLab for a status that it has already.
const SAME_STATE: &str = "Cannot transition status";

/// URL and body of a report; `None` for a revision that is no commit.
fn request(config: &CommitStatus, report: &Report, node: &str) -> Option<(Url, Value)> {
    let Report { revision, state, description } = report;
    if !matches!(revision.len(), 40 | 64) || !revision.chars().all(|letter| letter.is_ascii_hexdigit()) {
        return None;
    }
    let description = shortened(description);
    let context = config.context.clone().unwrap_or_else(|| format!("podstead/{node}"));
    let mut url = config.api.clone();
    let mut path = url.path_segments_mut().ok()?;
    path.pop_if_empty();
    let body = match config.provider {
        Provider::Github | Provider::Gitea => {
            path.push("repos").extend(config.repository.split('/')).extend(["statuses", revision]);
            json!({"state": state.as_str(), "context": context, "description": description})
        }
        Provider::Gitlab => {
            // The whole path is one segment.
            path.extend(["projects", &config.repository, "statuses", revision]);
            let state = match state {
                State::Pending => "running",
                State::Success => "success",
                State::Failure => "failed",
            };
            json!({"state": state, "name": context, "description": description})
        }
    };
    drop(path);
    Some((url, body))
}

/// One line of at most [`MAX_DESCRIPTION`] characters.
fn shortened(text: &str) -> String {
    let line: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.chars().count() <= MAX_DESCRIPTION {
        return line;
    }
    line.chars().take(MAX_DESCRIPTION - 3).chain("...".chars()).collect()
}

/// Tries once.
pub(super) async fn send(config: &CommitStatus, report: &Report, node: &str) -> Attempt {
    let Some((url, body)) = request(config, report, node) else {
        return Attempt::Refused(format!("revision {} is not a commit", report.revision));
    };
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
    let access = HttpAccess {
        credentials: CredentialFiles { auth: Some(AuthFiles::Token(config.token_file.clone())), ..CredentialFiles::default() },
        ca_file: config.ca_file.clone(),
        ..HttpAccess::default()
    };
    let body = body.to_string().into_bytes().into();
    let request = HttpRequest { method: Method::POST, url, headers, is_led: false, body, unpack: None, timeout: TIMEOUT };
    let answer = match HttpClient::new(access, Requester::here()).send(request).await {
        Ok(answer) => answer,
        Err(error) => return Attempt::Failed(error_chain(&error).to_string(), None),
    };
    let (status, retry_after) = (answer.status(), answer.retry_after());
    if config.provider == Provider::Gitlab && status == StatusCode::BAD_REQUEST {
        let text = answer.body(MAX_ANSWER).await.unwrap_or_default();
        return judge_refusal(&String::from_utf8_lossy(&text));
    }
    judge(status, retry_after)
}

/// GitLab refuses a state that the commit has already, as after a repeated report.
fn judge_refusal(text: &str) -> Attempt {
    if text.contains(SAME_STATE) { Attempt::Delivered } else { judge(StatusCode::BAD_REQUEST, None) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMIT: &str = "0123456789abcdef0123456789abcdef01234567";

    fn config(provider: Provider, api: &str) -> CommitStatus {
        CommitStatus {
            provider,
            api: api.parse().unwrap(),
            repository: "shop/fleet".to_owned(),
            context: None,
            token_file: "/token".into(),
            ca_file: None,
        }
    }

    fn report(state: State) -> Report {
        Report { revision: COMMIT.to_owned(), state, description: "pod default/web:\n  CrashLoopBackOff".to_owned() }
    }

    #[test]
    fn requests_are_those_of_each_server() {
        let (url, body) = request(&config(Provider::Github, "https://api.github.com"), &report(State::Failure), "edge").unwrap();
        assert_eq!(url.as_str(), format!("https://api.github.com/repos/shop/fleet/statuses/{COMMIT}"));
        let text = "pod default/web: CrashLoopBackOff";
        assert_eq!(body, json!({"state": "failure", "context": "podstead/edge", "description": text}));
        let (url, body) = request(&config(Provider::Gitlab, "https://git.lan/api/v4/"), &report(State::Pending), "edge").unwrap();
        assert_eq!(url.as_str(), format!("https://git.lan/api/v4/projects/shop%2Ffleet/statuses/{COMMIT}"));
        assert_eq!((&body["state"], &body["name"]), (&json!("running"), &json!("podstead/edge")));
        let (url, _) = request(&config(Provider::Gitea, "http://git.lan:3000/api/v1"), &report(State::Success), "edge").unwrap();
        assert_eq!(url.as_str(), format!("http://git.lan:3000/api/v1/repos/shop/fleet/statuses/{COMMIT}"));
    }

    #[test]
    fn only_commits_are_reported() {
        for revision in ["", "sha256:00", "../../x", &"g".repeat(40)] {
            let report = Report { revision: revision.to_owned(), ..report(State::Success) };
            assert!(request(&config(Provider::Github, "https://api.github.com"), &report, "edge").is_none(), "{revision}");
        }
    }

    #[test]
    fn descriptions_are_short() {
        assert_eq!(shortened(&"ä".repeat(141)), format!("{}...", "ä".repeat(137)));
        assert_eq!(shortened(&"ä".repeat(140)).chars().count(), 140);
    }

    #[test]
    fn repeated_state_is_no_refusal() {
        assert_eq!(judge_refusal("{\"message\": \"Cannot transition status via :run from :running\"}"), Attempt::Delivered);
        assert!(matches!(judge_refusal("{\"message\": \"no\"}"), Attempt::Refused(_)));
    }
}
