//! The decoder as its users see it.
#![expect(clippy::unwrap_used, reason = "a test that cannot read its own files has to fail")]

mod bad_input;
mod good_input;
mod kustomize;
mod pairs;
mod patches;
mod properties;
mod render;
mod schema_table;
mod support;
mod validate;
mod workloads;
