//! Repositories as written to repositories that count. Pure.

use super::access::AccessFields;
use super::resolve::{DAY, seconds};
use super::written::WrittenGit;
use super::{GitPlace, SshAccess};
use podstead_settings::ConfigError;
use podstead_settings::check::Check;
use podstead_source::git::{Follow, RemoteUrl, UrlError};
use std::path::Path;

const DEFAULT_INTERVAL: u64 = 60;
const DEFAULT_TIMEOUT: u64 = 60;

pub(super) fn git_place(check: &Check<'_>, field: &str, written: &WrittenGit) -> Result<GitPlace, ConfigError> {
    let url: RemoteUrl =
        written.url.parse().map_err(|error: UrlError| check.invalid(&format!("{field}.url"), error.to_string()))?;
    let fields = AccessFields {
        auth: written.auth.as_ref(),
        headers: &written.headers,
        headers_file: written.headers_file.as_ref(),
        proxy: written.proxy.as_deref(),
        proxy_auth: written.proxy_auth.as_ref(),
        ca_file: written.ca_file.as_ref(),
        client_cert_file: written.client_cert_file.as_ref(),
        client_key_file: written.client_key_file.as_ref(),
    };
    if let Some(name) = fields.first_written().filter(|_| !matches!(url, RemoteUrl::Http(_))) {
        return Err(check.invalid(&format!("{field}.{name}"), "is only for http and https".into()));
    }
    if written.ssh.is_some() && !matches!(url, RemoteUrl::Ssh(_)) {
        return Err(check.invalid(&format!("{field}.ssh"), "is only for ssh".into()));
    }
    let ssh = written.ssh.as_ref().map(|ssh| {
        let file = |name: &str, path: &Path| check.file(&format!("{field}.ssh.{name}"), path);
        let (key_file, known_hosts_file) = (file("keyFile", &ssh.key_file)?, file("knownHostsFile", &ssh.known_hosts_file)?);
        Ok(SshAccess { key_file, known_hosts_file })
    });
    let timeout = written.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT);
    let interval = written.interval_seconds.unwrap_or(DEFAULT_INTERVAL);
    Ok(GitPlace {
        access: fields.resolve(check, field, written.url.starts_with("https:"))?,
        follow: git_reference(check, field, written)?,
        path: git_path(check, &format!("{field}.path"), written.path.as_deref().unwrap_or_default())?,
        interval: seconds(check, &format!("{field}.intervalSeconds"), interval, DAY)?,
        timeout: seconds(check, &format!("{field}.timeoutSeconds"), timeout, 3600)?,
        ssh: ssh.transpose()?,
        commit_status: written
            .commit_status
            .as_ref()
            .map(|status| status.resolve(check, &format!("{field}.commitStatus"), &url).map(Box::new))
            .transpose()?,
        url,
    })
}

fn git_reference(check: &Check<'_>, field: &str, written: &WrittenGit) -> Result<Follow, ConfigError> {
    let WrittenGit { branch, tag, semver, commit, .. } = written;
    let written = [("branch", branch), ("tag", tag), ("semver", semver), ("commit", commit)];
    let mut written = written.into_iter().filter_map(|(name, value)| value.as_ref().map(|value| (name, value)));
    let Some((name, value)) = written.next() else { return Ok(Follow::DefaultBranch) };
    let bad = |message: String| check.invalid(&format!("{field}.{name}"), message);
    if let Some((other, _)) = written.next() {
        return Err(check.invalid(&format!("{field}.{other}"), format!("cannot be set together with {name}")));
    }
    let is_ref = !value.is_empty()
        && !value.starts_with(['-', '/', '.'])
        && !value.ends_with(['/', '.'])
        && !value.contains("..")
        && !value.contains("//")
        && !value.contains("@{")
        && !value.contains(|character: char| character.is_control() || " ~^:?*[\\".contains(character));
    match name {
        "branch" if is_ref => Ok(Follow::Branch(value.clone())),
        "tag" if is_ref => Ok(Follow::Tag(value.clone())),
        "semver" => match value.parse() {
            Ok(range) => Ok(Follow::Semver(range)),
            Err(error) => Err(bad(format!("{value:?} is not a version range such as \">=1.2, <2\": {error}"))),
        },
        "commit" if value.len() == 64 => Err(bad("SHA-256 commit ids are not supported".to_owned())),
        "commit" => match value.parse() {
            Ok(id) => Ok(Follow::Commit(id)),
            Err(error) => Err(bad(format!("{value:?} is not a commit id: {error}"))),
        },
        _ => Err(bad(format!("{value:?} is not a {name} name"))),
    }
}

fn git_path(check: &Check<'_>, field: &str, path: &str) -> Result<String, ConfigError> {
    let path = path.strip_prefix("./").unwrap_or(path).trim_end_matches('/');
    let clean = |part: &str| !matches!(part, "" | "." | ".." | ".git") && !part.contains(char::is_control);
    match path.is_empty() || path == "." || path.split('/').all(clean) {
        true => Ok(if path == "." { String::new() } else { path.to_owned() }),
        false => Err(check.invalid(field, format!("{path:?} is not a path below the repository's root"))),
    }
}
