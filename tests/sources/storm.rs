//! Many files at once.
