//! Auth files: `auth.json` of podman, `config.json` and `.dockercfg` of Docker.

use podstead_runtime::credentials::{AuthFile, Credentials};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Largest auth file.
const MAX_BYTES: u64 = 1 << 20;
/// Names of Docker Hub.
const HUB: [&str; 3] = ["docker.io", "index.docker.io", "registry-1.docker.io"];
/// The name of Docker Hub in what `docker login` writes, and for helpers.
const HUB_SERVER: &str = "https://index.docker.io/v1/";

/// Entry of a file for an image.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Credentials in the file.
    Credentials(Credentials),
    /// A helper that may have some.
    Helper {
        /// Its name.
        name: String,
        /// The registry as the helper knows it.
        server: String,
    },
}

/// Reads a file of limited size; `None` for one that does not exist. A `guarded` one must be root's and writable by nobody else.
pub(in super::super) fn read(path: &Path, guarded: bool) -> Result<Option<Vec<u8>>, String> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let about = file.metadata().map_err(|error| error.to_string())?;
    if !about.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    if guarded {
        check_owner(about.uid(), about.mode())?;
    }
    let mut content = Vec::new();
    file.take(MAX_BYTES + 1).read_to_end(&mut content).map_err(|error| error.to_string())?;
    if content.len() as u64 > MAX_BYTES {
        return Err(format!("it is larger than {MAX_BYTES} bytes"));
    }
    Ok(Some(content))
}

/// Refuses a file that others than root, or the user of the daemon, can change.
pub(super) fn check_owner(uid: u32, mode: u32) -> Result<(), String> {
    if uid != 0 && uid != rustix::process::geteuid().as_raw() {
        return Err(format!("it belongs to user {uid}, must belong to root"));
    }
    if mode & 0o022 != 0 {
        return Err(format!("others may write to it (mode {:04o}); run chmod go-w", mode & 0o7777));
    }
    Ok(())
}

/// Finds the entry for an image: a helper of its registry, then the longest name under `auths`, then the helper of all registries.
pub(super) fn find(path: &Path, content: &[u8], host: &str, repository: &str) -> Result<Option<Found>, String> {
    let is_legacy = path.file_name().is_some_and(|name| name == ".dockercfg");
    let parsed = if is_legacy { AuthFile::parse_legacy(content) } else { AuthFile::parse(content) };
    let AuthFile { auths, cred_helpers, creds_store } = parsed.map_err(|problem| format!("it {problem}"))?;
    if let Some((server, name)) = helper(&cred_helpers, host) {
        return Ok(Some(Found::Helper { name, server }));
    }
    let mut named: Vec<(usize, &String)> = auths.keys().filter_map(|key| Some((length(key, host, repository)?, key))).collect();
    named.sort_by_key(|(length, _)| std::cmp::Reverse(*length));
    for (_, key) in named {
        match auths.get(key).map(|entry| entry.credentials()) {
            // As `docker login` writes where a helper has the credentials.
            Some(Ok(Credentials::Anonymous)) | None => {}
            Some(Ok(credentials)) => return Ok(Some(Found::Credentials(credentials))),
            Some(Err(problem)) => return Err(format!("the auth of its entry for {host} {problem}")),
        }
    }
    let store = Some(creds_store).filter(|name| !name.is_empty());
    Ok(store.map(|name| Found::Helper { name, server: server_of(host) }))
}

/// The registry as helpers know it.
pub(super) fn server_of(host: &str) -> String {
    if HUB.contains(&host) { HUB_SERVER.to_owned() } else { host.to_owned() }
}

fn helper(helpers: &BTreeMap<String, String>, host: &str) -> Option<(String, String)> {
    let (server, name) = helpers.iter().find(|(key, _)| length(key, host, "") == Some(0))?;
    Some((server.clone(), name.clone()))
}

/// Length of the path in a key that stands for an image of a host; `None` if it does not.
fn length(key: &str, host: &str, repository: &str) -> Option<usize> {
    let without_scheme = key.strip_prefix("https://").or_else(|| key.strip_prefix("http://"));
    let (key_host, path) = match without_scheme {
        // A URL of `docker login`: its path is that of the API.
        Some(url) => (url.split('/').next().unwrap_or_default(), ""),
        None => key.split_once('/').unwrap_or((key, "")),
    };
    if !(key_host == host || (HUB.contains(&key_host) && HUB.contains(&host))) {
        return None;
    }
    let path = path.trim_end_matches('/');
    // Written without a scheme by old versions of Docker.
    let path = if matches!(path, "v1" | "v2") { "" } else { path };
    let rest = repository.strip_prefix(path)?;
    (path.is_empty() || rest.is_empty() || rest.starts_with('/')).then_some(path.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn found(text: &str, host: &str, repository: &str) -> Result<String, String> {
        let found = find(Path::new("/a/config.json"), text.as_bytes(), host, repository)?;
        Ok(match found {
            Some(Found::Credentials(Credentials::Password(user, _))) => user,
            Some(Found::Credentials(other)) => format!("{other:?}"),
            Some(Found::Helper { name, server }) => format!("{name} for {server}"),
            None => "none".to_owned(),
        })
    }

    #[test]
    fn longest_name_is_found_first() {
        let entry = |key: &str, user: &str| format!(r#""{key}":{{"username":"{user}","password":"p"}}"#);
        let all = [entry("r.lan", "host"), entry("r.lan/team", "team"), entry("r.lan/team/app", "app")].join(",");
        let text = format!("{{\"auths\":{{{all}}}}}");
        for (repository, user) in
            [("x", "host"), ("team/x", "team"), ("team/app", "app"), ("team/app2", "team"), ("teams/x", "host")]
        {
            assert_eq!(found(&text, "r.lan", repository).unwrap(), user, "{repository}");
        }
        for host in ["r.lan:5000", "r.lan.evil.org", "evil.org", "lan"] {
            assert_eq!(found(&text, host, "team/app").unwrap(), "none", "{host}");
        }
    }

    #[test]
    fn hub_has_several_names() {
        for key in ["https://index.docker.io/v1/", "docker.io", "index.docker.io/v1/", "registry-1.docker.io"] {
            let text = format!(r#"{{"auths":{{"{key}":{{"auth":"bWU6cGE6c3M="}}}}}}"#);
            assert_eq!(found(&text, "docker.io", "library/nginx").unwrap(), "me", "{key}");
            assert_eq!(found(&text, "r.lan", "nginx").unwrap(), "none", "{key}");
        }
        let text = r#"{"auths":{"docker.io/me":{"auth":"bWU6cGE6c3M="}}}"#;
        assert_eq!(found(text, "docker.io", "me/app").unwrap(), "me");
        assert_eq!(found(text, "docker.io", "library/nginx").unwrap(), "none");
    }

    #[test]
    fn helpers_are_found_as_docker_finds_them() {
        let text = r#"{"auths":{"r.lan":{"username":"u","password":"p"},"s.lan":{}},
            "credHelpers":{"h.lan":"ecr-login","r.lan":"pass"},"credsStore":"secretservice"}"#;
        for (host, expected) in [
            ("h.lan", "ecr-login for h.lan"),
            ("r.lan", "pass for r.lan"),
            ("s.lan", "secretservice for s.lan"),
            ("docker.io", "secretservice for https://index.docker.io/v1/"),
        ] {
            assert_eq!(found(text, host, "a").unwrap(), expected, "{host}");
        }
        let plain = r#"{"auths":{"r.lan":{"identitytoken":"i"}},"credsStore":"x"}"#;
        assert_eq!(found(plain, "r.lan", "a").unwrap(), "Identity");
    }

    #[test]
    fn what_is_wrong_is_said_without_secrets() {
        for text in ["{", r#"{"auths":{"r.lan":"hunter2"}}"#, r#"{"auths":{"r.lan":{"auth":"hunter2"}}}"#] {
            let problem = found(text, "r.lan", "a").unwrap_err();
            assert!(!problem.contains("hunter2"), "{problem}");
        }
        let legacy = find(Path::new("/root/.dockercfg"), br#"{"r.lan":{"auth":"bWU6cA=="}}"#, "r.lan", "a");
        assert!(matches!(legacy, Ok(Some(Found::Credentials(_)))));
    }

    #[test]
    fn files_of_others_are_refused() {
        assert!(check_owner(0, 0o100_644).is_ok());
        assert!(check_owner(4711, 0o100_600).unwrap_err().contains("must belong to root"));
        assert!(check_owner(0, 0o100_664).unwrap_err().contains("chmod go-w"));
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(read(&directory.path().join("none"), true), Ok(None));
        assert!(read(directory.path(), true).is_err());
        std::fs::write(directory.path().join("big"), vec![b' '; MAX_BYTES as usize + 1]).unwrap();
        assert!(read(&directory.path().join("big"), true).unwrap_err().contains("larger"));
    }

    proptest! {
        #[test]
        fn entry_is_for_its_host_only(key in "(https?://)?[a-c]\\.lan(:[0-9]{1,2})?(/[ab]{0,2}){0,3}", host in "[a-c]\\.lan(:[0-9]{1,2})?", repository in "[ab]{1,2}(/[ab]{1,2}){0,2}") {
            if length(&key, &host, &repository).is_some() {
                let key = key.trim_start_matches("https://").trim_start_matches("http://");
                prop_assert_eq!(key.split('/').next().unwrap(), host);
            }
        }
    }
}
