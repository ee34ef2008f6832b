//! Other people's chains that drop what passes.
//!
//! An accept in podstead's own table does not outdo a drop in another one. A chain `FORWARD` of iptables with the policy DROP is what docker
//! and ufw leave behind on every host; each container engine appends its own interfaces there, and so does podstead, at the end: rules that the
//! owners of that chain wrote go before it. A table that somebody wrote for nftables is not touched; that it drops is told.

use super::Shared;
use super::rules::Way;
use crate::sys::netlink::nftables::{BaseChain, IPV4, IPV6};
use crate::telemetry::error_chain;
use crate::telemetry::events::EventType;

/// Whether it is the chain that `iptables -A FORWARD` appends to.
fn is_of_iptables(chain: &BaseChain) -> bool {
    chain.table == "filter" && chain.name == "FORWARD" && matches!(chain.family, IPV4 | IPV6)
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
    /// Looks for chains that drop what passes, has those of iptables accept pods, and tells the others.
    pub(super) fn look_at_firewalls(&self) {
        if self.state().ranges.is_none() {
            return;
        }
        let chains = match self.rules().dropping_chains(Way::Through) {
            Ok(chains) => chains,
            Err(error) => return tracing::warn!(error = %error_chain(&error), "cannot look at packet rules"),
        };
        for chain in chains {
            let (described, prefix) = (described(&chain), &self.names.prefix);
            if is_of_iptables(&chain) && !self.links.config.leaves_iptables {
                let opened = self.rules().open(&chain);
                match opened {
                    Ok(true) => {
                        tracing::info!("{described} drops what passes: it accepts {prefix}+ now");
                        continue;
                    }
                    Ok(false) => continue,
                    Err(error) => tracing::warn!(error = %error_chain(&error), "cannot have {described} accept pods"),
                }
            }
            let message = format!(
                "{described} drops what it does not accept: it has to accept what comes from and goes to interfaces {prefix}*, or pods reach nothing but this host"
            );
            self.tell_once(EventType::Warning, "ForwardingBlocked", &message);
        }
        self.look_for_blocked_questions();
    }

    /// Tells chains that keep pods from the resolver: who may reach the host is for its owner to say.
    fn look_for_blocked_questions(&self) {
        let Some(port) = self.links.dns_port else { return };
        let chains = self.rules().dropping_chains(Way::In).unwrap_or_else(|error| {
            tracing::warn!(error = %error_chain(&error), "cannot look at packet rules");
            Vec::new()
        });
        for chain in chains {
            let (name, table, family, prefix) = (&chain.name, &chain.table, family_of(&chain), &self.names.prefix);
            let message = format!(
                "chain {name} of table {family} {table} drops what it does not accept: it has to accept what comes from interfaces {prefix}* to port {port} of UDP and TCP, or pods cannot look up names"
            );
            self.tell_once(EventType::Warning, "DnsBlocked", &message);
        }
    }
}
