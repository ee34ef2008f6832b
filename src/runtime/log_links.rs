//! Links to logs by the names of their containers, where log shippers that were set up for Kubernetes look (kubelet rule D18):
//! `/var/log/containers/<pod>_<namespace>_<container>-<container id>.log`.
//!
//! A link is made when its container has started, or by the next daemon, and goes with the log.

use podstead_pod::ContainerId;
use std::fs;
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::{Path, PathBuf};

/// Maximum length of a file name, in bytes.
const NAME_MAX: usize = 255;

/// Makes the link to `log`, the log file of one run of a container, in the directory `links`; and the file's directory, lest the link is
/// taken for one whose log is gone.
pub fn create(links: &Path, log: &Path, id: &ContainerId) -> io::Result<()> {
    let (Some(link), Some(directory)) = (link(links, log, id), log.parent()) else { return Ok(()) };
    for directory in [directory, links] {
        fs::DirBuilder::new().recursive(true).mode(0o755).create(directory)?;
    }
    match symlink(log, link) {
        // Made at the start of the container, found at the start of a daemon.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        other => other,
    }
}

/// Removes the link that [`create`] made. One that is gone is success.
pub fn remove(links: &Path, log: &Path, id: &ContainerId) -> io::Result<()> {
    match link(links, log, id).map(fs::remove_file) {
        Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Some(_) | None => Ok(()),
    }
}

/// Removes all links to logs below `directory`, that of a pod which is gone.
pub fn remove_all(links: &Path, directory: &Path) -> io::Result<()> {
    let entries = match fs::read_dir(links) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for entry in entries {
        let link = entry?.path();
        // Neither an entry that is not a link nor one removed meanwhile has a target.
        if fs::read_link(&link).is_ok_and(|log| log.starts_with(directory)) {
            fs::remove_file(&link)?;
        }
    }
    Ok(())
}

/// The link's path. The log's path has all that its name is made of: `.../<namespace>_<pod>_<uid>/<container>/<run>.log`.
fn link(links: &Path, log: &Path, id: &ContainerId) -> Option<PathBuf> {
    let container = log.parent()?;
    let mut pod = container.parent()?.file_name()?.to_str()?.splitn(3, '_');
    let (namespace, name) = (pod.next()?, pod.next()?);
    let mut names = format!("{name}_{namespace}_{}", container.file_name()?.to_str()?);
    let end = format!("-{id}.log");
    // All of it is ASCII.
    names.truncate(NAME_MAX - end.len());
    Some(links.join(names + &end))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Host {
        _root: tempfile::TempDir,
        links: PathBuf,
        logs: PathBuf,
    }

    impl Host {
        fn new() -> Self {
            let root = tempfile::tempdir().unwrap();
            Self { links: root.path().join("containers"), logs: root.path().join("pods"), _root: root }
        }

        /// The log of a run of the container `web`.
        fn log(&self, pod: &str, run: u32) -> PathBuf {
            self.logs.join(pod).join(format!("web/{run}.log"))
        }

        fn names(&self) -> Vec<String> {
            let entries = fs::read_dir(&self.links).unwrap();
            let mut names: Vec<String> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    #[test]
    fn d18_a_log_is_found_by_the_names_of_pod_namespace_and_container() {
        let host = Host::new();
        let (log, id) = (host.log("default_shop-edge-1_0123", 0), ContainerId::new("ab12"));
        create(&host.links, &log, &id).unwrap();
        create(&host.links, &log, &id).unwrap();
        assert_eq!(host.names(), ["shop-edge-1_default_web-ab12.log"]);
        fs::write(&log, "a line").unwrap();
        assert_eq!(fs::read_to_string(host.links.join("shop-edge-1_default_web-ab12.log")).unwrap(), "a line");
        remove(&host.links, &log, &id).unwrap();
        remove(&host.links, &log, &id).unwrap();
        assert_eq!(host.names(), [""; 0]);
    }

    #[test]
    fn names_that_are_too_long_for_a_file_are_cut() {
        let host = Host::new();
        let log = host.log(&format!("default_{}_0123", "p".repeat(240)), 0);
        create(&host.links, &log, &ContainerId::new("ab12")).unwrap();
        let names = host.names();
        assert_eq!((names[0].len(), names[0].ends_with("p_defau-ab12.log")), (255, true), "{names:?}");
        remove(&host.links, &log, &ContainerId::new("ab12")).unwrap();
        assert_eq!(host.names(), [""; 0]);
    }

    #[test]
    fn links_to_logs_of_a_pod_that_is_gone_go_and_no_others() {
        let host = Host::new();
        let (kept, gone) = (host.log("default_kept_1", 0), host.log("default_gone_2", 3));
        remove_all(&host.links, &host.logs).unwrap();
        create(&host.links, &kept, &ContainerId::new("a")).unwrap();
        create(&host.links, &gone, &ContainerId::new("b")).unwrap();
        symlink("/nowhere/else/0.log", host.links.join("foreign.log")).unwrap();
        fs::write(host.links.join("a-file.log"), "").unwrap();
        remove_all(&host.links, &host.logs.join("default_gone_2")).unwrap();
        assert_eq!(host.names(), ["a-file.log", "foreign.log", "kept_default_web-a.log"]);
    }
}
