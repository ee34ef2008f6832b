//! The identity of a workload, which outlasts edits and restarts (W5).

use crate::context::Context;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// UID, generation and age of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Random when the workload was first seen; another one after it went and came back.
    pub uid: String,
    /// The number of the edit.
    pub generation: i64,
    /// The time at which it was first seen.
    pub first_seen: Timestamp,
    /// The spec of that generation, hashed.
    spec: u64,
}

impl Identity {
    /// The identity of an object with this spec.
    pub fn of<T: Serialize>(known: Option<&Self>, spec: &T, context: &Context<'_>) -> Self {
        let spec = fnv_1a(&serde_json::to_vec(spec).unwrap_or_default());
        match known {
            Some(known) if known.spec == spec => known.clone(),
            Some(known) => Self { generation: known.generation + 1, spec, ..known.clone() },
            None => Self { uid: (context.fresh_uid)(), generation: 1, first_seen: context.wall, spec },
        }
    }
}

/// FNV-1a with 64 bits.
fn fnv_1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
