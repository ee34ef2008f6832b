//! The daemon's configuration: as written, resolved, defaults.

pub mod paths;

pub use paths::Paths;
