//! The resolver of pods, as configured.

use podstead_api::Published;
use podstead_config::Config;
use podstead_dns::{Askers, Listeners, Records, Resolver, SettingsFiles, Sockets};
use podstead_network::{BuiltinNetwork, CniNetwork, GATEWAYS, NameService, RESOLVER_ON_HOST, Unanswered};
use podstead_pod::host_files::ClusterDns;
use podstead_pod::sharing::Sharing;
use podstead_settings::NetworkKind;
use podstead_telemetry::events::{EventRecorder, EventType, Subject};
use podstead_telemetry::{EventLog, error_chain};
use podstead_volume::NodeFiles;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// Whoever connected them.
#[derive(Debug)]
pub(super) struct PodAddresses {
    pub(super) builtin: Option<BuiltinNetwork>,
    pub(super) plugins: CniNetwork,
}

impl Askers for PodAddresses {
    fn is_pod(&self, address: IpAddr) -> bool {
        self.builtin.as_ref().is_some_and(|builtin| builtin.is_address_of_pod(address)) || self.plugins.is_address_of_pod(address)
    }
}

/// [`Listeners`] for the network: neither of the two crates knows the other.
#[derive(Debug)]
struct NetworkListeners(Listeners);

impl NameService for NetworkListeners {
    fn answer_at(&self, address: IpAddr) -> Result<(), Unanswered> {
        Ok(self.0.listen_at(address)?)
    }

    fn answers_at(&self, address: IpAddr) -> bool {
        self.0.is_open_at(address)
    }
}

/// Sockets of the DNS resolver before it starts.
#[derive(Debug, Default)]
pub(super) struct DnsSockets {
    /// For pods that podstead connects.
    of_pods: Option<Sockets>,
    /// For pods on the host's network.
    on_host: Option<Sockets>,
    /// Listeners for pods with CNI networks, opened on demand. `None` if the resolver is disabled.
    of_plugins: Option<(Arc<NetworkListeners>, mpsc::UnboundedReceiver<Sockets>)>,
}

impl DnsSockets {
    /// Opens the sockets if the resolver is enabled. A failure is reported, and pods then use the host's name servers.
    pub(super) fn open(config: &Config, events: &EventLog) -> Self {
        if !config.network.dns.enabled {
            return Self::default();
        }
        let tell = |text: &str| {
            tracing::warn!("{text}");
            events.record(&Subject::Node, EventType::Warning, "DnsUnavailable", text);
        };
        let of_pods = match config.network.kind {
            NetworkKind::Builtin => match Sockets::open(&GATEWAYS) {
                Ok(sockets) => Some(sockets),
                Err(error) => {
                    let error = error_chain(&error);
                    tell(&format!(
                        "cannot serve DNS for pods: pods use the host's name servers and cannot resolve each other's names: {error}"
                    ));
                    return Self::default();
                }
            },
            NetworkKind::Cni | NetworkKind::None => None,
        };
        let on_host = Sockets::open_at_domain_port(RESOLVER_ON_HOST).inspect_err(|error| {
            tell(&format!(
                "cannot serve DNS for pods on the host network: they use the host's name servers, even with dnsPolicy ClusterFirstWithHostNet: {}",
                error_chain(error)
            ));
        });
        let (listeners, further) = Listeners::new();
        Self { of_pods, on_host: on_host.ok(), of_plugins: Some((Arc::new(NetworkListeners(listeners)), further)) }
    }

    /// Port of the resolver for pods.
    pub(super) fn port(&self) -> Option<u16> {
        self.of_pods.as_ref().map(|sockets| sockets.port)
    }

    /// Resolver for pods with CNI networks.
    pub(super) fn of_plugins(&self) -> Option<Arc<dyn NameService>> {
        self.of_plugins.as_ref().map(|(listeners, _)| Arc::clone(listeners) as Arc<dyn NameService>)
    }

    /// DNS settings for files of pods.
    pub(super) fn node_files(&self, config: &Config) -> NodeFiles {
        let dns = &config.network.dns;
        // One is enough: all of them are the same resolver, which every pod reaches at its first address.
        let servers = self.own_servers().first().copied().into_iter().collect();
        let servers_on_host = self.on_host.iter().map(|_| RESOLVER_ON_HOST).collect();
        let cluster_dns = Some(ClusterDns { servers, servers_on_host, domain: dns.domain.clone() });
        NodeFiles { resolv_conf: dns.resolv_conf.clone(), cluster_dns, ..NodeFiles::default() }
    }

    /// Name servers of pods that podstead connects.
    fn own_servers(&self) -> Vec<IpAddr> {
        if self.of_pods.is_some() { GATEWAYS.to_vec() } else { Vec::new() }
    }

    /// The resolver, and the sink through which it receives statuses of pods, which passes them on to `published`; neither without sockets.
    pub(super) fn resolver(
        self,
        config: &Config,
        published: Arc<Published>,
        askers: PodAddresses,
        sharing: watch::Receiver<Arc<Sharing>>,
    ) -> (Option<Resolver>, Option<Arc<Records>>) {
        let own_servers = self.own_servers();
        let Some((_, further)) = self.of_plugins else { return (None, None) };
        let dns = &config.network.dns;
        let records = Arc::new(Records::new(dns.domain.clone(), &own_servers, config.node_name.clone(), sharing, published));
        let settings = SettingsFiles {
            resolv_conf: dns.resolv_conf.clone(),
            resolved: NodeFiles::default().resolved,
            configured: dns.forwarders.clone(),
            own: GATEWAYS.into_iter().chain([RESOLVER_ON_HOST]).collect(),
        };
        let sockets = self.of_pods.into_iter().chain(self.on_host).collect();
        (Some(Resolver::new(sockets, further, records.clone(), settings, Arc::new(askers))), Some(records))
    }
}
