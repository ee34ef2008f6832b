//! Foreign chains that drop forwarded packets, or DNS queries of pods to the host.
//!
//! An accept in podstead's own table does not outdo a drop in another one. A chain `FORWARD` of iptables with the policy DROP is what docker
//! and ufw leave behind on every host; each container engine appends its own interfaces there, and so does podstead, at the end: rules that the
//! owners of that chain wrote go before it. A table that somebody wrote for nftables is not touched; that it drops is told.

use super::Shared;
use super::firewalld;
use super::rules::Way;
use podstead_sys::netlink::accepting::Accepted;
use podstead_sys::netlink::nftables::{BaseChain, IPV4, IPV6};
use podstead_telemetry::error_chain;
use podstead_telemetry::events::EventType;

/// Returns true if it is a chain that `iptables -A` appends to.
pub(super) fn is_of_iptables(chain: &BaseChain) -> bool {
    chain.table == "filter" && matches!(chain.name.as_str(), "FORWARD" | "INPUT") && matches!(chain.family, IPV4 | IPV6)
}

/// The chain in words.
pub(super) fn described(chain: &BaseChain) -> String {
    format!("chain {} of table {} {}", chain.name, family_of(chain), chain.table)
}

fn family_of(chain: &BaseChain) -> &'static str {
    match chain.family {
        IPV4 => "ip",
        IPV6 => "ip6",
        _ => "inet",
    }
}

impl Shared {
    /// Looks for chains that drop forwarded packets, adds accepting rules to those of iptables, and reports the others.
    pub(super) fn look_at_firewalls(&self) {
        if self.state().ranges.is_none() {
            return;
        }
        let chains = match self.rules().dropping_chains(Way::Through) {
            Ok(chains) => chains,
            Err(error) => return tracing::warn!(error = %error_chain(&error), "cannot read the packet rules"),
        };
        for chain in chains {
            let described = described(&chain);
            if self.has_accepted(&chain, &described, Accepted::Passing) {
                continue;
            }
            let prefix = &self.names.prefix;
            let message = format!(
                "{described} drops packets that no rule accepts, so pods reach only this host: add rules that accept packets from and to interfaces {prefix}*"
            );
            self.tell_once(EventType::Warning, "ForwardingBlocked", &message);
        }
        self.look_for_blocked_questions();
    }

    /// Tells if firewalld rejects what pods send beyond this host. What its zones are told of is for their owner to say. While it reloads, and when the host has
    /// just started, it has not told all yet: so this is no part of [`Shared::look_at_firewalls`], which is called whenever rules change.
    pub(super) fn look_at_firewalld(&self) {
        let ranges = self.state().ranges.clone().unwrap_or_default();
        let rejected = match self.rules().rejected_by_firewalld(&ranges) {
            Ok(rejected) => rejected,
            Err(error) => return tracing::warn!(error = %error_chain(&error), "cannot read the rules of firewalld"),
        };
        if rejected.is_empty() {
            return;
        }
        let texts: Vec<String> = rejected.iter().map(ToString::to_string).collect();
        let message = format!(
            "firewalld rejects packets between pods ({}) and other hosts, since no zone that accepts packets contains these ranges: {}",
            texts.join(", "),
            firewalld::remedy(&rejected)
        );
        self.tell_once(EventType::Warning, "ForwardingBlocked", &message);
    }

    /// Has a chain of iptables that drops accept something of pods, where the configuration allows it. Whether it does.
    fn has_accepted(&self, chain: &BaseChain, described: &str, accepted: Accepted) -> bool {
        if !is_of_iptables(chain) || self.links.config.leaves_iptables {
            return false;
        }
        let opened = self.rules().open(chain, accepted);
        match opened {
            Ok(true) => {
                tracing::info!("{described} drops packets that no rule accepts: added rules for interfaces {}+", self.names.prefix)
            }
            Ok(false) => {}
            Err(error) => {
                tracing::warn!(error = %error_chain(&error), "cannot add rules that accept pods to {described}");
                return false;
            }
        }
        true
    }

    /// Has chains of iptables that keep everybody from the host accept questions of pods for names, which the rules of a container engine's own
    /// resolver do as well, and tells the others. What else pods may have of the host is for its owner to say.
    fn look_for_blocked_questions(&self) {
        let Some(port) = self.links.dns_port else { return };
        let chains = self.rules().dropping_chains(Way::In).unwrap_or_else(|error| {
            tracing::warn!(error = %error_chain(&error), "cannot read the packet rules");
            Vec::new()
        });
        for chain in chains {
            let described = described(&chain);
            if self.has_accepted(&chain, &described, Accepted::Port(port)) {
                continue;
            }
            let prefix = &self.names.prefix;
            let message = format!(
                "{described} drops packets that no rule accepts, so pods cannot resolve names: add rules that accept packets from interfaces {prefix}* to UDP and TCP port {port}"
            );
            self.tell_once(EventType::Warning, "DnsBlocked", &message);
        }
    }
}
