//! The host, made ready for pods: what an earlier daemon left, ranges of addresses, switches, rules.

use super::lease::Leases;
use super::links::{self, LinkError};
use super::record;
use super::ruleset::{PodsRules, Switches};
use super::{Shared, bridge, ranges, rules_of, switches, uplink};
use crate::config::{AddressRange, NetworkMode};
use crate::network::record::RecordError;
use crate::pod::PodUid;
use crate::sys::netlink::NetlinkError;
use crate::telemetry::error_chain;
use crate::telemetry::events::EventType;
use std::path::Path;

/// Where the network's switches are.
pub(super) const SYSCTLS: &str = "/proc/sys/net";

/// Why the host is not ready for pods.
#[derive(Debug, thiserror::Error)]
pub(super) enum PrepareError {
    #[error("look at the networks of this host")]
    Look(#[source] NetlinkError),
    #[error("choose a range of addresses")]
    Range(#[from] ranges::NoFreeRange),
    #[error("record the ranges of addresses")]
    Record(#[source] RecordError),
    #[error("pass packets on")]
    Switch(#[from] switches::SwitchError),
    #[error("list interfaces of pods")]
    Links(#[source] LinkError),
    #[error("make packet rules")]
    Rules(#[source] NetlinkError),
}

impl Shared {
    /// Leases from disk, then the kernel. Without pods on record nothing is touched: a host whose pods are all on its own network is
    /// left as it is.
    pub(super) fn recover(&self) {
        match record::read_leases(&self.links.paths) {
            Ok((leases, unreadable)) => {
                for (uid, error) in unreadable {
                    // The pod gets other addresses, and its interface goes below.
                    tracing::error!(pod_uid = %uid, error = %error_chain(&error), "the record of a pod's addresses is lost");
                    self.forget_lease(&uid);
                }
                let mut state = self.state();
                for (uid, lease) in leases {
                    // The daemon may have died between writing it and syncing it.
                    self.unsynced().insert(uid.clone(), None);
                    state.leases.recover(uid, lease);
                }
            }
            Err(error) => tracing::error!(error = %error_chain(&error), "cannot read the addresses of pods"),
        }
        let has_addresses = self.state().leases.iter().any(|(_, lease)| lease.slot.is_some());
        let on_host: Vec<PodUid> =
            self.state().leases.iter().filter(|(_, lease)| lease.slot.is_none()).map(|(uid, _)| uid.clone()).collect();
        for uid in on_host {
            self.state().leases.hold(&uid);
        }
        let has_interfaces = links::list(&self.names).is_ok_and(|links| !links.is_empty());
        if (has_addresses || has_interfaces)
            && let Err(error) = self.prepare()
        {
            self.tell_once(EventType::Warning, "NetworkNotReady", &error_chain(&error).to_string());
        }
    }

    /// Makes the host ready for pods: ranges, switches, rules. Done once.
    pub(super) fn prepare(&self) -> Result<Vec<AddressRange>, PrepareError> {
        let prepared = self.prepare_once();
        self.state().trouble = prepared.as_ref().err().map(|error| error_chain(error).to_string());
        prepared
    }

    fn prepare_once(&self) -> Result<Vec<AddressRange>, PrepareError> {
        let mut state = self.state();
        if let Some(ranges) = &state.ranges {
            return Ok(ranges.clone());
        }
        let paths = &self.links.paths;
        let with_ipv6 = switches::has_ipv6(Path::new(SYSCTLS));
        let used = ranges::used_networks(&self.names).map_err(PrepareError::Look)?;
        let earlier = record::read_ranges(paths).unwrap_or_else(|error| {
            tracing::error!(error = %error_chain(&error), "the record of the ranges of addresses is lost");
            record::ChosenRanges::default()
        });
        let has_leases = state.leases.iter().any(|(_, lease)| lease.slot.is_some());
        let connected = self.sweep(&state.leases).map_err(PrepareError::Links)?;
        let mut decision = ranges::decide(&self.links.config, &earlier, has_leases, with_ipv6, &used)?;
        let was = earlier.mode.unwrap_or_default();
        let mode = if connected.is_empty() { self.links.config.mode } else { was };
        decision.chosen.mode = Some(mode).filter(|mode| *mode != NetworkMode::Routed);
        if decision.chosen != earlier {
            record::write_ranges(paths, &decision.chosen).map_err(PrepareError::Record)?;
        }
        let with_ipv6 = decision.ranges.iter().any(|range| !range.is_ipv4());
        let thrown = switches::throw(Path::new(SYSCTLS), paths, with_ipv6)?.ever;
        self.wire(mode, &decision.ranges)?;
        let rules = |uid: &PodUid| rules_of(&self.names, mode, state.leases.get(uid)?);
        let pods: PodsRules = connected.iter().filter_map(|uid| Some((uid.clone(), rules(uid)?))).collect();
        for uid in pods.keys() {
            state.leases.hold(uid);
        }
        let switches = Switches {
            guards_ipv4: thrown.ipv4,
            guards_ipv6: thrown.ipv6,
            sees_listeners: false,
            dns_port: self.links.dns_port,
            is_bridged: mode == NetworkMode::Bridge,
        };
        let leads = {
            let mut rules = self.rules();
            rules.begin(switches, pods).map_err(PrepareError::Rules)?;
            rules.leads()
        };
        let texts: Vec<String> = decision.ranges.iter().map(ToString::to_string).collect();
        tracing::info!(ranges = texts.join(" "), %mode, "pods are connected");
        state.mode = mode;
        state.connected.extend(connected);
        state.ranges = Some(decision.ranges.clone());
        state.mtu = uplink::mtu(&self.names).map_err(PrepareError::Look)?;
        drop(state);
        // The rules may have been away, and pods may have gone, while no daemon ran.
        self.forget_datagrams(&leads);
        if mode != self.links.config.mode {
            let message = format!(
                "network.mode {} does not count yet: pods are connected in mode {mode}, and all of them are before any of them is not. It counts after a restart of this host, or of the daemon while no pod is connected",
                self.links.config.mode
            );
            self.tell_once(EventType::Warning, "NetworkModeKept", &message);
        }
        self.tell_collisions(&decision.collisions);
        if decision.lacks_ipv6 {
            let message = "every default range of IPv6 addresses is in use on this host: pods have addresses of IPv4 alone. A free range in network.ipv6Range counts after a restart of the daemon";
            self.tell_once(EventType::Warning, "PodsWithoutIpv6", message);
        }
        self.look_at_firewalls();
        Ok(decision.ranges)
    }

    /// Makes the bridge as it shall be, or removes what is left of one.
    fn wire(&self, mode: NetworkMode, ranges: &[AddressRange]) -> Result<(), PrepareError> {
        match mode {
            NetworkMode::Bridge => {
                bridge::restore(&self.names, ranges).map_err(PrepareError::Links)?;
            }
            NetworkMode::Routed => {
                if bridge::remove(&self.names).map_err(PrepareError::Links)? {
                    self.rules().forget_bridge().map_err(PrepareError::Rules)?;
                }
            }
        }
        Ok(())
    }

    /// Removes interfaces that no lease is about; returns the pods that have one.
    pub(super) fn sweep(&self, leases: &Leases) -> Result<Vec<PodUid>, LinkError> {
        let mut connected = Vec::new();
        for link in links::list(&self.names)? {
            let owner = leases.iter().find(|(_, lease)| lease.slot.is_some_and(|slot| self.names.interface(slot) == link.name));
            match owner {
                Some((uid, _)) => connected.push(uid.clone()),
                None => {
                    tracing::info!(interface = link.name, "remove an interface that no pod has");
                    links::remove(link.index)?;
                }
            }
        }
        Ok(connected)
    }
}
