//! Port arguments in the notation of kubectl: `8080:80`, `80`, `:80`, `8080:http`. **Pure**.

use k8s_openapi::api::core::v1::{Pod, Service, ServicePort};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde_json::Value;
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
    /// The numbers; names are those of the pod's ports, or of the Service's if there is one. The error is a sentence.
    pub(super) fn resolve(&self, pod: &Pod, service: Option<&Value>) -> Result<ForwardedPort, String> {
        let target = service.map(|service| target_port(service, &self.remote)).transpose()?;
        let remote = match target.as_ref().unwrap_or(&self.remote) {
            IntOrString::Int(number) => u16::try_from(*number).map_err(|_| format!("{number} is not a valid port"))?,
            IntOrString::String(name) => named(pod, name)?,
        };
        // As written: a port of the Service, not the one that the pod has for it.
        let written = match &self.remote {
            IntOrString::Int(number) => u16::try_from(*number).unwrap_or(remote),
            IntOrString::String(_) => remote,
        };
        Ok(ForwardedPort { local: self.local.unwrap_or(written), remote })
    }
}

/// The port of pods that a port of a Service leads to. A headless Service has none of its own: clients use those of the pods.
fn target_port(service: &Value, wanted: &IntOrString) -> Result<IntOrString, String> {
    let typed: Service =
        serde_json::from_value(service.clone()).map_err(|error| format!("the Service is not understood: {error}"))?;
    let name = typed.metadata.name.unwrap_or_default();
    let spec = typed.spec.unwrap_or_default();
    let is_wanted = |port: &&ServicePort| match wanted {
        IntOrString::Int(number) => port.port == *number,
        IntOrString::String(name) => port.name.as_ref() == Some(name),
    };
    let ports = spec.ports.unwrap_or_default();
    let Some(port) = ports.iter().find(is_wanted) else {
        let wanted = match wanted {
            IntOrString::Int(number) => number.to_string(),
            IntOrString::String(name) => name.clone(),
        };
        return Err(format!("service {name:?} has no port {wanted}"));
    };
    if let Some(protocol) = port.protocol.as_deref().filter(|protocol| *protocol != "TCP") {
        return Err(format!("port {} of service {name:?} uses {protocol}, but only TCP can be forwarded", port.port));
    }
    let is_headless = spec.cluster_ip.as_deref() == Some("None");
    Ok(port.target_port.clone().filter(|_| !is_headless).unwrap_or(IntOrString::Int(port.port)))
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
        resolved_through(text, None)
    }

    fn resolved_through(text: &str, service: Option<&Value>) -> Result<(u16, u16), String> {
        let pod = serde_json::json!({
            "metadata": {"name": "web-edge"},
            "spec": {"containers": [{"name": "main", "ports": [
                {"name": "http", "containerPort": 80}, {"name": "dns", "containerPort": 53, "protocol": "UDP"},
            ]}]},
        });
        let port = text.parse::<PortPair>()?.resolve(&serde_json::from_value(pod).unwrap(), service)?;
        Ok((port.local, port.remote))
    }

    #[test]
    fn ports_of_services_lead_to_their_targets() {
        let mut service = serde_json::json!({
            "metadata": {"name": "front"},
            "spec": {"clusterIP": "10.0.0.1", "ports": [
                {"name": "web", "port": 8000, "targetPort": "http"}, {"name": "plain", "port": 9000},
                {"name": "dns", "port": 53, "protocol": "UDP"},
            ]},
        });
        let resolved = |text: &str, service: &Value| resolved_through(text, Some(service));
        assert_eq!(resolved("8000", &service), Ok((8000, 80)));
        assert_eq!(resolved(":web", &service), Ok((0, 80)));
        assert_eq!(resolved("plain", &service), Ok((9000, 9000)));
        assert_eq!(resolved("80", &service).unwrap_err(), r#"service "front" has no port 80"#);
        assert!(resolved("dns", &service).unwrap_err().contains("only TCP"));
        service["spec"]["clusterIP"] = "None".into();
        assert_eq!(resolved("8000", &service), Ok((8000, 8000)));
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
