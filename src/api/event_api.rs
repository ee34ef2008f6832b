//! The two APIs of events: `v1`, and `events.k8s.io/v1` with other names of fields. **Pure**.

use std::borrow::Cow;

/// The newer group of events.
pub(super) const GROUP: &str = "events.k8s.io";
/// The version of it, as objects have it.
pub(super) const API_VERSION: &str = "events.k8s.io/v1";
/// The plural, as in paths.
pub(super) const PLURAL: &str = "events";

/// The API that events are shown in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventApi {
    /// `v1`.
    Core,
    /// `events.k8s.io/v1`.
    Events,
}

impl EventApi {
    /// The group.
    pub(super) const fn group(self) -> &'static str {
        match self {
            Self::Core => "",
            Self::Events => GROUP,
        }
    }

    /// The plural with the group, as messages have it.
    pub(super) const fn qualified(self) -> &'static str {
        match self {
            Self::Core => PLURAL,
            Self::Events => "events.events.k8s.io",
        }
    }

    /// The field of `v1` that a field of this API is.
    pub(super) fn core_field(self, name: &str) -> Cow<'_, str> {
        match (self, name.strip_prefix("regarding.")) {
            (Self::Events, Some(field)) => format!("involvedObject.{field}").into(),
            (Self::Events, None) if name == "reportingController" => "reportingComponent".into(),
            (Self::Core | Self::Events, _) => name.into(),
        }
    }
}
