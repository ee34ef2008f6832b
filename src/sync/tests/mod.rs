//! The loop, the workers and the plan together, on a runtime in memory.

mod host;
mod lifecycle;
