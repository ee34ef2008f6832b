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
mod burst;
mod disk;
mod door;
mod figures;
mod git;
mod idle;
mod images;
mod latency;
mod memory;
mod network;
mod peers;
mod probes;
mod readiness;
mod scale;
mod services;
mod steps;
#[path = "../node/support/mod.rs"]
mod support;
mod walls;
mod workloads;

fn main() {
    // `cargo test --benches` calls it too, without --bench.
    if !std::env::args().any(|argument| argument == "--bench") {
        println!("0 passed, 0 failed");
        return;
    }
    let parts: [(&str, fn()); 21] = [
        ("rename", latency::rename_to_running),
        ("lifecycle", latency::create_start_delete),
        ("burst", burst::one_rename),
        ("memory", memory::daemon_and_shims),
        ("idle", idle::one_minute),
        ("disk", disk::writes),
        ("probes", probes::many_pods_with_probes),
        ("scale", scale::one_pod_beside_many),
        ("git", git::push_to_running),
        ("walls", walls::polls_and_rest),
        ("network", network::of_pods),
        ("services", services::of_pods),
        ("services-readiness", readiness::of_endpoints),
        ("workloads", workloads::replicas_of_one_deployment),
        ("objects", workloads::memory_of_objects),
        ("door", door::memory_and_watches),
        ("images-large", images::one_large_layer),
        ("images-layers", images::many_small_layers),
        ("images-link", images::link_that_breaks),
        ("images-starts", images::starts_during_pulls),
        ("images-idle", images::idle),
    ];
    // `make bench PARTS=idle` runs one of them, `PARTS=images` all whose names begin so.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    println!("| what | podstead | peer | ratio |\n|---|---|---|---|");
    let is_wanted = |name: &str| wanted.iter().any(|word| word == name || name.starts_with(&format!("{word}-")));
    for (_, run) in parts.iter().filter(|(name, _)| wanted.is_empty() || is_wanted(name)) {
        run();
    }
}
