//! The `podstead` command: daemon and client in one binary.

fn main() {}
