//! Label selectors that can be compared and ordered, so that equal ones share a set (R10).

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use std::collections::{BTreeMap, BTreeSet};

/// Labels of a pod or a namespace.
pub type Labels = BTreeMap<String, String>;

/// A label selector; without requirements it selects everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Selector(BTreeSet<Requirement>);

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Requirement {
    key: String,
    operator: Operator,
    values: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

impl Operator {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "In" => Some(Self::In),
            "NotIn" => Some(Self::NotIn),
            "Exists" => Some(Self::Exists),
            "DoesNotExist" => Some(Self::DoesNotExist),
            _ => None,
        }
    }
}

impl Selector {
    /// The selector of a manifest; `None` for an unknown operator, which validation refuses.
    pub fn of(selector: &LabelSelector) -> Option<Self> {
        let equal = selector.match_labels.iter().flatten().map(|(key, value)| {
            Some(Requirement { key: key.clone(), operator: Operator::In, values: BTreeSet::from([value.clone()]) })
        });
        let expressions = selector.match_expressions.iter().flatten().map(|expression| {
            Some(Requirement {
                key: expression.key.clone(),
                operator: Operator::parse(&expression.operator)?,
                values: expression.values.iter().flatten().cloned().collect(),
            })
        });
        equal.chain(expressions).collect::<Option<_>>().map(Self)
    }

    /// Returns true if the labels meet all requirements.
    pub fn matches(&self, labels: &Labels) -> bool {
        self.0.iter().all(|requirement| {
            let found = labels.get(&requirement.key);
            let is_listed = found.is_some_and(|value| requirement.values.contains(value));
            match requirement.operator {
                Operator::In => is_listed,
                Operator::NotIn => !is_listed,
                Operator::Exists => found.is_some(),
                Operator::DoesNotExist => found.is_none(),
            }
        })
    }
}
