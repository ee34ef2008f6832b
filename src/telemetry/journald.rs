//! Log lines to systemd's journal, each with its priority and its fields, so that `journalctl PODSTEAD_POD=web` finds the lines about a pod.
//!
//! The protocol is <https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>: one datagram per message. Known crates either leave the fields out of the
//! text that `journalctl` shows, or bring a second `nix` along.

use std::fmt::{self, Write as _};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

/// Socket of the journal.
pub(super) const SOCKET: &str = "/run/systemd/journal/socket";
/// Longest text of a message and of a field, in bytes: far below the size of a datagram that the kernel passes.
const MAX_VALUE_BYTES: usize = 16 << 10;
/// Fields of one message. The ones of this crate have less than ten.
const MAX_FIELDS: usize = 32;

/// Sends each event to the journal.
#[derive(Debug)]
pub(super) struct JournaldLayer {
    socket: UnixDatagram,
}

impl JournaldLayer {
    /// Fails where no journal listens at `socket`.
    pub(super) fn connect(socket: &Path) -> std::io::Result<Self> {
        let datagrams = UnixDatagram::unbound()?;
        datagrams.connect(socket)?;
        Ok(Self { socket: datagrams })
    }
}

impl<S: Subscriber> Layer<S> for JournaldLayer {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut line = Line::default();
        event.record(&mut line);
        // A journal that is restarted is without a listener for a moment: the service manager keeps the socket, and the line waits in it.
        if self.socket.send(&line.datagram(*event.metadata().level())).is_err() {
            let _lost = writeln!(Stderr, "{}", line.text());
        }
    }
}

/// `eprintln!` panics where stderr is closed.
struct Stderr;

impl fmt::Write for Stderr {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        std::io::Write::write_all(&mut std::io::stderr(), text.as_bytes()).map_err(|_| fmt::Error)
    }
}

/// One message, taken apart.
#[derive(Debug, Default)]
struct Line {
    message: String,
    /// Names as in the code, in the order of the code.
    fields: Vec<(&'static str, String)>,
}

impl Line {
    /// As it reads on a terminal: the message, then `name=value`.
    fn text(&self) -> String {
        let mut text = self.message.clone();
        for (name, value) in &self.fields {
            let separator = if text.is_empty() { "" } else { " " };
            let _infallible = write!(text, "{separator}{name}={value}");
        }
        text
    }

    fn datagram(&self, level: Level) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, "PRIORITY", priority(level));
        put(&mut out, "SYSLOG_IDENTIFIER", "podstead");
        put(&mut out, "MESSAGE", &self.text());
        for (name, value) in &self.fields {
            put(&mut out, &format!("PODSTEAD_{}", name.to_ascii_uppercase()), value);
        }
        out
    }

    fn push(&mut self, field: &Field, value: String) {
        match field.name() {
            "message" => self.message = value,
            // Names with a dot are not the journal's.
            name if self.fields.len() < MAX_FIELDS && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_') => {
                self.fields.push((name, value));
            }
            _ => {}
        }
    }
}

impl Visit for Line {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.push(field, value.to_owned());
    }

    fn record_error(&mut self, field: &Field, value: &(dyn std::error::Error + 'static)) {
        self.push(field, super::error_chain(value).to_string());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.push(field, format!("{value:?}"));
    }
}

/// The priorities of syslog, as systemd's `LogLevelMax=` counts them.
fn priority(level: Level) -> &'static str {
    match level {
        Level::ERROR => "3",
        Level::WARN => "4",
        Level::INFO => "6",
        Level::DEBUG | Level::TRACE => "7",
    }
}

/// Adds one field in the form with an explicit length, which every value can take.
fn put(out: &mut Vec<u8>, name: &str, value: &str) {
    let mut end = value.len().min(MAX_VALUE_BYTES);
    while !value.is_char_boundary(end) {
        end -= 1;
    }
    let value = &value.as_bytes()[..end];
    out.extend_from_slice(name.as_bytes());
    out.push(b'\n');
    out.extend_from_slice(&(value.len() as u64).to_le_bytes());
    out.extend_from_slice(value);
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing_subscriber::layer::SubscriberExt as _;

    /// The fields of a datagram.
    fn parse(mut bytes: &[u8]) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        while !bytes.is_empty() {
            let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
            let name = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let length = u64::from_le_bytes(bytes[end + 1..end + 9].try_into().unwrap()) as usize;
            let value = String::from_utf8(bytes[end + 9..end + 9 + length].to_vec()).unwrap();
            assert_eq!(bytes[end + 9 + length], b'\n');
            fields.push((name, value));
            bytes = &bytes[end + 10 + length..];
        }
        fields
    }

    fn sent_by(log: impl FnOnce()) -> Vec<(String, String)> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        let journal = UnixDatagram::bind(&path).unwrap();
        let subscriber = tracing_subscriber::registry().with(JournaldLayer::connect(&path).unwrap());
        tracing::subscriber::with_default(subscriber, log);
        let mut buffer = vec![0; 1 << 20];
        let length = journal.recv(&mut buffer).unwrap();
        parse(&buffer[..length])
    }

    #[test]
    fn a_line_carries_its_priority_its_text_and_its_fields() {
        let error = std::io::Error::other("disk\non fire");
        let fields =
            sent_by(|| tracing::warn!(pod = "web", container = %"main", error = &error as &dyn std::error::Error, "not started"));
        let expected = [
            ("PRIORITY", "4"),
            ("SYSLOG_IDENTIFIER", "podstead"),
            ("MESSAGE", "not started pod=web container=main error=disk\non fire"),
            ("PODSTEAD_POD", "web"),
            ("PODSTEAD_CONTAINER", "main"),
            ("PODSTEAD_ERROR", "disk\non fire"),
        ];
        let fields: Vec<_> = fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        assert_eq!(fields, expected);
    }

    #[test]
    fn a_value_that_is_too_long_is_cut_between_characters() {
        let long = "é".repeat(MAX_VALUE_BYTES);
        let fields = sent_by(|| tracing::error!(long, "x"));
        assert_eq!(fields[0].1, "3");
        assert_eq!(fields[3].1, "é".repeat(MAX_VALUE_BYTES / 2));
    }

    #[test]
    fn where_no_journal_listens_connecting_fails() {
        let directory = tempfile::tempdir().unwrap();
        assert!(JournaldLayer::connect(&directory.path().join("journal")).is_err());
    }
}
