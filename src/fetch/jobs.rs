//! Parts that all jobs share.

use podstead_job::launch::Launcher;
use podstead_telemetry::events::EventRecorder;
use std::sync::Arc;

/// The starter of jobs, and who hears of them.
#[derive(Debug)]
pub(crate) struct Jobs {
    pub(crate) launcher: Arc<Launcher>,
    pub(crate) events: Arc<dyn EventRecorder>,
}
