//! Services: everything that can be decided about them without a host.
//!
//! **Pure**: no files, no clock, no environment, no tokio. The flow:
//!
//! 1. [`validate`] lists the problems of what a manifest has; [`definition`] reads what has none, with defaults.
//! 2. [`limit`] says which are too many; [`allocate`] gives addresses and ports of the host, from what was recorded.
//! 3. [`endpoints`] selects the pods behind a Service; [`slices`] shows them as the API does.
//! 4. [`frontends`] is what packet rules need of all Services, as elements of sets and maps, and the difference of two.
//! 5. [`environment`] is the variables of a pod; [`absence`] says why nothing is behind a Service.
//!
//! [`shared_map`] holds what there is one of for each Service: a change of one costs nothing of the others.
//!
//! Rules are cited by their ids (S1, R1, ...), which `docs/contributing/service-rules.md` holds with their sources.

pub mod absence;
pub mod allocate;
pub mod definition;
pub mod endpoints;
pub mod environment;
pub mod frontends;
pub mod grammar;
pub mod limit;
pub mod name;
pub mod range;
pub mod shared_map;
pub mod slices;
pub mod validate;

#[cfg(test)]
mod testing;
