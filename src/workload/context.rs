//! The host and the time, as arguments of a decision.

use crate::host_fit::Host;
use crate::moment::Moment;
use crate::observed::ObservedPod;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use std::collections::BTreeMap;
use std::fmt;

/// Pods of one workload that exist, by name. A pod that is wanted and not here has not been observed yet; a pod that is withdrawn and not here is
/// gone (W94).
pub type Pods = BTreeMap<String, ObservedPod>;

/// The host and the time, as one evaluation sees them.
pub struct Context<'a> {
    /// The clock that decides.
    pub moment: Moment,
    /// The clock that is shown.
    pub wall: Timestamp,
    /// Returns a UID that no object has.
    pub fresh_uid: &'a dyn Fn() -> String,
    /// Returns a template with its defaults filled in and its quantities normalised. Templates are the same if this is (W10).
    pub canonical: &'a dyn Fn(&PodTemplateSpec) -> PodTemplateSpec,
    /// Tells that all images of a template are in the image store (W14).
    pub has_images: &'a dyn Fn(&PodTemplateSpec) -> bool,
    /// Tells that only one pod at a time may mount this claim (W82).
    pub is_exclusive_claim: &'a dyn Fn(&str) -> bool,
    /// Tells that an object before this one in order has a pod of this name (W9).
    pub is_taken: &'a dyn Fn(&str) -> bool,
    /// Tells that the data of an earlier claim of this name are still being deleted (W43).
    pub is_claim_leaving: &'a dyn Fn(&str) -> bool,
    /// All pods of the workload were observed by this daemon, and all sources delivered: a pod may be taken away for another (W94).
    pub may_remove: bool,
    /// The memory of this workload was there and is lost: pods that exist are those that it wanted (W97).
    pub is_memory_lost: bool,
    /// This host, for node selectors (W46, W85).
    pub host: &'a Host,
}

impl fmt::Debug for Context<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("moment", &self.moment)
            .field("wall", &self.wall)
            .field("may_remove", &self.may_remove)
            .field("host", &self.host)
            .finish_non_exhaustive()
    }
}

/// The time at which a pod became available, or will.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// It is not ready, is being stopped or has ended.
    Unavailable,
    /// It is ready and becomes available then, if it stays ready.
    From(Moment),
    /// It has been ready for long enough.
    Available,
}

/// Tells when a pod counts as available: ready for `min_ready_seconds`, on the clock that never jumps (W15).
pub fn availability(pod: &ObservedPod, min_ready_seconds: u32, now: Moment) -> Availability {
    match pod.ready_since {
        Some(since) if pod.is_active() => {
            let from = since + std::time::Duration::from_secs(min_ready_seconds.into());
            if from <= now { Availability::Available } else { Availability::From(from) }
        }
        Some(_) | None => Availability::Unavailable,
    }
}
