//! Input of a plugin: environment and standard input. **Pure**.

use super::capability::CapabilityArguments;
use super::conflist::Conflist;
use super::version::CniVersion;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::fmt;

/// Operation of a plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    /// Connect a container.
    Add,
    /// Is it connected as it was?
    Check,
    /// Disconnect it.
    Del,
    /// Remove what belongs to no container.
    Gc,
    /// Can containers be connected?
    Status,
    /// Reports the supported versions.
    Version,
}

impl Command {
    /// Its word.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Add => "ADD",
            Self::Check => "CHECK",
            Self::Del => "DEL",
            Self::Gc => "GC",
            Self::Status => "STATUS",
            Self::Version => "VERSION",
        }
    }
}

impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Interface of a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Place {
    /// The container's identity.
    pub(crate) container_id: String,
    /// Name of the interface in it.
    pub(crate) interface: String,
    /// `CNI_ARGS`, without `IgnoreUnknown`.
    #[serde(default)]
    pub(crate) arguments: Vec<(String, String)>,
}

/// Arguments of an attachment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Ask {
    /// The interface of the container.
    pub(crate) place: Place,
    /// For plugins that have capabilities.
    #[serde(default)]
    pub(crate) capabilities: CapabilityArguments,
    /// `args.cni` of every plugin's configuration.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) cni_args: Map<String, Value>,
}

/// The variables of a call. `netns` is empty for a namespace that is gone; `path` has the directories of plugins.
pub(crate) fn environment(command: Command, place: Option<&Place>, netns: &str, path: &str) -> Vec<(&'static str, String)> {
    let mut variables = vec![("CNI_COMMAND", command.as_str().to_owned()), ("CNI_PATH", path.to_owned())];
    if let Some(Place { container_id, interface, arguments }) = place {
        variables.push(("CNI_CONTAINERID", container_id.clone()));
        variables.push(("CNI_NETNS", netns.to_owned()));
        variables.push(("CNI_IFNAME", interface.clone()));
        let pairs = arguments.iter().map(|(name, value)| format!(";{name}={value}"));
        variables.push(("CNI_ARGS", format!("IgnoreUnknown=1{}", pairs.collect::<String>())));
    }
    variables
}

/// Configuration for plugin `index` of a chain, with the arguments of an attachment and the result of the earlier plugins.
pub(crate) fn input(network: &Conflist, version: CniVersion, index: usize, ask: Option<&Ask>, previous: Option<&Value>) -> Value {
    let Some(plugin) = network.plugins.get(index) else { return Value::Null };
    let mut written = plugin.written.clone();
    written.insert("name".to_owned(), network.name.clone().into());
    written.insert("cniVersion".to_owned(), version.as_str().into());
    // Of the runtime's own affair.
    written.remove("cniVersions");
    if let Some(ask) = ask {
        // A plugin's `capabilities` stay, as the reference implementation leaves them.
        if let Some(told) = ask.capabilities.runtime_config(&plugin.capabilities) {
            written.insert("runtimeConfig".to_owned(), told);
        }
        if !ask.cni_args.is_empty() {
            let mut args = written.get("args").and_then(Value::as_object).cloned().unwrap_or_default();
            let mut cni = args.get("cni").and_then(Value::as_object).cloned().unwrap_or_default();
            cni.extend(ask.cni_args.clone());
            args.insert("cni".to_owned(), Value::Object(cni));
            written.insert("args".to_owned(), Value::Object(args));
        }
    }
    if let Some(previous) = previous {
        written.insert("prevResult".to_owned(), previous.clone());
    }
    Value::Object(written)
}

/// The input of GC for one plugin: attachments that still count, as container and interface.
pub(crate) fn gc_input(network: &Conflist, version: CniVersion, index: usize, valid: &[(String, String)]) -> Value {
    let mut written = input(network, version, index, None, None);
    let valid: Vec<Value> =
        valid.iter().map(|(container, interface)| json!({"containerID": container, "ifname": interface})).collect();
    if let Value::Object(written) = &mut written {
        written.insert("cni.dev/valid-attachments".to_owned(), valid.clone().into());
        // An earlier draft's name, which the reference implementation writes as well.
        written.insert("cni.dev/attachments".to_owned(), valid.into());
    }
    written
}

/// Reads the answer to VERSION: what the plugin speaks of what podstead does. A plugin without such an answer is from before 0.2.0.
pub(crate) fn spoken(output: &[u8]) -> Vec<CniVersion> {
    let value: Value = serde_json::from_slice(output).unwrap_or_default();
    let named = value.get("supportedVersions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let mut versions: Vec<CniVersion> = named.iter().filter_map(|text| CniVersion::parse(text.as_str()?)).collect();
    versions.sort_unstable();
    versions.dedup();
    versions
}

#[cfg(test)]
mod tests {
    use super::super::capability::PortMapping;
    use super::super::conflist::Form;
    use super::*;

    fn network() -> Conflist {
        let text = r#"{"cniVersion": "1.0.0", "cniVersions": ["0.4.0", "1.0.0"], "name": "plant", "plugins": [
            {"type": "bridge", "args": {"cni": {"kept": 1}, "other": 2}}, {"type": "portmap", "capabilities": {"portMappings": true}}]}"#;
        Conflist::parse(text.as_bytes(), Form::List).unwrap()
    }

    fn ask() -> Ask {
        let port = PortMapping { host_port: 8080, container_port: 80, protocol: "tcp".into(), host_ip: "192.0.2.2".parse().ok() };
        Ask {
            place: Place {
                container_id: "c1".into(),
                interface: "eth0".into(),
                arguments: vec![("K8S_POD_NAME".into(), "web".into())],
            },
            capabilities: CapabilityArguments { port_mappings: vec![port], ..CapabilityArguments::default() },
            cni_args: serde_json::from_str(r#"{"vlan": 7}"#).unwrap(),
        }
    }

    #[test]
    fn variables_are_those_of_the_specification() {
        let variables = environment(Command::Add, Some(&ask().place), "/run/netns/a", "/opt/cni/bin:/usr/lib/cni");
        let text: Vec<String> = variables.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(
            text,
            [
                "CNI_COMMAND=ADD",
                "CNI_PATH=/opt/cni/bin:/usr/lib/cni",
                "CNI_CONTAINERID=c1",
                "CNI_NETNS=/run/netns/a",
                "CNI_IFNAME=eth0",
                "CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAME=web"
            ]
        );
        assert_eq!(environment(Command::Status, None, "", "/b").len(), 2);
    }

    #[test]
    fn each_plugin_is_given_its_part_and_what_came_before() {
        let (network, ask) = (network(), ask());
        let previous = json!({"cniVersion": "1.0.0"});
        assert_eq!(
            input(&network, CniVersion::V0_4_0, 0, Some(&ask), None),
            json!({"type": "bridge", "name": "plant", "cniVersion": "0.4.0", "args": {"cni": {"kept": 1, "vlan": 7}, "other": 2}})
        );
        assert_eq!(
            input(&network, CniVersion::V1_0_0, 1, Some(&ask), Some(&previous)),
            json!({
                "type": "portmap", "name": "plant", "cniVersion": "1.0.0", "capabilities": {"portMappings": true},
                "args": {"cni": {"vlan": 7}}, "prevResult": {"cniVersion": "1.0.0"},
                "runtimeConfig": {"portMappings": [{"hostPort": 8080, "containerPort": 80, "protocol": "tcp", "hostIP": "192.0.2.2"}]}
            })
        );
        assert_eq!(input(&network, CniVersion::V1_0_0, 2, None, None), Value::Null);
        let gc = gc_input(&network, CniVersion::V1_1_0, 1, &[("c1".into(), "eth0".into())]);
        assert_eq!(gc["cni.dev/valid-attachments"], json!([{"containerID": "c1", "ifname": "eth0"}]));
    }

    #[test]
    fn the_versions_of_a_plugin_are_read() {
        assert_eq!(
            spoken(br#"{"cniVersion": "1.0.0", "supportedVersions": ["1.0.0", "0.1.0", "0.4.0"]}"#),
            [CniVersion::V0_4_0, CniVersion::V1_0_0]
        );
        assert_eq!(spoken(b"nonsense"), []);
    }
}
