//! Pods of a workload whose memory was lost (W97).

use crate::context::Pods;
use std::collections::BTreeSet;

/// Numbers of the pods that exist, are not being stopped, and have the name of their number.
pub fn numbers(pods: &Pods, name_of: impl Fn(u32) -> String) -> BTreeSet<u32> {
    let staying = pods.values().filter(|pod| !pod.is_terminating);
    let number = |name: &str| name.rsplit_once('-')?.1.parse::<u32>().ok().filter(|number| name_of(*number) == name);
    staying.filter_map(|pod| number(&pod.name)).collect()
}
