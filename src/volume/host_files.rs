//! The files that every container gets from its host: `/etc/hosts`, `/etc/hostname`, `/etc/resolv.conf`, and a place for its last words.

use podstead_pod::Pod;
use podstead_pod::host_files::{
    ClusterDns, DEFAULT_CLUSTER_DOMAIN, NetworkDns, ResolvConf, hostname, hosts_file, kernel_hostname, resolv_conf,
};
use std::fs;
use std::io::{self, Write};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Paths of the host's own files, and the cluster's name servers.
#[derive(Clone, Debug)]
pub struct NodeFiles {
    /// The host's `/etc/hosts`.
    pub hosts: PathBuf,
    /// The host's resolver settings.
    pub resolv_conf: PathBuf,
    /// resolv.conf with the servers that systemd-resolved uses; read where `resolv_conf` names only its stub on loopback, which pods cannot
    /// reach.
    pub resolved: PathBuf,
    /// The cluster's name servers, where there is a cluster.
    pub cluster_dns: Option<ClusterDns>,
}

impl Default for NodeFiles {
    fn default() -> Self {
        Self {
            hosts: "/etc/hosts".into(),
            resolv_conf: "/etc/resolv.conf".into(),
            resolved: "/run/systemd/resolve/resolv.conf".into(),
            cluster_dns: None,
        }
    }
}

/// Beginning of the names of termination logs.
const TERMINATION: &str = "termination";

/// Loopback addresses that systemd-resolved's stub listens on.
const RESOLVED_STUBS: [&str; 2] = ["127.0.0.53", "127.0.0.54"];

/// Writes hosts, hostname and resolv.conf into `directory` (kubelet rules D21 to D23). A file whose content has changed is
/// rewritten in place and not replaced: containers that run have the file itself mounted. Returns what was left out of resolv.conf, in
/// the kubelet's words.
pub(super) fn write(
    pod: &Pod,
    directory: &Path,
    node: &NodeFiles,
    pod_ips: &[IpAddr],
    dns: Option<&NetworkDns>,
) -> Result<Vec<String>, String> {
    fs::DirBuilder::new()
        .recursive(true)
        .mode(0o750)
        .create(directory)
        .map_err(|error| format!("create {directory:?}: {error}"))?;
    let domain = node.cluster_dns.as_ref().map_or(DEFAULT_CLUSTER_DOMAIN, |cluster| cluster.domain.as_str());
    let name = hostname(pod, domain);
    let on_host_network = pod.spec.as_ref().and_then(|spec| spec.host_network) == Some(true);
    let own_name = if on_host_network {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    } else {
        kernel_hostname(pod, domain).map_err(|error| error.to_string())?
    };
    put(&directory.join("hosts"), &hosts_file(pod, &name, pod_ips, &read(&node.hosts)?))?;
    put(&directory.join("hostname"), &format!("{own_name}\n"))?;
    let settings = resolv_conf(pod, &node_resolv_conf(node)?, node.cluster_dns.as_ref(), dns);
    put(&directory.join("resolv.conf"), &settings.to_string())?;
    Ok(settings.exceeded)
}

/// Makes an empty file for the termination message of one run of a container, which any user may write, and drops those of runs
/// before the last. `directory` is that of the host files.
pub(super) fn termination_log(directory: &Path, container: &str, attempt: u32) -> Result<PathBuf, String> {
    let path = directory.join(format!("{TERMINATION}.{container}.{attempt}"));
    let failed = |error: io::Error| format!("create termination log {path:?}: {error}");
    fs::DirBuilder::new().recursive(true).mode(0o750).create(directory).map_err(failed)?;
    for entry in fs::read_dir(directory).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        let run = name.to_str().and_then(termination_run).filter(|(of, _)| *of == container);
        if run.is_some_and(|(_, old)| old.saturating_add(1) < attempt) {
            fs::remove_file(directory.join(name)).map_err(failed)?;
        }
    }
    let file = open(&path).map_err(failed)?;
    file.set_len(0).map_err(failed)?;
    file.set_permissions(fs::Permissions::from_mode(0o666)).map_err(failed)?;
    Ok(path)
}

/// The container and the run that a termination log of this name is of; `None` for another file.
pub(super) fn termination_run(name: &str) -> Option<(&str, u32)> {
    let (container, attempt) = name.strip_prefix(TERMINATION)?.strip_prefix('.')?.rsplit_once('.')?;
    Some((container, attempt.parse().ok()?))
}

/// The host's resolver settings that a pod can use.
fn node_resolv_conf(node: &NodeFiles) -> Result<String, String> {
    let own = read(&node.resolv_conf)?;
    let servers = ResolvConf::parse(&own).nameservers;
    let stub_only = !servers.is_empty() && servers.iter().all(|server| RESOLVED_STUBS.contains(&server.as_str()));
    if !stub_only {
        return Ok(own);
    }
    let resolved = read(&node.resolved)?;
    Ok(if resolved.is_empty() { own } else { resolved })
}

/// The content of a file of the host; empty when there is none.
fn read(path: &Path) -> Result<String, String> {
    match fs::read(path) {
        Ok(content) => Ok(String::from_utf8_lossy(&content).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        Err(error) => Err(format!("read {path:?}: {error}")),
    }
}

fn put(path: &Path, content: &str) -> Result<(), String> {
    if fs::read(path).is_ok_and(|present| present == content.as_bytes()) {
        return Ok(());
    }
    let written = open(path).and_then(|mut file| {
        file.set_len(0)?;
        file.write_all(content.as_bytes())?;
        file.set_permissions(fs::Permissions::from_mode(0o644))
    });
    written.map_err(|error| format!("write {path:?}: {error}"))
}

fn open(path: &Path) -> io::Result<fs::File> {
    fs::OpenOptions::new().write(true).create(true).truncate(false).custom_flags(nix::libc::O_NOFOLLOW).open(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    fn pod(fields: &str) -> Pod {
        serde_yaml::from_str(&format!("{{metadata: {{name: web-edge, namespace: shop}}, spec: {{containers: [], {fields}}}}}"))
            .unwrap()
    }

    fn node(root: &Path) -> NodeFiles {
        fs::write(root.join("hosts"), "192.0.2.1 node\n").unwrap();
        fs::write(root.join("resolv.conf"), "nameserver 192.0.2.53\nsearch example.org\n").unwrap();
        NodeFiles {
            hosts: root.join("hosts"),
            resolv_conf: root.join("resolv.conf"),
            resolved: root.join("resolved.conf"),
            cluster_dns: None,
        }
    }

    #[test]
    fn the_files_are_written_and_rewritten_in_place() {
        let root = tempfile::tempdir().unwrap();
        let node = node(root.path());
        let directory = root.path().join("pod/etc");
        let content = |name: &str| fs::read_to_string(directory.join(name)).unwrap();
        write(&pod(""), &directory, &node, &["10.0.0.7".parse().unwrap()], None).unwrap();
        assert!(content("hosts").ends_with("10.0.0.7\tweb-edge\n"), "{}", content("hosts"));
        assert_eq!(content("hostname"), "web-edge\n");
        assert_eq!(content("resolv.conf"), "search example.org\nnameserver 192.0.2.53\n");

        let inode = fs::metadata(directory.join("hosts")).unwrap().ino();
        write(&pod(""), &directory, &node, &[], None).unwrap();
        assert!(!content("hosts").contains("10.0.0.7"));
        assert_eq!(fs::metadata(directory.join("hosts")).unwrap().ino(), inode, "running containers have this inode mounted");
        assert_eq!(fs::metadata(directory.join("hosts")).unwrap().mode() & 0o777, 0o644);

        write(&pod("hostNetwork: true"), &directory, &node, &[], None).unwrap();
        assert!(content("hosts").ends_with("192.0.2.1 node\n"));
        assert_eq!(content("hostname").trim(), rustix::system::uname().nodename().to_str().unwrap());
    }

    #[test]
    fn the_stub_of_resolved_is_looked_through() {
        let root = tempfile::tempdir().unwrap();
        let node = node(root.path());
        let seen = || node_resolv_conf(&node).unwrap();
        fs::write(&node.resolv_conf, "nameserver 127.0.0.53\noptions edns0\n").unwrap();
        assert!(seen().contains("127.0.0.53"), "without resolved's own file the stub is all there is");
        fs::write(&node.resolved, "nameserver 192.0.2.9\n").unwrap();
        assert_eq!(seen(), "nameserver 192.0.2.9\n");
        fs::write(&node.resolv_conf, "nameserver 127.0.0.53\nnameserver 192.0.2.8\n").unwrap();
        assert!(seen().contains("192.0.2.8"));
        fs::remove_file(&node.resolv_conf).unwrap();
        assert_eq!(seen(), "");
    }

    #[test]
    fn a_name_that_the_kernel_does_not_take_is_an_error() {
        let root = tempfile::tempdir().unwrap();
        let fields = format!("hostname: {}, subdomain: s, setHostnameAsFQDN: true", "a".repeat(60));
        let error = write(&pod(&fields), &root.path().join("etc"), &node(root.path()), &[], None).unwrap_err();
        assert!(error.contains("is too long"), "{error}");
    }

    #[test]
    fn termination_logs_are_for_anybody_and_start_empty_and_old_ones_go() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("etc");
        termination_log(&directory, "c-2", 0).unwrap();
        for attempt in 0..3 {
            let path = termination_log(&directory, "c", attempt).unwrap();
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o666);
            fs::write(&path, "last words").unwrap();
        }
        let mut left: Vec<_> = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["termination.c-2.0", "termination.c.1", "termination.c.2"]);
        let again = termination_log(&directory, "c", 2).unwrap();
        assert_eq!(fs::read(again).unwrap(), b"", "a message of an earlier try is not taken for this one's");
    }
}
