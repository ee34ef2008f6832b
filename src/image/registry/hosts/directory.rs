//! containerd's directory of hosts (`/etc/containerd/certs.d`): a directory per registry with `hosts.toml`, or with certificates as Docker has them.
//!
//! Read at each pull, so that changes take effect without a restart.

use super::super::login::read_file;
use super::hosts_file::{self, HostTable, HostsFile};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Largest `hosts.toml`.
const MAX_BYTES: usize = 64 << 10;
/// Entries of a directory that are looked at.
const MAX_ENTRIES: usize = 256;

/// Finds what a directory says of a registry; `None` for nothing. Blocks for a moment.
///
/// # Errors
///
/// The file, with its line and field, if there is one that cannot be used.
pub(super) fn find(root: &Path, registry: &str) -> Result<Option<HostsFile>, String> {
    // Such names lead out of the directory.
    if registry.contains('/') || registry.starts_with('.') {
        return Ok(None);
    }
    let with_port = registry.rsplit_once(':').map(|(host, port)| format!("{host}_{port}_"));
    let names = with_port.into_iter().chain([registry.to_owned(), "_default".to_owned()]);
    for directory in names.map(|name| root.join(name)) {
        match fs::metadata(&directory) {
            Ok(_) => return read(&directory).map(Some),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {}
            Err(error) => return Err(format!("{}: {error}", directory.display())),
        }
    }
    Ok(None)
}

fn read(directory: &Path) -> Result<HostsFile, String> {
    let path = directory.join("hosts.toml");
    let failed = |reason: String| format!("{}: {reason}", path.display());
    match read_file(&path, true).map_err(failed)? {
        Some(content) if content.len() > MAX_BYTES => Err(failed(format!("it is larger than {} KiB", MAX_BYTES >> 10))),
        Some(content) => {
            let text = str::from_utf8(&content).map_err(|_| failed("it is not UTF-8".to_owned()))?;
            hosts_file::parse(text, directory).map_err(|problem| format!("{}:{problem}", path.display()))
        }
        None => certificates(directory).map_err(|reason| format!("{}: {reason}", directory.display())),
    }
}

/// Docker's layout: authorities in `*.crt`, a client certificate in `NAME.cert` and its key in `NAME.key`.
fn certificates(directory: &Path) -> Result<HostsFile, String> {
    let entries = fs::read_dir(directory).map_err(|error| error.to_string())?;
    let mut paths: Vec<PathBuf> = entries.take(MAX_ENTRIES).filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let with = |extension: &str| -> Vec<PathBuf> {
        paths.iter().filter(|path| path.extension().is_some_and(|found| found == extension)).cloned().collect()
    };
    let (certificates, keys) = (with("cert"), with("key"));
    if certificates.len() > 1 {
        return Err("more than one client certificate (*.cert)".to_owned());
    }
    let client = match certificates.first() {
        Some(certificate) if keys.contains(&certificate.with_extension("key")) => {
            Some((certificate.clone(), certificate.with_extension("key")))
        }
        Some(certificate) => return Err(format!("{} has no key (*.key)", certificate.display())),
        None => None,
    };
    let server = HostTable {
        base: None,
        pulls: true,
        resolves: true,
        authorities: with("crt"),
        client,
        headers: Vec::new(),
        dial_timeout: None,
    };
    Ok(HostsFile { hosts: Vec::new(), server })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    }

    fn server(root: &Path, registry: &str) -> Option<String> {
        find(root, registry).unwrap().map(|file| file.server.base.map_or("registry".to_owned(), |base| base.to_string()))
    }

    #[test]
    fn directories_are_named_as_in_containerd() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        assert_eq!(server(root, "docker.io"), None);
        assert_eq!(server(&root.join("none"), "docker.io"), None);
        write(root, "docker.io/hosts.toml", "server = \"https://hub.lan\"\n");
        write(root, "r.lan:5000/hosts.toml", "server = \"https://colon.lan\"\n");
        assert_eq!(server(root, "docker.io").unwrap(), "https://hub.lan/v2/");
        assert_eq!(server(root, "r.lan:5000").unwrap(), "https://colon.lan/v2/");
        write(root, "r.lan_5000_/hosts.toml", "server = \"https://lines.lan\"\n");
        assert_eq!(server(root, "r.lan:5000").unwrap(), "https://lines.lan/v2/");
        assert_eq!(server(root, "quay.io"), None);
        write(root, "_default/hosts.toml", "[host.\"https://m.lan\"]\n");
        assert_eq!(server(root, "quay.io").unwrap(), "registry");
        assert_eq!(server(root, "r.lan"), Some("registry".to_owned()));
        assert_eq!(server(&root.join("docker.io"), ".."), None);
    }

    #[test]
    fn certificates_are_those_of_docker() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        for name in ["ca.crt", "other.crt", "client.cert", "client.key"] {
            write(root, &format!("r.lan/{name}"), "x");
        }
        let found = find(root, "r.lan").unwrap().unwrap().server;
        let at = |name: &str| root.join("r.lan").join(name);
        assert_eq!(found.authorities, [at("ca.crt"), at("other.crt")]);
        assert_eq!(found.client, Some((at("client.cert"), at("client.key"))));
        fs::remove_file(at("client.key")).unwrap();
        assert!(find(root, "r.lan").unwrap_err().contains("client.cert has no key"));
    }

    #[test]
    fn unusable_file_is_named() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        write(root, "a.lan/hosts.toml", "\nserver = 1\n");
        assert!(find(root, "a.lan").unwrap_err().ends_with("a.lan/hosts.toml:2: server: is of type integer, must be a string"));
        write(root, "b.lan/hosts.toml", &"#".repeat(MAX_BYTES + 1));
        assert!(find(root, "b.lan").unwrap_err().contains("larger than 64 KiB"));
        fs::set_permissions(root.join("a.lan/hosts.toml"), fs::Permissions::from_mode(0o666)).unwrap();
        assert!(find(root, "a.lan").unwrap_err().contains("chmod go-w"));
    }
}
