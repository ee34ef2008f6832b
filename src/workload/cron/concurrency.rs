//! The decision on a due time beside runs that have not ended (W73, W74).

/// The concurrencyPolicy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConcurrencyPolicy {
    /// Runs may overlap.
    Allow,
    /// No run starts beside another.
    Forbid,
    /// A run ends those before it.
    Replace,
}

impl ConcurrencyPolicy {
    /// The values as Kubernetes writes them.
    pub const NAMES: [&str; 3] = ["Allow", "Forbid", "Replace"];

    /// Reads the field; without a value it is Allow (W68). None for anything else.
    pub fn parse(text: Option<&str>) -> Option<Self> {
        match text {
            None | Some("" | "Allow") => Some(ConcurrencyPolicy::Allow),
            Some("Forbid") => Some(ConcurrencyPolicy::Forbid),
            Some("Replace") => Some(ConcurrencyPolicy::Replace),
            Some(_) => None,
        }
    }
}

/// Runs that have not ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unfinished {
    /// Some Job is wanted and active.
    pub(super) is_active: bool,
    /// Some Job is not wanted any more and not gone yet.
    pub(super) is_ending: bool,
}

/// Decision on a due time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Its deadline has passed.
    Missed,
    /// It waits for the end of another run.
    Blocked,
    /// Active runs are ended for it.
    EndOthers,
    /// It waits until the runs that it replaces are gone.
    WaitForOthers,
    /// It starts.
    Start,
}

/// Decides on a due time. A run for which others were ended already starts, however late they are gone.
pub(super) fn decide(policy: ConcurrencyPolicy, unfinished: Unfinished, is_late: bool, others_were_ended: bool) -> Decision {
    match policy {
        ConcurrencyPolicy::Allow | ConcurrencyPolicy::Forbid if is_late => Decision::Missed,
        ConcurrencyPolicy::Replace if is_late && !others_were_ended => Decision::Missed,
        ConcurrencyPolicy::Forbid if unfinished.is_active || unfinished.is_ending => Decision::Blocked,
        ConcurrencyPolicy::Replace if unfinished.is_active => Decision::EndOthers,
        ConcurrencyPolicy::Replace if unfinished.is_ending => Decision::WaitForOthers,
        ConcurrencyPolicy::Allow | ConcurrencyPolicy::Forbid | ConcurrencyPolicy::Replace => Decision::Start,
    }
}
