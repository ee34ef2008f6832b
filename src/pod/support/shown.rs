//! Index from fields to the tests that show them: read from lines `/// shows: spec.hostname, spec.subdomain` above tests that would fail if
//! the field were ignored.
//!
//! A line that names a group speaks for all that is below it; a group is shown as well by a test of any of its fields.

use super::Support;
use super::table::TABLE;
use std::collections::{BTreeMap, BTreeSet};

/// Before the fields, after the slashes of the comment.
const MARK: &str = "shows:";
/// Fields of a group that a test can show at once; `spec.containers[]` does not mean all of them.
const MAX_GROUP: usize = 15;

/// Fields, as in the table, and the tests that name them.
#[derive(Debug, Default)]
pub(super) struct Shown(BTreeMap<String, BTreeSet<String>>);

/// Proof that a field has an effect.
#[derive(Debug, Eq, PartialEq)]
pub(super) enum Proof {
    /// Tests that name it, or a group that it is in.
    Tests(Vec<String>),
    /// Tests of fields below it.
    BelowIt,
    None,
}

impl Shown {
    /// Takes in one file of tests. `module` is where its tests are, e.g. `node::shim::setup`.
    ///
    /// # Errors
    /// The errors in its `shows:` lines: a field that the table does not have, or no test below.
    pub(super) fn read(&mut self, module: &str, text: &str) -> Result<(), Vec<String>> {
        let mut problems = Vec::new();
        let mut pending: Vec<&str> = Vec::new();
        let mut is_test = false;
        for (number, line) in text.lines().map(str::trim).enumerate().map(|(index, line)| (index + 1, line)) {
            if let Some(fields) = line.trim_start_matches('/').trim_start().strip_prefix(MARK).filter(|_| line.starts_with("//")) {
                let fields = fields.split(',').map(|field| field.trim().trim_matches('`')).filter(|field| !field.is_empty());
                for field in fields {
                    let below = TABLE.keys().filter(|other| is_below(other, field)).count();
                    match TABLE.contains_key(field) {
                        true if below <= MAX_GROUP => pending.push(field),
                        true => problems.push(format!("{module}, line {number}: no test shows all {below} fields of {field:?}")),
                        false => problems.push(format!("{module}, line {number}: the table of support has no field {field:?}")),
                    }
                }
            } else if line.starts_with("#[") {
                is_test |= line.contains("test");
            } else if let Some(name) = test_name(line).filter(|_| is_test) {
                for field in pending.drain(..) {
                    self.0.entry(field.to_owned()).or_default().insert(format!("{module}::{name}"));
                }
                is_test = false;
            } else if !line.starts_with("//") {
                if !pending.is_empty() {
                    problems.push(format!("{module}, line {number}: fields are shown by no test: {}", pending.join(", ")));
                    pending.clear();
                }
                is_test = false;
            }
        }
        if problems.is_empty() { Ok(()) } else { Err(problems) }
    }

    /// Proof of the field.
    pub(super) fn proof(&self, field: &str) -> Proof {
        let naming = self.0.iter().filter(|(shown, _)| *shown == field || is_below(field, shown));
        let tests: BTreeSet<&String> = naming.flat_map(|(_, tests)| tests).collect();
        if !tests.is_empty() {
            Proof::Tests(tests.into_iter().cloned().collect())
        } else if self.0.keys().any(|shown| is_below(shown, field)) {
            Proof::BelowIt
        } else {
            Proof::None
        }
    }
}

/// The name in `fn name(` or `async fn name(`.
fn test_name(line: &str) -> Option<&str> {
    let rest = line.trim_start_matches("pub(crate) ").trim_start_matches("async ").strip_prefix("fn ")?;
    rest.split_once('(').map(|(name, _)| name)
}

/// Returns true if the group contains the field.
pub(super) fn is_below(field: &str, group: &str) -> bool {
    field.strip_prefix(group).is_some_and(|rest| rest.starts_with(['.', '[']))
}

/// Returns true if a test must show a field of this kind.
pub(super) fn needs_proof(support: &Support) -> bool {
    match support {
        Support::Honoured(_) | Support::Partly { .. } => true,
        Support::Ignored { .. } | Support::Refused { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "
/// Says why.
/// shows: spec.hostname, spec.containers[].env[].valueFrom.fieldRef
#[test]
fn first() {
}

/// shows: `spec.hostname`
/// shows: spec.subdomain
#[tokio::test(flavor = \"multi_thread\")]
async fn second() {
";

    #[test]
    fn lines_belong_to_the_test_below_and_groups_to_their_fields() {
        let mut shown = Shown::default();
        shown.read("node::a", FILE).unwrap();
        let tests = |names: &[&str]| Proof::Tests(names.iter().map(|name| format!("node::a::{name}")).collect());
        assert_eq!(shown.proof("spec.hostname"), tests(&["first", "second"]));
        assert_eq!(shown.proof("spec.subdomain"), tests(&["second"]));
        assert_eq!(shown.proof("spec.containers[].env[].valueFrom.fieldRef.fieldPath"), tests(&["first"]));
        assert_eq!(shown.proof("spec.containers[].env[].valueFrom"), Proof::BelowIt);
        assert_eq!(shown.proof("spec.containers[].env[].valueFrom.resourceFieldRef"), Proof::None);
        assert_eq!(shown.proof("spec.hostnameOverride"), Proof::None, "a longer name is another field");
    }

    #[test]
    fn a_field_that_does_not_exist_and_a_line_without_a_test_are_reported() {
        let unknown = Shown::default().read("node::a", "/// shows: spec.hostnam\n#[test]\nfn a() {}").unwrap_err();
        assert_eq!(unknown, ["node::a, line 1: the table of support has no field \"spec.hostnam\""]);
        let wide = Shown::default().read("node::a", "/// shows: spec.volumes\n#[test]\nfn a() {}").unwrap_err();
        assert!(wide[0].starts_with("node::a, line 1: no test shows all "), "{wide:?}");
        let stray = Shown::default().read("node::a", "/// shows: spec.hostname\nfn not_a_test() {}").unwrap_err();
        assert_eq!(stray, ["node::a, line 2: fields are shown by no test: spec.hostname"]);
    }
}
