//! Parser of repository URLs. [pure]
//!
//! A URL becomes arguments of `ssh` and words of protocols: what could be taken for an option or for another word is refused here.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

const DAEMON_PORT: u16 = 9418;

/// Location of a repository. It cannot contain credentials, so it may be shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RemoteUrl {
    /// `https://` or `http://`; without credentials, query and slash at the end.
    Http(String),
    /// `ssh://[user@]host[:port]/path` or `[user@]host:path`.
    Ssh(SshUrl),
    /// `git://host[:port]/path`: neither encrypted nor authenticated.
    Daemon {
        /// Name or address.
        host: String,
        /// TCP port.
        port: u16,
        /// Absolute path on the server.
        path: String,
    },
    /// An absolute path on this host, or `file://` and such a path.
    Local(PathBuf),
}

/// A repository that is reached over ssh.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SshUrl {
    /// The account on the server.
    pub user: Option<String>,
    /// Name or address.
    pub host: String,
    /// TCP port, if it is not ssh's own.
    pub port: Option<u16>,
    /// As the server's `git-upload-pack` gets it.
    pub path: String,
}

/// Reason why a URL cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// The URL holds a name or password.
    #[error("the URL must not contain credentials, because it is shown and logged; put them into files and name these in auth")]
    Credentials,
    /// There is no such way.
    #[error("{0:?} is not the URL of a git repository: expected https://, http://, ssh://, git://, file://, / or user@host:path")]
    Scheme(String),
    /// A part is missing.
    #[error("the URL has no {0}")]
    Missing(&'static str),
    /// A part could be taken for something else than it is.
    #[error("the URL's {0} is refused: it could be taken for an option or another argument")]
    Unsafe(&'static str),
    /// The port is not a number that ports have.
    #[error("{0:?} is not a valid port")]
    Port(String),
}

impl FromStr for RemoteUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        if text.chars().any(|c| c.is_control() || c.is_whitespace()) {
            return Err(UrlError::Unsafe("white space"));
        }
        if text.starts_with('/') {
            return Ok(Self::Local(text.into()));
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return match text.split_once(':') {
                // A slash before the colon makes it a path, as for git, and a second colon another program.
                Some((host, path)) if !host.contains('/') && !host.is_empty() && !path.starts_with(':') => {
                    short_ssh(host, path).map(Self::Ssh)
                }
                _ => Err(UrlError::Scheme(text.to_owned())),
            };
        };
        match scheme {
            "https" | "http" => http(scheme, rest).map(Self::Http),
            "ssh" | "git+ssh" | "ssh+git" => long_ssh(rest).map(Self::Ssh),
            "git" => daemon(rest),
            "file" => match rest.strip_prefix("localhost").unwrap_or(rest) {
                path if path.starts_with('/') => Ok(Self::Local(path.into())),
                _ => Err(UrlError::Missing("absolute path")),
            },
            _ => Err(UrlError::Scheme(text.to_owned())),
        }
    }
}

fn http(scheme: &str, rest: &str) -> Result<String, UrlError> {
    let (authority, path) = rest.split_once('/').ok_or(UrlError::Missing("path"))?;
    if authority.contains('@') {
        return Err(UrlError::Credentials);
    }
    if authority.is_empty() {
        return Err(UrlError::Missing("host"));
    }
    if path.contains(['?', '#']) {
        return Err(UrlError::Unsafe("query"));
    }
    Ok(format!("{scheme}://{authority}/{}", path.trim_end_matches('/')))
}

fn long_ssh(rest: &str) -> Result<SshUrl, UrlError> {
    let (authority, path) = rest.split_once('/').ok_or(UrlError::Missing("path"))?;
    let (user, address) = user_and_host(authority)?;
    let (host, port) = host_and_port(address)?;
    // `/~user/path` is relative to that user's home.
    let path = if path.starts_with('~') { path.to_owned() } else { format!("/{path}") };
    checked(SshUrl { user, host, port, path })
}

fn short_ssh(authority: &str, path: &str) -> Result<SshUrl, UrlError> {
    let (user, host) = user_and_host(authority)?;
    // As git has it, `host:/~user` is that user's home, too.
    let path = path.strip_prefix('/').filter(|path| path.starts_with('~')).unwrap_or(path);
    checked(SshUrl { user, host: host.trim_matches(['[', ']']).to_owned(), port: None, path: path.to_owned() })
}

fn user_and_host(authority: &str) -> Result<(Option<String>, &str), UrlError> {
    match authority.rsplit_once('@') {
        Some((user, _)) if user.contains(':') => Err(UrlError::Credentials),
        Some((user, host)) => Ok((Some(user.to_owned()), host)),
        None => Ok((None, authority)),
    }
}

fn host_and_port(address: &str) -> Result<(String, Option<u16>), UrlError> {
    let port = |port: &str| match port.parse() {
        Ok(0) | Err(_) => Err(UrlError::Port(port.to_owned())),
        Ok(port) => Ok(Some(port)),
    };
    if let Some((host, after)) = address.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return match after.strip_prefix(':') {
            Some(number) => Ok((host.to_owned(), port(number)?)),
            None if after.is_empty() => Ok((host.to_owned(), None)),
            None => Err(UrlError::Port(after.to_owned())),
        };
    }
    match address.split_once(':') {
        Some((host, number)) => Ok((host.to_owned(), port(number)?)),
        None => Ok((address.to_owned(), None)),
    }
}

fn checked(url: SshUrl) -> Result<SshUrl, UrlError> {
    let plain = |text: &str| text.chars().all(|c| c.is_ascii_alphanumeric() || "._-:%+".contains(c)) && !text.starts_with('-');
    if url.host.is_empty() {
        return Err(UrlError::Missing("host"));
    }
    if !plain(&url.host) {
        return Err(UrlError::Unsafe("host"));
    }
    if url.user.as_ref().is_some_and(|user| user.is_empty() || !plain(user)) {
        return Err(UrlError::Unsafe("user"));
    }
    path(&url.path)?;
    Ok(url)
}

fn path(path: &str) -> Result<(), UrlError> {
    if path.trim_start_matches('/').is_empty() {
        return Err(UrlError::Missing("path"));
    }
    // The server's shell reads it: quoted, but not every restricted shell knows every quote.
    if path.starts_with('-') || path.contains(['\'', '"', '\\', '`', '$', ';', '&', '|', '!']) {
        return Err(UrlError::Unsafe("path"));
    }
    Ok(())
}

fn daemon(rest: &str) -> Result<RemoteUrl, UrlError> {
    let (authority, below) = rest.split_once('/').ok_or(UrlError::Missing("path"))?;
    if authority.contains('@') {
        return Err(UrlError::Credentials);
    }
    let (host, port) = host_and_port(authority)?;
    if host.is_empty() {
        return Err(UrlError::Missing("host"));
    }
    path(below)?;
    Ok(RemoteUrl::Daemon { host, port: port.unwrap_or(DAEMON_PORT), path: format!("/{below}") })
}

impl fmt::Display for RemoteUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Http(url) => f.write_str(url),
            Self::Ssh(url) => url.fmt(f),
            Self::Daemon { host, port, path } => {
                write!(f, "git://{}", bracketed(host))?;
                if *port != DAEMON_PORT {
                    write!(f, ":{port}")?;
                }
                f.write_str(path)
            }
            Self::Local(path) => path.display().fmt(f),
        }
    }
}

impl fmt::Display for SshUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let user = self.user.as_ref().map(|user| format!("{user}@")).unwrap_or_default();
        let port = self.port.map(|port| format!(":{port}")).unwrap_or_default();
        let host = bracketed(&self.host);
        match self.path.strip_prefix('/') {
            Some(path) => write!(f, "ssh://{user}{host}{port}/{path}"),
            None if self.path.starts_with('~') => write!(f, "ssh://{user}{host}{port}/{}", self.path),
            None => write!(f, "{user}{host}:{}", self.path),
        }
    }
}

fn bracketed(host: &str) -> String {
    if host.contains(':') { format!("[{host}]") } else { host.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<RemoteUrl, UrlError> {
        text.parse()
    }

    fn ssh(user: Option<&str>, host: &str, port: Option<u16>, path: &str) -> RemoteUrl {
        RemoteUrl::Ssh(SshUrl { user: user.map(str::to_owned), host: host.to_owned(), port, path: path.to_owned() })
    }

    #[test]
    fn every_way_is_known_by_its_url_and_shown_as_it_was_written() {
        for (text, expected) in [
            ("https://git.lan/fleet.git", RemoteUrl::Http("https://git.lan/fleet.git".into())),
            ("http://git.lan:8080/a/b", RemoteUrl::Http("http://git.lan:8080/a/b".into())),
            ("ssh://git@git.lan:2222/srv/fleet.git", ssh(Some("git"), "git.lan", Some(2222), "/srv/fleet.git")),
            ("ssh://git.lan/~git/fleet.git", ssh(None, "git.lan", None, "~git/fleet.git")),
            ("ssh://git@[fe80::1]:22/fleet.git", ssh(Some("git"), "fe80::1", Some(22), "/fleet.git")),
            ("git@git.lan:team/fleet.git", ssh(Some("git"), "git.lan", None, "team/fleet.git")),
            ("git://git.lan/fleet.git", RemoteUrl::Daemon { host: "git.lan".into(), port: 9418, path: "/fleet.git".into() }),
            ("git://[::1]:99/fleet.git", RemoteUrl::Daemon { host: "::1".into(), port: 99, path: "/fleet.git".into() }),
            ("/srv/fleet.git", RemoteUrl::Local("/srv/fleet.git".into())),
        ] {
            assert_eq!(parse(text).as_ref(), Ok(&expected), "{text}");
            assert_eq!(expected.to_string(), text);
        }
        assert_eq!(parse("file:///srv/fleet.git"), Ok(RemoteUrl::Local("/srv/fleet.git".into())));
        assert_eq!(parse("https://git.lan/fleet/"), Ok(RemoteUrl::Http("https://git.lan/fleet".into())));
        // Ways to write what is shown in another way.
        assert_eq!(parse("git.lan:/~git/fleet.git"), parse("ssh://git.lan/~git/fleet.git"));
        assert_eq!(parse("file:///srv/a://b"), parse("/srv/a://b"));
    }

    #[test]
    fn credentials_in_a_url_are_refused_and_not_repeated() {
        for text in ["https://me:secret@git.lan/a", "https://token@git.lan/a", "ssh://me:secret@git.lan/a", "git://me@git.lan/a"] {
            let error = parse(text).unwrap_err();
            assert_eq!(error, UrlError::Credentials, "{text}");
            assert!(!error.to_string().contains("secret"));
        }
    }

    #[test]
    fn what_could_become_an_option_or_a_command_is_refused() {
        for text in [
            "ssh://-oProxyCommand=x/a",
            "ssh://git@-oProxyCommand=x/a",
            "ssh://-x@git.lan/a",
            "git@-oProxyCommand=x:a",
            "git.lan:-option",
            "git.lan:a'b",
            "ssh://git.lan/$(touch x)",
            "ssh://git.lan/a;b",
            "git://git.lan/a b",
            "git://git.lan:1\nx/a",
            "ssh://git$x@git.lan/a",
        ] {
            assert!(matches!(parse(text), Err(UrlError::Unsafe(_))), "{text}: {:?}", parse(text));
        }
    }

    #[test]
    fn what_names_no_repository_is_refused() {
        for text in [
            "",
            "fleet.git",
            "./fleet",
            "ftp://git.lan/a",
            "https://git.lan",
            "https:///a",
            "ssh://git.lan",
            "git.lan:",
            "file://x",
            "ext::sh",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
        assert_eq!(parse("ssh://git.lan:0/a"), Err(UrlError::Port("0".into())));
        assert_eq!(parse("ssh://git.lan:x/a"), Err(UrlError::Port("x".into())));
    }

    proptest::proptest! {
        #[test]
        fn whatever_is_a_url_reads_the_same_when_it_is_shown(
            text in "(https?://|ssh://|git://|file://|)[a-z@:/~.%\\[\\]0-9-]{0,24}"
        ) {
            if let Ok(url) = parse(&text) {
                proptest::prop_assert_eq!(parse(&url.to_string()), Ok(url));
            }
        }
    }
}
