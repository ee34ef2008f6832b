//! All probes of all pods: what they say, and which one is asked when. **Pure**.
//!
//! * [`state`]: one probe of one run of a container.
//! * [`pods`]: the runs that are probed, as their workers declare them.
//! * [`spread`]: where in its period a probe is asked, so that those of pods that were started together are not asked together.
//!
//! One ordered set of times for all probes: hundreds of them cost one timer, and a check is a task only while it is made.

mod pods;
mod spread;
mod state;

#[cfg(test)]
mod property_test;
#[cfg(test)]
mod state_test;
#[cfg(test)]
mod tests;

pub use pods::{Check, ProbeId, ProbedPod, ProbedRun, Schedule};
pub use state::{Answer, ProbeState};
