//! The loops that keep the cluster as the plan wants it. They run beside each other in one task and share nothing but channels.
//!
//! ```text
//! Node, Lease --standing--> watch --observations(64)--> mirrors <--changes-- published pods
//!      |                      |                            |
//!      +----------------------+---> board (status) <-------+        events <-- event log
//! ```
//!
//! Data from the daemon is read from journals of bounded length, so nothing in the daemon ever waits for this. Data from
//! the server is bounded by the channel: a server that sends more has to wait.

mod board;
#[cfg(test)]
mod bounds_test;
mod entry;
mod events;
mod gate;
mod links;
mod mirrors;
mod node;
mod pace;
mod perform;
mod queue;
mod request;
mod watch;

pub use board::Board;
pub use links::Links;

use links::Standing;
use std::convert::Infallible;
use tokio::sync::{mpsc, watch as latest};

/// Observations that are not processed yet; the connection waits when there are more.
const OBSERVATIONS: usize = 64;

/// Runs for ever. Dropping it ends everything that was begun.
pub async fn run(links: Links) -> Infallible {
    let (standing, follow) = latest::channel(Standing::Silent);
    let (observe, observations) = mpsc::channel(OBSERVATIONS);
    // None of them ends.
    tokio::select! {
        never = node::run(&links, standing) => never,
        never = watch::run(&links, follow.clone(), observe) => never,
        never = mirrors::run(&links, follow.clone(), observations) => never,
        never = events::run(&links, follow.clone()) => never,
    }
}
