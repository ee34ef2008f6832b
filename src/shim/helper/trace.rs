//! Capture of libcontainer's log during a failure: its errors lose their cause on the way from its child processes, its log does not.
//!
//! The log goes into a memory file that libcontainer's children share, so that their words are there when they are gone.

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use std::fmt::{self, Write as _};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Errors that are told: the first is the cause or is followed by it, the rest repeat them from further and further away.
const MAX_ERRORS: usize = 2;

/// The most that is told of them.
const MAX_TEXT: usize = 2048;

/// The log of this process and of its children to come.
#[derive(Debug)]
pub(super) struct Trace {
    file: File,
}

/// Collects errors from now on. With a kernel that has no memory files, nothing is collected.
pub(super) fn collect() -> Option<Trace> {
    let file = File::from(memfd_create(c"trace", MFdFlags::MFD_CLOEXEC).ok()?);
    fcntl(&file, FcntlArg::F_SETFL(OFlag::O_APPEND)).ok()?;
    let writer = file.try_clone().ok()?;
    tracing::subscriber::set_global_default(Collector { writer }).ok()?;
    Some(Trace { file })
}

impl Trace {
    /// The first errors that were logged.
    pub(super) fn text(&mut self) -> String {
        let mut bytes = Vec::new();
        if self.file.seek(SeekFrom::Start(0)).and_then(|_| self.file.read_to_end(&mut bytes)).is_err() {
            return String::new();
        }
        let text = String::from_utf8_lossy(&bytes);
        let mut lines: Vec<&str> = Vec::new();
        for line in text.lines() {
            if lines.len() < MAX_ERRORS && !lines.contains(&line) {
                lines.push(line);
            }
        }
        let mut joined = lines.join("; ");
        if joined.len() > MAX_TEXT {
            joined.truncate(joined.floor_char_boundary(MAX_TEXT));
        }
        joined
    }
}

/// A subscriber that writes errors to a file, unbuffered: the process may be gone with the next instruction.
struct Collector {
    writer: File,
}

impl Subscriber for Collector {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::ERROR
    }

    fn max_level_hint(&self) -> Option<tracing::level_filters::LevelFilter> {
        Some(tracing::level_filters::LevelFilter::ERROR)
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line::default();
        event.record(&mut line);
        let text = format!("{}{}\n", line.message, line.fields).replace("\n", " ");
        let _full_memory = (&self.writer).write_all(format!("{}\n", text.trim_end()).as_bytes());
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[derive(Default)]
struct Line {
    message: String,
    fields: String,
}

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        let _infallible = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}
