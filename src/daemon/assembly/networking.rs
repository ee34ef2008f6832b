//! Addresses, names and Services of pods.

use super::super::dns::{DnsSockets, PodAddresses};
use super::super::policies::{self, PolicyCounters, SourcePolicies};
use super::super::services::{PublishedBackends, Steward, StewardLinks};
use super::base::Base;
use super::stages::Stages;
use podstead_api::services::ServiceView;
use podstead_dns::Resolver;
use podstead_network::{BuiltinNetwork, CniLinks, CniNetwork, HostOrLoopback, NetworkLinks, PolicySource};
use podstead_pod::PodUid;
use podstead_pod::sharing::Sharing;
use podstead_runtime::PodNetwork;
use podstead_service::range::PortRange;
use podstead_settings::NetworkKind;
use podstead_status::PodStatusSink;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};

/// Parts that connect pods.
pub(super) struct Networking {
    /// The network of pods: plugins before all.
    pub(super) plugins: CniNetwork,
    /// The sink through which names and Services learn of statuses of pods, which are published then.
    pub(super) backends: Arc<PublishedBackends>,
    /// The controller of Services.
    pub(super) steward: Steward,
    /// Services that are served.
    pub(super) served: Arc<ServiceView>,
    builtin: Option<BuiltinNetwork>,
    resolver: Option<Resolver>,
}

impl Networking {
    /// Connects the parts. `shared` has the sharing rules between sources, `pokes` takes the pods whose network changed.
    pub(super) async fn open(
        base: &Base,
        dns: DnsSockets,
        shared: watch::Receiver<Arc<Sharing>>,
        pokes: mpsc::UnboundedSender<PodUid>,
    ) -> Self {
        let config = &base.config;
        let policies = Arc::new(SourcePolicies::new(Arc::clone(&base.objects)));
        let (plugins, builtin) = open_network(base, &dns, pokes, policies).await;
        let askers = PodAddresses { builtin: builtin.clone(), plugins: plugins.clone() };
        let (resolver, names) = dns.resolver(config, base.published.clone(), askers, shared);
        let statuses: Arc<dyn PodStatusSink> = match &names {
            Some(names) => names.clone(),
            None => base.published.clone(),
        };
        let backends = Arc::new(PublishedBackends::new(statuses));
        let served = ServiceView::new(base.first_version());
        let served = Arc::new(match builtin.clone() {
            Some(builtin) => served.with_denied(Arc::new(PolicyCounters(builtin))),
            None => served,
        });
        let steward = Steward::new(StewardLinks {
            objects: base.objects.clone(),
            pods: backends.pods(),
            network: builtin.clone(),
            names,
            paths: base.paths.clone(),
            node_ports: config.network.node_ports.map_or(PortRange::NODE_PORTS, |(first, last)| PortRange { first, last }),
            node: config.node_name.to_string(),
            events: base.events.clone(),
            view: served.clone(),
        });
        Self { plugins, backends, steward, served, builtin, resolver }
    }

    /// Starts the tasks. Returns what others read: the Services.
    pub(super) fn start(self, base: &Base, stages: &mut Stages) -> Arc<ServiceView> {
        stages.start("the controller of Services", self.steward.run());
        stages.start_endless(policies::follow(Arc::clone(&base.objects), self.builtin.clone(), self.plugins));
        if let Some(builtin) = self.builtin {
            stages.start("the packet rule watcher", async move { builtin.watch().await });
        }
        if let Some(resolver) = self.resolver {
            stages.start("the pod DNS resolver", resolver.run());
        }
        self.served
    }
}

/// The network of pods, plugins before all; the builtin one also to be watched.
async fn open_network(
    base: &Base,
    dns: &DnsSockets,
    pokes: mpsc::UnboundedSender<PodUid>,
    policies: Arc<dyn PolicySource>,
) -> (CniNetwork, Option<BuiltinNetwork>) {
    let (config, events) = (&base.config, base.events.clone());
    let (own, builtin): (Arc<dyn PodNetwork>, _) = match config.network.kind {
        NetworkKind::Cni | NetworkKind::None => (Arc::new(HostOrLoopback), None),
        NetworkKind::Builtin => {
            let (paths, config, dns_port) = (config.paths.clone(), config.network.clone(), dns.port());
            let (events, pokes, policies) = (events.clone(), pokes.clone(), policies.clone());
            let write_ahead = base.write_ahead.clone();
            let links = NetworkLinks { paths, write_ahead, config, events, dns_port, pokes, policies };
            let builtin = BuiltinNetwork::open(links).await;
            (Arc::new(builtin.clone()), Some(builtin))
        }
    };
    let plugins = CniLinks {
        paths: config.paths.clone(),
        config: config.network.clone(),
        events,
        names: dns.of_plugins(),
        builtin: builtin.clone(),
        policies,
        pokes,
    };
    (CniNetwork::open(plugins, own).await, builtin)
}
