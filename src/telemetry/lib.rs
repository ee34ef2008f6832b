//! Logging, events and traces.

mod correlator;
mod duration;
pub mod event_file;
pub mod event_log;
pub mod events;
pub mod journal;
mod journald;
pub mod logging;
pub mod trace;

pub use duration::kubernetes_duration;
pub use event_log::EventLog;
pub use logging::error_chain;
pub use trace::Traces;

/// `1 pod`, `3 pods`: for texts that people read.
pub fn counted(number: usize, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}
