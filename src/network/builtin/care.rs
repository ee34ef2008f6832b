//! Periodic care while pods run: removed rules, changed sysctls, things without an owner, obstacles.

use super::host::SYSCTLS;
use super::ranges::{self, Collision};
use super::{Shared, bridge, switches, uplink};
use podstead_settings::{AddressRange, NetworkMode};
use podstead_telemetry::error_chain;
use podstead_telemetry::events::{EventType, Subject};
use std::path::Path;

impl Shared {
    /// Checks IP forwarding, the rules, things that podstead created and that have no owner, and obstacles.
    pub(super) fn look_after(&self) {
        let ranges = match &self.state().ranges {
            Some(ranges) => ranges.clone(),
            None => return,
        };
        self.throw_switches(&ranges);
        self.restore_rules();
        self.look_at_firewalls();
        self.look_at_firewalld();
        let swept = {
            let mut state = self.state();
            self.sweep(&mut state)
        };
        if let Err(error) = swept {
            tracing::warn!(error = %error_chain(&error), "cannot remove unused pod interfaces");
        }
        let mode = self.state().mode;
        match mode {
            NetworkMode::Routed => self.look_at_interfaces(None),
            NetworkMode::Bridge => match bridge::restore(&self.names, &ranges) {
                Ok(bridge) => self.look_at_interfaces(Some(bridge)),
                Err(error) => tracing::warn!(error = %error_chain(&error), "cannot restore the pod bridge"),
            },
        }
        match uplink::mtu(&self.names) {
            Ok(mtu) => self.state().mtu = mtu,
            Err(error) => tracing::warn!(error = %error_chain(&error), "cannot read the MTU of the uplink"),
        }
        match ranges::used_networks(&self.names) {
            Ok(used) => self.tell_collisions(&ranges::collisions(&ranges, &used)),
            Err(error) => tracing::warn!(error = %error_chain(&error), "cannot list the networks of this host"),
        }
    }

    /// Enables IP forwarding again if it was switched off.
    fn throw_switches(&self, ranges: &[AddressRange]) {
        let with_ipv6 = ranges.iter().any(|range| !range.is_ipv4());
        let thrown = match switches::throw(Path::new(SYSCTLS), &self.links.paths, with_ipv6) {
            Ok(thrown) => thrown,
            Err(error) => {
                let message = format!("cannot enable IP forwarding for pods: {}", error_chain(&error));
                return self.tell_once(EventType::Warning, "ForwardingSwitchedOff", &message);
            }
        };
        let names = switches::names(thrown.now);
        if names.is_empty() {
            return;
        }
        if self.rules().guard(thrown.ever) {
            self.make_rules("IP forwarding was switched off; forwarding pod traffic only");
        }
        let message = format!(
            "{} was set to 0, which disconnects pods; podstead set it to 1 again: check /etc/sysctl.d for the cause",
            names.join(" and ")
        );
        tracing::warn!(message, "network");
        self.links.events.record(&Subject::Node, EventType::Warning, "ForwardingSwitchedOff", &message);
    }

    /// Recreates the rules if they are missing.
    fn restore_rules(&self) {
        let is_there = self.rules().is_there();
        match is_there {
            Ok(true) => {}
            Ok(false) => self.make_rules("the packet rules of pods were missing: recreated them"),
            Err(error) => {
                tracing::warn!(error = %error_chain(&error), "cannot read the packet rules");
                self.make_rules("recreated the packet rules");
            }
        }
    }

    /// Recreates all rules after some of them were removed.
    pub(super) fn mend(&self) {
        if self.state().ranges.is_none() {
            return;
        }
        self.make_rules("the packet rules of pods were changed: recreated them");
        self.look_at_firewalls();
    }

    fn make_rules(&self, why: &str) {
        let (made, leads) = {
            let mut rules = self.rules();
            (rules.make(), rules.leads())
        };
        match made {
            Ok(()) => tracing::warn!("{why}"),
            Err(error) => return tracing::error!(error = %error_chain(&error), "cannot create the packet rules"),
        }
        // Packets that clients began to send in the meantime went to this host, and would for as long as they send.
        self.forget_datagrams(&leads);
        self.forget_datagrams_of_services();
    }

    pub(super) fn tell_collisions(&self, collisions: &[Collision]) {
        for collision in collisions {
            let message = format!("{collision}: pods cannot reach hosts there that have the address of a pod");
            self.tell_once(EventType::Warning, "PodRangeCollides", &message);
        }
    }

    pub(super) fn tell_once(&self, kind: EventType, reason: &str, message: &str) {
        if self.state().told.insert(message.to_owned()) {
            tracing::warn!(reason, message, "network");
            self.links.events.record(&Subject::Node, kind, reason, message);
        }
    }
}
