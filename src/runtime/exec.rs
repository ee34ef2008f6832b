//! Processes that are run in a container beside its own, and what goes in and out of them.

use bytes::Bytes;
use tokio::sync::mpsc;

/// The near end of a running exec or attach. Dropping it kills an exec and leaves an attached container alone.
#[derive(Debug)]
pub struct ExecSession {
    /// To the process; capacity gives back-pressure.
    pub input: mpsc::Sender<ExecInput>,
    /// From the process; ends after [`ExecOutput::Exited`] or when the container is gone.
    pub output: mpsc::Receiver<ExecOutput>,
}

/// To a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecInput {
    /// Bytes for stdin.
    Stdin(Bytes),
    /// No more stdin.
    CloseStdin,
    /// The terminal's new size (columns, rows).
    Resize(u16, u16),
}

/// From a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecOutput {
    /// Bytes of stdout (or of the terminal).
    Stdout(Bytes),
    /// Bytes of stderr.
    Stderr(Bytes),
    /// It ended with this code (128 + signal).
    Exited(i32),
}
