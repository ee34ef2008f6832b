//! Set-up of the daemon's log: to stderr for a person, to the journal with fields.

use super::journald::JournaldLayer;
use std::error::Error;
use std::fmt;
use std::os::fd::AsFd;
use std::path::Path;
use tracing_subscriber::fmt::format::FmtSpan;
use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::{EnvFilter, Layer as _, Registry, reload};

/// Environment variable that overrides the configured level; takes the directives of `tracing`'s filter.
pub const LEVEL_VARIABLE: &str = "PODSTEAD_LOG";

/// Format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// One line of text per message.
    #[default]
    Text,
    /// One JSON object per line, for collectors that read stderr or a file. Also under systemd.
    Json,
    /// To the journal, with priority and fields; to stderr without a time stamp where there is no journal. Chosen for `text` when systemd
    /// connects stderr to the journal.
    Journal,
}

/// Reason why logging could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum LoggingError {
    /// Level or `PODSTEAD_LOG` is not a filter.
    #[error("parse log level {level:?}")]
    BadLevel {
        /// As written.
        level: String,
        /// The parse error.
        #[source]
        source: tracing_subscriber::filter::ParseError,
    },
    /// A subscriber is set already.
    #[error("install the log subscriber")]
    AlreadySet(#[source] tracing::subscriber::SetGlobalDefaultError),
    /// The log that the control belongs to is gone.
    #[error("change the log level")]
    NotRunning(#[source] reload::Error),
}

/// The part of the environment that matters for logging.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogEnvironment {
    /// Value of `PODSTEAD_LOG`.
    pub level: Option<String>,
    /// Standard error is the stream that systemd connected to the journal.
    pub under_journal: bool,
}

impl LogEnvironment {
    /// Reads the environment of this process.
    pub fn of_process() -> Self {
        Self {
            level: std::env::var(LEVEL_VARIABLE).ok().filter(|level| !level.is_empty()),
            under_journal: is_stream_of_journal(std::env::var("JOURNAL_STREAM").ok().as_deref(), &std::io::stderr()),
        }
    }

    /// The level that counts: environment before configuration.
    pub fn effective_level<'a>(&'a self, configured: &'a str) -> &'a str {
        self.level.as_deref().unwrap_or(configured)
    }
}

/// Compares a file with `JOURNAL_STREAM`, which systemd sets to the device and the inode of the stream. The variable alone says nothing: processes of
/// a service inherit it, wherever their own output goes.
fn is_stream_of_journal(variable: Option<&str>, file: &impl AsFd) -> bool {
    let Some((device, inode)) = variable.and_then(|text| text.split_once(':')) else { return false };
    let found = rustix::fs::fstat(file).map(|found| (found.st_dev.to_string(), found.st_ino.to_string()));
    found.is_ok_and(|found| found == (device.to_owned(), inode.to_owned()))
}

/// Changes the level of a log that runs.
#[derive(Clone, Debug)]
pub struct LevelControl {
    filter: reload::Handle<EnvFilter, Registry>,
    environment: LogEnvironment,
}

impl LevelControl {
    /// Lets the configured level count from now on, unless the environment goes before it.
    pub fn set(&self, configured: &str) -> Result<(), LoggingError> {
        let filter = filter(self.environment.effective_level(configured))?;
        // The subscriber lives as long as the process.
        self.filter.reload(filter).map_err(LoggingError::NotRunning)
    }
}

/// The filter. Its parts of the program are written as `podstead::source`; each is a crate, `podstead_source`.
fn filter(level: &str) -> Result<EnvFilter, LoggingError> {
    EnvFilter::try_new(of_crates(level)).map_err(|source| LoggingError::BadLevel { level: level.to_owned(), source })
}

fn of_crates(level: &str) -> String {
    level.replace("podstead::", "podstead_")
}

/// Installs the process' log. To be called once, by the daemon.
pub fn init(configured_level: &str, format: LogFormat, environment: &LogEnvironment) -> Result<LevelControl, LoggingError> {
    let filter = filter(environment.effective_level(configured_level))?;
    let (filter, handle) = reload::Layer::new(filter);
    let format = match format {
        LogFormat::Text if environment.under_journal => LogFormat::Journal,
        LogFormat::Text | LogFormat::Json | LogFormat::Journal => format,
    };
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .with_target(false)
        .with_span_events(FmtSpan::NONE);
    let output = match format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().flatten_event(true).with_current_span(false).with_span_list(false).boxed(),
        LogFormat::Journal => match JournaldLayer::connect(Path::new(super::journald::SOCKET)) {
            Ok(journal) => journal.boxed(),
            // stderr as connected by systemd is the next best.
            Err(_) => lines.without_time().boxed(),
        },
    };
    tracing::subscriber::set_global_default(Registry::default().with(filter).with(output)).map_err(LoggingError::AlreadySet)?;
    Ok(LevelControl { filter: handle, environment: environment.clone() })
}

/// Shows an error and all its sources: `a: b: c`. Errors of this crate never repeat their source, so nothing is said twice.
pub fn error_chain<'a>(error: &'a (dyn Error + 'static)) -> impl fmt::Display + 'a {
    Chain(error)
}

struct Chain<'a>(&'a (dyn Error + 'static));

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut cause = self.0.source();
        while let Some(error) = cause {
            write!(f, ": {error}")?;
            cause = error.source();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error)]
    #[error("read record")]
    struct Outer(#[source] std::io::Error);

    #[test]
    fn inherited_variable_does_not_mean_journal() {
        use std::os::unix::fs::MetadataExt;
        let (stream, elsewhere) = (tempfile::tempfile().unwrap(), tempfile::tempfile().unwrap());
        let found = stream.metadata().unwrap();
        let variable = format!("{}:{}", found.dev(), found.ino());
        assert!(is_stream_of_journal(Some(&variable), &stream));
        assert!(!is_stream_of_journal(Some(&variable), &elsewhere));
        assert!(!is_stream_of_journal(None, &stream));
        assert!(!is_stream_of_journal(Some("8"), &stream));
    }

    #[test]
    fn a_chain_names_every_cause_once() {
        let error = Outer(std::io::Error::new(std::io::ErrorKind::NotFound, "no such file"));
        assert_eq!(error_chain(&error).to_string(), "read record: no such file");
    }

    #[test]
    fn the_environment_overrides_the_configured_level() {
        let environment = LogEnvironment { level: Some("debug".into()), under_journal: false };
        assert_eq!(environment.effective_level("info"), "debug");
        assert_eq!(LogEnvironment::default().effective_level("info"), "info");
    }

    #[test]
    fn parts_of_the_program_are_crates() {
        assert_eq!(of_crates("info,podstead::network::cni=debug,podstead=warn"), "info,podstead_network::cni=debug,podstead=warn");
        assert!(module_path!().starts_with("podstead_telemetry"));
    }

    #[test]
    fn a_level_that_is_no_filter_is_named_in_the_error() {
        let error = init("podstead=loud=1", LogFormat::Text, &LogEnvironment::default()).unwrap_err();
        assert!(error.to_string().contains("podstead=loud=1"), "{error}");
    }
}
