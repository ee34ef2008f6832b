//! The `podstead-shim` command: one per pod; also the short-lived helper that creates containers.

fn main() {}
