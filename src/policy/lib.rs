//! NetworkPolicies: everything that can be decided about them without a host.
//!
//! **Pure**: no files, no clock, no environment, no tokio. The flow:
//!
//! 1. [`validate`] lists the problems of what a manifest has; [`definition`] reads what has none.
//! 2. [`compile`] turns policies and pods into classes: per pod and direction, the connections that are allowed.
//! 3. [`table`] is what packet rules need of the classes, as sets, chains and elements, and the difference of two.
//! 4. [`decide`] is the decision on one connection, from the classes; [`explain`] names the policies behind it.
//!
//! Rules are cited by their ids (N1, R10, ...), which `docs/contributing/policy-rules.md` holds with their sources.

pub mod compile;
pub mod decide;
pub mod definition;
pub mod explain;
pub mod ranges;
pub mod selector;
pub mod table;
pub mod validate;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;
