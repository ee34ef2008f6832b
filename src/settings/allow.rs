//! Permissions of the pods of a source. Pure.
//!
//! Without `allow`, everything: whoever may configure a source may trust it. With it, access to the host is what it names and no more;
//! `namespaces` and `images` restrict where they are given.

use super::channels::{Channels, WrittenPorts};
use super::images::ImagePatterns;
use crate::ConfigError;
use crate::check::Check;
use podstead_pod::DEFAULT_NAMESPACE;
use podstead_pod::cdi::DeviceName;
use podstead_pod::devices::DeviceRequest;
use podstead_pod::nfs;
use podstead_sys::layout::is_clean_absolute;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// `sources[].allow`.
// One type because it mirrors `sources[].allow` of the configuration file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenAllow {
    /// Privileged containers. They have full access to the host, so with this the other fields restrict nothing. Default: false.
    #[serde(default)]
    pub privileged: bool,
    /// Pods on the host's network. Default: false.
    #[serde(default)]
    pub host_network: bool,
    /// Pods that see the host's processes. Default: false.
    #[serde(default, rename = "hostPID")]
    pub host_pid: bool,
    /// Pods with the host's shared memory and semaphores. Default: false.
    #[serde(default, rename = "hostIPC")]
    pub host_ipc: bool,
    /// Containers without a seccomp filter (`seccompProfile: Unconfined`), without an AppArmor profile, or with
    /// `procMount: Unmasked`. Default: false.
    #[serde(default)]
    pub unconfined: bool,
    /// PersistentVolumeClaims: directories of the host that outlive pods, without a limit of size. Default: false.
    #[serde(default)]
    pub persistent_volumes: bool,
    /// Credentials that this host has for registries (`registries`, `defaultAuthFiles`), beside `imagePullSecrets`. Default: false.
    #[serde(default)]
    pub registry_credentials: bool,
    /// Capabilities beyond the default ones, without `CAP_`; `ALL` for all. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
    /// CDI devices: `vendor.com/class` for all of a class, `vendor.com/class=name` for one. Devices that annotations of podstead name: a
    /// path below `/dev`, or `usb:vendor:product`, both with a trailing `*` for all that begin so. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<String>,
    /// Host ports that pods may use (`hostPort`, `portMappings` of a network): numbers and ranges such as `8000-8099`. Not checked for pods
    /// on the host's network. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_ports: Vec<WrittenPorts>,
    /// CNI networks that pods may join by annotation, by name; `*` for all. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub networks: Vec<String>,
    /// Hosts that probes and hooks may connect to from the host's network (`httpGet.host`, `tcpSocket.host`); `*` for all.
    /// Not checked for pods on the host's network. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probe_hosts: Vec<String>,
    /// AppArmor profiles of the host (`Localhost`), by name; `*` for all. With `unconfined`, all. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub app_armor_profiles: Vec<String>,
    /// Seccomp profiles of the host (`Localhost`), by file name as in manifests; `*` for all. With `unconfined`, all. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub seccomp_profiles: Vec<String>,
    /// Sysctls of `allowedUnsafeSysctls` that pods may set: names, or prefixes with a trailing `*`. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sysctls: Vec<String>,
    /// Priority classes that begin with `system-`; `system-node-critical` protects from the OOM killer. `*` for all. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub priority_classes: Vec<String>,
    /// Host paths that `hostPath` volumes may be at or below. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_paths: Vec<WrittenHostPath>,
    /// Exports that `nfs` volumes may mount, each exactly: what lies below one is reached by `subPath`. Default: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nfs: Vec<WrittenNfs>,
    /// Namespaces that objects may be in. An object without a namespace is put in `default` if that is one of them, else in the first one.
    /// Default: one, named like the source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Vec<String>>,
    /// Images: an entry that ends in `/` is a prefix of image names, any other entry is one repository, with its tag or digest if given.
    /// Names are compared in full: `nginx` is `docker.io/library/nginx`. Default: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<Vec<String>>,
}

/// An item of `hostPaths`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenHostPath {
    /// Absolute.
    pub path: PathBuf,
    /// Every container has to mount it with `readOnly: true`; what is mounted below it is read-only, too. Default: false.
    #[serde(default)]
    pub read_only: bool,
}

/// An item of `nfs`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenNfs {
    /// Name or address of the server, as manifests write it.
    pub server: String,
    /// Absolute path on the server.
    pub path: String,
    /// The volume has to have `readOnly: true`. Default: false.
    #[serde(default)]
    pub read_only: bool,
}

/// Host path that a volume may use, by one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPathBounds {
    /// The path that the volume is at or below, links included.
    pub prefix: PathBuf,
    /// Nothing is written there, nor to what is mounted below.
    pub read_only: bool,
}

/// Permissions of the pods of a source, valid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Allow {
    written: WrittenAllow,
    /// Name of the source.
    source: String,
    capabilities: BTreeSet<String>,
    images: Option<ImagePatterns>,
    channels: Channels,
}

impl Allow {
    /// Checks every value.
    pub fn resolve(check: &Check<'_>, field: &str, written: &WrittenAllow) -> Result<Self, ConfigError> {
        for (index, host_path) in written.host_paths.iter().enumerate() {
            if !is_clean_absolute(&host_path.path) {
                let message = format!("{:?} is not an absolute path without . and ..", host_path.path.display().to_string());
                return Err(check.invalid(&format!("{field}.hostPaths[{index}].path"), message));
            }
        }
        for (index, capability) in written.capabilities.iter().enumerate() {
            let name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
            if capability.is_empty() || !capability.chars().all(name) || capability.starts_with("CAP_") {
                let message = format!("{capability:?} is not the name of a capability, without CAP_, such as NET_ADMIN");
                return Err(check.invalid(&format!("{field}.capabilities[{index}]"), message));
            }
        }
        for (index, device) in written.devices.iter().enumerate() {
            let name = if device.contains('=') { device.clone() } else { format!("{device}=any") };
            if !is_own_device(device) && DeviceName::parse(&name).is_none() {
                let message = format!(
                    "{device:?} is none of vendor.com/class, vendor.com/class=name, a path below /dev and usb:vendor:product"
                );
                return Err(check.invalid(&format!("{field}.devices[{index}]"), message));
            }
        }
        for (index, export) in written.nfs.iter().enumerate() {
            for (name, value, checked) in [
                ("server", &export.server, nfs::check_server(&export.server)),
                ("path", &export.path, nfs::check_path(&export.path)),
            ] {
                let field = format!("{field}.nfs[{index}].{name}");
                match checked {
                    Err(rule) => return Err(check.invalid(&field, format!("{value:?} {rule}"))),
                    Ok(()) if value.is_empty() => return Err(check.invalid(&field, "must not be empty".to_owned())),
                    Ok(()) => {}
                }
            }
        }
        let patterns = |images| ImagePatterns::resolve(check, &format!("{field}.images"), images);
        let images = written.images.as_deref().map(patterns).transpose()?;
        let channels = Channels::resolve(check, field, written)?;
        let capabilities = written.capabilities.iter().map(|name| format!("CAP_{name}")).collect();
        Ok(Self { written: written.clone(), source: String::new(), capabilities, images, channels })
    }

    /// The same for the source of this name, which has a namespace of its own where none are written.
    pub fn of_source(self, name: &str) -> Self {
        Self { source: name.to_owned(), ..self }
    }

    /// As it is written.
    pub fn to_written(&self) -> WrittenAllow {
        self.written.clone()
    }

    /// Reports whether PersistentVolumeClaims are allowed.
    pub fn persistent_volumes(&self) -> bool {
        self.written.persistent_volumes
    }

    /// Reports whether images may be pulled with the credentials that this host has for registries.
    pub fn registry_credentials(&self) -> bool {
        self.written.registry_credentials
    }

    /// Reports whether containers may be privileged.
    pub fn privileged(&self) -> bool {
        self.written.privileged
    }

    /// Reports whether pods may be on the host's network.
    pub fn host_network(&self) -> bool {
        self.written.host_network
    }

    /// Reports whether pods may see the host's processes.
    pub fn host_pid(&self) -> bool {
        self.written.host_pid
    }

    /// Reports whether pods may use the host's IPC.
    pub fn host_ipc(&self) -> bool {
        self.written.host_ipc
    }

    /// Reports whether containers may have no seccomp filter or an unmasked `/proc`.
    pub fn unconfined(&self) -> bool {
        self.written.unconfined
    }

    /// Reports whether a container may have this capability (`CAP_NET_ADMIN`), which is not one of the default ones.
    pub fn capability(&self, name: &str) -> bool {
        self.capabilities.contains(name) || self.capabilities.contains("CAP_ALL")
    }

    /// Reports whether a volume may use this host path. `read_only`: every container mounts it read-only.
    pub fn host_path(&self, path: &Path, read_only: bool) -> bool {
        // What is not clean is refused elsewhere too; here it must not match by its beginning.
        let rules = || self.written.host_paths.iter().filter(|rule| read_only || !rule.read_only);
        is_clean_absolute(path) && rules().any(|rule| path.starts_with(&rule.path))
    }

    /// The bounds of a volume at this path of the host; `None` for one that may not be. Of the rules that allow it, one for writing comes before one for
    /// reading, and a wide one before a narrow one: a link that stays in what is allowed is followed.
    pub fn host_path_bounds(&self, path: &Path) -> Option<HostPathBounds> {
        let allowing = self.written.host_paths.iter().filter(|rule| is_clean_absolute(path) && path.starts_with(&rule.path));
        let WrittenHostPath { path, read_only } =
            allowing.min_by_key(|rule| (rule.read_only, rule.path.components().count()))?.clone();
        Some(HostPathBounds { prefix: path, read_only })
    }

    /// Reports whether an `nfs` volume may mount this path of this server. Paths are compared as a whole: a link below an export may lead out of it.
    pub fn nfs(&self, server: &str, path: &str, read_only: bool) -> bool {
        let rules = || self.written.nfs.iter().filter(|rule| read_only || !rule.read_only);
        rules().any(|rule| rule.server.eq_ignore_ascii_case(server) && Path::new(&rule.path) == Path::new(path))
    }

    /// Reports whether containers may have this device.
    pub fn device(&self, device: &DeviceName) -> bool {
        self.written.devices.iter().any(|allowed| *allowed == device.kind || *allowed == device.to_string())
    }

    /// Reports whether containers may have the device that an annotation of podstead names.
    pub fn requested_device(&self, request: &DeviceRequest) -> bool {
        self.device_path(&request.permission())
    }

    /// Reports whether containers may have the device of this path or identity.
    pub fn device_path(&self, wanted: &str) -> bool {
        self.written.devices.iter().filter(|allowed| is_own_device(allowed)).any(|allowed| {
            // Hexadecimal digits have no case, paths have.
            let allowed = if allowed.starts_with('/') { allowed.clone() } else { allowed.to_lowercase() };
            allowed.strip_suffix('*').map_or(wanted == allowed, |prefix| wanted.starts_with(prefix))
        })
    }

    /// Reports whether an object may be in this namespace.
    pub fn namespace(&self, namespace: &str) -> bool {
        match &self.written.namespaces {
            Some(allowed) => allowed.iter().any(|allowed| allowed == namespace),
            None => self.own_namespace().is_none_or(|own| own == namespace),
        }
    }

    /// The namespace that is the source's own because none are written.
    pub fn own_namespace(&self) -> Option<&str> {
        (self.written.namespaces.is_none() && !self.source.is_empty()).then_some(&self.source)
    }

    /// The namespace of objects that are written without one.
    pub fn default_namespace(&self) -> &str {
        let first = self.written.namespaces.as_ref().and_then(|namespaces| namespaces.first()).map(String::as_str);
        match first.or(self.own_namespace()) {
            Some(first) if !self.namespace(DEFAULT_NAMESPACE) => first,
            Some(_) | None => DEFAULT_NAMESPACE,
        }
    }

    /// Reports whether a container may run this image. True for a text that is no image name, which validation refuses.
    pub fn image(&self, image: &str) -> bool {
        self.images.as_ref().is_none_or(|patterns| patterns.match_image(image))
    }

    /// Ports, networks, probes, profiles, kernel parameters and priorities.
    pub fn channels(&self) -> &Channels {
        &self.channels
    }
}

/// An item of `devices` for the annotations of podstead: other CDI vendors have no slash or colon in front.
fn is_own_device(allowed: &str) -> bool {
    let is_path = allowed.strip_prefix("/dev/").is_some_and(|rest| !rest.is_empty() && !rest.split('/').any(|part| part == ".."));
    let is_usb = || {
        let Some(ids) = allowed.strip_prefix("usb:") else { return false };
        let ids = ids.strip_suffix('*').unwrap_or(ids);
        ids.len() <= 9 && ids.bytes().enumerate().all(|(at, byte)| if at == 4 { byte == b':' } else { byte.is_ascii_hexdigit() })
    };
    is_path || is_usb()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allow(text: &str) -> Result<Allow, String> {
        let written: WrittenAllow = serde_yaml::from_str(text).map_err(|error| error.to_string())?;
        Allow::resolve(&Check { path: Path::new("/c") }, "allow", &written).map_err(|error| error.to_string())
    }

    #[test]
    fn what_is_not_named_of_the_host_is_not_allowed_and_lists_restrict_where_they_are_given() {
        let nothing = allow("{}").unwrap();
        assert!(
            !nothing.privileged() && !nothing.host_network() && !nothing.host_pid() && !nothing.host_ipc() && !nothing.unconfined()
        );
        assert!(!nothing.capability("CAP_NET_ADMIN") && !nothing.host_path(Path::new("/srv"), true));
        assert!(nothing.namespace("any") && nothing.image("nginx"));
        let all =
            allow("{privileged: true, hostNetwork: true, hostPID: true, hostIPC: true, unconfined: true, capabilities: [ALL]}")
                .unwrap();
        assert!(all.privileged() && all.host_network() && all.host_pid() && all.host_ipc() && all.unconfined());
        assert!(all.capability("CAP_NET_ADMIN"));
        let none = allow("{namespaces: [], images: []}").unwrap();
        assert!(!none.namespace("default") && !none.image("nginx"));
    }

    #[test]
    fn objects_without_namespace_are_where_they_are_allowed() {
        for (written, expected) in [
            ("{}", "shop"),
            ("{namespaces: [default]}", "default"),
            ("{namespaces: [site, default]}", "default"),
            ("{namespaces: [site, other]}", "site"),
            ("{namespaces: []}", "default"),
        ] {
            assert_eq!(allow(written).unwrap().of_source("shop").default_namespace(), expected, "{written}");
        }
        let own = allow("{}").unwrap().of_source("shop");
        assert!(own.namespace("shop") && !own.namespace("default") && own.own_namespace() == Some("shop"));
        assert_eq!(allow("{namespaces: [shop]}").unwrap().of_source("shop").own_namespace(), None);
    }

    #[test]
    fn host_paths_are_allowed_by_whole_components() {
        let allow = allow("{hostPaths: [{path: /srv/data}, {path: /etc, readOnly: true}]}").unwrap();
        for (path, read_only, allowed) in [
            ("/srv/data", false, true),
            ("/srv/data/", false, true),
            ("/srv/data/a", false, true),
            ("/srv/database", false, false),
            ("/srv", false, false),
            ("/srv/data/../../etc", true, false),
            ("/etc/hosts", false, false),
            ("/etc/hosts", true, true),
            ("srv/data", true, false),
        ] {
            assert_eq!(allow.host_path(Path::new(path), read_only), allowed, "{path} {read_only}");
        }
    }

    #[test]
    fn exports_are_allowed_as_a_whole() {
        let allow =
            allow("{nfs: [{server: nas.lan, path: /export/site}, {server: nas.lan, path: /etc/, readOnly: true}]}").unwrap();
        for (server, path, read_only, allowed) in [
            ("nas.lan", "/export/site", false, true),
            ("NAS.lan", "/export/site/", false, true),
            ("nas.lan", "/export/site/link", false, false),
            ("nas.lan", "/export", true, false),
            ("other.lan", "/export/site", true, false),
            ("nas.lan", "/etc", false, false),
            ("nas.lan", "/etc", true, true),
        ] {
            assert_eq!(allow.nfs(server, path, read_only), allowed, "{server} {path} {read_only}");
        }
    }

    #[test]
    fn writable_and_wide_bounds_come_first() {
        let allow =
            allow("{hostPaths: [{path: /, readOnly: true}, {path: /srv/data/a}, {path: /srv/data}, {path: /etc, readOnly: true}]}")
                .unwrap();
        for (path, prefix, read_only) in [
            ("/srv/data/a/x", "/srv/data", false),
            ("/srv/data", "/srv/data", false),
            ("/srv", "/", true),
            ("/etc/hosts", "/", true),
        ] {
            let expected = HostPathBounds { prefix: prefix.into(), read_only };
            assert_eq!(allow.host_path_bounds(Path::new(path)), Some(expected), "{path}");
        }
        assert_eq!(allow.host_path_bounds(Path::new("srv")), None);
        assert_eq!(Allow::default().host_path_bounds(Path::new("/srv")), None);
    }

    #[test]
    fn images_are_compared_by_their_full_names() {
        let allow = |patterns: &str| allow(&format!("{{images: [{patterns}]}}")).unwrap();
        for (pattern, image, allowed) in [
            ("registry.lan/apps/", "registry.lan/apps/web:1", true),
            ("registry.lan/apps/", "registry.lan/apps-evil/web", false),
            ("registry.lan/", "registry.lan/a/b/c@sha256:0000000000000000000000000000000000000000000000000000000000000000", true),
            ("registry.lan/", "registry.lan.evil.org/a", false),
            ("'registry.lan:5000/'", "registry.lan/a", false),
            ("docker.io/", "nginx", true),
            ("docker.io/", "bitnami/redis", true),
            ("bitnami/", "docker.io/bitnami/redis", true),
            ("bitnami/", "nginx", false),
            ("nginx", "docker.io/library/nginx:1.27", true),
            ("nginx", "nginx-evil", false),
            ("'nginx:1.27'", "nginx:1.27", true),
            ("'nginx:1.27'", "nginx", false),
            ("'registry.lan:5000/a'", "registry.lan:5000/a:9", true),
        ] {
            assert_eq!(allow(pattern).image(image), allowed, "{pattern} {image}");
        }
    }

    #[test]
    fn mistakes_name_their_field() {
        for (text, expected) in [
            ("{hostPaths: [{path: srv}]}", "allow.hostPaths[0].path"),
            ("{hostPaths: [{path: /srv/..}]}", "allow.hostPaths[0].path"),
            ("{nfs: [{server: a b, path: /x}]}", "allow.nfs[0].server"),
            ("{nfs: [{server: a, path: x}]}", "allow.nfs[0].path"),
            ("{capabilities: [CAP_NET_ADMIN]}", "allow.capabilities[0]"),
            ("{images: ['a b']}", "allow.images[0]"),
            ("{images: [/]}", "allow.images[0]"),
            ("{hostnetwork: true}", "unknown field"),
        ] {
            let error = allow(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
