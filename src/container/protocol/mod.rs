//! Messages between daemon and shim. **Pure**.
//!
//! The unix socket carries *frames* ([`frame`]): a kind, a length, a payload. On every connection both sides first send a hello
//! ([`ShimHello`], [`ClientHello`]); then the client sends [`Request`]s and the shim [`ToClient`] messages, both as JSON. A
//! connection on which [`Operation::Exec`] or [`Operation::Attach`] was answered with [`Answer::SessionOpen`] becomes a stream: its
//! frames carry bytes of stdin, stdout and stderr, terminal sizes and the exit code.
//!
//! Pods outlive upgrades, so a newer daemon talks to an older shim: fields that one side does not know are ignored, an operation
//! that the shim does not know is answered with [`Refusal::UnknownOperation`], frames of unknown kind are skipped. A field that is
//! added later has a serde default that means what the older side did.

pub mod frame;
pub mod message;
pub mod shim_config;
pub mod times;

pub use frame::{FrameDecoder, FrameError, FrameKind};
pub use message::{
    Answer, ClientHello, Operation, Refusal, Request, RequestHeader, ShimEvent, ShimEventKind, ShimHello, ShimStatus, ToClient,
};
pub use shim_config::{LogLimits, ShimConfig};
pub use times::{ShimStep, StepTime, StepTimes};

/// Protocol version of this build. Raised when a change cannot be expressed by optional fields; the shim serves any client, so it is the
/// daemon that looks at the shim's number.
pub const PROTOCOL_VERSION: u32 = 1;

/// Byte on the standard output of a shim's start: the shim is ready. Processes of the start may end some milliseconds later.
pub const SHIM_READY: u8 = b'+';
