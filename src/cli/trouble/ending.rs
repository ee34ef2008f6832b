//! Description of the end of a container run. **Pure**.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ContainerStateTerminated;
use podstead_api::show::age_since;

/// `Error, exit code 3 after 2s, 5m ago`.
pub(crate) fn ending(terminated: &ContainerStateTerminated, now: Timestamp) -> String {
    let reason = terminated.reason.as_deref().unwrap_or("Terminated");
    let how = match terminated.signal.filter(|signal| *signal != 0) {
        Some(signal) => format!("signal {signal}"),
        None => format!("exit code {}", terminated.exit_code),
    };
    let ran = match (&terminated.started_at, &terminated.finished_at) {
        (Some(start), Some(end)) => format!(" after {}", age_since(Some(start.0), end.0)),
        _ => String::new(),
    };
    let ago = age_since(terminated.finished_at.as_ref().map(|time| time.0), now);
    format!("{reason}, {how}{ran}, {ago} ago")
}
