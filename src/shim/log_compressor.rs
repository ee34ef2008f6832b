//! The process that compresses rotated logs.

use super::explain::complain;
use podstead_sys::self_exec::OWN_BINARY;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Rotated logs, and the process that compresses them. One at a time: a container that writes without end must not fill the host with them.
#[derive(Debug, Default)]
pub(super) struct LogCompressor {
    process: Option<u32>,
    /// Logs that it has not been given yet.
    waiting: BTreeSet<PathBuf>,
}

impl LogCompressor {
    /// Has more log files compressed, now or when those before are done.
    pub(super) fn add(&mut self, files: impl IntoIterator<Item = PathBuf>) {
        self.waiting.extend(files);
        self.begin();
    }

    /// Notes that a process has ended, and begins with what waits. Returns false if it was another one.
    pub(super) fn note_end(&mut self, pid: u32) -> bool {
        let was_it = self.process == Some(pid);
        if was_it {
            self.process = None;
            self.begin();
        }
        was_it
    }

    fn begin(&mut self) {
        if self.waiting.is_empty() || self.process.is_some() {
            return;
        }
        let mut command = Command::new(OWN_BINARY);
        command.arg("compress").args(std::mem::take(&mut self.waiting)).env_clear().current_dir(Path::new("/"));
        match command.stdin(Stdio::null()).stdout(Stdio::null()).spawn() {
            // Reaped like every other child.
            Ok(child) => self.process = Some(child.id()),
            Err(error) => complain("compress rotated logs", &error),
        }
    }
}
