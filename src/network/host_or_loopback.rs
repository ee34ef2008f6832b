//! The network of hosts that need no pod network: the host's own, or nothing but loopback.

use super::{OperationError, host_ips};
use async_trait::async_trait;
use podstead_pod::host_ports::host_ports;
use podstead_pod::{Pod, PodUid};
use podstead_runtime::{NetworkError, PodNetwork, PodNetworkStatus};
use podstead_sys::loopback::set_loopback_up;
use std::path::Path;

/// Pods with `hostNetwork` have the host's addresses; all others have `lo` and no address that anybody could reach.
#[derive(Clone, Copy, Debug, Default)]
pub struct HostOrLoopback;

#[async_trait]
impl PodNetwork for HostOrLoopback {
    async fn setup(&self, uid: &PodUid, pod: &Pod, netns: Option<&Path>) -> Result<PodNetworkStatus, NetworkError> {
        if let (Some(_), Some(port)) = (netns, host_ports(pod).first()) {
            let reason = "network.type is none in podstead's configuration";
            return Err(NetworkError::PortTaken(format!("cannot forward hostPort {port} to the pod: {reason}")));
        }
        if let Some(netns) = netns {
            let path = netns.to_owned();
            let raised = tokio::task::spawn_blocking(move || set_loopback_up(&path)).await;
            let failed = |error| NetworkError::failed(uid, error);
            raised
                .map_err(|error| failed(OperationError::Interrupted(error)))?
                .map_err(|source| failed(OperationError::Loopback { netns: netns.to_owned(), source }))?;
        }
        self.status(uid, pod, netns).await
    }

    async fn teardown(&self, _uid: &PodUid) -> Result<(), NetworkError> {
        // `lo` goes with its namespace.
        Ok(())
    }

    async fn status(&self, uid: &PodUid, _pod: &Pod, netns: Option<&Path>) -> Result<PodNetworkStatus, NetworkError> {
        let ips = match netns {
            Some(_) => Vec::new(),
            None => host_ips().map_err(|error| NetworkError::failed(uid, OperationError::HostAddresses(error)))?,
        };
        Ok(PodNetworkStatus { ips, ..PodNetworkStatus::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_sys::testing::in_new_netns;
    use podstead_telemetry::error_chain;

    fn executor() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().build().unwrap()
    }

    #[test]
    fn a_pod_with_its_own_namespace_gets_lo_and_no_address() {
        in_new_netns(|netns, is_up| {
            let uid = PodUid::new("uid");
            assert!(!is_up());
            for _ in 0..2 {
                let status = executor().block_on(HostOrLoopback.setup(&uid, &Pod::default(), Some(netns))).unwrap();
                assert_eq!(status, PodNetworkStatus::default());
                assert!(is_up());
            }
            let status = executor().block_on(HostOrLoopback.status(&uid, &Pod::default(), Some(netns))).unwrap();
            assert_eq!(status, PodNetworkStatus::default());
            executor().block_on(HostOrLoopback.teardown(&uid)).unwrap();
        });
    }

    #[test]
    fn a_pod_on_the_hosts_network_has_the_hosts_addresses() {
        let status = executor().block_on(HostOrLoopback.setup(&PodUid::new("uid"), &Pod::default(), None)).unwrap();
        assert_eq!(status.ips, host_ips().unwrap());
    }

    #[test]
    fn a_port_of_the_host_is_refused_where_nothing_leads_to_pods() {
        let text = "{metadata: {name: a}, spec: {containers: [{name: a, ports: [{containerPort: 80, hostPort: 8080}]}]}}";
        let pod: Pod = serde_yaml::from_str(text).unwrap();
        let uid = PodUid::new("uid");
        let error = executor().block_on(HostOrLoopback.setup(&uid, &pod, Some(Path::new("/nowhere/net")))).unwrap_err();
        assert!(error.to_string().starts_with("cannot forward hostPort 8080/TCP to the pod"), "{error}");
        executor().block_on(HostOrLoopback.setup(&uid, &pod, None)).unwrap();
    }

    #[test]
    fn a_namespace_that_is_gone_is_an_error_that_names_it() {
        let gone = Path::new("/nowhere/net");
        let error = executor().block_on(HostOrLoopback.setup(&PodUid::new("uid"), &Pod::default(), Some(gone))).unwrap_err();
        let shown = error_chain(&error).to_string();
        assert!(shown.starts_with("network of pod uid: set lo up in \"/nowhere/net\": "), "{shown}");
    }
}
