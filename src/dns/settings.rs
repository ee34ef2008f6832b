//! Watches the host's name server settings.
//!
//! inotify is a hint; the files are the truth. Watched are the directories of the files and of all that they lead through by symlinks,
//! or the nearest one that is there, so that a file that comes later, is replaced, or is a symlink that moves is noticed. DHCP clients,
//! NetworkManager and systemd-resolved do each of these.

use super::upstreams::{HostSettings, name_servers};
use notify::event::{AccessKind, AccessMode, EventKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Interval of checks without a notification: inotify may be exhausted, and mounts over a file are not reported.
const LOOK: Duration = Duration::from_secs(60);
/// Time to wait after a change: files are written in several steps.
const CALM: Duration = Duration::from_millis(50);
/// Symlinks that are followed.
const LINKS: usize = 16;
/// More than any real file has.
const MOST_BYTES: u64 = 64 << 10;

/// Paths of the settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingsFiles {
    /// `/etc/resolv.conf`.
    pub resolv_conf: PathBuf,
    /// `/run/systemd/resolve/resolv.conf`.
    pub resolved: PathBuf,
    /// Name servers that count instead of those in files.
    pub configured: Vec<SocketAddr>,
    /// Addresses of the resolver itself.
    pub own: Vec<IpAddr>,
}

impl SettingsFiles {
    /// The name servers of this moment.
    pub(super) fn name_servers(&self) -> Vec<SocketAddr> {
        let settings = HostSettings { resolv_conf: read(&self.resolv_conf), resolved: read(&self.resolved) };
        let scope = |name: &str| nix::net::if_::if_nametoindex(name).ok();
        name_servers(&settings, &self.configured, &self.own, scope)
    }

    /// Tells the name servers of every moment, for ever.
    pub(super) async fn follow(self, servers: watch::Sender<Vec<SocketAddr>>) -> Infallible {
        let (hint, mut hints) = mpsc::channel(1);
        loop {
            // Set before the files are read: what comes after it is told. Anew each time, for symlinks lead elsewhere.
            let watcher = watch(&self.directories(), hint.clone());
            let found = self.name_servers();
            servers.send_if_modified(|known| {
                let is_other = *known != found;
                if is_other {
                    let texts: Vec<String> = found.iter().map(ToString::to_string).collect();
                    tracing::info!(servers = texts.join(" "), "forwarding DNS queries of pods to these name servers");
                    *known = found;
                }
                is_other
            });
            // Either way the files are looked at.
            tokio::time::timeout(LOOK, hints.recv()).await.ok();
            tokio::time::sleep(CALM).await;
            drop(watcher);
            while hints.try_recv().is_ok() {}
        }
    }

    /// The directories in which something can change what the files say.
    fn directories(&self) -> BTreeSet<PathBuf> {
        let mut directories = BTreeSet::new();
        for file in [&self.resolv_conf, &self.resolved] {
            let mut path = file.clone();
            for _ in 0..LINKS {
                let Some(directory) = path.parent().map(Path::to_owned) else { break };
                directories.extend(directory.ancestors().find(|directory| directory.is_dir()).map(Path::to_owned));
                match std::fs::read_link(&path) {
                    Ok(target) => path = directory.join(target),
                    Err(_) => break,
                }
            }
        }
        directories
    }
}

fn watch(directories: &BTreeSet<PathBuf>, hint: mpsc::Sender<()>) -> Option<RecommendedWatcher> {
    let is_change = |kind: EventKind| match kind {
        EventKind::Access(access) => access == AccessKind::Close(AccessMode::Write),
        EventKind::Any | EventKind::Create(_) | EventKind::Modify(_) | EventKind::Remove(_) | EventKind::Other => true,
    };
    let created = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        if event.map_or(true, |event| is_change(event.kind)) {
            // One hint says as much as many.
            hint.try_send(()).ok();
        }
    });
    let watched = created.and_then(|mut watcher| {
        directories.iter().try_for_each(|directory| watcher.watch(directory, RecursiveMode::NonRecursive))?;
        Ok(watcher)
    });
    watched
        .inspect_err(
            |error| tracing::warn!(%error, "cannot watch the resolver configuration: changes to name servers take effect late"),
        )
        .ok()
}

/// The content of a file; empty when there is none, or none that can be read.
fn read(path: &Path) -> String {
    let read = std::fs::File::open(path).and_then(|file| {
        let mut content = Vec::new();
        io::Read::read_to_end(&mut io::Read::take(file, MOST_BYTES), &mut content)?;
        Ok(content)
    });
    match read {
        Ok(content) => String::from_utf8_lossy(&content).into_owned(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
        Err(error) => {
            tracing::warn!(path = %path.display(), %error, "cannot read the host's resolver configuration");
            String::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    async fn expect(servers: &mut watch::Receiver<Vec<SocketAddr>>, texts: &[&str]) {
        let expected: Vec<SocketAddr> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let waited = tokio::time::timeout(Duration::from_secs(30), servers.wait_for(|known| *known == expected)).await.is_ok();
        assert!(waited, "expected {texts:?}, have {:?}", servers.borrow());
    }

    #[tokio::test]
    async fn files_that_are_written_replaced_removed_or_come_by_symlink_are_noticed() {
        let root = tempfile::tempdir().unwrap();
        let etc = root.path().join("etc");
        fs::create_dir(&etc).unwrap();
        let file = etc.join("resolv.conf");
        let resolved = root.path().join("run/systemd/resolve/resolv.conf");
        let files =
            SettingsFiles { resolv_conf: file.clone(), resolved: resolved.clone(), configured: Vec::new(), own: Vec::new() };
        let (sender, mut servers) = watch::channel(files.name_servers());
        assert!(servers.borrow().is_empty(), "there is none");
        let following = tokio::spawn(files.follow(sender));
        fs::write(&file, "nameserver 192.0.2.1\n").unwrap();
        expect(&mut servers, &["192.0.2.1:53"]).await;
        fs::write(etc.join("new"), "nameserver 192.0.2.2\n").unwrap();
        fs::rename(etc.join("new"), &file).unwrap();
        expect(&mut servers, &["192.0.2.2:53"]).await;
        fs::remove_file(&file).unwrap();
        expect(&mut servers, &[]).await;
        // A symlink to what is not there yet, as systemd's at boot.
        symlink("../run/systemd/resolve/stub-resolv.conf", &file).unwrap();
        fs::create_dir_all(resolved.parent().unwrap()).unwrap();
        fs::write(resolved.with_file_name("stub-resolv.conf"), "nameserver 127.0.0.53\n").unwrap();
        expect(&mut servers, &["127.0.0.53:53"]).await;
        fs::write(&resolved, "nameserver 192.0.2.9\n").unwrap();
        expect(&mut servers, &["127.0.0.53:53", "192.0.2.9:53"]).await;
        // And one that is swapped.
        symlink("other", etc.join("link")).unwrap();
        fs::write(etc.join("other"), "nameserver 192.0.2.3\n").unwrap();
        fs::rename(etc.join("link"), &file).unwrap();
        expect(&mut servers, &["192.0.2.3:53"]).await;
        following.abort();
    }
}
