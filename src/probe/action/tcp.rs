//! A TCP connection that is opened and closed.

use super::connect::{PodAddress, connect};
use super::request::TcpConnect;

/// Checks that the port accepts a connection. The error says, in the kubelet's words, why not.
pub async fn check(pod: &PodAddress, request: &TcpConnect) -> Result<(), String> {
    connect(pod, request.host.as_deref(), request.port).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_sys::loopback::set_loopback_up;
    use podstead_sys::testing::in_new_netns;
    use std::net::{IpAddr, Ipv4Addr};

    const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[tokio::test]
    async fn a_port_that_listens_succeeds_and_one_that_does_not_says_so() {
        let listener = tokio::net::TcpListener::bind((LOCAL, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let pod = PodAddress::new(&[LOCAL], None);
        check(&pod, &TcpConnect { host: None, port }).await.unwrap();
        check(&pod, &TcpConnect { host: Some("localhost".to_owned()), port }).await.unwrap();
        drop(listener);
        let refused = check(&pod, &TcpConnect { host: None, port }).await.unwrap_err();
        assert_eq!(refused, format!("dial tcp 127.0.0.1:{port}: connect: connection refused"));
    }

    #[test]
    fn a_pod_without_an_address_is_asked_in_its_namespace_and_a_host_from_here() {
        let here = std::net::TcpListener::bind((LOCAL, 0)).unwrap();
        let port = here.local_addr().unwrap().port();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        in_new_netns(|netns, _| {
            set_loopback_up(netns).unwrap();
            let pod = PodAddress::new(&[], Some(netns));
            let refused = runtime.block_on(check(&pod, &TcpConnect { host: None, port })).unwrap_err();
            assert!(refused.ends_with("connection refused"), "{refused}");
            runtime.block_on(check(&pod, &TcpConnect { host: Some("127.0.0.1".to_owned()), port })).unwrap();
        });
    }
}
