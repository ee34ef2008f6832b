//! The resolver of pods, as configured.

use crate::api::Published;
use crate::config::Config;
use crate::dns::{Askers, Records, Resolver, SettingsFiles, Sockets};
use crate::network::{BuiltinNetwork, GATEWAYS, RESOLVER_ON_HOST};
use crate::pod::host_files::ClusterDns;
use crate::status::PodStatusSink;
use crate::telemetry::events::{EventRecorder, EventType, Subject};
use crate::telemetry::{EventLog, error_chain};
use crate::volume::NodeFiles;
use std::net::IpAddr;
use std::sync::Arc;

impl Askers for BuiltinNetwork {
    fn is_pod(&self, address: IpAddr) -> bool {
        self.is_address_of_pod(address)
    }
}

/// What pods ask, before it answers.
#[derive(Debug, Default)]
pub(super) struct DnsSockets {
    /// For pods with an address of their own.
    of_pods: Option<Sockets>,
    /// For pods on the host's network.
    on_host: Option<Sockets>,
}

impl DnsSockets {
    /// Opens the sockets, if pods are to ask. What cannot be opened is told: pods have the host's name servers then.
    pub(super) fn open(config: &Config, events: &EventLog) -> Self {
        if !config.network.dns.enabled {
            return Self::default();
        }
        let tell = |text: &str| {
            tracing::warn!("{text}");
            events.record(&Subject::Node, EventType::Warning, "DnsUnavailable", text);
        };
        let of_pods = Sockets::open(&GATEWAYS).inspect_err(|error| {
            tell(&format!("pods ask the host's name servers and do not find each other by name: {}", error_chain(error)));
        });
        let on_host = of_pods.is_ok().then(|| Sockets::open_on_host(RESOLVER_ON_HOST)).and_then(|on_host| {
            let told = on_host.inspect_err(|error| {
                tell(&format!(
                    "pods on the host's network ask the host's name servers, also with dnsPolicy ClusterFirstWithHostNet: {}",
                    error_chain(error)
                ));
            });
            told.ok()
        });
        Self { of_pods: of_pods.ok(), on_host }
    }

    /// Where questions of pods are answered.
    pub(super) fn port(&self) -> Option<u16> {
        self.of_pods.as_ref().map(|sockets| sockets.port)
    }

    /// What pods are told of name servers.
    pub(super) fn node_files(&self, config: &Config) -> NodeFiles {
        let dns = &config.network.dns;
        // One is enough: all of them are the same resolver, which every pod reaches at its first address.
        let servers = self.of_pods.iter().flat_map(|_| GATEWAYS.first()).copied().collect();
        let servers_on_host = self.on_host.iter().map(|_| RESOLVER_ON_HOST).collect();
        let cluster_dns = Some(ClusterDns { servers, servers_on_host, domain: dns.domain.clone() });
        NodeFiles { resolv_conf: dns.resolv_conf.clone(), cluster_dns, ..NodeFiles::default() }
    }

    /// The resolver, and where it hears of pods: statuses go through there. Without sockets, they go where they always go.
    pub(super) fn resolver(
        self,
        config: &Config,
        published: Arc<Published>,
        network: Option<&BuiltinNetwork>,
    ) -> (Option<Resolver>, Arc<dyn PodStatusSink>) {
        let (Some(of_pods), Some(network)) = (self.of_pods, network) else { return (None, published) };
        let dns = &config.network.dns;
        let records = Arc::new(Records::new(dns.domain.clone(), GATEWAYS.to_vec(), config.node_name.clone(), published));
        let settings = SettingsFiles {
            resolv_conf: dns.resolv_conf.clone(),
            resolved: NodeFiles::default().resolved,
            configured: dns.forwarders.clone(),
            own: GATEWAYS.into_iter().chain([RESOLVER_ON_HOST]).collect(),
        };
        let sockets = [of_pods].into_iter().chain(self.on_host).collect();
        (Some(Resolver::new(sockets, records.clone(), settings, Arc::new(network.clone()))), records)
    }
}
