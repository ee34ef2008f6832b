//! Tables for one object. **Pure**.

use super::entry::Support;
use super::table::TABLE;
use super::{table, template};

/// The tables for an object.
#[derive(Clone, Copy)]
pub(super) struct Tables {
    /// First segment of the fields in the table, e.g. `Deployment`; empty for a Pod.
    pub(super) root: &'static str,
    pub(super) support: fn(&str) -> Option<&'static Support>,
    /// Reports whether fields of the object at a pattern have entries of their own.
    pub(super) has_fields: fn(&str) -> bool,
}

impl Tables {
    pub(super) const POD: Self = Self { root: "", support: |pattern| TABLE.get(pattern), has_fields: table::has_fields };
    pub(super) const TEMPLATE: Self =
        Self { support: |pattern| template::support(pattern).or_else(|| TABLE.get(pattern)), ..Self::POD };
}
