//! Disks: space, inodes, read-only mounts, file systems that do not fit.

use super::finding::Finding;
use super::host::{Host, names};
use crate::pods::name_on_command_line;
use k8s_openapi::api::core::v1::Pod;
use podstead_sys::disk_usage::{WalkBudget, disk_usage};
use podstead_sys::layout::Paths;
use podstead_sys::mounts::{MountEntry, mount_of};
use rustix::fs::StatVfsMountFlags;
use std::cmp::Reverse;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Purpose of a directory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Role {
    /// Records, images, volumes.
    State,
    /// Sockets and secrets.
    Run,
    Logs,
}

/// A consumer of disk space.
#[derive(Clone, Debug, Eq, PartialEq)]
enum Holder {
    /// All images.
    Images,
    /// The data of a claim, `namespace/name`.
    Claim(String),
    /// Writable layers and emptyDir volumes of a pod.
    Pod(String),
    /// Logs of a pod.
    Logs(String),
}

impl Holder {
    fn sentence(&self) -> String {
        match self {
            Holder::Images => "images (podstead image ls)".to_owned(),
            Holder::Claim(name) => format!("data of claim {name} (podstead volume ls)"),
            Holder::Pod(name) => format!("files and emptyDir volumes of pod {name} (limits.ephemeral-storage, sizeLimit)"),
            Holder::Logs(name) => format!("logs of pod {name}"),
        }
    }
}

/// Observed state of a directory, or of its closest existing parent.
#[derive(Clone, Debug)]
struct Place {
    role: Role,
    path: PathBuf,
    filesystem: String,
    free_bytes: u64,
    total_bytes: u64,
    free_inodes: u64,
    /// 0 where the file system does not count.
    total_inodes: u64,
    is_read_only: bool,
    /// The largest consumers, with bytes; looked for only where space is short.
    holders: Vec<(Holder, u64)>,
}

/// Files and directories that are counted before the search for what takes the space ends.
const MAX_COUNTED: u64 = 1_000_000;
/// Number of holders that are shown.
const MAX_HOLDERS: usize = 6;
const MIB: u64 = 1 << 20;

pub(super) fn check(host: &Host) -> Vec<Finding> {
    let paths = &host.paths;
    let pods = host.answers.as_ref().map(|answers| answers.pods.as_slice()).unwrap_or_default();
    judge(&observed(paths, &host.mounts, pods))
}

/// Space and inodes that are short, for `podstead status`.
pub(super) fn space(paths: &Paths, pods: &[Pod]) -> Vec<Finding> {
    observed(paths, &[], pods).iter().flat_map(|place| judge_mount(place).into_iter().chain(judge_space(place))).collect()
}

fn observed(paths: &Paths, mounts: &[MountEntry], pods: &[Pod]) -> Vec<Place> {
    let places = [(Role::State, &paths.state), (Role::Run, &paths.run), (Role::Logs, &paths.logs)];
    let mut places: Vec<Place> = places.into_iter().filter_map(|(role, path)| look(mounts, role, path)).collect();
    for place in &mut places {
        if place.role != Role::Run && !judge_space(place).is_empty() {
            place.holders = holders(paths, &place.path, pods);
        }
    }
    places
}

/// Finds what takes the space of the file system of `path`, the largest first. What may not be read is not counted.
fn holders(paths: &Paths, path: &Path, pods: &[Pod]) -> Vec<(Holder, u64)> {
    let name_of = |uid: &str| {
        let pod = pods.iter().find(|pod| pod.metadata.uid.as_deref() == Some(uid));
        pod.map_or_else(|| format!("with UID {uid}"), name_on_command_line)
    };
    let mut candidates = vec![(Holder::Images, paths.images())];
    for namespace in names(&paths.persistent_volumes()).into_iter().filter(|name| !name.starts_with('.')) {
        let directory = paths.persistent_volumes().join(&namespace);
        let claims = names(&directory).into_iter();
        candidates.extend(claims.map(|claim| (Holder::Claim(format!("{namespace}/{claim}")), directory.join(&claim))));
    }
    let of_pods = names(&paths.pods()).into_iter();
    candidates.extend(of_pods.map(|uid| (Holder::Pod(name_of(&uid)), paths.pods().join(&uid))));
    let of_logs = names(&paths.logs).into_iter();
    candidates.extend(of_logs.map(|log| (Holder::Logs(name_of(log.rsplit('_').next().unwrap_or(&log))), paths.logs.join(&log))));
    let device = |path: &Path| std::fs::metadata(path).ok().map(|metadata| metadata.dev());
    let place = device(path);
    let mut budget = WalkBudget::of(MAX_COUNTED);
    let on_it = candidates.into_iter().filter(|(_, directory)| place.is_some() && device(directory) == place);
    let mut holders: Vec<(Holder, u64)> =
        on_it.filter_map(|(holder, directory)| Some((holder, disk_usage(&directory, &mut budget).ok()?))).collect();
    holders.sort_by_key(|(_, bytes)| Reverse(*bytes));
    holders.retain(|(_, bytes)| *bytes >= MIB);
    holders.truncate(MAX_HOLDERS);
    holders
}

fn look(mounts: &[MountEntry], role: Role, path: &Path) -> Option<Place> {
    let there = path.ancestors().find(|path| path.try_exists().unwrap_or(false))?;
    let real = there.canonicalize().ok()?;
    let stat = rustix::fs::statvfs(&real).ok()?;
    let filesystem = mount_of(mounts, &real).map(|mount| mount.kind.clone()).unwrap_or_default();
    Some(Place {
        role,
        path: path.to_owned(),
        filesystem,
        free_bytes: stat.f_bavail.saturating_mul(stat.f_frsize),
        total_bytes: stat.f_blocks.saturating_mul(stat.f_frsize),
        free_inodes: stat.f_favail,
        total_inodes: stat.f_files,
        is_read_only: stat.f_flag.contains(StatVfsMountFlags::RDONLY),
        holders: Vec::new(),
    })
}

fn judge(places: &[Place]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = places.iter().flat_map(judge_place).collect();
    if findings.is_empty() {
        let free = |place: &Place| format!("{} free at {}", size(place.free_bytes), place.path.display());
        findings.push(Finding::ok(places.iter().map(free).collect::<Vec<_>>().join(", ")));
    }
    findings
}

fn judge_place(place: &Place) -> Vec<Finding> {
    judge_mount(place).into_iter().chain(judge_filesystem(place)).chain(judge_space(place)).collect()
}

fn judge_mount(place: &Place) -> Option<Finding> {
    let is_read_only = || {
        Finding::problem(
            format!("{} is mounted read-only", place.path.display()),
            "nothing can be written: no pod is started or changed, and logs are lost",
            "look for disk errors (dmesg), check the file system (fsck), then mount -o remount,rw",
        )
    };
    place.is_read_only.then(is_read_only)
}

fn judge_space(place: &Place) -> Vec<Finding> {
    let path = place.path.display();
    let mut findings = Vec::new();
    let why = match place.role {
        Role::State => "on a full disk images cannot be unpacked, and new revisions of sources cannot be recorded",
        Role::Run => "when it is full, pods cannot be started and Secrets cannot be mounted",
        Role::Logs => "on a full disk log lines are dropped",
    };
    let remedy = match place.role {
        Role::State => format!("remove images (podstead image ls, podstead image rm); du -x {path} shows what uses the space"),
        Role::Run | Role::Logs => format!("du -x {path} shows what uses the space"),
    };
    // Of a large disk a few percent are still much.
    let is_below = |percent: u64, bytes: u64| place.free_bytes < bytes.max(place.total_bytes / 100 * percent).min(bytes * 10);
    let holders = place.holders.iter().map(|(holder, bytes)| format!("\n{} {}", size(*bytes), holder.sentence()));
    let what = format!("{path} has {} free of {}{}", size(place.free_bytes), size(place.total_bytes), holders.collect::<String>());
    let (few, least) = match place.role {
        Role::State => (500 * MIB, 100 * MIB),
        Role::Run => (32 * MIB, 8 * MIB),
        Role::Logs => (200 * MIB, 50 * MIB),
    };
    if is_below(2, least) {
        findings.push(Finding::problem(what, why, remedy.clone()));
    } else if is_below(10, few) {
        findings.push(Finding::warning(what, why, remedy.clone()));
    }
    if place.total_inodes > 0 {
        let what = format!("{path} has {} of {} inodes free", place.free_inodes, place.total_inodes);
        let remedy =
            format!("remove files that are not needed; du -x --inodes {path} | sort -n shows the directories with most of them");
        if place.free_inodes < place.total_inodes / 100 {
            findings.push(Finding::problem(what, why, remedy));
        } else if place.free_inodes < place.total_inodes / 20 {
            findings.push(Finding::warning(what, why, remedy));
        }
    }
    findings
}

fn judge_filesystem(place: &Place) -> Option<Finding> {
    let path = place.path.display();
    let kind = place.filesystem.as_str();
    match (place.role, kind) {
        (Role::State, "tmpfs" | "ramfs") => Some(Finding::problem(
            format!("{path} is in memory ({kind})"),
            "images, volumes and the accepted revisions of all sources are lost at a reboot; without network no pod can start then",
            "mount a disk there, or set paths.state to a directory on one",
        )),
        (Role::State, "nfs" | "nfs4" | "cifs" | "smb3" | "9p" | "virtiofs" | "fuse.sshfs") => Some(Finding::problem(
            format!("{path} is on another machine ({kind})"),
            "overlayfs does not work there, and a host without network could not start its pods",
            "set paths.state to a directory on a disk of this host",
        )),
        (Role::State, "vfat" | "msdos" | "exfat" | "ntfs" | "ntfs3" | "fuseblk") => Some(Finding::problem(
            format!("{path} is on {kind}"),
            "it supports neither file owners nor links: images cannot be unpacked",
            "use ext4, xfs, btrfs or f2fs",
        )),
        (Role::State, "overlay") => Some(Finding::warning(
            format!("{path} is on an overlay file system"),
            "the kernel may reject container layers on it, and an overlay over a read-only root loses its content at a reboot",
            "mount a disk there",
        )),
        (Role::Run, "tmpfs" | "ramfs" | "") => None,
        (Role::Run, _) => Some(Finding::warning(
            format!("{path} is on a disk ({kind})"),
            "files of the previous boot remain, and Secrets are written to disk",
            "mount a tmpfs there, as systemd does on /run",
        )),
        (Role::State | Role::Logs, _) => None,
    }
}

fn size(bytes: u64) -> String {
    match bytes {
        0..MIB => format!("{} KiB", bytes >> 10),
        MIB..0x4000_0000 => format!("{} MiB", bytes >> 20),
        _ => format!("{}.{} GiB", bytes >> 30, (bytes >> 20) % 1024 * 10 / 1024),
    }
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity::{self, Ok, Problem, Warning};
    use super::*;

    fn place(role: Role) -> Place {
        Place {
            role,
            path: "/var/lib/podstead".into(),
            filesystem: if role == Role::Run { "tmpfs" } else { "ext4" }.into(),
            free_bytes: 20 << 30,
            total_bytes: 30 << 30,
            free_inodes: 900,
            total_inodes: 1000,
            is_read_only: false,
            holders: Vec::new(),
        }
    }

    #[test]
    fn space_inodes_mounts_and_file_systems_are_judged() {
        let severities = |place: Place| judge(&[place]).iter().map(|finding| finding.severity).collect::<Vec<Severity>>();
        let state = || place(Role::State);
        assert_eq!(severities(state()), [Ok]);
        assert_eq!(severities(Place { is_read_only: true, ..state() }), [Problem]);
        assert_eq!(severities(Place { free_bytes: 20 << 20, ..state() }), [Problem]);
        assert_eq!(severities(Place { free_bytes: 900 << 20, ..state() }), [Warning]);
        assert_eq!(severities(Place { free_bytes: 20 << 30, total_bytes: 4 << 40, ..state() }), [Ok], "half a percent, and much");
        assert_eq!(severities(Place { free_bytes: 1 << 30, total_bytes: 2 << 30, ..state() }), [Ok], "a small disk");
        assert_eq!(severities(Place { free_inodes: 3, ..state() }), [Problem]);
        assert_eq!(severities(Place { free_inodes: 30, ..state() }), [Warning]);
        assert_eq!(severities(Place { free_inodes: 0, total_inodes: 0, ..state() }), [Ok], "btrfs does not count them");
        for kind in ["tmpfs", "nfs4", "vfat"] {
            assert_eq!(severities(Place { filesystem: kind.into(), ..state() }), [Problem], "{kind}");
        }
        assert_eq!(severities(Place { filesystem: "overlay".into(), ..state() }), [Warning]);
        assert_eq!(severities(place(Role::Run)), [Ok]);
        assert_eq!(severities(Place { filesystem: "ext4".into(), ..place(Role::Run) }), [Warning]);
        assert_eq!(severities(Place { free_bytes: 40 << 20, ..place(Role::Logs) }), [Problem]);
    }

    #[test]
    fn holders_of_the_space_are_named() {
        let root = tempfile::tempdir().unwrap();
        let at = |below: &str| root.path().join(below);
        let paths = Paths { state: at("state"), run: at("run"), logs: at("logs") };
        let pod: Pod =
            serde_json::from_value(serde_json::json!({"metadata": {"name": "web", "namespace": "shop", "uid": "u-1"}})).unwrap();
        for (directory, mebibytes) in [
            (paths.images(), 2),
            (paths.persistent_volumes().join("shop/db"), 4),
            (paths.pods().join("u-1"), 3),
            (paths.pods().join("u-2"), 0),
            (paths.logs.join("shop_web_u-1"), 1),
        ] {
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join("file"), vec![7; mebibytes << 20]).unwrap();
        }
        let found: Vec<Holder> = holders(&paths, &paths.state, &[pod]).into_iter().map(|(holder, _)| holder).collect();
        let name = || "web -n shop".to_owned();
        assert_eq!(found, [Holder::Claim("shop/db".into()), Holder::Pod(name()), Holder::Images, Holder::Logs(name())]);
        let place = Place { free_bytes: 1 << 20, holders: vec![(Holder::Images, 5 << 20)], ..place(Role::State) };
        assert!(judge(&[place])[0].what.ends_with("free of 30.0 GiB\n5 MiB images (podstead image ls)"));
    }

    #[test]
    fn sizes_are_readable() {
        assert_eq!([size(4096), size(20 << 20), size((3 << 30) + (512 << 20))], ["4 KiB", "20 MiB", "3.5 GiB"]);
    }
}
