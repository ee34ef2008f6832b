//! DNS records from the published pods.

use super::services::NamesOfServices;
use super::zone::{Zone, ZoneBuilder, ZonePod};
use k8s_openapi::api::core::v1::PodStatus;
use podstead_pod::host_files::hostname;
use podstead_pod::identity::seen;
use podstead_pod::sharing::Sharing;
use podstead_pod::{DesiredPod, NodeName, PodUid};
use podstead_status::PodStatusSink;
use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::watch;

/// The zone of what is published. A sink beside the API's: a pod has its names as soon as it has addresses, and no longer than it is there.
#[derive(Debug)]
pub struct Records {
    domain: String,
    node: NodeName,
    builder: Mutex<ZoneBuilder>,
    sharing: watch::Receiver<Arc<Sharing>>,
    zone: watch::Sender<Arc<Zone>>,
    /// The next receiver of statuses.
    next: Arc<dyn PodStatusSink>,
}

impl Records {
    /// No pods yet. `servers` are the addresses of the resolver itself; `sharing` says whose names are whose; `next` is told everything, too.
    pub fn new(
        domain: String,
        servers: &[IpAddr],
        node: NodeName,
        sharing: watch::Receiver<Arc<Sharing>>,
        next: Arc<dyn PodStatusSink>,
    ) -> Self {
        let builder = ZoneBuilder::new(&domain, servers);
        let zone = watch::Sender::new(builder.zone());
        Self { domain, node, builder: Mutex::new(builder), sharing, zone, next }
    }

    /// Replaces the names of all Services.
    pub fn set_services(&self, services: NamesOfServices) {
        self.change(|builder| builder.set_services(services));
    }

    /// The zone of every moment.
    pub(super) fn zone(&self) -> watch::Receiver<Arc<Zone>> {
        self.zone.subscribe()
    }

    /// Makes a change. Under the lock: zones come in the order of changes.
    fn change(&self, make: impl FnOnce(&mut ZoneBuilder) -> bool) {
        let mut builder = self.builder.lock().unwrap_or_else(PoisonError::into_inner);
        let is_shared_otherwise = builder.set_sharing(&self.sharing.borrow());
        if make(&mut builder) || is_shared_otherwise {
            self.zone.send_replace(builder.zone());
        }
    }

    /// Keeps the zone to what sources share, for ever.
    pub(super) async fn follow_sharing(self: Arc<Self>) -> Infallible {
        let mut sharing = self.sharing.clone();
        loop {
            if sharing.changed().await.is_err() {
                // It will not change any more.
                return std::future::pending().await;
            }
            self.change(|_| false);
        }
    }
}

impl PodStatusSink for Records {
    fn publish(&self, desired: &Arc<DesiredPod>, status: PodStatus) {
        let pod = zone_pod(desired, &status, &self.domain, &self.node);
        self.change(|builder| builder.set_pod(&desired.uid, pod));
        self.next.publish(desired, status);
    }

    fn withdraw(&self, uid: &PodUid) {
        self.change(|builder| builder.set_pod(uid, None));
        self.next.withdraw(uid);
    }
}

/// The zone's entry for a pod; `None` without addresses, and when it has finished. **Pure**.
fn zone_pod(desired: &DesiredPod, status: &PodStatus, domain: &str, node: &NodeName) -> Option<ZonePod> {
    if matches!(status.phase.as_deref(), Some("Succeeded" | "Failed")) {
        return None;
    }
    let addresses: Vec<IpAddr> = status.pod_ips.iter().flatten().filter_map(|ip| ip.ip.parse().ok()).collect();
    if addresses.is_empty() {
        return None;
    }
    let pod = &desired.pod;
    let full = desired.full_name.name.to_ascii_lowercase();
    // Authors don't know the name of the host, whose name static pods carry: both are names of the pod.
    let written = full.strip_suffix(&format!("-{}", node.as_str().to_ascii_lowercase())).map(str::to_owned);
    let spec = pod.spec.as_ref();
    let is_ready = status.conditions.iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True");
    let terminates = pod.metadata.deletion_timestamp.is_some();
    Some(ZonePod {
        source: desired.source.clone(),
        seen: seen(pod),
        namespace: desired.full_name.namespace.to_ascii_lowercase(),
        hostname: spec
            .and_then(|spec| spec.hostname.clone())
            .filter(|hostname| !hostname.is_empty())
            .or_else(|| written.clone())
            .unwrap_or_else(|| hostname(pod, domain).hostname)
            .to_ascii_lowercase(),
        names: written.into_iter().chain([full]).collect(),
        subdomain: spec
            .and_then(|spec| spec.subdomain.as_ref())
            .filter(|subdomain| !subdomain.is_empty())
            .map(|subdomain| subdomain.to_ascii_lowercase()),
        addresses,
        is_ready: is_ready && !terminates,
        owns_addresses: spec.and_then(|spec| spec.host_network) != Some(true),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::zone::Found;
    use podstead_pod::{Origin, PodFullName, Position, Revision, SourceId};

    #[derive(Debug, Default)]
    struct Counted(Mutex<usize>);

    impl PodStatusSink for Counted {
        fn publish(&self, _: &Arc<DesiredPod>, _: PodStatus) {
            *self.0.lock().unwrap() += 1;
        }

        fn withdraw(&self, _: &PodUid) {
            *self.0.lock().unwrap() += 100;
        }
    }

    fn desired(name: &str, spec: &str) -> Arc<DesiredPod> {
        let pod = format!("{{metadata: {{name: {name}, namespace: shop}}, spec: {{containers: [], {spec}}}}}");
        Arc::new(DesiredPod {
            uid: PodUid::new(name),
            full_name: PodFullName { name: name.into(), namespace: "shop".into() },
            source: SourceId::new("manifests"),
            revision: Revision("abc".into()),
            origin: Origin { file: "web.yaml".into(), position: Position { line: 1, column: 1 } },
            pod: Arc::new(serde_yaml::from_str(&pod).unwrap()),
        })
    }

    fn status(ip: &str, ready: &str, phase: &str) -> PodStatus {
        serde_yaml::from_str(&format!(
            "{{phase: {phase}, podIPs: [{{ip: {ip}}}], conditions: [{{type: Ready, status: '{ready}'}}]}}"
        ))
        .unwrap()
    }

    fn records() -> (Records, Arc<Counted>) {
        let next = Arc::new(Counted::default());
        let (_, sharing) = watch::channel(Arc::new(Sharing::from([SourceId::new("manifests")])));
        (Records::new("cluster.local".into(), &[], NodeName::new("Edge-1"), sharing, next.clone()), next)
    }

    fn found(records: &Records, name: &str) -> Found {
        let labels: Vec<String> = format!("{name}.shop.svc.cluster.local").split('.').map(str::to_owned).collect();
        records.zone().borrow().find(&labels)
    }

    #[test]
    fn a_pod_has_its_names_from_its_first_address_until_it_is_gone() {
        let (records, next) = records();
        let web = desired("web-edge-1", "subdomain: s");
        records.publish(&web, PodStatus::default());
        assert_eq!(found(&records, "web"), Found::Missing, "it has no address yet");
        records.publish(&web, status("10.0.0.7", "False", "Running"));
        let address = Found::Addresses(vec!["10.0.0.7".parse().unwrap()]);
        for name in ["web", "web-edge-1", "web.s", "web-edge-1.s"] {
            assert_eq!(found(&records, name), address, "{name}");
        }
        assert_eq!(found(&records, "s"), Found::Empty, "it is not ready");
        records.publish(&web, status("10.0.0.7", "True", "Running"));
        assert_eq!(found(&records, "s"), address);
        let serial = records.zone().borrow().serial();
        records.publish(&web, status("10.0.0.7", "True", "Running"));
        assert_eq!(records.zone().borrow().serial(), serial, "nothing has changed");
        records.withdraw(&web.uid);
        assert_eq!(found(&records, "web"), Found::Missing);
        assert_eq!(*next.0.lock().unwrap(), 104, "the other one was told everything");
    }

    #[test]
    fn a_pod_that_has_finished_or_terminates_serves_nobody() {
        let (records, _) = records();
        let web = desired("web-edge-1", "subdomain: s, hostname: www");
        records.publish(&web, status("10.0.0.7", "True", "Succeeded"));
        assert_eq!(found(&records, "www.s"), Found::Missing);
        let mut pod = (*web.pod).clone();
        let now = jiff::Timestamp::UNIX_EPOCH;
        pod.metadata.deletion_timestamp = Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(now));
        let terminating = Arc::new(DesiredPod { pod: Arc::new(pod), ..(*web).clone() });
        records.publish(&terminating, status("10.0.0.7", "True", "Running"));
        assert_eq!(found(&records, "s"), Found::Empty);
        assert_ne!(found(&records, "www.s"), Found::Missing, "its own name stays until it is gone");
    }
}
