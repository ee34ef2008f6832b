//! All probes of all pods: what they say, and which one is asked when. **Pure**.
//!
//! * [`state`]: one probe of one run of a container.
//! * [`pods`]: the runs that are probed, as their workers declare them.
//!
//! One ordered set of times for all probes: hundreds of them cost one timer, and a check is a task only while it is made.

mod pods;
mod state;

#[cfg(test)]
mod property_test;
#[cfg(test)]
mod state_test;
#[cfg(test)]
mod tests;

pub use pods::{Check, ProbeId, ProbedPod, ProbedRun, Schedule};
pub use state::{Answer, ProbeState};
