//! Definition of a check: from the pod's spec, with ports and references resolved. **Pure**.

use k8s_openapi::api::core::v1::{Container, ExecAction, GRPCAction, HTTPGetAction, TCPSocketAction};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use podstead_pod::env::expand;

/// One check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// A command in the container; its arguments, first the program.
    Exec(Vec<String>),
    /// An HTTP request.
    Http(HttpGet),
    /// A TCP connection.
    Tcp(TcpConnect),
    /// A health check over gRPC.
    Grpc(GrpcCheck),
}

/// `httpGet`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpGet {
    /// `HTTPS`. The certificate is not verified.
    pub is_tls: bool,
    /// Another host than the pod.
    pub host: Option<String>,
    /// Port.
    pub port: u16,
    /// Path, with the query.
    pub path: String,
    /// Headers in the order of the spec; `Host` is one of them.
    pub headers: Vec<(String, String)>,
}

/// `tcpSocket`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TcpConnect {
    /// Another host than the pod.
    pub host: Option<String>,
    /// Port.
    pub port: u16,
}

/// `grpc`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcCheck {
    /// Port.
    pub port: u16,
    /// Name of the service; empty for the server as a whole.
    pub service: String,
}

/// Reason why a check cannot be made from the pod's spec.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ActionError {
    /// The container has no port of that name.
    #[error("couldn't find port {port:?} in container {container}")]
    NoSuchPort {
        /// The name.
        port: String,
        /// The container.
        container: String,
    },
    /// The probe has no action.
    #[error("missing probe handler")]
    Missing,
    /// The number cannot be a port.
    #[error("invalid port number: {0}")]
    BadPort(i32),
}

impl Action {
    /// `exec`. References in the command see the literal values of the container's environment only, as the kubelet's.
    pub fn exec(action: &ExecAction, container: &Container) -> Self {
        let lookup = |name: &str| {
            let entry = container.env.iter().flatten().rev().find(|entry| entry.name == name)?;
            entry.value_from.is_none().then(|| entry.value.clone().unwrap_or_default())
        };
        Action::Exec(action.command.iter().flatten().map(|argument| expand(argument, &lookup)).collect())
    }

    /// `httpGet`.
    pub fn http(action: &HTTPGetAction, container: &Container) -> Result<Self, ActionError> {
        let headers = action.http_headers.iter().flatten();
        Ok(Action::Http(HttpGet {
            is_tls: action.scheme.as_deref() == Some("HTTPS"),
            host: action.host.clone().filter(|host| !host.is_empty()),
            port: port(&action.port, container)?,
            path: action.path.clone().unwrap_or_default(),
            headers: headers.map(|header| (header.name.clone(), header.value.clone())).collect(),
        }))
    }

    /// `tcpSocket`.
    pub fn tcp(action: &TCPSocketAction, container: &Container) -> Result<Self, ActionError> {
        let host = action.host.clone().filter(|host| !host.is_empty());
        Ok(Action::Tcp(TcpConnect { host, port: port(&action.port, container)? }))
    }

    /// `grpc`.
    pub fn grpc(action: &GRPCAction) -> Result<Self, ActionError> {
        Ok(Action::Grpc(GrpcCheck { port: number(action.port)?, service: action.service.clone().unwrap_or_default() }))
    }
}

/// A number, or the name of one of the container's ports; a name that is a number is that number.
fn port(port: &IntOrString, container: &Container) -> Result<u16, ActionError> {
    match port {
        IntOrString::Int(port) => number(*port),
        IntOrString::String(name) => {
            let named = container.ports.iter().flatten().find(|port| port.name.as_deref() == Some(name.as_str()));
            match (named, name.parse()) {
                (Some(named), _) => number(named.container_port),
                (None, Ok(parsed)) => number(parsed),
                (None, Err(_)) => Err(ActionError::NoSuchPort { port: name.clone(), container: container.name.clone() }),
            }
        }
    }
}

fn number(port: i32) -> Result<u16, ActionError> {
    u16::try_from(port).ok().filter(|port| *port > 0).ok_or(ActionError::BadPort(port))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn container() -> Container {
        serde_yaml::from_str(
            "{name: a, ports: [{name: web, containerPort: 8080}], env: [{name: A, value: x}, {name: B, valueFrom: {fieldRef: \
             {fieldPath: metadata.name}}}]}",
        )
        .unwrap()
    }

    #[test]
    fn ports_are_numbers_names_or_numbers_in_quotes() {
        let port = |yaml: &str| {
            let action: TCPSocketAction = serde_yaml::from_str(&format!("{{port: {yaml}}}")).unwrap();
            Action::tcp(&action, &container())
        };
        let to = |port| Ok(Action::Tcp(TcpConnect { host: None, port }));
        assert_eq!(port("80"), to(80));
        assert_eq!(port("web"), to(8080));
        assert_eq!(port("'81'"), to(81));
        assert_eq!(port("0"), Err(ActionError::BadPort(0)));
        assert_eq!(port("70000"), Err(ActionError::BadPort(70000)));
        let error = port("other").unwrap_err();
        assert_eq!(error.to_string(), "couldn't find port \"other\" in container a");
    }

    #[test]
    fn a_command_sees_literal_values_of_the_environment_only() {
        let action: ExecAction = serde_yaml::from_str("{command: [echo, '$(A)', '$(B)', '$$(A)']}").unwrap();
        let expected = ["echo", "x", "$(B)", "$(A)"].map(str::to_owned).to_vec();
        assert_eq!(Action::exec(&action, &container()), Action::Exec(expected));
    }

    #[test]
    fn an_http_request_keeps_path_host_and_headers() {
        let yaml = "{path: /a?b, port: web, host: h, scheme: HTTPS, httpHeaders: [{name: X, value: y}]}";
        let action: HTTPGetAction = serde_yaml::from_str(yaml).unwrap();
        let expected = HttpGet {
            is_tls: true,
            host: Some("h".to_owned()),
            port: 8080,
            path: "/a?b".to_owned(),
            headers: vec![("X".to_owned(), "y".to_owned())],
        };
        assert_eq!(Action::http(&action, &container()), Ok(Action::Http(expected)));
    }
}
