//! One workload and what was decided about it last.

use crate::memory::{KindMemory, Memory};
use crate::shown::ShownSum;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, PodTemplateSpec};
use podstead_manifest::ObjectKey;
use podstead_pod::containers::{self, PullPolicy};
use podstead_pod::{Origin, Revision, SourceId};
use podstead_workload::moment::Moment;
use podstead_workload::object::Workload;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A workload as it is wanted, and its origin.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wanted {
    pub(super) workload: Arc<Workload>,
    pub(super) source: SourceId,
    pub(super) revision: Revision,
    pub(super) origin: Origin,
    /// The CronJob that made it.
    pub(super) parent: Option<ObjectKey>,
}

/// One workload.
///
/// ```text
/// (nothing) ---> Wanted ---> Withdrawn ---> (nothing)
///                  ^  no source has it  no pod of it is left
///                  +---------------+ a source has it again: another object, with another UID
/// ```
#[derive(Debug)]
pub(super) enum Unit {
    /// A source has it, or a CronJob wants it.
    Wanted(Box<Live>),
    /// Nothing wants it any more, and pods of it may exist.
    Withdrawn,
}

impl Unit {
    /// The last decision on a workload that a source has.
    pub(super) fn live(&self) -> Option<&Live> {
        match self {
            Self::Wanted(live) => Some(live),
            Self::Withdrawn => None,
        }
    }
}

/// A workload that is wanted, and the last decision.
#[derive(Debug)]
pub(super) struct Live {
    pub(super) wanted: Wanted,
    /// `None` before the first evaluation of a new one.
    pub(super) memory: Option<Memory>,
    /// The memory with what an operator did, until the next evaluation.
    pub(super) by_hand: Option<KindMemory>,
    pub(super) pods: BTreeMap<String, UnitPod>,
    pub(super) claims: BTreeMap<String, Arc<PersistentVolumeClaim>>,
    /// Sums of what was shown last.
    pub(super) shown: BTreeMap<ObjectKey, ShownSum>,
    /// Images that were seen in the image store.
    pub(super) images: BTreeSet<String>,
    pub(super) wake: Option<Moment>,
    pub(super) wake_wall: Option<Timestamp>,
}

/// A pod as it was asked for, and as it was admitted.
#[derive(Clone, Debug)]
pub(super) struct UnitPod {
    pub(super) written: Pod,
    /// `None` where this version of podstead refuses it.
    pub(super) admitted: Option<Arc<Pod>>,
}

impl Live {
    pub(super) fn new(wanted: Wanted, memory: Option<Memory>) -> Self {
        Self {
            wanted,
            memory,
            by_hand: None,
            pods: BTreeMap::new(),
            claims: BTreeMap::new(),
            shown: BTreeMap::new(),
            images: BTreeSet::new(),
            wake: None,
            wake_wall: None,
        }
    }

    /// Reports whether the time for another look has come.
    pub(super) fn is_due(&self, moment: Moment, wall: Timestamp) -> bool {
        self.wake.is_some_and(|at| at <= moment) || self.wake_wall.is_some_and(|at| at <= wall)
    }
}

/// The images of a template, with the policies by which they are pulled.
pub(super) fn images(template: &PodTemplateSpec) -> Vec<(String, PullPolicy)> {
    let Some(spec) = &template.spec else { return Vec::new() };
    let all = spec.init_containers.iter().flatten().chain(&spec.containers);
    let images = all.filter_map(|container| {
        let image = container.image.as_deref().filter(|image| !image.is_empty())?;
        Some((image.to_owned(), containers::image_pull_policy(container.image_pull_policy.as_deref(), image)))
    });
    images.collect()
}
