//! Times of the steps that shim and helper take, in frames of their own: a daemon that does not know them skips the frames, and an older shim sends none.

use podstead_pod::ContainerName;
use podstead_sys::tick::Tick;
use serde::{Deserialize, Serialize};

/// A step of shim or helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ShimStep {
    /// The helper process is started.
    HelperStart,
    /// The record of the intended start is made durable.
    Record,
    /// The helper makes what libcontainer needs.
    Prepare,
    /// libcontainer creates the container.
    Create,
    /// The helper waits for the record.
    AwaitRecord,
    /// libcontainer starts the container, until its program is executed.
    Execute,
    /// The program runs until its first output.
    FirstOutput,
    /// One of a later version.
    #[serde(other)]
    Other,
}

/// Time of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepTime {
    /// The step.
    pub step: ShimStep,
    /// Its beginning, in nanoseconds of the kernel's monotonic clock.
    pub from: u64,
    /// Its end.
    pub to: u64,
}

impl StepTime {
    /// A step between two ticks.
    pub const fn new(step: ShimStep, from: Tick, to: Tick) -> Self {
        Self { step, from: from.nanos(), to: to.nanos() }
    }
}

/// Payload of [`FrameKind::Times`](super::FrameKind::Times).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepTimes {
    /// The container whose start they are of.
    pub container: ContainerName,
    /// The steps.
    pub steps: Vec<StepTime>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn step_of_later_version_is_read() {
        let text = r#"{"container":"c","steps":[{"step":"checkpoint","from":1,"to":2},{"step":"await-record","from":2,"to":5}]}"#;
        let times: StepTimes = serde_json::from_str(text).unwrap();
        let steps: Vec<ShimStep> = times.steps.iter().map(|time| time.step).collect();
        assert_eq!(steps, [ShimStep::Other, ShimStep::AwaitRecord]);
    }
}
