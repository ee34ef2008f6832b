//! The list of one container's mounts: its volumes, then the host files that it does not mount itself.

use super::atomic_writer::AtomicWriter;
use super::host_files::NodeFiles;
use super::host_policy::HostPathPolicy;
use super::nfs::{self, NfsMounts};
use super::sub_path::{self, Missing, SubPathProblem};
use super::{ContainerMounts, VolumeError, host_files, host_path, image_volume};
use k8s_openapi::api::core::v1::{Container, Volume, VolumeMount};
use podstead_container::{Mount, Propagation};
use podstead_pod::claims::claim_of;
use podstead_pod::files::is_projected;
use podstead_pod::host_files::NetworkDns;
use podstead_pod::nfs::NfsVolume;
use podstead_pod::{ContainerName, DesiredPod};
use podstead_settings::HostPathBounds;
use podstead_sys::layout::Paths;
use podstead_sys::mounts::{mount_of, mounts};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

const DEFAULT_TERMINATION_PATH: &str = "/dev/termination-log";

/// Everything that decides about one container's mounts.
#[derive(Debug)]
pub(super) struct Request<'a> {
    pub(super) paths: &'a Paths,
    pub(super) node: &'a NodeFiles,
    pub(super) policy: &'a HostPathPolicy,
    pub(super) nfs: &'a NfsMounts,
    pub(super) pod: &'a DesiredPod,
    pub(super) container: &'a Container,
    pub(super) attempt: u32,
    pub(super) pod_ips: &'a [IpAddr],
    pub(super) dns: Option<&'a NetworkDns>,
    pub(super) environment: &'a [(String, String)],
}

/// A volume as a whole.
struct Whole {
    path: PathBuf,
    /// Held, where others may change what the path leads to.
    opened: Option<OwnedFd>,
    bounds: Option<HostPathBounds>,
    /// Whoever asks for a path there may have to wait for another host.
    is_remote: bool,
}

impl Request<'_> {
    /// Checks and pins what the container mounts, writes its host files, and lists it all.
    pub(super) fn resolve(&self) -> Result<ContainerMounts, VolumeError> {
        let own = self.container.volume_mounts.as_deref().unwrap_or_default();
        let mut list =
            own.iter().enumerate().map(|(index, mount)| self.volume_mount(index, mount)).collect::<Result<Vec<_>, _>>()?;
        let directory = self.paths.host_files(&self.pod.uid);
        let dns_exceeded = host_files::write(&self.pod.pod, &directory, self.node, self.pod_ips, self.dns)
            .map_err(|reason| VolumeError::not_ready("host files", reason))?;
        let log = host_files::termination_log(&directory, &self.container.name, self.attempt)
            .map_err(|reason| VolumeError::not_ready("termination log", reason))?;
        let read_only_root = self.container.security_context.as_ref().and_then(|context| context.read_only_root_filesystem);
        let termination_path = self.container.termination_message_path.as_deref().unwrap_or(DEFAULT_TERMINATION_PATH);
        let files = [
            // The kubelet's hosts file is always writable, the CRI's two files are so with the root file system.
            (directory.join("hosts"), "/etc/hosts", false),
            (directory.join("hostname"), "/etc/hostname", read_only_root == Some(true)),
            (directory.join("resolv.conf"), "/etc/resolv.conf", read_only_root == Some(true)),
            (log.clone(), termination_path, false),
        ];
        for (host_path, container_path, read_only) in files {
            // The components decide, not the spelling: a trailing slash does not make another path.
            if !list.iter().any(|mount| mount.container_path.as_path() == Path::new(container_path)) {
                list.push(Mount {
                    host_path,
                    container_path: container_path.into(),
                    read_only,
                    recursive_read_only: false,
                    no_exec: false,
                    propagation: Propagation::Private,
                    pinned: None,
                });
            }
        }
        Ok(ContainerMounts { mounts: list, termination_log: log, shm_size: None, dns_exceeded })
    }

    fn volume_mount(&self, index: usize, mount: &VolumeMount) -> Result<Mount, VolumeError> {
        let bad = |reason: String| VolumeError::BadMount {
            container: ContainerName::new(&self.container.name),
            mount: mount.name.clone(),
            reason,
        };
        let volumes = self.pod.pod.spec.as_ref().and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
        let volume =
            volumes.iter().find(|volume| volume.name == mount.name).ok_or_else(|| bad("the pod has no such volume".into()))?;
        let whole = self.whole(volume)?;
        let is_export_read = volume.nfs.as_ref().and_then(|source| source.read_only) == Some(true);
        // A container must never create missing files in there.
        let is_given = is_projected(volume) || volume.image.is_some() || is_export_read;
        let missing = if is_given { Missing::Refused } else { Missing::Made };
        let wanted = sub_path::wanted(mount, self.environment);
        let is_part = matches!(&wanted, Ok(Some(_)));
        let host_path = match wanted.and_then(|wanted| self.pinned(index, &whole, wanted, missing)) {
            Ok(path) => path,
            Err(SubPathProblem::Lasting(reason)) => return Err(bad(reason)),
            Err(SubPathProblem::Passing(reason)) => return Err(VolumeError::not_ready(&volume.name, reason)),
        };
        let Whole { opened, bounds, path: _, is_remote: _ } = whole;
        // A part is held by its own pin already.
        let pinned = bounds.as_ref().zip(opened).filter(|_| !is_part).map(|(bounds, opened)| host_path::pinned(bounds, &opened));
        let pinned = pinned.transpose().map_err(|error| VolumeError::not_ready(&volume.name, error.to_string()))?;
        let propagation = match mount.mount_propagation.as_deref() {
            Some("HostToContainer") => Propagation::HostToContainer,
            Some("Bidirectional") => Propagation::Bidirectional,
            _ => Propagation::Private,
        };
        check_propagation(&host_path, propagation).map_err(&bad)?;
        // As in the kubelet: what is written in there would be lost at the next change.
        let is_read_only = volume.persistent_volume_claim.as_ref().and_then(|source| source.read_only) == Some(true);
        let never_written = bounds.is_some_and(|bounds| bounds.read_only);
        if never_written && propagation != Propagation::Private {
            return Err(bad(
                "its source may mount it read-only, but mountPropagation would make later mounts below it writable: remove mountPropagation".into(),
            ));
        }
        let read_only = mount.read_only.unwrap_or(false) || is_given || is_read_only || never_written;
        let recursive = never_written || matches!(mount.recursive_read_only.as_deref(), Some("Enabled" | "IfPossible"));
        Ok(Mount {
            host_path,
            container_path: PathBuf::from(&mount.mount_path),
            read_only,
            recursive_read_only: read_only && recursive,
            no_exec: volume.image.is_some(),
            propagation,
            pinned,
        })
    }

    /// The volume, and what its source may do with it where that has bounds.
    fn whole(&self, volume: &Volume) -> Result<Whole, VolumeError> {
        let Some(source) = &volume.host_path else {
            let path = self.volume_path(volume)?;
            return Ok(Whole { path, opened: None, bounds: None, is_remote: volume.nfs.is_some() });
        };
        let not_ready = |reason| VolumeError::not_ready(&volume.name, reason);
        let bounds = self.policy.bounds(&self.pod.source, Path::new(&source.path)).map_err(not_ready)?;
        let opened = host_path::open(source, bounds.as_ref()).map_err(not_ready)?;
        Ok(Whole { path: PathBuf::from(&source.path), opened: bounds.is_some().then_some(opened), bounds, is_remote: false })
    }

    /// Path of a volume that podstead owns.
    fn volume_path(&self, volume: &Volume) -> Result<PathBuf, VolumeError> {
        if is_projected(volume) {
            let directory = self.paths.projected(&self.pod.uid).join(&volume.name);
            let is_written = AtomicWriter::is_written(&directory);
            return is_written
                .then_some(directory)
                .ok_or_else(|| VolumeError::not_ready(&volume.name, "its files are not written yet"));
        }
        if volume.image.is_some() {
            let place = self.paths.image_volume(&self.pod.uid, &volume.name);
            let is_there = image_volume::is_mounted(&place);
            return is_there.then_some(place).ok_or_else(|| VolumeError::not_ready(&volume.name, "its image is not mounted yet"));
        }
        if let Some(export) = NfsVolume::of(&self.pod.pod, volume) {
            let not_ready = |reason: String| VolumeError::not_ready(&volume.name, reason);
            self.policy.check_export(&self.pod.source, &export).map_err(not_ready)?;
            let place = self.paths.nfs_volume(&self.pod.uid, &volume.name);
            let is_there = nfs::is_mounted(&place, &export).map_err(|error| not_ready(format!("read mounts: {error}")))?;
            return is_there.then_some(place).ok_or_else(|| not_ready(format!("{export} is not mounted yet")));
        }
        if let Some(claim) = claim_of(&self.pod.pod, volume) {
            let data = self.paths.persistent_data(&claim);
            let is_there = data.is_dir();
            return is_there.then_some(data).ok_or_else(|| VolumeError::not_ready(&volume.name, "the claim has no data yet"));
        }
        let directory = self.paths.empty_dir(&self.pod.uid, &volume.name);
        if volume.empty_dir.is_some() && directory.is_dir() {
            return Ok(directory);
        }
        let reason = if volume.empty_dir.is_some() {
            "the directory of the emptyDir is missing"
        } else {
            "volumes of this type are not supported"
        };
        Err(VolumeError::not_ready(&volume.name, reason))
    }

    fn pinned(&self, index: usize, whole: &Whole, wanted: Option<PathBuf>, missing: Missing) -> Result<PathBuf, SubPathProblem> {
        let Whole { path: whole, opened, is_remote, bounds: _ } = whole;
        let Some(wanted) = wanted else { return Ok(whole.clone()) };
        let pin = self.paths.sub_paths(&self.pod.uid).join(&self.container.name).join(index.to_string());
        match opened {
            _ if *is_remote => self.nfs.pin(whole, &wanted, &pin, missing)?,
            Some(opened) => sub_path::pin_below(opened, &wanted, &pin, missing)?,
            None => sub_path::pin(whole, &wanted, &pin, missing)?,
        }
        Ok(pin)
    }
}

/// Mounts travel only where the host's own mount lets them: the CRI refuses to start a container that would wait for them in vain.
fn check_propagation(host_path: &Path, propagation: Propagation) -> Result<(), String> {
    if propagation == Propagation::Private {
        return Ok(());
    }
    let mounts = mounts().map_err(|error| format!("read mounts: {error}"))?;
    // A place of a mount is not asked for: its server may be silent.
    let is_own = |place: &Path| mounts.iter().any(|mount| mount.point == place);
    let real = match nfs::real(host_path).ok().filter(|place| is_own(place)) {
        Some(place) => place,
        None => std::fs::canonicalize(host_path).map_err(|error| format!("resolve {host_path:?}: {error}"))?,
    };
    let Some(mount) = mount_of(&mounts, &real) else { return Err(format!("{host_path:?} is not on any mount")) };
    match propagation {
        Propagation::Private => Ok(()),
        Propagation::HostToContainer if mount.shared || mount.slave => Ok(()),
        Propagation::HostToContainer => {
            Err(format!("{host_path:?} is mounted on {:?} but it is not a shared or slave mount", mount.point))
        }
        Propagation::Bidirectional if mount.shared => Ok(()),
        Propagation::Bidirectional => Err(format!("{host_path:?} is mounted on {:?} but it is not a shared mount", mount.point)),
    }
}
