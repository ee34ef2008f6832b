//! Names for pods that plugins connected: where they find the resolver, and which addresses they ask from.
//!
//! Whatever plugin it was, a pod whose router is this host reaches the host at the router's address, if rules of the host let it: so it is asked there
//! once, from the pod's namespace. A pod with another router, as of macvlan, may have no way to the host at all; and a network that names servers
//! has them asked.

use super::plan::Attachment;
use super::record::PodRecord;
use super::spec::result::CniResult;
use super::{Shared, lock};
use crate::{NameService, RESOLVER_ON_HOST, Unanswered, assigned_ips};
use podstead_pod::{PodFullName, PodUid};
use podstead_runtime::NetworkError;
use podstead_sys::netns_socket::udp_socket_in;
use podstead_telemetry::error_chain;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The port where names are asked for.
const DOMAIN: u16 = 53;
/// Consequence of a resolver that a pod cannot reach.
const UNANSWERED: &str = "pods on CNI networks use the host's name servers and cannot resolve each other's names";

/// The DNS service, and the pods that may use it.
#[derive(Debug, Default)]
pub(super) struct Names {
    service: Option<Arc<dyn NameService>>,
    /// First addresses of pods.
    pods: Mutex<BTreeMap<IpAddr, PodUid>>,
}

impl Names {
    pub(super) fn new(service: Option<Arc<dyn NameService>>) -> Self {
        Self { service, ..Self::default() }
    }

    /// Updates the first addresses of a pod; `None` removes them.
    pub(super) fn learn(&self, uid: &PodUid, record: Option<&PodRecord>) {
        let first = record.and_then(|record| first(&record.attachments)).map(Attachment::gained).unwrap_or_default();
        let mut pods = lock(&self.pods);
        pods.retain(|_, owner| owner != uid);
        pods.extend(first.pod_ips().into_iter().map(|ip| (ip, uid.clone())));
    }

    pub(super) fn is_pod(&self, address: IpAddr) -> bool {
        lock(&self.pods).contains_key(&address)
    }

    /// Returns true if a socket is the resolver's, which does not conflict with a port that is forwarded to a pod: DNS queries go there,
    /// then.
    pub(super) fn is_resolver(&self, address: IpAddr, port: u16) -> bool {
        let answers = |service: &Arc<dyn NameService>| service.answers_at(address);
        port == DOMAIN && (address == RESOLVER_ON_HOST || self.service.as_ref().is_some_and(answers))
    }
}

impl Shared {
    /// Finds out where a pod finds the resolver, and records it.
    pub(super) async fn find_resolver(
        self: &Arc<Self>,
        uid: &PodUid,
        name: &PodFullName,
        netns: &Path,
    ) -> Result<(), NetworkError> {
        let Some(PodRecord { attachments, resolver: before, .. }) = lock(&self.records).get(uid).cloned() else { return Ok(()) };
        let (shared, netns) = (Arc::clone(self), netns.to_owned());
        let found = tokio::task::spawn_blocking(move || shared.resolver_of(&attachments, &netns)).await;
        let resolver = found.map_err(|error| NetworkError::failed(uid, error))?;
        if resolver == before { Ok(()) } else { self.change(uid, name, move |record| record.resolver = resolver).await }
    }

    /// Address at which a pod with these attachments reaches the resolver, found by a query from its namespace; `None` for one that must
    /// use others. Blocks.
    fn resolver_of(&self, attachments: &[Attachment], netns: &Path) -> Option<IpAddr> {
        self.names.service.as_ref()?;
        let routers = routers(&first(attachments)?.gained());
        if routers.is_empty() {
            return None;
        }
        let own = assigned_ips().inspect_err(|error| tracing::warn!(%error, "cannot list the addresses of the host")).ok()?;
        let router = routers.into_iter().find(|router| own.contains(router) && self.is_answered_at(*router))?;
        if let Err(error) = ask(netns, router) {
            let message = format!(
                "{UNANSWERED}: add firewall rules that accept packets from pods to UDP and TCP port {DOMAIN} of {router} ({error})"
            );
            self.tell_once("DnsBlocked", &message);
            return None;
        }
        Some(router)
    }

    /// Has questions at an address of the host answered. Whether they are.
    pub(super) fn is_answered_at(&self, router: IpAddr) -> bool {
        let Some(service) = &self.names.service else { return false };
        let answered = service.answer_at(router);
        let tell = |reason: &Unanswered| format!("{UNANSWERED}: {}", error_chain(reason.as_ref()));
        answered.inspect_err(|reason| self.tell_once("DnsUnavailable", &tell(reason))).is_ok()
    }
}

/// Asks the resolver for what it refuses without asking anybody else. The error is that of the last attempt.
fn ask(netns: &Path, resolver: IpAddr) -> io::Result<()> {
    /// The root, of the class CHAOS.
    const QUESTION: [u8; 17] = [b'p', b's', 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 3];
    /// A bridge may have to learn its ports, and an address of IPv6 is tentative for a second or two (RFC 4862).
    const PATIENCE_MS: [u64; 4] = [200, 400, 800, 1600];
    let attempts = if resolver.is_ipv6() { PATIENCE_MS.len() } else { PATIENCE_MS.len() - 1 };
    let address = SocketAddr::new(resolver, DOMAIN);
    let socket = udp_socket_in(netns, address)?;
    socket.connect(address)?;
    let mut result = Ok(());
    for patience in PATIENCE_MS.into_iter().take(attempts) {
        socket.set_read_timeout(Some(Duration::from_millis(patience)))?;
        result = socket.send(&QUESTION).and_then(|_| socket.recv(&mut [0; 512]).map(drop));
        if result.is_ok() {
            break;
        }
    }
    result
}

/// The attachment of the pod's first interface.
pub(super) fn first(attachments: &[Attachment]) -> Option<&Attachment> {
    attachments.iter().find(|attachment| attachment.is_primary())
}

/// Routers that may be the host that a pod asks; none where its network names servers. **Pure**.
fn routers(result: &CniResult) -> Vec<IpAddr> {
    if result.dns.nameservers.iter().any(|server| server.parse::<IpAddr>().is_ok()) {
        return Vec::new();
    }
    let is_on_one_link = |ip: &IpAddr| matches!(ip, IpAddr::V6(ip) if ip.is_unicast_link_local());
    result.ips.iter().filter_map(|ip| ip.gateway).filter(|router| !is_on_one_link(router)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(ips: &str, dns: &str) -> CniResult {
        CniResult::from_value(&serde_json::from_str(&format!(r#"{{"ips": [{ips}], "dns": {{{dns}}}}}"#)).unwrap()).unwrap()
    }

    #[test]
    fn a_router_may_be_the_host_unless_the_network_names_servers() {
        let ips = r#"{"address": "fd00::5/64", "gateway": "fe80::1"}, {"address": "10.7.0.5/24", "gateway": "10.7.0.1"}, {"address": "10.8.0.5/24"}"#;
        let router: IpAddr = "10.7.0.1".parse().unwrap();
        assert_eq!(routers(&result(ips, "")), [router]);
        assert_eq!(routers(&result(ips, r#""search": ["plant.example"], "nameservers": ["ns"]"#)), [router]);
        assert!(routers(&result(ips, r#""nameservers": ["10.7.0.53"]"#)).is_empty());
        assert!(routers(&result(r#"{"address": "10.7.0.5/24"}"#, "")).is_empty());
    }
}
