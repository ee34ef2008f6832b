//! Policies in force: what sources want, joined with the pods that have addresses (R12, R14).

use super::super::tracked::own_addresses;
use super::super::{GATEWAY_V4, GATEWAY_V6, Shared, record};
use super::cut;
use super::objects::PolicyObjects;
use super::policing::{Origin, PoliceError, Policing};
use crate::record::RecordError;
use podstead_pod::{PodFullName, PodUid, SmolStr};
use podstead_policy::compile::{Classes, PolicedPod, Policies};
use podstead_policy::definition::Policy;
use podstead_policy::selector::Selector;
use podstead_service::name::ObjectName;
use podstead_settings::NetworkMode;
use podstead_telemetry::error_chain;
use podstead_telemetry::events::{EventType, Subject};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, MutexGuard, PoisonError};

impl Shared {
    fn policing(&self) -> MutexGuard<'_, Policing> {
        self.policing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts the policies that sources want now into force, for the pods that have addresses now. `is_edited` says that permissions of a pod that is
    /// connected may have changed: then connections are looked at, too (N12).
    pub(in super::super) fn police(&self, is_edited: bool) -> Result<(), PoliceError> {
        let mut policing = self.policing();
        let is_renewed = self.renew(&mut policing).map_err(|error| PoliceError::Record(Box::new(error)))?;
        let is_closed = matches!(policing.origin, Origin::Record { earlier: None, .. });
        let classes = if policing.policies.is_empty() && !is_closed {
            // The pods need not be looked at.
            Classes::default()
        } else {
            let pods = self.policed_pods();
            if is_closed {
                policing.policies = closed(pods.iter().map(|(_, pod)| pod.name.namespace.clone()));
            }
            let pods = pods.iter().map(|(uid, pod)| (uid.as_str(), pod));
            policing.policies.compile(pods, &PolicedPod::resolver(&[GATEWAY_V4.into(), GATEWAY_V6.into()]))
        };
        let is_changed = self.rules().police(classes.clone()).map_err(PoliceError::Rules)?;
        if is_changed && (is_renewed || is_edited) {
            let ended = cut::end_denied(&classes, &own_addresses());
            // New connections are refused all the same.
            if let Err(error) = ended {
                tracing::warn!(error = %error_chain(&error), "cannot end connections that NetworkPolicies deny");
            }
        }
        drop(policing);
        if is_edited {
            self.tell_of_open_pods();
        }
        Ok(())
    }

    /// Looks at what sources want. Records what is to be in force before it is. Returns true if that is something else than before.
    fn renew(&self, policing: &mut Policing) -> Result<bool, RecordError> {
        let (wanted, is_whole) = self.links.policies.policies();
        let is_same = match &policing.origin {
            Origin::Unknown => false,
            Origin::Record { given, .. } => !is_whole && Arc::ptr_eq(given, &wanted),
            Origin::Sources(given) => Arc::ptr_eq(given, &wanted),
        };
        if is_same {
            return Ok(false);
        }
        if is_whole {
            self.record_policies(&wanted)?;
            policing.policies = wanted.read();
            policing.origin = Origin::Sources(wanted);
            return Ok(true);
        }
        let earlier = match &policing.origin {
            Origin::Unknown => self.recorded_policies(),
            Origin::Record { earlier, .. } => earlier.clone(),
            // A source that was added since has not been read: what is in force is what was.
            Origin::Sources(before) => Some(Arc::clone(before)),
        };
        if let Some(earlier) = &earlier {
            let both = wanted.with_earlier(earlier);
            self.record_policies(&both)?;
            policing.policies = both.read();
        }
        policing.origin = Origin::Record { earlier, given: wanted };
        Ok(true)
    }

    /// Policies that an earlier daemon had in force; `None` if they cannot be read.
    fn recorded_policies(&self) -> Option<Arc<PolicyObjects>> {
        match record::read_policies(&self.links.paths) {
            Ok(objects) => Some(Arc::new(objects)),
            Err(error) => {
                // It stays where it is until a new one takes its place: without it, the next daemon would take nothing for denied.
                let message = format!(
                    "cannot use the record of NetworkPolicies: {}; no pod may open or receive connections until all sources are synced",
                    error_chain(&error)
                );
                self.tell_once(EventType::Warning, "NetworkPolicyRecordLost", &message);
                None
            }
        }
    }

    /// Records objects unless they are on record.
    fn record_policies(&self, objects: &PolicyObjects) -> Result<(), RecordError> {
        let paths = &self.links.paths;
        let is_there = record::read_policies(paths).is_ok_and(|recorded| recorded == *objects);
        if is_there { Ok(()) } else { record::write_policies(paths, objects) }
    }

    /// Pods with an address of their own.
    fn policed_pods(&self) -> Vec<(PodUid, PolicedPod)> {
        let state = self.state();
        let leases = state.leases.iter().filter(|(_, lease)| lease.slot.is_some());
        leases.map(|(uid, lease)| (uid.clone(), lease.facts.policed(&lease.pod, lease.addresses.clone()))).collect()
    }

    /// Tells of each pod on a bridge that runs while policies select it (N15).
    fn tell_of_open_pods(&self) {
        if self.policing().policies.is_empty() || self.state().mode != NetworkMode::Bridge {
            return;
        }
        let is_connected = |uid: &PodUid| self.state().connected.contains(uid);
        for (uid, pod) in self.policed_pods().into_iter().filter(|(uid, _)| is_connected(uid)) {
            self.tell_not_enforced(&uid, &pod);
        }
    }

    /// Records an event of a pod on a bridge if policies select it, once. Returns its message. [`Shared::police`] was called since its SET came.
    pub(in super::super) fn tell_not_enforced(&self, uid: &PodUid, pod: &PolicedPod) -> Option<String> {
        let names: Vec<String> = self.policing().policies.selecting(pod).map(|policy| policy.name.name.to_string()).collect();
        if names.is_empty() {
            return None;
        }
        let message = format!(
            "NetworkPolicy {} selects this pod, and cannot be enforced in network.mode bridge: set network.mode: routed, or remove the policy",
            names.join(", ")
        );
        if self.state().told.insert(format!("{uid} {message}")) {
            let reason = "NetworkPolicyNotEnforced";
            tracing::warn!(pod_uid = %uid, reason, message, "network");
            let full_name = PodFullName { namespace: pod.name.namespace.to_string(), name: pod.name.name.to_string() };
            let subject = Subject::Pod { full_name, uid: uid.clone(), field_path: None };
            self.links.events.record(&subject, EventType::Warning, reason, &message);
        }
        Some(message)
    }
}

/// Policies that allow nothing in these namespaces.
fn closed(namespaces: impl Iterator<Item = SmolStr>) -> Policies {
    let namespaces: BTreeSet<SmolStr> = namespaces.collect();
    let deny = namespaces.into_iter().map(|namespace| Policy {
        name: ObjectName { namespace, name: "podstead-record-lost".into() },
        only_of: None,
        pods: Selector::default(),
        ingress: Some(Vec::new()),
        egress: Some(Vec::new()),
    });
    Policies::new(deny, BTreeMap::new())
}
