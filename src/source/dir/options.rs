//! Options and errors of following a directory.

use podstead_artifact::Layers;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Options for following a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DirectoryOptions {
    /// Time between two passes when no event comes (kubelet's `fileCheckFrequency`).
    pub relist: Duration,
    /// Time between two checks of the path itself, and between two passes when inotify is not available.
    pub look: Duration,
    /// Quiet time after an event before the directory is read.
    pub quiet: Duration,
    /// The longest time that a storm of events may put off a pass; grows to sixteen times that while the storm lasts.
    pub storm: Duration,
    /// Time for which a file that events do not cover must be unchanged before it is read.
    pub settle: Duration,
    /// Time for which a file may be written to continuously before that is a failure.
    pub patience: Duration,
    /// The size of the largest file that is read (kubelet rule A4).
    pub max_file_bytes: u64,
    /// The memory that all files of the directory may take.
    pub max_total_bytes: u64,
    /// Directories and files below the path that are read instead of what is in it; names have their way from the path.
    pub layers: Arc<Layers>,
}

impl Default for DirectoryOptions {
    fn default() -> Self {
        Self {
            relist: Duration::from_secs(20),
            look: Duration::from_secs(2),
            quiet: Duration::from_millis(5),
            storm: Duration::from_millis(250),
            settle: Duration::from_millis(100),
            patience: Duration::from_secs(30),
            max_file_bytes: 10 << 20,
            max_total_bytes: 64 << 20,
            layers: Arc::default(),
        }
    }
}

/// Errors of reading a directory.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// Nothing exists at the path.
    #[error("{0} does not exist")]
    Absent(PathBuf),
    /// The path is neither a directory nor a regular file.
    #[error("{path} {reason}")]
    Unusable {
        /// The path.
        path: PathBuf,
        /// The kind of file.
        reason: String,
    },
    /// The directory is there and cannot be listed.
    #[error("list {path}")]
    List {
        /// The path.
        path: PathBuf,
        /// The I/O error.
        #[source]
        source: io::Error,
    },
    /// The manifests exceed the memory limit.
    #[error("{path} has more than {max_bytes} bytes of manifests")]
    TooMuch {
        /// The path.
        path: PathBuf,
        /// The limit.
        max_bytes: u64,
    },
}
