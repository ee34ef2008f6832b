//! Lookup of a pod's CDI devices on this host when a container starts.

use nix::sys::stat::{SFlag, major, minor, stat};
use podstead_container::{BoundDirectory, GivenDevice, GivenDevices, GivenHook, HookTime, ProcessUser};
use podstead_pod::Pod;
use podstead_pod::cdi::{
    self, CdiSpec, ContainerEdits, DeviceNode, DeviceType, HookName, MAX_SPEC_BYTES, ResolveError, SpecError, SpecFile, SpecHook,
};
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Files of one directory that are looked at.
const MAX_FILES: usize = 256;
/// Time limit of a hook without one: a start must end.
const HOOK_TIMEOUT_SECS: u32 = 60;

/// Reason why a container cannot have its devices; lasts until pod or host change.
#[derive(Debug, thiserror::Error)]
pub(super) enum CdiError {
    /// An annotation names no device.
    #[error("annotation {}", _0.annotation)]
    Name(#[source] cdi::NameError),
    /// A directory could not be read.
    #[error("list CDI specs in {}", _0.display())]
    List(PathBuf, #[source] io::Error),
    /// Specs do not have them.
    #[error(transparent)]
    Resolve(ResolveError),
    /// The host does not have it.
    #[error("device node {}", _0.display())]
    Node(PathBuf, #[source] io::Error),
    /// The path is not a device, or another device than the spec describes.
    #[error("{} is not the device that its CDI spec describes", _0.display())]
    OtherNode(PathBuf),
}

/// CDI devices for a container of the pod, and the variables and groups that come with them.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Injected {
    pub(super) devices: GivenDevices,
    pub(super) env: Vec<String>,
    pub(super) gids: Vec<u32>,
}

/// Looks up all devices that the pod names. Blocks.
pub(super) fn inject(pod: &Pod, directories: &[PathBuf], user: &ProcessUser) -> Result<Injected, CdiError> {
    let devices = cdi::annotated(pod.metadata.annotations.as_ref()).map_err(CdiError::Name)?;
    if devices.is_empty() {
        return Ok(Injected::default());
    }
    let mut files = Vec::new();
    for (number, directory) in directories.iter().enumerate() {
        read_directory(directory, number, &mut files).map_err(|error| CdiError::List(directory.clone(), error))?;
    }
    let mut injected = Injected::default();
    for ContainerEdits { env, device_nodes, mounts, additional_gids, hooks, .. } in
        cdi::resolve(&devices, &files).map_err(CdiError::Resolve)?
    {
        injected.env.extend(env);
        injected.gids.extend(additional_gids);
        injected.devices.hooks.extend(hooks.into_iter().filter_map(hook));
        for node in &device_nodes {
            injected.devices.nodes.push(given(node, user)?);
        }
        injected.devices.mounts.extend(mounts.into_iter().map(|mount| BoundDirectory {
            host_path: mount.host_path,
            container_path: mount.container_path,
            options: mount.options,
        }));
    }
    Ok(injected)
}

/// A hook that is run; specs with others are refused.
fn hook(hook: SpecHook) -> Option<GivenHook> {
    let SpecHook { hook_name, path, args, env, timeout } = hook;
    let time = match hook_name {
        HookName::Prestart => HookTime::Prestart,
        HookName::CreateRuntime => HookTime::CreateRuntime,
        HookName::CreateContainer => HookTime::CreateContainer,
        HookName::StartContainer => HookTime::StartContainer,
        HookName::Poststart | HookName::Poststop => return None,
    };
    Some(GivenHook { time, path, args, env, timeout_secs: timeout.unwrap_or(HOOK_TIMEOUT_SECS) })
}

/// Adds the files of a directory, by name. One that is not there has none.
fn read_directory(directory: &Path, number: usize, files: &mut Vec<SpecFile>) -> io::Result<()> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let is_spec = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "json" || extension == "yaml");
    let mut paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?;
    paths.retain(is_spec);
    paths.sort();
    paths.truncate(MAX_FILES);
    for path in paths {
        let mut text = Vec::new();
        let spec = match fs::File::open(&path).and_then(|file| file.take(MAX_SPEC_BYTES as u64 + 1).read_to_end(&mut text)) {
            Ok(_) => CdiSpec::parse(&text),
            Err(error) => Err(SpecError::Syntax(error.to_string())),
        };
        files.push(SpecFile { path, directory: number, spec });
    }
    Ok(())
}

/// A device of the host for the container. Values that the spec omits are the host's; owner and group are the container's, so that its user
/// can open the device.
fn given(node: &DeviceNode, user: &ProcessUser) -> Result<GivenDevice, CdiError> {
    let host_path = node.host_path.as_ref().unwrap_or(&node.path);
    let found = stat(host_path).map_err(|error| CdiError::Node(host_path.clone(), error.into()))?;
    let kind = match SFlag::from_bits_truncate(found.st_mode & SFlag::S_IFMT.bits()) {
        SFlag::S_IFBLK => DeviceType::Block,
        SFlag::S_IFCHR => DeviceType::Character,
        _ => return Err(CdiError::OtherNode(host_path.clone())),
    };
    let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
    let (own_major, own_minor) = (number(major(found.st_rdev)), number(minor(found.st_rdev)));
    let agrees = node.kind.is_none_or(|written| written == kind)
        && node.major.is_none_or(|written| written == own_major)
        && node.minor.is_none_or(|written| written == own_minor);
    if !agrees {
        return Err(CdiError::OtherNode(host_path.clone()));
    }
    Ok(GivenDevice {
        path: node.path.clone(),
        block: kind == DeviceType::Block,
        major: own_major,
        minor: own_minor,
        mode: node.file_mode.unwrap_or(found.st_mode & 0o7777),
        uid: node.uid.unwrap_or(user.uid),
        gid: node.gid.unwrap_or(user.gid),
        permissions: node.permissions.clone().unwrap_or_else(|| "rwm".to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const USER: ProcessUser = ProcessUser { uid: 7, gid: 8, additional_gids: Vec::new() };

    fn injected(text: &str) -> Result<Injected, String> {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("radio.yaml"), text).unwrap();
        fs::write(directory.path().join("radio.yaml~"), "what an editor left").unwrap();
        let pod: Pod = serde_yaml::from_str("{metadata: {annotations: {cdi.k8s.io/a: v.org/radio=a}}}").unwrap();
        let missing = directory.path().join("missing");
        inject(&pod, &[missing, directory.path().to_owned()], &USER).map_err(|error| {
            let source = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
            format!("{error}{source}")
        })
    }

    fn spec(nodes: &str) -> String {
        format!(
            "{{cdiVersion: 0.6.0, kind: v.org/radio, devices: [{{name: a, containerEdits: {{env: [A=1], additionalGids: [9], deviceNodes: [{nodes}]}}}}]}}"
        )
    }

    #[test]
    fn what_the_spec_leaves_out_is_the_host_s_and_the_user_may_open_it() {
        let found = injected(&spec("{path: /dev/radio, hostPath: /dev/null, permissions: rw}")).unwrap();
        let node = &found.devices.nodes[0];
        assert_eq!((node.block, node.major, node.minor, node.uid, node.gid), (false, 1, 3, 7, 8));
        assert_eq!((node.permissions.as_str(), found.env, found.gids), ("rw", vec!["A=1".to_owned()], vec![9]));
    }

    #[test]
    fn a_device_that_is_not_there_or_another_one_is_refused() {
        assert!(injected(&spec("{path: /dev/no-such-radio}")).unwrap_err().starts_with("device node /dev/no-such-radio: "));
        for other in ["{path: /dev/null, minor: 5}", "{path: /dev/null, type: b}", "{path: /etc}"] {
            assert!(injected(&spec(other)).unwrap_err().contains("is not the device that its CDI spec describes"), "{other}");
        }
        assert!(injected("{").unwrap_err().contains("radio.yaml cannot be used"), "a broken file is named");
    }
}
