//! What is looked after while pods run: rules that somebody removed, things without an owner, what is in the way.

use super::ranges::{self, Collision};
use super::{Shared, bridge, uplink};
use crate::config::NetworkMode;
use crate::telemetry::error_chain;
use crate::telemetry::events::{EventType, Subject};

impl Shared {
    /// Whether the rules are there, whether anything that podstead made has no owner, whether something is in the way.
    pub(super) fn look_after(&self) {
        let ranges = match &self.state().ranges {
            Some(ranges) => ranges.clone(),
            None => return,
        };
        self.restore_rules();
        self.look_at_firewalls();
        self.look_at_firewalld();
        let swept = {
            let state = self.state();
            self.sweep(&state.leases)
        };
        if let Err(error) = swept {
            tracing::warn!(error = %error_chain(&error), "cannot look for interfaces that no pod has");
        }
        let mode = self.state().mode;
        if let NetworkMode::Bridge = mode
            && let Err(error) = bridge::restore(&self.names, &ranges)
        {
            tracing::warn!(error = %error_chain(&error), "cannot look at the bridge of pods");
        }
        match uplink::mtu(&self.names) {
            Ok(mtu) => self.state().mtu = mtu,
            Err(error) => tracing::warn!(error = %error_chain(&error), "cannot look at the uplink"),
        }
        match ranges::used_networks(&self.names) {
            Ok(used) => self.tell_collisions(&ranges::collisions(&ranges, &used)),
            Err(error) => tracing::warn!(error = %error_chain(&error), "cannot look at the networks of this host"),
        }
    }

    /// Makes the rules anew if they are not there.
    fn restore_rules(&self) {
        let is_there = self.rules().is_there();
        match is_there {
            Ok(true) => {}
            Ok(false) => self.make_rules("the packet rules of pods were gone: made anew"),
            Err(error) => {
                tracing::warn!(error = %error_chain(&error), "cannot look at packet rules");
                self.make_rules("made packet rules anew in any case");
            }
        }
    }

    /// Somebody removed something of the rules: all of them are made anew, whatever it was.
    pub(super) fn mend(&self) {
        if self.state().ranges.is_none() {
            return;
        }
        self.make_rules("somebody changed the packet rules of pods: made anew");
        self.look_at_firewalls();
    }

    fn make_rules(&self, why: &str) {
        let (made, leads) = {
            let mut rules = self.rules();
            (rules.make(), rules.leads())
        };
        match made {
            Ok(()) => tracing::warn!("{why}"),
            Err(error) => return tracing::error!(error = %error_chain(&error), "cannot make packet rules"),
        }
        // What clients began to send in the meantime went to this host, and would for as long as they send.
        self.forget_datagrams(&leads);
    }

    pub(super) fn tell_collisions(&self, collisions: &[Collision]) {
        for collision in collisions {
            let message = format!("{collision}: pods cannot reach what has the addresses of other pods there");
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
