//! The webhook listener: a git host says that something was pushed, and the source that follows it looks at once.
//!
//! It only ever wakes a source, which then asks the place that the configuration names: nothing in a request decides what is fetched or
//! run. Every request must prove that its sender knows the shared secret ([`verify`]); after that the path `/sources/NAME` names a source,
//! and `/` stands for all sources that read from the repository of the payload ([`repository_urls`]).
//!
//! Bounds: requests at a time, bytes of head and body, time per connection; and a source that is woken without pause polls with one
//! ([`super::polling`]). In: TCP connections. Out: wishes. One task, spawned by the daemon when a webhook is configured.

mod payload;
mod repository;
mod server;
mod verify;

pub use payload::repository_urls;
pub use repository::same_repository;
pub use server::{WebhookOptions, serve};
pub use verify::{SignatureHeaders, Unverified, verify};
