//! A host for tests of whole evaluations: pods that come, become ready, are stopped and go.

use crate::context::{Context, Pods};
use crate::host_fit::Host;
use crate::moment::Moment;
use crate::observed::{ObservedPod, Phase};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeSet;
use std::time::Duration;

/// A host without anything real.
#[derive(Debug)]
pub(crate) struct TestHost {
    pub(crate) pods: Pods,
    pub(crate) seconds: u64,
    pub(crate) has_images: bool,
    pub(crate) may_remove: bool,
    pub(crate) host: Host,
    pub(crate) taken: BTreeSet<String>,
    pub(crate) leaving_claims: BTreeSet<String>,
    next_uid: Cell<u32>,
}

impl TestHost {
    pub(crate) fn new() -> Self {
        let host = Host { name: "till-7".to_owned(), labels: [("site".to_owned(), "berlin".to_owned())].into() };
        Self {
            pods: Pods::new(),
            seconds: 1000,
            has_images: true,
            may_remove: true,
            host,
            taken: BTreeSet::new(),
            leaving_claims: BTreeSet::new(),
            next_uid: Cell::new(1),
        }
    }

    pub(crate) fn evaluate<T>(&self, step: impl FnOnce(&Pods, &Context<'_>) -> T) -> T {
        let fresh_uid = || {
            self.next_uid.set(self.next_uid.get() + 1);
            format!("uid-{}", self.next_uid.get())
        };
        let context = Context {
            moment: self.now(),
            wall: Timestamp::from_second(1_800_000_000 + i64::try_from(self.seconds).unwrap()).unwrap(),
            fresh_uid: &fresh_uid,
            canonical: &PodTemplateSpec::clone,
            has_images: &|_| self.has_images,
            is_exclusive_claim: &|name| name == "single",
            is_taken: &|name| self.taken.contains(name),
            is_claim_leaving: &|name| self.leaving_claims.contains(name),
            may_remove: self.may_remove,
            is_memory_lost: false,
            host: &self.host,
        };
        step(&self.pods, &context)
    }

    pub(crate) fn now(&self) -> Moment {
        Moment::after_boot(Duration::from_secs(self.seconds))
    }

    /// The mux does what the SET says: new pods are pending, withdrawn ones are being stopped.
    pub(crate) fn apply(&mut self, wanted: &[Pod]) {
        let wanted: BTreeSet<String> = names(wanted).into_iter().collect();
        for (name, pod) in &mut self.pods {
            pod.is_terminating |= !wanted.contains(name);
        }
        for name in wanted {
            self.pods.entry(name.clone()).or_insert_with(|| pending(name));
        }
    }

    /// All pods that are not being stopped are running and ready.
    pub(crate) fn make_ready(&mut self) {
        let names: Vec<String> = self.pods.values().filter(|pod| pod.is_active()).map(|pod| pod.name.clone()).collect();
        names.iter().for_each(|name| self.make_ready_one(name));
    }

    pub(crate) fn make_ready_one(&mut self, name: &str) {
        let now = self.now();
        let pod = self.pods.get_mut(name).unwrap_or_else(|| panic!("no pod {name}"));
        pod.phase = Phase::Running;
        pod.ready_since.get_or_insert(now);
    }

    pub(crate) fn make_unready(&mut self, name: &str) {
        self.pods.get_mut(name).unwrap().ready_since = None;
    }

    /// All pods that are being stopped are gone.
    pub(crate) fn finish_stops(&mut self) {
        self.pods.retain(|_, pod| !pod.is_terminating);
    }
}

fn pending(name: String) -> ObservedPod {
    ObservedPod {
        name,
        phase: Phase::Pending,
        ready_since: None,
        is_terminating: false,
        restarts: 0,
        ends: Vec::new(),
        ended_at: None,
        conditions: Vec::new(),
        deletion_cost: 0,
    }
}

pub(crate) fn names(pods: &[Pod]) -> Vec<String> {
    pods.iter().map(|pod| pod.metadata.name.clone().unwrap()).collect()
}

/// Sets the fields of `from` in `into`.
pub(crate) fn merge(into: &mut Value, from: &Value) {
    for (key, value) in from.as_object().unwrap() {
        into[key] = value.clone();
    }
}

/// A template with this image.
pub(crate) fn template(image: &str) -> Value {
    json!({"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": image}]}})
}
