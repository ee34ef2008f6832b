//! A process that is run in a container beside its own.

use serde::{Deserialize, Serialize};

/// A process to run in a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecSpec {
    /// Program and arguments.
    pub args: Vec<String>,
    /// Allocate a terminal of this size (columns, rows).
    pub tty: Option<(u16, u16)>,
    /// Keep stdin open.
    pub stdin: bool,
}
