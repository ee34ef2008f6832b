//! Options and run of a log.

use crate::failure::ApiFailure;
use crate::request::Query;
use jiff::{SignedDuration, Timestamp};
use std::path::PathBuf;

/// Selection and format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogOptions {
    /// Wait for more until the container has ended.
    pub follow: bool,
    /// The run before the newest one.
    pub previous: bool,
    /// Each line begins with its time.
    pub timestamps: bool,
    /// Only lines from then on.
    pub since: Option<Timestamp>,
    /// Only lines up to then.
    pub until: Option<Timestamp>,
    /// Only so many lines before the present end.
    pub tail: Option<u64>,
    /// Only so many bytes of output.
    pub limit: Option<u64>,
}

impl LogOptions {
    pub(super) fn parse(query: &Query, now: Timestamp) -> Result<Self, ApiFailure> {
        let since_seconds = query.number::<i64>("sinceSeconds", "a number of seconds")?;
        let since_time = query.number::<Timestamp>("sinceTime", "an RFC 3339 time")?;
        let since = match (since_seconds, since_time) {
            (Some(_), Some(_)) => return Err(ApiFailure::bad_request("at most one of sinceSeconds and sinceTime may be given")),
            (Some(seconds), None) if seconds < 1 => return Err(ApiFailure::bad_request("sinceSeconds must be greater than 0")),
            (Some(seconds), None) => Some(now.checked_sub(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MIN)),
            (None, time) => time,
        };
        let until = query.number::<Timestamp>("untilTime", "an RFC 3339 time")?;
        let tail = query.number("tailLines", "a number of lines")?;
        if until.is_some() && tail.is_some() {
            return Err(ApiFailure::bad_request("at most one of untilTime and tailLines may be given"));
        }
        Ok(Self {
            follow: query.flag("follow")?,
            previous: query.flag("previous")?,
            timestamps: query.flag("timestamps")?,
            since,
            until,
            tail,
            limit: query.number("limitBytes", "a number of bytes")?,
        })
    }
}

/// One run of a container.
#[derive(Clone, Debug)]
pub(super) struct Run {
    pub(super) path: PathBuf,
    /// The run's container id, when the runtime still knows it.
    pub(super) id: Option<podstead_pod::ContainerId>,
}
