//! A process that is run in a container beside its own.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A process to run in a container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExecSpec {
    /// Program and arguments.
    pub args: Vec<String>,
    /// Allocate a terminal of this size (columns, rows).
    pub tty: Option<(u16, u16)>,
    /// Keep stdin open.
    pub stdin: bool,
    /// Copies files instead of executing a program: with the rights of the container's user, and without a program of the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy: Option<CopyJob>,
}

/// First word of `args` of a process that copies: what a shim that cannot copy says that it does not find.
const COPY: &str = "podstead-copy";

/// Files to copy by a process in a container. They come and go as a stream of `podstead-copy`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CopyJob {
    /// A file or tree to stdout.
    From {
        /// Its path; a relative one begins in the working directory of the container.
        path: PathBuf,
    },
    /// Stdin to a file or tree.
    Into {
        /// Its path, or that of a directory that it is put into.
        path: PathBuf,
        /// Its name in that directory.
        name: String,
        /// Keep owners and modes, where the user of the container may.
        preserve: bool,
    },
}

impl ExecSpec {
    /// A program without a terminal and stdin.
    pub fn program(args: Vec<String>) -> Self {
        Self { args, tty: None, stdin: false, copy: None }
    }

    /// A process that copies.
    pub fn copying(job: CopyJob) -> Self {
        let stdin = matches!(job, CopyJob::Into { .. });
        Self { args: vec![COPY.to_owned()], tty: None, stdin, copy: Some(job) }
    }
}
