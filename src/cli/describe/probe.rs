//! Probes of a container, in the form of `kubectl describe`. **Pure**.

use k8s_openapi::api::core::v1::{HTTPGetAction, Probe};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// `http-get http://:8080/healthz delay=0s timeout=1s period=10s #success=1 #failure=3`.
pub(super) fn probe(probe: &Probe) -> String {
    // The defaults of Kubernetes, for an object that was not defaulted.
    let [delay, timeout, period, success, failure] = [
        (probe.initial_delay_seconds, 0),
        (probe.timeout_seconds, 1),
        (probe.period_seconds, 10),
        (probe.success_threshold, 1),
        (probe.failure_threshold, 3),
    ]
    .map(|(value, default)| value.unwrap_or(default));
    format!("{} delay={delay}s timeout={timeout}s period={period}s #success={success} #failure={failure}", check(probe))
}

/// The action of a probe. Headers are left out: they may hold a password.
fn check(probe: &Probe) -> String {
    if let Some(exec) = &probe.exec {
        format!("exec [{}]", exec.command.as_deref().unwrap_or_default().join(" ").replace('\n', " "))
    } else if let Some(get) = &probe.http_get {
        format!("http-get {}", url(get))
    } else if let Some(socket) = &probe.tcp_socket {
        format!("tcp-socket {}:{}", socket.host.as_deref().unwrap_or_default(), port(&socket.port))
    } else if let Some(grpc) = &probe.grpc {
        format!("grpc :{} {}", grpc.port, grpc.service.as_deref().unwrap_or_default()).trim_end().to_owned()
    } else {
        "unknown".to_owned()
    }
}

fn url(get: &HTTPGetAction) -> String {
    let scheme = get.scheme.as_deref().unwrap_or("HTTP").to_lowercase();
    let path = get.path.as_deref().unwrap_or_default();
    let slash = if path.starts_with('/') { "" } else { "/" };
    format!("{scheme}://{}:{}{slash}{path}", get.host.as_deref().unwrap_or_default(), port(&get.port))
}

fn port(port: &IntOrString) -> String {
    match port {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(name) => name.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn shown(value: Value) -> String {
        probe(&serde_json::from_value(value).unwrap())
    }

    #[test]
    fn every_kind_of_probe_is_shown() {
        let http = json!({"httpGet": {"port": "web", "path": "ok", "httpHeaders": [{"name": "Authorization", "value": "s3cret"}]}});
        assert_eq!(shown(http), "http-get http://:web/ok delay=0s timeout=1s period=10s #success=1 #failure=3");
        let exec =
            json!({"exec": {"command": ["cat", "/ok"]}, "periodSeconds": 5, "failureThreshold": 1, "initialDelaySeconds": 2});
        assert_eq!(shown(exec), "exec [cat /ok] delay=2s timeout=1s period=5s #success=1 #failure=1");
        assert!(shown(json!({"tcpSocket": {"port": 80, "host": "10.0.0.1"}})).starts_with("tcp-socket 10.0.0.1:80 delay"));
        assert!(shown(json!({"grpc": {"port": 90, "service": "s"}})).starts_with("grpc :90 s delay"));
        assert!(shown(json!({"grpc": {"port": 90}})).starts_with("grpc :90 delay"));
    }
}
