//! Real pods: the built binaries, real images, this machine's kernel. Needs root.
//!
//! Every test has a host of its own ([`support::TestHost`]): private state, run and log directories, a daemon, a directory of
//! manifests. `PODSTEAD_BIN_DIR` makes the tests use other binaries, `PODSTEAD_TEST_IMAGE` another image archive (for machines
//! where it cannot be made).
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test that cannot go on has to fail, and says what it saw")]

mod adoption;
mod apparmor;
mod backup;
mod bad_input;
mod causes;
mod commit_status;
mod condition_times;
mod conformance;
mod connections;
mod copy;
mod deadline;
mod dev_volume;
mod devices;
mod differential;
mod disk_counters;
mod doctor;
mod encrypted;
mod git;
mod hooks;
mod housekeeping;
mod identity;
mod idle_disk;
mod image_volumes;
mod killed_jobs;
mod kube_rs;
mod kubectl_reads;
mod kubectl_requests;
mod kubectl_rows;
mod kubectl_writes;
mod lifecycle;
mod many_pods;
mod monitoring;
mod network;
mod nfs;
mod notify;
mod objects;
mod oci;
mod old_clock;
mod operator;
mod persistent;
mod pod_orders;
mod port_forward;
mod probes;
mod probes_effects;
mod process_view;
mod pull_secrets;
mod python_client;
mod real_images;
mod removal;
mod resources;
mod restart_rules;
mod revisions;
mod security;
mod shim;
mod slow_disk;
mod small_memory;
mod sources;
mod storage;
mod support;
mod support_bundle;
mod syncs;
mod trace;
mod users;
mod volumes;
mod workloads;
mod write_ahead;
