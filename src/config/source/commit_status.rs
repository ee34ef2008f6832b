//! `commitStatus` of a git source: where the state of each revision is reported. **Pure**.

use podstead_settings::ConfigError;
use podstead_settings::check::Check;
use podstead_source::git::RemoteUrl;
use reqwest::Url;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::PathBuf;

/// Longest name of a status. GitHub and GitLab take 255 characters.
const MAX_CONTEXT: usize = 200;

/// `sources[].git.commitStatus`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenCommitStatus {
    /// API of the server: `github`, `gitlab`, or `gitea` (also for Forgejo).
    pub provider: Provider,
    /// File with a token that may set the status of commits.
    pub token_file: PathBuf,
    /// URL of the API. Default: that of the provider on the server of the repository, over https.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The repository, such as `shop/fleet`. Default: the path of the URL of the repository.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repository: Option<String>,
    /// Name of the status; each host needs one of its own. Default: `podstead/` and the name of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// PEM file with the only certificate authorities to trust. Default: those of the host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca_file: Option<PathBuf>,
}

/// API that takes the status of commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    /// GitHub and GitHub Enterprise Server.
    Github,
    /// GitLab.
    Gitlab,
    /// Gitea and Forgejo.
    Gitea,
}

impl Provider {
    /// Path of the API on a server.
    const fn path(self) -> &'static str {
        match self {
            Self::Github => "/api/v3",
            Self::Gitlab => "/api/v4",
            Self::Gitea => "/api/v1",
        }
    }
}

/// Server that the state of revisions is reported to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommitStatus {
    /// The API.
    pub provider: Provider,
    /// Its URL, without a slash at the end.
    pub api: Url,
    /// Path of the repository on the server, without a slash at either end.
    pub repository: String,
    /// Name of the status; `None` for `podstead/` and the name of the host.
    pub context: Option<String>,
    /// File with the token.
    pub token_file: PathBuf,
    /// PEM file with the only certificate authorities to trust.
    pub ca_file: Option<PathBuf>,
}

impl WrittenCommitStatus {
    pub(super) fn resolve(&self, check: &Check<'_>, field: &str, git: &RemoteUrl) -> Result<CommitStatus, ConfigError> {
        let place = Place::of(git);
        let api = match (&self.url, &place) {
            (Some(written), _) => api_url(written).map_err(|problem| check.invalid(&format!("{field}.url"), problem))?,
            (None, Some(place)) => {
                place.api(self.provider).ok_or_else(|| check.invalid(&format!("{field}.url"), missing("URL of the API")))?
            }
            (None, None) => return Err(check.invalid(&format!("{field}.url"), missing("URL of the API"))),
        };
        let repository = match (&self.repository, place) {
            (Some(written), _) => written.clone(),
            (None, Some(place)) => place.repository,
            (None, None) => return Err(check.invalid(&format!("{field}.repository"), missing("repository"))),
        };
        if !is_repository(&repository) {
            let message = format!("{repository:?} is not the path of a repository such as \"shop/fleet\"");
            return Err(check.invalid(&format!("{field}.repository"), message));
        }
        if let Some(context) = &self.context
            && (context.is_empty() || context.chars().count() > MAX_CONTEXT || context.contains(char::is_control))
        {
            let message = format!("must have 1 to {MAX_CONTEXT} characters, and no line break");
            return Err(check.invalid(&format!("{field}.context"), message));
        }
        let ca_file = self.ca_file.as_ref().map(|path| check.file(&format!("{field}.caFile"), path)).transpose()?;
        Ok(CommitStatus {
            provider: self.provider,
            api,
            repository,
            context: self.context.clone(),
            token_file: check.file(&format!("{field}.tokenFile"), &self.token_file)?,
            ca_file,
        })
    }

    pub(super) fn of(status: &CommitStatus) -> Self {
        let CommitStatus { provider, api, repository, context, token_file, ca_file } = status.clone();
        let (url, repository) = (Some(api.to_string().trim_end_matches('/').to_owned()), Some(repository));
        Self { provider, token_file, url, repository, context, ca_file }
    }
}

fn missing(what: &str) -> String {
    format!("is missing: the {what} does not follow from the URL of the repository")
}

fn api_url(text: &str) -> Result<Url, String> {
    let url: Url = text.parse().map_err(|error| format!("{text:?} is not a URL: {error}"))?;
    match url.scheme() {
        "http" | "https" => {}
        other => return Err(format!("has the scheme {other:?}, must be http or https")),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("has credentials; write the token into tokenFile".to_owned());
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("has a query or a fragment".to_owned());
    }
    Ok(url)
}

fn is_repository(path: &str) -> bool {
    let is_name = |part: &str| {
        let is_allowed = |letter: char| letter.is_alphanumeric() || "-_.~".contains(letter);
        !part.is_empty() && part != "." && part != ".." && part.chars().all(is_allowed)
    };
    path.contains('/') && path.split('/').all(is_name)
}

/// The server of a repository, and the path on it.
struct Place {
    /// Scheme of its web pages, which is that of the API.
    scheme: &'static str,
    /// Name or address, with the port of web pages if the URL tells it.
    authority: String,
    repository: String,
}

impl Place {
    /// `None` for a repository on this host.
    fn of(git: &RemoteUrl) -> Option<Self> {
        let (scheme, authority, path) = match git {
            RemoteUrl::Http(text) => {
                let url: Url = text.parse().ok()?;
                let scheme = if url.scheme() == "http" { "http" } else { "https" };
                let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
                (scheme, format!("{}{port}", url.host_str()?), url.path().to_owned())
            }
            RemoteUrl::Ssh(ssh) => ("https", ssh.host.clone(), ssh.path.clone()),
            RemoteUrl::Daemon { host, path, .. } => ("https", host.clone(), path.clone()),
            RemoteUrl::Local(_) => return None,
        };
        let path = path.trim_matches('/');
        Some(Self { scheme, authority, repository: path.strip_suffix(".git").unwrap_or(path).to_owned() })
    }

    fn api(&self, provider: Provider) -> Option<Url> {
        let text = match (provider, self.authority.as_str()) {
            (Provider::Github, "github.com" | "ssh.github.com") => "https://api.github.com".to_owned(),
            (provider, authority) => format!("{}://{authority}{}", self.scheme, provider.path()),
        };
        text.parse().ok()
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Github => "GitHub",
            Self::Gitlab => "GitLab",
            Self::Gitea => "Gitea",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(url: &str) -> Place {
        Place::of(&url.parse().unwrap()).unwrap()
    }

    #[test]
    fn api_follows_from_repository() {
        for (url, provider, api, repository) in [
            ("https://github.com/shop/fleet.git", Provider::Github, "https://api.github.com/", "shop/fleet"),
            ("git@github.com:shop/fleet.git", Provider::Github, "https://api.github.com/", "shop/fleet"),
            ("https://github.shop.example/a/b", Provider::Github, "https://github.shop.example/api/v3", "a/b"),
            ("ssh://git@git.lan:2222/a/b/c.git", Provider::Gitlab, "https://git.lan/api/v4", "a/b/c"),
            ("http://git.lan:3000/a/b", Provider::Gitea, "http://git.lan:3000/api/v1", "a/b"),
        ] {
            let place = place(url);
            assert_eq!(place.api(provider).unwrap().as_str(), api, "{url}");
            assert_eq!(place.repository, repository, "{url}");
        }
        assert!(Place::of(&"/srv/fleet.git".parse().unwrap()).is_none());
    }

    #[test]
    fn repositories_are_paths() {
        assert!(is_repository("shop/fleet") && is_repository("a/b/c.d"));
        for path in ["fleet", "", "a/", "/a", "a/../b", "a/b?c", "a/b c"] {
            assert!(!is_repository(path), "{path}");
        }
    }

    #[test]
    fn urls_have_no_credentials() {
        assert!(api_url("https://git.lan/api/v1").is_ok());
        for text in ["git.lan", "ftp://git.lan", "https://a:b@git.lan", "https://git.lan/?a"] {
            assert!(api_url(text).is_err(), "{text}");
        }
    }
}
