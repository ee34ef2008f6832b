//! Latency, memory and idleness on this machine, against `podman kube play` and bare OCI runtimes in the same run.
//!
//! Prints a table in Markdown. Figures are medians (minimum to maximum); what counts are the ratios, since the peers ran
//! interleaved with podstead on the same machine. Nothing is asserted: a busy machine is no failure.
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    dead_code,
    reason = "a benchmark that cannot go on has to fail; it prints; it uses a part of what the node tests use"
)]

mod bundle;
mod figures;
mod idle;
mod latency;
mod memory;
mod peers;
#[path = "../node/support/mod.rs"]
mod support;

fn main() {
    // `cargo test --benches` calls it too, without --bench.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("0 passed, 0 failed");
        return;
    }
    println!("| what | podstead | peer | ratio |\n|---|---|---|---|");
    latency::rename_to_running();
    latency::create_start_delete();
    memory::daemon_and_shims();
    idle::one_minute();
}
