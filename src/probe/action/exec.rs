//! A command in a container.

use super::OUTPUT_LIMIT;
use podstead_container::ExecSpec;
use podstead_pod::{ContainerId, PodUid};
use podstead_runtime::{ExecOutput, Runtime, RuntimeError};
use std::sync::Arc;

/// Result of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExecAnswer {
    /// 128 + signal for a signal.
    pub exit_code: i32,
    /// Its output to both streams, in order, cut at [`OUTPUT_LIMIT`].
    pub output: String,
}

/// Reason why a command has no exit code.
#[derive(Debug, thiserror::Error)]
pub enum ExecError {
    /// It could not be started.
    #[error("exec in container {container}")]
    Start {
        /// The container.
        container: ContainerId,
        /// The reason.
        #[source]
        source: RuntimeError,
    },
    /// The container or its shim went away meanwhile.
    #[error("container {0} exited while a command was running in it")]
    Lost(ContainerId),
}

/// Runs `args` in a container until it ends. Dropped, it kills the command.
pub async fn run(runtime: &Arc<dyn Runtime>, uid: &PodUid, id: &ContainerId, args: &[String]) -> Result<ExecAnswer, ExecError> {
    let spec = ExecSpec::program(args.to_vec());
    let started = runtime.exec(uid, id, &spec).await;
    let mut session = started.map_err(|source| ExecError::Start { container: id.clone(), source })?;
    let mut output = Vec::new();
    while let Some(piece) = session.output.recv().await {
        match piece {
            ExecOutput::Stdout(bytes) | ExecOutput::Stderr(bytes) => {
                // The rest is read too, so that a talkative command is not stopped by a full pipe.
                let room = OUTPUT_LIMIT.saturating_sub(output.len());
                output.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            ExecOutput::Exited(exit_code) => return Ok(ExecAnswer { exit_code, output: super::bounded_text(&output) }),
        }
    }
    Err(ExecError::Lost(id.clone()))
}
