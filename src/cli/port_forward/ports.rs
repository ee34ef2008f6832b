//! Port arguments in the notation of kubectl: `8080:80`, `80`, `:80`, `8080:http`. **Pure**.

use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::str::FromStr;

/// `[LOCAL:]REMOTE` from the command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PortPair {
    /// `None`: the same as the remote one; 0: the kernel chooses.
    local: Option<u16>,
    remote: IntOrString,
}

/// Resolved ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ForwardedPort {
    /// On this side; 0: the kernel chooses.
    pub(super) local: u16,
    /// In the pod.
    pub(super) remote: u16,
}

impl FromStr for PortPair {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (local, remote) = match text.split_once(':') {
            None => (None, text),
            Some(("", remote)) => (Some(0), remote),
            Some((local, remote)) => (Some(local.parse().map_err(|_| format!("{local:?} is not a valid local port"))?), remote),
        };
        let remote = match remote.parse::<u16>() {
            Ok(0) => return Err("the port of the pod cannot be 0".to_owned()),
            Ok(number) => IntOrString::Int(number.into()),
            Err(_) if !remote.is_empty() && remote.bytes().any(|byte| byte.is_ascii_alphabetic()) => {
                IntOrString::String(remote.to_owned())
            }
            Err(_) => return Err(format!("{remote:?} is neither a port number nor a port name")),
        };
        Ok(Self { local, remote })
    }
}

impl PortPair {
    /// The numbers; names are those of the pod's ports. The error is a sentence.
    pub(super) fn resolve(&self, pod: &Pod) -> Result<ForwardedPort, String> {
        let remote = match &self.remote {
            IntOrString::Int(number) => u16::try_from(*number).map_err(|_| format!("{number} is not a valid port"))?,
            IntOrString::String(name) => named(pod, name)?,
        };
        Ok(ForwardedPort { local: self.local.unwrap_or(remote), remote })
    }
}

fn named(pod: &Pod, name: &str) -> Result<u16, String> {
    let spec = pod.spec.iter();
    let containers = spec.flat_map(|spec| spec.containers.iter().chain(spec.init_containers.iter().flatten()));
    let mut ports = containers.flat_map(|container| container.ports.iter().flatten());
    let port = ports.find(|port| port.name.as_deref() == Some(name));
    let port = port.ok_or_else(|| format!("pod {:?} has no port named {name:?}", crate::pods::name_of(pod)))?;
    match port.protocol.as_deref() {
        None | Some("TCP") => {
            u16::try_from(port.container_port).map_err(|_| format!("{} is not a valid port", port.container_port))
        }
        Some(protocol) => Err(format!("port {name:?} uses {protocol}, but only TCP can be forwarded")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(text: &str) -> Result<(u16, u16), String> {
        let pod = serde_json::json!({
            "metadata": {"name": "web-edge"},
            "spec": {"containers": [{"name": "main", "ports": [
                {"name": "http", "containerPort": 80}, {"name": "dns", "containerPort": 53, "protocol": "UDP"},
            ]}]},
        });
        let port = text.parse::<PortPair>()?.resolve(&serde_json::from_value(pod).unwrap())?;
        Ok((port.local, port.remote))
    }

    #[test]
    fn ports_are_written_as_for_kubectl() {
        for (text, ports) in [
            ("80", (80, 80)),
            ("8080:80", (8080, 80)),
            (":80", (0, 80)),
            ("0:80", (0, 80)),
            ("http", (80, 80)),
            ("1:http", (1, 80)),
        ] {
            assert_eq!(resolved(text), Ok(ports), "{text}");
        }
    }

    #[test]
    fn what_is_no_port_is_refused() {
        for text in ["", ":", "0", "8080:0", "80:80:80", "65536", "x:80", "-1", "8080:"] {
            resolved(text).unwrap_err();
        }
        assert_eq!(resolved("https").unwrap_err(), r#"pod "web-edge" has no port named "https""#);
        assert_eq!(resolved("dns").unwrap_err(), r#"port "dns" uses UDP, but only TCP can be forwarded"#);
    }
}
