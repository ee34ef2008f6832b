//! The successPolicy of an indexed Job (W64).

use super::memory::JobMemory;
use super::spec::Spec;
use super::verdict::{SuccessReason, Verdict};
use crate::indexes::IndexSet;
use k8s_openapi::api::batch::v1::SuccessPolicyRule;

/// The verdict of the first rule that is met.
pub(super) fn met(spec: &Spec, memory: &JobMemory) -> Option<Verdict> {
    let indexes = spec.indexes()?;
    let done = memory.completed_indexes.intersection(&IndexSet::below(indexes));
    if done.is_empty() {
        return None;
    }
    let rule = spec.success_rules.iter().position(|rule| is_met(rule, &done, indexes))?;
    Some(Verdict::Complete { reason: SuccessReason::SuccessPolicy, message: format!("Matched rules at index {rule}") })
}

/// True when all indexes of the rule are done, or as many of them as it counts.
fn is_met(rule: &SuccessPolicyRule, done: &IndexSet, indexes: u32) -> bool {
    let count = rule.succeeded_count.and_then(|count| u32::try_from(count).ok());
    let Some(text) = &rule.succeeded_indexes else {
        return count.is_some_and(|count| done.count() >= count);
    };
    // Validation refuses what cannot be read. An empty rule must not be met by nothing.
    let Some(required) = IndexSet::parse(text, indexes).ok().filter(|required| !required.is_empty()) else {
        return false;
    };
    let of_rule = done.intersection(&required).count();
    of_rule == required.count() || count.is_some_and(|count| of_rule >= count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(indexes: Option<&str>, count: Option<i32>) -> SuccessPolicyRule {
        SuccessPolicyRule { succeeded_indexes: indexes.map(str::to_owned), succeeded_count: count }
    }

    /// TJ15.
    #[test]
    fn rule_is_met_by_indexes_or_count() {
        for (rule, done, expected) in [
            (rule(Some("0-2"), None), "0-2,4", true),
            (rule(Some("3-6"), Some(2)), "0-2,4-7", true),
            (rule(Some("3-6"), Some(2)), "0-2,6,7", false),
            (rule(Some("0-2"), None), "0,2", false),
            (rule(None, Some(3)), "1,5,7", true),
            (rule(None, Some(4)), "1,5,7", false),
            (rule(Some(""), None), "1", false),
        ] {
            assert_eq!(is_met(&rule, &done.parse().unwrap(), 10), expected, "{rule:?} {done}");
        }
    }
}
