//! The loop, the workers and the plan together, on a runtime in memory.

mod convergence;
mod events;
mod failures;
mod halt;
mod host;
mod lifecycle;
mod names;
mod objects;
mod probes;
mod resize;
mod storage;
