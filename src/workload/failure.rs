//! Pods that a workload asks for and that cannot exist on this host (W82, W85).

use crate::exclusive::Exclusive;

/// The condition that tells of them.
pub const REPLICA_FAILURE: &str = "ReplicaFailure";

/// The reason for which fewer than `written` pods can exist, and a sentence about it.
pub fn failure(written: u32, exclusive: Option<&Exclusive>, fits: bool) -> Option<(&'static str, String)> {
    match exclusive {
        _ if !fits => {
            let message = "0/1 nodes are available: 1 node(s) didn't match Pod's node affinity/selector.";
            Some(("FailedScheduling", message.to_owned()))
        }
        Some(Exclusive::HostPort(port)) if written > 1 => {
            Some(("HostPortTaken", format!("host port {port} can be used by one pod only: 1 of {written} pods runs")))
        }
        Some(Exclusive::Claim(claim)) if written > 1 => {
            Some(("ClaimInUse", format!("claim {claim} can be mounted by one pod only: 1 of {written} pods runs")))
        }
        Some(_) | None => None,
    }
}
