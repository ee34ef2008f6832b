//! Definition of a probe: its action and its numbers, from the pod's spec. **Pure**.

use super::action::{Action, ActionError};
use k8s_openapi::api::core::v1::{Container, Probe};
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// Purpose of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ProbeKind {
    /// Checks that the program has started. Until it has, the others are not asked; when it never does, the container is stopped.
    Startup,
    /// Checks that the container may be used.
    Readiness,
    /// Checks that the container need not be restarted.
    Liveness,
}

impl ProbeKind {
    /// All of them.
    pub const ALL: [ProbeKind; 3] = [ProbeKind::Startup, ProbeKind::Readiness, ProbeKind::Liveness];
}

/// As messages begin with it: `Liveness`.
impl fmt::Display for ProbeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ProbeKind::Startup => "Startup",
            ProbeKind::Readiness => "Readiness",
            ProbeKind::Liveness => "Liveness",
        })
    }
}

/// Times of a probe, and the number of answers that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// From the container's start to the first check.
    pub initial_delay: Duration,
    /// Between two checks; at least a second.
    pub period: Duration,
    /// Time limit of one check; at least a second.
    pub timeout: Duration,
    /// As many successes in a row are a success; at least 1.
    pub success_threshold: u32,
    /// As many failures in a row are a failure; at least 1.
    pub failure_threshold: u32,
}

/// One probe of a container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeSpec {
    /// Its purpose.
    pub kind: ProbeKind,
    /// The check to make, or the reason why it is impossible.
    pub action: Result<Action, ActionError>,
    /// The times and thresholds.
    pub timing: Timing,
}

/// The probes of a container. Those of one that does not stay have no effect, and validation refuses them.
pub fn probes(container: &Container) -> Vec<Arc<ProbeSpec>> {
    let of = |kind| probe(container, kind).map(|probe| Arc::new(spec(kind, probe, container)));
    ProbeKind::ALL.into_iter().filter_map(of).collect()
}

/// The grace period of a container that is stopped because of this probe, where that is not the pod's (kubelet rule D12).
pub fn probe_grace(container: &Container, kind: ProbeKind) -> Option<Duration> {
    let seconds = probe(container, kind)?.termination_grace_period_seconds?;
    u64::try_from(seconds).ok().map(Duration::from_secs)
}

fn probe(container: &Container, kind: ProbeKind) -> Option<&Probe> {
    match kind {
        ProbeKind::Startup => container.startup_probe.as_ref(),
        ProbeKind::Readiness => container.readiness_probe.as_ref(),
        ProbeKind::Liveness => container.liveness_probe.as_ref(),
    }
}

fn spec(kind: ProbeKind, probe: &Probe, container: &Container) -> ProbeSpec {
    let action = if let Some(action) = &probe.exec {
        Ok(Action::exec(action, container))
    } else if let Some(action) = &probe.http_get {
        Action::http(action, container)
    } else if let Some(action) = &probe.tcp_socket {
        Action::tcp(action, container)
    } else if let Some(action) = &probe.grpc {
        Action::grpc(action)
    } else {
        Err(ActionError::Missing)
    };
    // Absent and 0 are the defaults, which were set when the pod was admitted.
    let positive =
        |number: Option<i32>, default: u32| number.and_then(|number| u32::try_from(number).ok()).unwrap_or(default).max(1);
    let seconds = |number: u32| Duration::from_secs(number.into());
    let initial_delay = probe.initial_delay_seconds.and_then(|number| u32::try_from(number).ok()).unwrap_or(0);
    let timing = Timing {
        initial_delay: seconds(initial_delay),
        period: seconds(positive(probe.period_seconds, 10)),
        timeout: seconds(positive(probe.timeout_seconds, 1)),
        success_threshold: positive(probe.success_threshold, 1),
        failure_threshold: positive(probe.failure_threshold, 3),
    };
    ProbeSpec { kind, action, timing }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::action::TcpConnect;

    #[test]
    fn every_number_of_a_probe_is_taken_and_absent_ones_are_the_defaults() {
        let container: Container = serde_yaml::from_str(
            "{name: a, startupProbe: {tcpSocket: {port: 1}}, readinessProbe: {}, livenessProbe: {tcpSocket: {port: 2}, initialDelaySeconds: 3,
              periodSeconds: 4, timeoutSeconds: 5, successThreshold: 6, failureThreshold: 7, terminationGracePeriodSeconds: 8}}",
        )
        .unwrap();
        let secs = Duration::from_secs;
        let timing = |initial_delay, period, timeout, success_threshold, failure_threshold| Timing {
            initial_delay: secs(initial_delay),
            period: secs(period),
            timeout: secs(timeout),
            success_threshold,
            failure_threshold,
        };
        let defaults = timing(0, 10, 1, 1, 3);
        let tcp = |port| Ok(Action::Tcp(TcpConnect { host: None, port }));
        let expected = [
            ProbeSpec { kind: ProbeKind::Startup, action: tcp(1), timing: defaults },
            ProbeSpec { kind: ProbeKind::Readiness, action: Err(ActionError::Missing), timing: defaults },
            ProbeSpec { kind: ProbeKind::Liveness, action: tcp(2), timing: timing(3, 4, 5, 6, 7) },
        ];
        assert_eq!(probes(&container), expected.map(Arc::new).to_vec());
        assert_eq!(probe_grace(&container, ProbeKind::Liveness), Some(secs(8)));
        assert_eq!(probe_grace(&container, ProbeKind::Startup), None);
    }
}
