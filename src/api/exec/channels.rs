//! The `v4.channel.k8s.io` and `v5.channel.k8s.io` protocols: every WebSocket message begins with the number of a channel. **Pure**.
//!
//! v5 adds one message, the closing of stdin. Used by the API and by the CLI.

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// With closing of stdin.
pub const V5: &str = "v5.channel.k8s.io";
/// Without.
pub const V4: &str = "v4.channel.k8s.io";

const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;
const RESIZE: u8 = 4;
const CLOSE: u8 = 255;

/// The better of the protocols that a client offers.
pub fn negotiate(offered: &[&str]) -> Option<&'static str> {
    [V5, V4].into_iter().find(|protocol| offered.contains(protocol))
}

/// Size of a terminal, in the format of its channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct TerminalSize {
    /// Columns.
    pub width: u16,
    /// Rows.
    pub height: u16,
}

/// From client to server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientMessage {
    /// Bytes for stdin.
    Stdin(Bytes),
    /// No more stdin (v5).
    CloseStdin,
    /// The terminal's new size.
    Resize(TerminalSize),
}

impl ClientMessage {
    /// Reads a message; `None` for what has no meaning here, which is skipped.
    pub fn decode(message: &Bytes) -> Option<Self> {
        let (&channel, rest) = message.split_first()?;
        match channel {
            STDIN if rest.is_empty() => None,
            STDIN => Some(Self::Stdin(message.slice(1..))),
            RESIZE => serde_json::from_slice(rest).ok().map(Self::Resize),
            CLOSE if rest == [STDIN] => Some(Self::CloseStdin),
            _ => None,
        }
    }

    /// Writes a message.
    pub fn encode(&self) -> Bytes {
        match self {
            Self::Stdin(bytes) => frame(STDIN, bytes),
            Self::CloseStdin => Bytes::from_static(&[CLOSE, STDIN]),
            Self::Resize(size) => frame(RESIZE, json!(size).to_string().as_bytes()),
        }
    }
}

/// From server to client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ServerMessage {
    /// Bytes of stdout, or of the terminal.
    Stdout(Bytes),
    /// Bytes of stderr.
    Stderr(Bytes),
    /// Result of the process; the last message.
    Ended(Ending),
}

/// Result of a process or of the session with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With this exit code.
    Exited(i32),
    /// The session broke.
    Failed(String),
}

impl ServerMessage {
    /// Reads a message; `None` for what has no meaning here, which is skipped.
    pub fn decode(message: &Bytes) -> Option<Self> {
        let (&channel, rest) = message.split_first()?;
        match channel {
            STDOUT if !rest.is_empty() => Some(Self::Stdout(message.slice(1..))),
            STDERR if !rest.is_empty() => Some(Self::Stderr(message.slice(1..))),
            ERROR if !rest.is_empty() => Some(Self::Ended(Ending::from_status(rest))),
            _ => None,
        }
    }

    /// Writes a message.
    pub fn encode(&self) -> Bytes {
        match self {
            Self::Stdout(bytes) => frame(STDOUT, bytes),
            Self::Stderr(bytes) => frame(STDERR, bytes),
            Self::Ended(ending) => frame(ERROR, ending.status().to_string().as_bytes()),
        }
    }
}

impl Ending {
    /// The end of a session whose process is gone without a word.
    pub(crate) fn unknown() -> Self {
        Self::Failed("the container has ended, and the exit code of the process is unknown".into())
    }

    /// The `Status` object for it.
    pub(crate) fn status(&self) -> Value {
        match self {
            Self::Exited(0) => json!({"metadata": {}, "status": "Success"}),
            Self::Exited(code) => json!({
                "metadata": {},
                "status": "Failure",
                "message": format!("command terminated with non-zero exit code: exit status {code}"),
                "reason": "NonZeroExitCode",
                "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]},
            }),
            Self::Failed(message) => {
                json!({"metadata": {}, "status": "Failure", "message": message, "reason": "InternalError", "code": 500})
            }
        }
    }

    fn from_status(bytes: &[u8]) -> Self {
        let Ok(status) = serde_json::from_slice::<Value>(bytes) else {
            return Self::Failed(String::from_utf8_lossy(bytes).into_owned());
        };
        if status["status"] == "Success" {
            return Self::Exited(0);
        }
        let causes = status["details"]["causes"].as_array();
        let code = causes.into_iter().flatten().find(|cause| cause["reason"] == "ExitCode");
        match code.and_then(|cause| cause["message"].as_str()?.parse().ok()) {
            Some(code) => Self::Exited(code),
            None => Self::Failed(status["message"].as_str().unwrap_or("the session ended without a reason").to_owned()),
        }
    }
}

fn frame(channel: u8, bytes: &[u8]) -> Bytes {
    let mut message = Vec::with_capacity(bytes.len() + 1);
    message.push(channel);
    message.extend_from_slice(bytes);
    Bytes::from(message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newer_protocol_is_preferred() {
        assert_eq!(negotiate(&["v4.channel.k8s.io", "v5.channel.k8s.io"]), Some(V5));
        assert_eq!(negotiate(&["channel.k8s.io", "v4.channel.k8s.io"]), Some(V4));
        assert_eq!(negotiate(&["SPDY/3.1"]), None);
    }

    #[test]
    fn what_the_client_says_is_understood_by_the_server() {
        let messages = [
            ClientMessage::Stdin(Bytes::from_static(b"ls\n")),
            ClientMessage::CloseStdin,
            ClientMessage::Resize(TerminalSize { width: 120, height: 40 }),
        ];
        for message in messages {
            assert_eq!(ClientMessage::decode(&message.encode()), Some(message));
        }
        assert_eq!(ClientMessage::Resize(TerminalSize { width: 1, height: 2 }).encode(), &b"\x04{\"Height\":2,\"Width\":1}"[..]);
    }

    #[test]
    fn what_the_server_says_is_understood_by_the_client() {
        let messages = [
            ServerMessage::Stdout(Bytes::from_static(b"out")),
            ServerMessage::Stderr(Bytes::from_static(b"err")),
            ServerMessage::Ended(Ending::Exited(0)),
            ServerMessage::Ended(Ending::Exited(137)),
            ServerMessage::Ended(Ending::Failed("the shim is gone".into())),
        ];
        for message in messages {
            assert_eq!(ServerMessage::decode(&message.encode()), Some(message));
        }
    }

    #[test]
    fn what_has_no_meaning_is_skipped() {
        for message in [&b""[..], b"\x00", b"\x04{}", b"\x04x", b"\xff\x01", b"\x09abc"] {
            assert_eq!(ClientMessage::decode(&Bytes::from_static(message)), None);
        }
    }
}
