//! Preparation of the host for pods: state of an earlier daemon, address ranges, sysctls, rules.

use super::links::{self, LinkError};
use super::policies::policing::PoliceError;
use super::ruleset::rules_of;
use super::sets::{PodsRules, Switches};
use super::{Shared, State, bridge, ranges, record, relearn, switches, uplink};
use crate::record::RecordError;
use podstead_pod::PodUid;
use podstead_settings::{AddressRange, NetworkMode};
use podstead_sys::netlink::NetlinkError;
use podstead_telemetry::error_chain;
use podstead_telemetry::events::EventType;
use std::path::Path;

/// Directory of the network's sysctls.
pub(super) const SYSCTLS: &str = "/proc/sys/net";

/// Reason why the host is not ready for pods.
#[derive(Debug, thiserror::Error)]
pub(super) enum PrepareError {
    #[error("read the recorded addresses of pods")]
    Leases(#[source] RecordError),
    #[error("list the networks of this host")]
    Look(#[source] NetlinkError),
    #[error("choose an address range")]
    Range(#[from] ranges::NoFreeRange),
    #[error("record the address ranges")]
    Record(#[source] RecordError),
    #[error("enable IP forwarding")]
    Switch(#[from] switches::SwitchError),
    #[error("list interfaces of pods")]
    Links(#[source] LinkError),
    #[error("create the packet rules")]
    Rules(#[source] NetlinkError),
    #[error("enforce NetworkPolicies")]
    Policies(#[source] PoliceError),
}

impl Shared {
    /// Leases from disk, then the kernel. Without pods on record nothing is touched: a host whose pods are all on its own network is
    /// left as it is.
    pub(super) fn recover(&self) {
        if let Err(error) = self.read_leases() {
            self.state().is_blind = true;
            let message = format!("cannot read the recorded addresses of pods: {}", error_chain(&error));
            self.tell_once(EventType::Warning, "NetworkNotReady", &message);
        }
        let has_addresses = self.state().leases.iter().any(|(_, lease)| lease.slot.is_some());
        let has_interfaces = links::list(&self.names).is_ok_and(|links| !links.is_empty());
        if (has_addresses || has_interfaces)
            && let Err(error) = self.prepare()
        {
            self.tell_once(EventType::Warning, "NetworkNotReady", &error_chain(&error).to_string());
        }
    }

    fn read_leases(&self) -> Result<(), RecordError> {
        let (leases, unreadable) = record::read_leases(&self.links.paths)?;
        {
            let mut state = self.state();
            for (uid, lease) in leases {
                self.records.recover(uid.clone());
                state.leases.recover(uid, lease);
            }
            state.is_blind = false;
        }
        for (uid, error) in unreadable {
            self.take_up_unreadable(&uid, &error);
        }
        let on_host: Vec<PodUid> =
            self.state().leases.iter().filter(|(_, lease)| lease.slot.is_none()).map(|(uid, _)| uid.clone()).collect();
        for uid in on_host {
            self.state().leases.hold(&uid);
        }
        Ok(())
    }

    /// Restores a lease without a usable record from the pod's interface. A record that makes no sense is kept for people to look at; one
    /// that the disk does not give stays where it is.
    fn take_up_unreadable(&self, uid: &PodUid, error: &RecordError) {
        let paths = &self.links.paths;
        if !error.is_of_disk()
            && let Err(error) = record::set_lease_aside(paths, uid)
        {
            tracing::error!(pod_uid = %uid, error = %error_chain(&error), "cannot set the record of a pod's addresses aside");
        }
        let chosen = record::read_ranges(paths).unwrap_or_default().parsed().into_iter().flatten();
        let ranges: Vec<AddressRange> = chosen.chain(self.links.config.ipv4).chain(self.links.config.ipv6).collect();
        let consequence = match relearn::lease(&self.names, paths, uid, &ranges) {
            Ok(Some(lease)) => {
                if !error.is_of_disk()
                    && let Err(error) = record::write_lease(paths, uid, &lease)
                {
                    tracing::error!(pod_uid = %uid, error = %error_chain(&error), "cannot record a pod's addresses");
                }
                self.records.recover(uid.clone());
                self.state().leases.recover(uid.clone(), lease);
                "read the addresses from its interface instead".to_owned()
            }
            Ok(None) if !error.is_of_disk() => "the pod gets new addresses".to_owned(),
            Ok(None) => {
                self.state().unread.insert(uid.clone());
                "reading it again when the pod is connected".to_owned()
            }
            Err(error) => {
                self.state().unread.insert(uid.clone());
                format!("cannot read them from its interface either: {}", error_chain(&error))
            }
        };
        let message = format!("cannot use the record of the addresses of pod {uid}: {}; {consequence}", error_chain(error));
        self.tell_once(EventType::Warning, "NetworkRecordLost", &message);
    }

    /// Reads the lease of a pod again that could not be read at the start.
    pub(super) fn read_again(&self, uid: &PodUid) -> Result<(), RecordError> {
        if !self.state().unread.contains(uid) {
            return Ok(());
        }
        let lease = match record::read_lease(&self.links.paths, uid) {
            Err(error) if error.is_of_disk() => return Err(error),
            Err(error) => {
                tracing::error!(pod_uid = %uid, error = %error_chain(&error), "unusable record of a pod's addresses set aside");
                record::set_lease_aside(&self.links.paths, uid)?;
                None
            }
            Ok(lease) => lease,
        };
        let mut state = self.state();
        state.unread.remove(uid);
        if let Some(lease) = lease {
            state.leases.recover(uid.clone(), lease);
        }
        Ok(())
    }

    /// Makes the host ready for pods: ranges, switches, rules. Done once.
    pub(super) fn prepare(&self) -> Result<Vec<AddressRange>, PrepareError> {
        let prepared = self.prepare_once();
        self.state().trouble = prepared.as_ref().err().map(|error| error_chain(error).to_string());
        prepared
    }

    fn prepare_once(&self) -> Result<Vec<AddressRange>, PrepareError> {
        let (is_blind, is_prepared) = {
            let state = self.state();
            (state.is_blind, state.ranges.is_some())
        };
        if is_blind {
            self.read_leases().map_err(PrepareError::Leases)?;
        }
        if !is_prepared {
            // The table is made with them.
            self.police(false).map_err(PrepareError::Policies)?;
        }
        let mut state = self.state();
        if let Some(ranges) = &state.ranges {
            return Ok(ranges.clone());
        }
        let paths = &self.links.paths;
        let with_ipv6 = switches::has_ipv6(Path::new(SYSCTLS));
        let used = ranges::used_networks(&self.names).map_err(PrepareError::Look)?;
        let earlier = record::read_ranges(paths).unwrap_or_else(|error| {
            tracing::error!(error = %error_chain(&error), "cannot read the record of the address ranges");
            record::ChosenRanges::default()
        });
        let has_leases = state.leases.iter().any(|(_, lease)| lease.slot.is_some());
        let connected = self.sweep(&mut state).map_err(PrepareError::Links)?;
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
            rules.recover(ranges::of_services(&self.links.config, &decision.chosen));
            rules.begin(switches, pods).map_err(PrepareError::Rules)?;
            rules.leads()
        };
        let texts: Vec<String> = decision.ranges.iter().map(ToString::to_string).collect();
        tracing::info!(ranges = texts.join(" "), %mode, "pod network is ready");
        state.mode = mode;
        state.connected.extend(connected);
        state.ranges = Some(decision.ranges.clone());
        state.mtu = uplink::mtu(&self.names).map_err(PrepareError::Look)?;
        drop(state);
        // The rules may have been away, and pods may have gone, while no daemon ran.
        self.forget_datagrams(&leads);
        self.forget_datagrams_of_services();
        if mode != self.links.config.mode {
            let message = format!(
                "network.mode {} is not in effect yet: connected pods use mode {mode}, and all pods must use the same mode; it takes effect after a reboot of this host, or a restart of the daemon while no pod is connected",
                self.links.config.mode
            );
            self.tell_once(EventType::Warning, "NetworkModeKept", &message);
        }
        self.tell_collisions(&decision.collisions);
        if decision.lacks_ipv6 {
            let message = "all default IPv6 address ranges are in use on this host, so pods have only IPv4 addresses: set a free range in network.ipv6Range and restart the daemon";
            self.tell_once(EventType::Warning, "PodRangeMissing", message);
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

    /// Removes interfaces that no lease is about; returns the pods that have one. While a lease is not known, its interface may be any.
    pub(super) fn sweep(&self, state: &mut State) -> Result<Vec<PodUid>, LinkError> {
        let (mut connected, mut strays) = (Vec::new(), Vec::new());
        for link in links::list(&self.names)? {
            let slot = self.names.slot(&link.name);
            let owner = state.leases.iter().find(|(_, lease)| slot.is_some() && lease.slot == slot);
            match owner {
                Some((uid, _)) => connected.push(uid.clone()),
                None => strays.push(link),
            }
        }
        let is_sure = state.unread.is_empty();
        state.leases.reserve(strays.iter().filter(|_| !is_sure).filter_map(|link| self.names.slot(&link.name)));
        for link in strays.iter().filter(|_| is_sure) {
            tracing::info!(interface = link.name, "removing an unused pod interface");
            links::remove(link.index)?;
        }
        Ok(connected)
    }
}

#[cfg(test)]
mod tests {
    use crate::builtin::NoPolicies;
    use crate::builtin::lease::{Facts, Lease, Wish};
    use crate::builtin::{BuiltinNetwork, NetworkLinks, record};
    use podstead_pod::{PodFullName, PodUid};
    use podstead_settings::NetworkConfig;
    use podstead_sys::layout::Paths;
    use podstead_telemetry::{EventLog, error_chain};
    use std::fs;
    use std::path::Path;
    use std::sync::Arc;

    async fn open(root: &Path) -> (Paths, BuiltinNetwork) {
        let paths = Paths { state: root.join("state"), run: root.join("run"), logs: root.join("logs") };
        let events = Arc::new(EventLog::new(0, jiff::Timestamp::now));
        let (pokes, _) = tokio::sync::mpsc::unbounded_channel();
        let links = NetworkLinks {
            paths: paths.clone(),
            write_ahead: Default::default(),
            config: NetworkConfig::default(),
            events,
            dns_port: None,
            pokes,
            policies: Arc::new(NoPolicies::default()),
        };
        (paths, BuiltinNetwork::open(links).await)
    }

    fn lease(pod: &str) -> Lease {
        Lease {
            pod: PodFullName { namespace: "default".into(), name: pod.into() },
            slot: Some(3),
            addresses: vec!["10.0.0.3".parse().unwrap()],
            ports: Vec::new(),
            is_isolated: false,
            facts: Facts::default(),
            holds_ports: false,
        }
    }

    #[tokio::test]
    async fn while_pods_cannot_be_listed_nothing_is_touched() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("state")).unwrap();
        fs::write(root.path().join("state/pods"), "in the way of a directory").unwrap();
        let (paths, network) = open(root.path()).await;
        let error = network.shared.prepare().unwrap_err();
        assert_eq!(error.to_string(), "read the recorded addresses of pods");
        assert!(network.shared.state().ranges.is_none());
        fs::remove_file(paths.pods()).unwrap();
        record::write_lease(&paths, &PodUid::new("a"), &lease("a")).unwrap();
        network.shared.read_leases().unwrap();
        assert!(!network.shared.state().is_blind);
        assert_eq!(network.shared.state().leases.get(&PodUid::new("a")), Some(&lease("a")));
    }

    #[tokio::test]
    async fn a_lease_that_the_disk_does_not_give_stays_and_is_read_again_and_a_broken_one_is_set_aside() {
        let root = tempfile::tempdir().unwrap();
        let paths = Paths { state: root.path().join("state"), run: root.path().join("run"), logs: root.path().join("logs") };
        let (away, broken) = (PodUid::new("away"), PodUid::new("broken"));
        record::write_lease(&paths, &away, &lease("away")).unwrap();
        fs::rename(paths.pod_network(&away), root.path().join("kept")).unwrap();
        fs::create_dir(paths.pod_network(&away)).unwrap();
        record::write_lease(&paths, &broken, &lease("broken")).unwrap();
        fs::write(paths.pod_network(&broken), "{\"version\":9}").unwrap();
        let (_, network) = open(root.path()).await;
        assert_eq!(fs::read_to_string(paths.pod_network(&broken).with_extension("json.bad")).unwrap(), "{\"version\":9}");
        assert!(network.shared.state().unread.contains(&away) && !network.shared.state().unread.contains(&broken));
        let wish = Wish { pod: lease("away").pod, ports: Vec::new(), is_isolated: false, facts: Facts::default() };
        let error = network.shared.set_up(&away, &wish, Some(Path::new("/nowhere"))).unwrap_err();
        let told = error_chain(&error).to_string();
        assert!(told.contains("network.json"), "{told}");
        fs::remove_dir(paths.pod_network(&away)).unwrap();
        fs::rename(root.path().join("kept"), paths.pod_network(&away)).unwrap();
        network.shared.read_again(&away).unwrap();
        assert_eq!(network.shared.state().leases.get(&away), Some(&lease("away")));
        assert!(network.shared.state().unread.is_empty());
    }
}
