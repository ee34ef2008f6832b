//! Repository of a webhook payload. **Pure**.

use serde::Deserialize;
use serde_json::Value;

/// Addresses of one repository that are looked at.
const MAX_URLS: usize = 16;

/// Common part of the payloads of GitHub, Gitea, Forgejo, GitLab and Bitbucket: the repository with its addresses. Everything else in a
/// payload is skipped without being kept.
#[derive(Deserialize)]
struct Payload {
    #[serde(default)]
    repository: Option<Repository>,
    /// GitLab's.
    #[serde(default)]
    project: Option<Repository>,
}

#[derive(Deserialize)]
struct Repository {
    #[serde(default)]
    clone_url: Value,
    #[serde(default)]
    ssh_url: Value,
    #[serde(default)]
    git_url: Value,
    #[serde(default)]
    html_url: Value,
    #[serde(default)]
    url: Value,
    #[serde(default)]
    homepage: Value,
    #[serde(default)]
    git_http_url: Value,
    #[serde(default)]
    git_ssh_url: Value,
    #[serde(default)]
    web_url: Value,
}

/// All addresses that the payload gives its repository; none for what is no such payload.
pub fn repository_urls(body: &[u8]) -> Vec<String> {
    let Ok(Payload { repository, project }) = serde_json::from_slice(body) else { return Vec::new() };
    let mut urls: Vec<String> = Vec::new();
    for repository in [repository, project].into_iter().flatten() {
        let Repository { clone_url, ssh_url, git_url, html_url, url, homepage, git_http_url, git_ssh_url, web_url } = repository;
        let values = [clone_url, ssh_url, git_url, html_url, url, homepage, git_http_url, git_ssh_url, web_url];
        for text in values.iter().filter_map(Value::as_str) {
            if urls.len() < MAX_URLS && !urls.iter().any(|known| known == text) {
                urls.push(text.to_owned());
            }
        }
    }
    urls
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_addresses_of_all_git_hosts_are_found() {
        for (body, url) in [
            (
                r#"{"ref":"refs/heads/main","repository":{"id":1,"clone_url":"https://github.com/a/b.git","owner":{"url":"x"}}}"#,
                "https://github.com/a/b.git",
            ),
            (r#"{"repository":{"ssh_url":"git@gitea.lan:a/b.git","private":true}}"#, "git@gitea.lan:a/b.git"),
            (
                r#"{"project":{"git_http_url":"https://gitlab.lan/a/b.git"},"repository":{"homepage":"https://gitlab.lan/a/b"}}"#,
                "https://gitlab.lan/a/b.git",
            ),
        ] {
            assert!(repository_urls(body.as_bytes()).contains(&url.to_owned()), "{body}");
        }
    }

    #[test]
    fn what_is_no_payload_has_none() {
        for body in ["", "{}", "[]", "null", r#"{"repository":7}"#, r#"{"repository":{"clone_url":{"a":[1]}}}"#, "payload=%7B%7D"] {
            assert_eq!(repository_urls(body.as_bytes()), [""; 0], "{body}");
        }
        let deep = format!("{}1{}", "{\"a\":".repeat(100_000), "}".repeat(100_000));
        assert_eq!(repository_urls(deep.as_bytes()), [""; 0]);
    }

    proptest! {
        #[test]
        fn no_body_makes_it_panic(body: Vec<u8>) {
            repository_urls(&body);
        }
    }
}
