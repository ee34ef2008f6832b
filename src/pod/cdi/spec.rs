//! One CDI spec file, read strictly: an unknown field may be a restriction that must not be ignored.

use super::name::is_kind;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Bytes that a file may have; those of a host with many GPUs have some ten thousand.
pub const MAX_SPEC_BYTES: usize = 1 << 20;
const MAX_DEVICES: usize = 1024;
const MAX_EDITS: usize = 4096;
/// Versions of the format by their major number.
const MAJOR_VERSIONS: [&str; 2] = ["0", "1"];

/// A spec file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CdiSpec {
    cdi_version: String,
    /// `vendor.com/class`.
    pub kind: String,
    #[serde(default, rename = "annotations")]
    _annotations: BTreeMap<String, String>,
    /// Edits for every container that gets any of the devices.
    #[serde(default)]
    pub container_edits: ContainerEdits,
    /// The devices.
    pub devices: Vec<SpecDevice>,
}

/// A device of a spec file.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SpecDevice {
    /// Name in its class.
    pub name: String,
    #[serde(default, rename = "annotations")]
    _annotations: BTreeMap<String, String>,
    /// Edits for a container that gets the device.
    #[serde(default)]
    pub container_edits: ContainerEdits,
}

/// Additions to a container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct ContainerEdits {
    /// Variables, `NAME=value`.
    pub env: Vec<String>,
    /// Device nodes.
    pub device_nodes: Vec<DeviceNode>,
    /// Bind mounts.
    pub mounts: Vec<SpecMount>,
    /// Groups of its processes.
    #[serde(rename = "additionalGids")]
    pub additional_gids: Vec<u32>,
    /// Programs of the host that are run while the container is made.
    pub hooks: Vec<SpecHook>,
    net_devices: Vec<serde_json::Value>,
    intel_rdt: Option<serde_json::Value>,
}

/// A device node.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DeviceNode {
    /// In the container.
    pub path: PathBuf,
    /// On the host, if it is called otherwise there.
    #[serde(default)]
    pub host_path: Option<PathBuf>,
    /// The host's if it is left out.
    #[serde(default, rename = "type")]
    pub kind: Option<DeviceType>,
    /// The host's if it is left out.
    #[serde(default)]
    pub major: Option<u32>,
    /// The host's if it is left out.
    #[serde(default)]
    pub minor: Option<u32>,
    /// The host's if it is left out.
    #[serde(default)]
    pub file_mode: Option<u32>,
    /// `r`, `w` and `m` (make nodes); all if it is left out.
    #[serde(default)]
    pub permissions: Option<String>,
    /// The container's user if it is left out.
    #[serde(default)]
    pub uid: Option<u32>,
    /// The container's group if it is left out.
    #[serde(default)]
    pub gid: Option<u32>,
}

/// Type of a device node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
pub enum DeviceType {
    /// Block.
    #[serde(rename = "b")]
    Block,
    /// Character.
    #[serde(rename = "c", alias = "u")]
    Character,
}

/// A bind mount.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SpecMount {
    /// On the host.
    pub host_path: PathBuf,
    /// In the container.
    pub container_path: PathBuf,
    /// Words of mount(8).
    #[serde(default)]
    pub options: Vec<String>,
    /// `bind` or nothing.
    #[serde(default, rename = "type")]
    pub kind: Option<String>,
}

/// A program of the host that is run while a container is made.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SpecHook {
    /// The time at which it runs.
    pub hook_name: HookName,
    /// The program.
    pub path: PathBuf,
    /// Its arguments, its own name first.
    #[serde(default)]
    pub args: Vec<String>,
    /// Its environment, `NAME=value`; nothing else is in it.
    #[serde(default)]
    pub env: Vec<String>,
    /// Seconds after which it is killed and the start has failed.
    #[serde(default)]
    pub timeout: Option<u32>,
}

/// The times at which hooks run, in the words of the OCI runtime specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HookName {
    /// In the host's namespaces, before the container's root is entered.
    Prestart,
    /// The same, after those.
    CreateRuntime,
    /// In the container's namespaces, before its root is entered.
    CreateContainer,
    /// In the container, before its program is executed; the hook's program is one of the container.
    StartContainer,
    /// After the program was executed.
    Poststart,
    /// After the container is gone.
    Poststop,
}

impl HookName {
    /// As specs write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            HookName::Prestart => "prestart",
            HookName::CreateRuntime => "createRuntime",
            HookName::CreateContainer => "createContainer",
            HookName::StartContainer => "startContainer",
            HookName::Poststart => "poststart",
            HookName::Poststop => "poststop",
        }
    }
}

/// Words of mount(8) that may be used.
const OPTIONS: [&str; 18] = [
    "bind",
    "rbind",
    "ro",
    "rw",
    "nosuid",
    "suid",
    "nodev",
    "dev",
    "noexec",
    "exec",
    "relatime",
    "noatime",
    "private",
    "rprivate",
    "slave",
    "rslave",
    "strictatime",
    "nodiratime",
];

/// Reason why a file is no spec that can be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SpecError {
    /// It is too large to be one.
    #[error("is larger than {MAX_SPEC_BYTES} bytes")]
    TooLarge,
    /// It has too many devices or edits.
    #[error("has more than {0} {1}")]
    TooMany(usize, &'static str),
    /// It is no YAML or JSON of that form.
    #[error("{0}")]
    Syntax(String),
    /// A value breaks its rule.
    #[error("{field}: {rule}")]
    Value {
        /// The field.
        field: String,
        /// The broken rule.
        rule: String,
    },
    /// podstead cannot do what it asks for.
    #[error("{field} is not supported")]
    Unsupported {
        /// The field.
        field: String,
    },
}

impl CdiSpec {
    /// Reads a file's text, YAML or JSON, which is YAML.
    pub fn parse(text: &[u8]) -> Result<Self, SpecError> {
        if text.len() > MAX_SPEC_BYTES {
            return Err(SpecError::TooLarge);
        }
        let spec: Self = serde_yaml::from_slice(text).map_err(|error| SpecError::Syntax(printable(&error.to_string())))?;
        spec.check()?;
        Ok(spec)
    }

    fn check(&self) -> Result<(), SpecError> {
        let major = self.cdi_version.strip_prefix('v').unwrap_or(&self.cdi_version).split('.').next().unwrap_or_default();
        if !MAJOR_VERSIONS.contains(&major) {
            return Err(value("cdiVersion", format!("{:?} is not a supported version", self.cdi_version)));
        }
        if !is_kind(&self.kind) {
            return Err(value("kind", format!("{:?} is not vendor.com/class", self.kind)));
        }
        if self.devices.len() > MAX_DEVICES {
            return Err(SpecError::TooMany(MAX_DEVICES, "devices"));
        }
        self.container_edits.check("containerEdits")?;
        let mut names = BTreeSet::new();
        for (index, device) in self.devices.iter().enumerate() {
            let field = format!("devices[{index}]");
            if super::DeviceName::parse(&format!("{}={}", self.kind, device.name)).is_none() {
                return Err(value(&format!("{field}.name"), format!("{:?} is not a valid device name", device.name)));
            }
            if !names.insert(&device.name) {
                return Err(value(&format!("{field}.name"), format!("{:?} is listed twice", device.name)));
            }
            device.container_edits.check(&format!("{field}.containerEdits"))?;
        }
        Ok(())
    }
}

impl ContainerEdits {
    fn check(&self, at: &str) -> Result<(), SpecError> {
        let Self { env, device_nodes, mounts, additional_gids, hooks, net_devices, intel_rdt } = self;
        if [env.len(), device_nodes.len(), mounts.len(), additional_gids.len(), hooks.len()].iter().sum::<usize>() > MAX_EDITS {
            return Err(SpecError::TooMany(MAX_EDITS, "edits"));
        }
        for (field, is_used) in [("netDevices", !net_devices.is_empty()), ("intelRdt", intel_rdt.is_some())] {
            if is_used {
                return Err(SpecError::Unsupported { field: format!("{at}.{field}") });
            }
        }
        check_variables(at, env)?;
        for (index, node) in device_nodes.iter().enumerate() {
            node.check(&format!("{at}.deviceNodes[{index}]"))?;
        }
        for (index, mount) in mounts.iter().enumerate() {
            mount.check(&format!("{at}.mounts[{index}]"))?;
        }
        for (index, hook) in hooks.iter().enumerate() {
            hook.check(&format!("{at}.hooks[{index}]"))?;
        }
        Ok(())
    }
}

fn check_variables(at: &str, variables: &[String]) -> Result<(), SpecError> {
    for (index, variable) in variables.iter().enumerate() {
        if variable.find('=').is_none_or(|at| at == 0) || variable.contains('\0') {
            return Err(value(&format!("{at}.env[{index}]"), "is not NAME=value".to_owned()));
        }
    }
    Ok(())
}

impl SpecHook {
    fn check(&self, at: &str) -> Result<(), SpecError> {
        let Self { hook_name, path, args, env, timeout } = self;
        match hook_name {
            HookName::Prestart | HookName::CreateRuntime | HookName::CreateContainer | HookName::StartContainer => {}
            // A container ignores the result of these, and may outlive the daemon that would run them.
            HookName::Poststart | HookName::Poststop => {
                return Err(SpecError::Unsupported { field: format!("{at}: hook {}", hook_name.as_str()) });
            }
        }
        check_path(&format!("{at}.path"), path)?;
        if let Some(index) = args.iter().position(|argument| argument.contains('\0')) {
            return Err(value(&format!("{at}.args[{index}]"), "contains a NUL byte".to_owned()));
        }
        check_variables(at, env)?;
        if *timeout == Some(0) {
            return Err(value(&format!("{at}.timeout"), "is 0".to_owned()));
        }
        Ok(())
    }
}

impl DeviceNode {
    fn check(&self, at: &str) -> Result<(), SpecError> {
        check_path(&format!("{at}.path"), &self.path)?;
        check_path(&format!("{at}.hostPath"), self.host_path.as_deref().unwrap_or(&self.path))?;
        let permissions = self.permissions.as_deref().unwrap_or("rwm");
        if permissions.is_empty() || !permissions.chars().all(|right| "rwm".contains(right)) {
            return Err(value(&format!("{at}.permissions"), format!("{permissions:?} may contain only r, w and m")));
        }
        if self.file_mode.is_some_and(|mode| mode > 0o7777) {
            return Err(value(&format!("{at}.fileMode"), "is not a file mode".to_owned()));
        }
        Ok(())
    }
}

impl SpecMount {
    fn check(&self, at: &str) -> Result<(), SpecError> {
        check_path(&format!("{at}.hostPath"), &self.host_path)?;
        check_path(&format!("{at}.containerPath"), &self.container_path)?;
        if self.kind.as_deref().is_some_and(|kind| !kind.is_empty() && kind != "bind") {
            return Err(SpecError::Unsupported { field: format!("{at}.type") });
        }
        if let Some(option) = self.options.iter().find(|option| !OPTIONS.contains(&option.as_str())) {
            return Err(value(&format!("{at}.options"), format!("{option:?} is not a supported option")));
        }
        Ok(())
    }
}

/// Absolute, below the root, and without ways back.
fn check_path(field: &str, path: &Path) -> Result<(), SpecError> {
    let is_clean = path.is_absolute()
        && path.components().count() > 1
        && path.components().all(|component| matches!(component, Component::RootDir | Component::Normal(_)))
        && !path.as_os_str().as_encoded_bytes().contains(&0);
    if is_clean { Ok(()) } else { Err(value(field, format!("{path:?} is not an absolute path without . and .."))) }
}

fn value(field: &str, rule: String) -> SpecError {
    SpecError::Value { field: field.to_owned(), rule: printable(&rule) }
}

fn printable(text: &str) -> String {
    text.chars().take(400).map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "
cdiVersion: 0.6.0
kind: v.org/radio
annotations: {a: b}
containerEdits: {env: [RADIO=1]}
devices:
  - name: zero
    containerEdits:
      deviceNodes: [{path: /dev/radio0, hostPath: /dev/null, type: c, major: 1, minor: 3, permissions: rw, uid: 5, gid: 6}]
      mounts: [{hostPath: /usr/lib/radio, containerPath: /lib/radio, options: [ro, nosuid, nodev, bind]}]
      additionalGids: [44]
";

    #[test]
    fn a_file_is_read_from_yaml_and_from_json() {
        let spec = CdiSpec::parse(GOOD.as_bytes()).unwrap();
        assert_eq!((spec.kind.as_str(), spec.devices.len()), ("v.org/radio", 1));
        let node = &spec.devices[0].container_edits.device_nodes[0];
        assert_eq!((node.kind, node.major, node.uid), (Some(DeviceType::Character), Some(1), Some(5)));
        let value: serde_json::Value = serde_yaml::from_str(GOOD).unwrap();
        assert_eq!(CdiSpec::parse(value.to_string().as_bytes()).unwrap(), spec);
    }

    #[track_caller]
    fn refused(from: &str, to: &str) -> String {
        assert!(GOOD.contains(from), "{from}");
        CdiSpec::parse(GOOD.replacen(from, to, 1).as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn what_cannot_be_honoured_is_refused_by_its_field() {
        assert!(refused("annotations:", "surprise:").contains("unknown field `surprise`"));
        assert!(refused("RADIO=1]", "RADIO=1], other: 1").contains("unknown field `other`"));
        assert_eq!(refused("0.6.0", "2.0.0"), "cdiVersion: \"2.0.0\" is not a supported version");
        assert_eq!(refused("v.org/radio", "radio"), "kind: \"radio\" is not vendor.com/class");
        assert_eq!(refused("zero", "z/ro"), "devices[0].name: \"z/ro\" is not a valid device name");
        assert_eq!(refused("RADIO=1", "RADIO"), "containerEdits.env[0]: is not NAME=value");
        let hook = |hook: &str| refused("env: [RADIO=1]", &format!("hooks: [{hook}]"));
        assert_eq!(hook("{hookName: poststop, path: /x}"), "containerEdits.hooks[0]: hook poststop is not supported");
        assert_eq!(hook("{hookName: poststart, path: /x}"), "containerEdits.hooks[0]: hook poststart is not supported");
        assert!(hook("{hookName: x, path: /x}").contains("unknown variant `x`"));
        assert!(hook("{hookName: prestart, path: x}").starts_with("containerEdits.hooks[0].path: "));
        assert_eq!(hook("{hookName: prestart, path: /x, env: [A]}"), "containerEdits.hooks[0].env[0]: is not NAME=value");
        assert_eq!(hook("{hookName: prestart, path: /x, timeout: 0}"), "containerEdits.hooks[0].timeout: is 0");
        assert_eq!(refused("env: [RADIO=1]", "intelRdt: {closID: x}"), "containerEdits.intelRdt is not supported");
        let at = "devices[0].containerEdits";
        assert!(refused("/dev/radio0", "dev/radio0").starts_with(&format!("{at}.deviceNodes[0].path: ")));
        assert!(refused("/dev/null", "/dev/../etc").starts_with(&format!("{at}.deviceNodes[0].hostPath: ")));
        assert_eq!(
            refused("permissions: rw", "permissions: rx"),
            format!("{at}.deviceNodes[0].permissions: \"rx\" may contain only r, w and m")
        );
        assert!(refused("type: c", "type: p").contains("unknown variant `p`"));
        assert_eq!(refused("nosuid", "remount"), format!("{at}.mounts[0].options: \"remount\" is not a supported option"));
        assert_eq!(CdiSpec::parse(&vec![b' '; MAX_SPEC_BYTES + 1]), Err(SpecError::TooLarge));
    }

    #[test]
    fn a_file_that_grows_by_its_aliases_is_no_spec() {
        let mut text = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let before = format!("*a{}", level - 1);
            text += &format!("a{level}: &a{level} [{}]\n", [before.as_str(); 9].join(", "));
        }
        CdiSpec::parse(text.as_bytes()).unwrap_err();
    }
}
