//! Events of a workload.

/// The type of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventType {
    /// An ordinary step.
    Normal,
    /// Something that an operator should look at.
    Warning,
}

/// One event of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadEvent {
    /// Its type.
    pub event_type: EventType,
    /// Its reason: upstream's word where upstream has the event.
    pub reason: &'static str,
    /// Its message.
    pub message: String,
}

impl WorkloadEvent {
    /// An event of type Normal.
    pub fn normal(reason: &'static str, message: impl Into<String>) -> Self {
        Self { event_type: EventType::Normal, reason, message: message.into() }
    }

    /// An event of type Warning.
    pub fn warning(reason: &'static str, message: impl Into<String>) -> Self {
        Self { event_type: EventType::Warning, reason, message: message.into() }
    }
}
