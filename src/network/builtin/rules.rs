//! Keeps the packet rules in the kernel up to date.

use super::guests::{self, Guest};
use super::names::Names;
use super::policies::{self, PolicyRules};
use super::record::ThrownSwitches;
use super::services::{self, ServiceRanges, ServiceRules};
use super::sets::{PodRules, PodsRules, Switches, Whole};
use super::tracked::{self, Leads, moved_ports};
use super::{firewalld, firewalls, ruleset};
use podstead_pod::PodUid;
use podstead_policy::compile::Classes;
use podstead_service::frontends::{Chain, Frontend, Frontends, difference};
use podstead_settings::AddressRange;
use podstead_sys::netlink::accepting::{self, Accepted};
use podstead_sys::netlink::nftables::{self, BaseChain};
use podstead_sys::netlink::rtnetlink::octets;
use podstead_sys::netlink::{NetlinkError, NetlinkSocket, Protocol, Request, sources};
use podstead_sys::rcu;
use podstead_telemetry::error_chain;
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Direction of packets (`NF_INET_*`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// To the host.
    In = 1,
    /// Through it.
    Through = 2,
}

/// Rules in a foreign chain: one for packets from pods and one for packets to them, or one for UDP and one for TCP.
const RULES_OF_ACCEPTANCE: usize = 2;

/// The rules, and the socket that they are changed through. One at a time has it, so that what is in the kernel is what is in here.
#[derive(Debug)]
pub(super) struct Rules {
    names: Names,
    socket: Option<NetlinkSocket>,
    switches: Switches,
    pods: PodsRules,
    services: ServiceRules,
    policies: PolicyRules,
    /// Pods that plugins connected.
    guests: BTreeSet<Guest>,
    /// Chains of Services that the table has: those that were ever needed since it was made.
    chains: BTreeSet<Chain>,
    /// Services are those that an earlier daemon left in the table.
    are_recovered: bool,
    /// [`Rules::begin`] was called: switches and pods are known.
    is_begun: bool,
    /// The table in the kernel is the one that is described here.
    is_made: bool,
}

impl Rules {
    pub(super) fn new(names: Names) -> Self {
        Self {
            names,
            socket: None,
            switches: Switches::default(),
            pods: PodsRules::new(),
            services: ServiceRules::default(),
            policies: PolicyRules::default(),
            guests: BTreeSet::new(),
            chains: BTreeSet::new(),
            are_recovered: false,
            is_begun: false,
            is_made: false,
        }
    }

    /// Address of the socket that changes come through; 0 before the first one.
    pub(super) fn port(&self) -> u32 {
        self.socket.as_ref().map_or(0, NetlinkSocket::port)
    }

    /// Takes up the Services that an earlier daemon left in the table, so that the next table has them, too (R8). Nothing happens after the first table.
    pub(super) fn recover(&mut self, ranges: ServiceRanges) {
        if self.is_begun || !self.services.ranges.is_empty() || ranges.is_empty() {
            return;
        }
        match services::recovery::read(&self.names) {
            Ok(None) => {}
            Ok(Some(frontends)) => {
                self.services = ServiceRules { ranges, frontends };
                self.are_recovered = true;
            }
            Err(error) => {
                tracing::warn!(error = %error_chain(&error), "connections to Services may fail until all sources are read");
            }
        }
    }

    /// Ranges and frontends that an earlier daemon left, and nothing has taken the place of; `None` if there are none.
    pub(super) fn recovered(&self) -> Option<(ServiceRanges, Frontends)> {
        self.are_recovered.then(|| (self.services.ranges, self.services.frontends.clone()))
    }

    /// Makes the table for these pods.
    pub(super) fn begin(&mut self, switches: Switches, pods: PodsRules) -> Result<(), NetlinkError> {
        self.switches = Switches { sees_listeners: true, ..switches };
        self.pods = pods;
        self.is_begun = true;
        if self.guests.is_empty() {
            self.guests = guests::read(&self.names).unwrap_or_else(|error| {
                tracing::warn!(error = %error_chain(&error), "pods that CNI plugins connect may not reach Services for a moment");
                BTreeSet::new()
            });
        }
        self.make()
    }

    /// Makes the rules guard the sysctls that podstead has set. Returns true if they did not do so yet and must be recreated.
    pub(super) fn guard(&mut self, thrown: ThrownSwitches) -> bool {
        let before = self.switches;
        self.switches.guards_ipv4 |= thrown.ipv4;
        self.switches.guards_ipv6 |= thrown.ipv6;
        self.switches != before
    }

    /// Targets of UDP ports.
    pub(super) fn leads(&self) -> Leads {
        tracked::leads(self.pods.values())
    }

    /// Removes the table of a bridge that is no more.
    pub(super) fn forget_bridge(&mut self) -> Result<(), NetlinkError> {
        self.commit(&ruleset::without_bridge(&self.names))
    }

    /// Recreates the whole table, in one transaction; without Services if the kernel lacks something that only they need. They are tried again with
    /// the next change.
    pub(super) fn make(&mut self) -> Result<(), NetlinkError> {
        if let Some(error) = self.make_with_services()? {
            tracing::error!(error = %error_chain(&error), "Services are not reachable: the kernel refused their packet rules");
        }
        Ok(())
    }

    /// Recreates the whole table. `Some` if it is there, and Services are not, with the reason.
    fn make_with_services(&mut self) -> Result<Option<NetlinkError>, NetlinkError> {
        match self.make_table() {
            Err(error) if !self.services.ranges.is_empty() => {
                self.services = ServiceRules::default();
                self.make_table().map(|()| Some(error))
            }
            made => made.map(|()| None),
        }
    }

    /// Replaces the table. Where there are pods, a second one with the same rules stands in for it meanwhile.
    fn make_table(&mut self) -> Result<(), NetlinkError> {
        self.is_made = false;
        let result = if self.pods.is_empty() { self.commit_whole() } else { self.replace_table() };
        // Otherwise the second table may be the only one.
        if result.is_ok() {
            self.remove_standby();
        }
        self.is_made = result.is_ok();
        self.chains = self.services.frontends.chains().into_iter().collect();
        result
    }

    /// Replaces the table while a second one stands in for it.
    ///
    /// A packet that is on its way during a transaction can find nothing in either table: it comes to the new chains, which are before the old
    /// ones, when they are not in force yet, and to the old ones when they are not in force any more. The rules of the other table do not change then.
    fn replace_table(&mut self) -> Result<(), NetlinkError> {
        let (names, standby) = (self.names.clone(), self.names.standby());
        let chains = self.base_chains()?;
        let is_in_force = |names: &Names| chains.iter().any(|chain| is_of(chain, names));
        // An earlier daemon was killed between the steps: to make the second table anew would leave packets without rules.
        if !is_in_force(&standby) || is_in_force(&names) {
            self.commit_in_steps(&standby).inspect_err(|_| self.remove_standby())?;
            wait_for_packets();
        }
        self.commit_in_steps(&names)?;
        wait_for_packets();
        Ok(())
    }

    /// Removes the second table; of an earlier daemon, too, that was killed while it was there.
    fn remove_standby(&mut self) {
        let standby = self.names.standby();
        if let Err(error) = self.commit(&ruleset::nothing(&standby)) {
            tracing::warn!(error = %error_chain(&error), table = standby.table, "cannot remove a table of packet rules that is not needed any more");
        }
    }

    fn commit_whole(&mut self) -> Result<(), NetlinkError> {
        self.commit_seeing_listeners(|rules| {
            let request = ruleset::whole(&rules.names, rules.parts(), rules.pods.values());
            rules.commit(&request)
        })
    }

    fn commit_in_steps(&mut self, names: &Names) -> Result<(), NetlinkError> {
        self.commit_seeing_listeners(|rules| {
            let steps = ruleset::in_steps(names, rules.parts(), rules.pods.values());
            steps.iter().try_for_each(|step| rules.commit(step))
        })
    }

    fn parts(&self) -> Whole<'_> {
        Whole { switches: self.switches, services: &self.services, policies: &self.policies, guests: &self.guests }
    }

    /// Makes a table with all rules; on a kernel without nft_socket without those that need it.
    fn commit_seeing_listeners(&mut self, make: impl Fn(&mut Self) -> Result<(), NetlinkError>) -> Result<(), NetlinkError> {
        let mut result = make(self);
        if self.switches.sees_listeners && result.as_ref().is_err_and(|error| error.errno() == Some(libc::ENOENT)) {
            self.switches.sees_listeners = false;
            result = make(self);
            if result.is_ok() {
                tracing::warn!(
                    "this kernel lacks nft_socket: a hostPort takes precedence over a service of this host that starts later on the same port"
                );
            }
        }
        result
    }

    /// Puts a pod's rules into force. Nothing happens if they are. Ports of UDP that lead somewhere else than before.
    pub(super) fn publish(&mut self, uid: &PodUid, rules: PodRules) -> Result<BTreeSet<u16>, NetlinkError> {
        let before = self.pods.insert(uid.clone(), rules.clone());
        self.replace(before.as_ref(), Some(&rules))?;
        Ok(moved_ports(before.as_ref(), Some(&rules)))
    }

    /// Takes a pod's rules away. Ports of UDP that led to it.
    pub(super) fn withdraw(&mut self, uid: &PodUid) -> Result<BTreeSet<u16>, NetlinkError> {
        match self.pods.remove(uid) {
            Some(before) => {
                self.replace(Some(&before), None)?;
                self.forget_denied(&before);
                Ok(moved_ports(Some(&before), None))
            }
            None => Ok(BTreeSet::new()),
        }
    }

    /// Forgets what a pod was denied. Without success a pod that gets its address later has the number.
    fn forget_denied(&mut self, pod: &PodRules) {
        if !self.policies.are_there() {
            return;
        }
        let addresses: Vec<Vec<u8>> = pod.addresses.iter().map(|address| octets(*address)).collect();
        for request in policies::denied::forget(&self.names, &addresses) {
            match self.commit(&request) {
                Err(error) if !error.is_not_found() => {
                    tracing::debug!(error = %error_chain(&error), "cannot forget the number of packets that a pod was denied");
                }
                Ok(()) | Err(_) => {}
            }
        }
    }

    fn replace(&mut self, before: Option<&PodRules>, after: Option<&PodRules>) -> Result<(), NetlinkError> {
        if before == after && self.is_made {
            return Ok(());
        }
        if self.is_made && self.commit(&ruleset::change(&self.names, before, after)).is_ok() {
            return Ok(());
        }
        // The table was changed or flushed.
        self.make()
    }

    /// Frontends of Services, and what is behind them.
    pub(super) fn frontends(&self) -> &Frontends {
        &self.services.frontends
    }

    /// Addresses that NodePorts of Services lead to.
    pub(super) fn behind_node_ports(&self) -> BTreeSet<IpAddr> {
        self.services.behind_node_ports()
    }

    /// Ranges of the addresses of Services.
    pub(super) fn service_ranges(&self) -> ServiceRanges {
        self.services.ranges
    }

    /// Makes the table serve these frontends: by the elements that differ, in one transaction, or else the whole table anew (R7). Returns the UDP
    /// frontends behind which something else is than before.
    pub(super) fn serve(&mut self, ranges: ServiceRanges, frontends: Frontends) -> Result<BTreeSet<Frontend>, NetlinkError> {
        self.are_recovered = false;
        let before = std::mem::replace(&mut self.services, ServiceRules { ranges, frontends });
        if !self.is_begun {
            // A table made now would have no pods. The one that is there keeps theirs until it is replaced, with these frontends.
            return Ok(BTreeSet::new());
        }
        let moved = before.frontends.moved_udp(&self.services.frontends);
        let change = difference(&before.frontends, &self.services.frontends);
        if self.is_made && before.ranges == ranges {
            if change.is_empty() {
                return Ok(moved);
            }
            if !ranges.is_empty() && self.commit(&services::change(&self.names, &change, &self.chains)).is_ok() {
                self.chains.extend(change.chains);
                self.end_bonds(&before.frontends);
                return Ok(moved);
            }
        }
        self.make_with_services()?.map_or(Ok(moved), Err)
    }

    /// Makes the table enforce these classes: by what differs, or else the whole table anew (R12). Returns true if they are others
    /// than before. If it fails, those in force stay.
    pub(super) fn police(&mut self, classes: Classes) -> Result<bool, NetlinkError> {
        if *self.policies.classes() == classes {
            return Ok(false);
        }
        let after = self.policies.next(classes);
        if !self.is_begun {
            // The table is made with them.
            self.policies = after;
            return Ok(true);
        }
        let change = if self.is_made { self.policies.change(&self.names, &after) } else { None };
        let before = std::mem::replace(&mut self.policies, after);
        if change.is_some_and(|change| change.iter().all(|part| self.commit(part).is_ok())) {
            return Ok(true);
        }
        self.make().map(|()| true).inspect_err(|_| self.policies = before)
    }

    /// Has these pods that plugins connected reach Services, and no others.
    pub(super) fn admit(&mut self, guests: BTreeSet<Guest>) -> Result<(), NetlinkError> {
        let before = std::mem::replace(&mut self.guests, guests);
        if before == self.guests || !self.is_begun {
            return Ok(());
        }
        if self.is_made && self.commit(&ruleset::change_guests(&self.names, &before, &self.guests)).is_ok() {
            return Ok(());
        }
        self.make()
    }

    /// Ends bonds to endpoints that are gone. Without success they expire, as their clients do not reach anybody.
    fn end_bonds(&mut self, before: &Frontends) {
        let Some(socket) = &mut self.socket else { return };
        if let Err(error) = services::bonds::end(socket, &self.names, before, &self.services.frontends) {
            tracing::warn!(error = %error_chain(&error), "clients of Services with affinity stay bound to endpoints that are gone");
        }
    }

    /// Removes the table, and what chains of others accept of pods. What guards the host stays, without pods.
    pub(super) fn end(&mut self, guards: Switches) -> Result<(), NetlinkError> {
        let chains = match self.base_chains() {
            // A kernel without nf_tables has nothing to remove.
            Err(error) if matches!(error.errno(), Some(libc::EINVAL | libc::EOPNOTSUPP | libc::EPROTONOSUPPORT)) => return Ok(()),
            chains => chains?,
        };
        for chain in chains.iter().filter(|chain| firewalls::is_of_iptables(chain)) {
            let handles: Vec<u64> = self.own_rules_of(chain)?.into_iter().map(|(handle, _)| handle).collect();
            if !handles.is_empty() {
                self.commit(&accepting::remove(chain, &handles))?;
            }
        }
        // The second one is there if a daemon was killed while it replaced the first one.
        let tables = [self.names.clone(), self.names.standby()];
        if !chains.iter().any(|chain| tables.iter().any(|names| is_of(chain, names))) {
            return Ok(());
        }
        for names in &tables {
            self.commit(&ruleset::nothing(names))?;
        }
        if guards.guards_ipv4 || guards.guards_ipv6 {
            let (services, policies, guests) = (&ServiceRules::default(), &PolicyRules::default(), &BTreeSet::new());
            let parts = Whole { switches: guards, services, policies, guests };
            self.commit(&ruleset::whole(&self.names, parts, std::iter::empty()))?;
        }
        Ok(())
    }

    fn commit(&mut self, request: &Request) -> Result<(), NetlinkError> {
        let socket = match &mut self.socket {
            Some(socket) => socket,
            none => none.insert(NetlinkSocket::open(Protocol::Netfilter)?),
        };
        socket.transact(request, |_| {})
    }

    /// Everybody's chains of a hook that drop what they do not know.
    pub(super) fn dropping_chains(&self, hook: Way) -> Result<Vec<BaseChain>, NetlinkError> {
        let chains = self.base_chains()?;
        let is_dropping = |chain: &BaseChain| chain.hook == hook as u32 && chain.drops && chain.table != self.names.table;
        // 1: inet, 2: ip, 10: ip6. ARP and bridges are another matter.
        Ok(chains.into_iter().filter(|chain| matches!(chain.family, 1 | 2 | 10) && is_dropping(chain)).collect())
    }

    /// Everybody's chains that packets come to by themselves.
    fn base_chains(&self) -> Result<Vec<BaseChain>, NetlinkError> {
        let mut request = Request::new();
        nftables::list_chains(&mut request);
        let mut chains = Vec::new();
        NetlinkSocket::open(Protocol::Netfilter)?.dump(&request, |answer| chains.extend(nftables::base_chain(&answer)))?;
        Ok(chains)
    }

    /// Has a chain of iptables accept something of pods, at its end: before its policy, and after all rules of its owners. Whether it did not
    /// do so yet.
    pub(super) fn open(&mut self, chain: &BaseChain, accepted: Accepted) -> Result<bool, NetlinkError> {
        let own = self.own_rules_of(chain)?;
        if self.are_all(&own, accepted) {
            return Ok(false);
        }
        let handles: Vec<u64> = own.into_iter().map(|(handle, _)| handle).collect();
        self.commit(&accepting::accept(chain, &handles, &self.names.prefix, &self.names.table, accepted))?;
        Ok(true)
    }

    fn are_all(&self, own: &[(u64, String)], accepted: Accepted) -> bool {
        let wanted = accepted.comment(&self.names.table);
        own.len() == RULES_OF_ACCEPTANCE && own.iter().all(|(_, comment)| *comment == wanted)
    }

    /// Handles and comments of the rules that [`Rules::open`] made in a chain.
    fn own_rules_of(&self, chain: &BaseChain) -> Result<Vec<(u64, String)>, NetlinkError> {
        let mut request = Request::new();
        accepting::list_rules(&mut request, chain);
        let mut socket = NetlinkSocket::open(Protocol::Netfilter)?;
        let mut own = Vec::new();
        socket.dump(&request, |answer| own.extend(accepting::rule_of(&answer, chain, &self.names.table)))?;
        Ok(own)
    }

    /// Returns true if a chain has the rules of [`Rules::open`], for any port.
    pub(super) fn accepts_pods(&self, chain: &BaseChain) -> Result<bool, NetlinkError> {
        Ok(self.own_rules_of(chain)?.len() == RULES_OF_ACCEPTANCE)
    }

    /// The ranges from which firewalld passes nothing on.
    pub(super) fn rejected_by_firewalld(&self, ranges: &[AddressRange]) -> Result<Vec<AddressRange>, NetlinkError> {
        let mut request = Request::new();
        sources::list_rules_of(&mut request, firewalld::TABLE);
        let mut rules = Vec::new();
        NetlinkSocket::open(Protocol::Netfilter)?
            .dump(&request, |answer| rules.extend(sources::source_rule(&answer, firewalld::TABLE)))?;
        Ok(firewalld::rejected(&rules, &self.names.prefix, ranges))
    }

    fn is_own(&self, chain: &BaseChain) -> bool {
        is_of(chain, &self.names)
    }

    /// Returns true if the table is in the kernel, with all its chains.
    pub(super) fn is_there(&self) -> Result<bool, NetlinkError> {
        const BASE_CHAINS: usize = 5;
        let wanted =
            BASE_CHAINS + self.services.base_chains() + if self.switches.is_bridged { super::bridged::BASE_CHAINS } else { 0 };
        let own = self.base_chains()?.iter().filter(|chain| self.is_own(chain)).count();
        // The diagnosis of the host knows of no bridge.
        Ok(own >= wanted)
    }
}

/// Returns true for a chain of the table with these names.
fn is_of(chain: &BaseChain, names: &Names) -> bool {
    [ruleset::TABLE_FAMILY, nftables::BRIDGE].contains(&chain.family) && chain.table == names.table
}

/// Waits until no packet is on its way through the hooks as they were.
fn wait_for_packets() {
    if let Err(error) = rcu::wait_for_readers() {
        tracing::debug!(%error, "cannot wait for packets while the packet rules are replaced");
    }
}
