//! Repositories as written to repositories that count. Pure.

use super::access::AccessFields;
use super::resolve::{DAY, seconds};
use super::written::WrittenGit;
use super::{GitPlace, GitReference, SshAccess};
use crate::config::ConfigError;
use crate::config::check::Check;
use reqwest::Url;
use std::path::Path;

const DEFAULT_INTERVAL: u64 = 60;
const DEFAULT_TIMEOUT: u64 = 120;

pub(super) fn git_place(check: &Check<'_>, field: &str, written: &WrittenGit) -> Result<GitPlace, ConfigError> {
    let transport = git_transport(check, &format!("{field}.url"), &written.url)?;
    let fields = AccessFields {
        auth: written.auth.as_ref(),
        headers: &written.headers,
        headers_file: written.headers_file.as_ref(),
        proxy: written.proxy.as_deref(),
        ca_file: written.ca_file.as_ref(),
        client_cert_file: written.client_cert_file.as_ref(),
        client_key_file: written.client_key_file.as_ref(),
    };
    if let Some(name) = fields.first_written().filter(|_| !matches!(transport, GitTransport::Http | GitTransport::Https)) {
        return Err(check.invalid(&format!("{field}.{name}"), "is for http and https only".into()));
    }
    if written.ssh.is_some() && transport != GitTransport::Ssh {
        return Err(check.invalid(&format!("{field}.ssh"), "is for ssh only".into()));
    }
    let ssh = written.ssh.as_ref().map(|ssh| {
        let file = |name: &str, path: &Path| check.file(&format!("{field}.ssh.{name}"), path);
        let (key_file, known_hosts_file) = (file("keyFile", &ssh.key_file)?, file("knownHostsFile", &ssh.known_hosts_file)?);
        Ok(SshAccess { key_file, known_hosts_file })
    });
    let timeout = written.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT);
    let interval = written.interval_seconds.unwrap_or(DEFAULT_INTERVAL);
    Ok(GitPlace {
        url: written.url.clone(),
        reference: git_reference(check, field, written)?,
        path: git_path(check, &format!("{field}.path"), written.path.as_deref().unwrap_or_default())?,
        interval: seconds(check, &format!("{field}.intervalSeconds"), interval, DAY)?,
        timeout: seconds(check, &format!("{field}.timeoutSeconds"), timeout, 3600)?,
        access: fields.resolve(check, field, transport == GitTransport::Https)?,
        ssh: ssh.transpose()?,
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GitTransport {
    Http,
    Https,
    Ssh,
    Git,
    Local,
}

fn git_transport(check: &Check<'_>, field: &str, url: &str) -> Result<GitTransport, ConfigError> {
    let bad = |message: &str| check.invalid(field, format!("{url:?} {message}"));
    if url.contains(|character: char| character.is_control() || character.is_whitespace()) {
        return Err(check.invalid(field, "has blanks or control characters".into()));
    }
    if url.starts_with('/') {
        return Ok(GitTransport::Local);
    }
    if let Some((scheme, _)) = url.split_once("://") {
        let transport = match scheme {
            "https" => GitTransport::Https,
            "http" => GitTransport::Http,
            "ssh" => GitTransport::Ssh,
            "git" => GitTransport::Git,
            "file" => GitTransport::Local,
            other => return Err(check.invalid(field, format!("has scheme {other:?}, not https, http, ssh, git or file"))),
        };
        let parsed: Url = url.parse().map_err(|error| check.invalid(field, format!("is no URL: {error}")))?;
        let named = !parsed.username().is_empty() && transport != GitTransport::Ssh;
        if named || parsed.password().is_some() {
            return Err(check.invalid(field, "has credentials in it: they belong into files, see auth".into()));
        }
        let local = transport == GitTransport::Local;
        if local != parsed.host_str().is_none_or(str::is_empty) {
            return Err(bad(if local { "names a host" } else { "names no host" }));
        }
        // What begins like an option must never reach a command line.
        if parsed.host_str().is_some_and(|host| host.starts_with('-')) || parsed.username().starts_with('-') {
            return Err(bad("names a host or user that begins with '-'"));
        }
        return Ok(transport);
    }
    // scp's form.
    match url.split_once(':') {
        Some((host, path))
            if !host.is_empty() && !path.is_empty() && !path.starts_with(':') && !host.contains('/') && !host.starts_with('-') =>
        {
            Ok(GitTransport::Ssh)
        }
        _ => Err(bad("is no URL, no user@host:path and no absolute path")),
    }
}

fn git_reference(check: &Check<'_>, field: &str, written: &WrittenGit) -> Result<GitReference, ConfigError> {
    let WrittenGit { branch, tag, semver, commit, .. } = written;
    let written = [("branch", branch), ("tag", tag), ("semver", semver), ("commit", commit)];
    let mut written = written.into_iter().filter_map(|(name, value)| value.as_ref().map(|value| (name, value)));
    let Some((name, value)) = written.next() else { return Ok(GitReference::Default) };
    let bad = |message: String| check.invalid(&format!("{field}.{name}"), message);
    if let Some((other, _)) = written.next() {
        return Err(check.invalid(&format!("{field}.{other}"), format!("and {name} exclude each other")));
    }
    let is_ref = !value.is_empty()
        && !value.starts_with(['-', '/', '.'])
        && !value.ends_with(['/', '.'])
        && !value.contains("..")
        && !value.contains("//")
        && !value.contains("@{")
        && !value.contains(|character: char| character.is_control() || " ~^:?*[\\".contains(character));
    match name {
        "branch" if is_ref => Ok(GitReference::Branch(value.clone())),
        "tag" if is_ref => Ok(GitReference::Tag(value.clone())),
        "semver" if !value.trim().is_empty() => Ok(GitReference::Semver(value.clone())),
        "commit" if matches!(value.len(), 40 | 64) && value.bytes().all(|byte| byte.is_ascii_hexdigit()) => {
            Ok(GitReference::Commit(value.to_ascii_lowercase()))
        }
        "commit" => Err(bad(format!("{value:?} is no commit: 40 or 64 hexadecimal digits"))),
        _ => Err(bad(format!("{value:?} is no {name}"))),
    }
}

fn git_path(check: &Check<'_>, field: &str, path: &str) -> Result<String, ConfigError> {
    let path = path.strip_prefix("./").unwrap_or(path).trim_end_matches('/');
    let clean = |part: &str| !matches!(part, "" | "." | ".." | ".git") && !part.contains(char::is_control);
    match path.is_empty() || path == "." || path.split('/').all(clean) {
        true => Ok(if path == "." { String::new() } else { path.to_owned() }),
        false => Err(check.invalid(field, format!("{path:?} is no path below the repository's root"))),
    }
}
