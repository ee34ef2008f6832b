//! Requests to servers that are not trusted: registries, and sources of manifests.
//!
//! In: a [`Request`], and the [`Setup`] of its connection. Out: status and chosen headers, then the body as it comes, or a [`Failure`]. Names are
//! resolved, connections made, certificates checked and answers read by a *job*, a process without rights that ends with the poll or pull which
//! it was started for. It never gets the request of another one. A [`Session`] is such a poll or pull: it has one job for each server, so that
//! no server meets a process that has the credentials of another one.
//!
//! Nothing is decided here about the answer: redirects, credentials, deadlines, limits, digests, and whether to ask again, are the caller's. The daemon
//! believes nothing that it does not check: lengths are compared, headers that nobody asked for are refused, texts are cut and cleaned.
//!
//! If no job is needed, because the server is chosen by the host's own configuration and its answer is a status, or because the user's own command asks,
//! the same is done in this process: [`Requester::here`].
//!
//! [`Failure`]: podstead_outbound::Failure

#[cfg(feature = "testing")]
mod attack;
mod child;
mod coming;
mod engine;
mod error;
mod files;
mod incoming;
mod jobs;
mod message;
mod request;
mod response;
mod running;
mod session;
mod setup;

pub use child::run;
pub use request::Request;
pub use response::Response;
pub use session::{Requester, Session};
pub use setup::{Hidden, Proxies, Setup, Trust};

/// Name of the task on the command line.
pub const TASK: &str = "fetch";
