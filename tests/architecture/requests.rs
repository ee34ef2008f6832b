//! Code that speaks HTTP or TLS to servers: in the job, or for a reason that is here.

use crate::source_tree::{SourceFile, source_files};
use std::collections::BTreeSet;

/// Marks of a client.
const MARKS: [&str; 8] = [
    "reqwest::Client",
    "reqwest::Response",
    "reqwest::get(",
    "Client::builder(",
    "ClientBuilder",
    "client_config(",
    "ClientConfig",
    "Requester::here()",
];

/// Files that have one, and why.
const ALLOWED: &[(&str, &str)] = &[
    ("fetch/child.rs", "runs in the job"),
    ("fetch/coming.rs", "runs in the job; elsewhere it holds the answer of a request that the process sent itself"),
    ("fetch/engine.rs", "runs in the job"),
    ("fetch/setup.rs", "makes the settings of TLS, in the job"),
    ("outbound/tls.rs", "makes the settings of TLS, in the job and for the cluster"),
    ("upstream/client/identity.rs", "the cluster that the configuration names; it is believed"),
    ("probe/action/tls.rs", "pods, in their network"),
    ("daemon/commit_status/request.rs", "a server that is told; of its answer the status counts"),
    ("daemon/notify/deliver.rs", "a server that is told; of its answer the status counts"),
    ("image/repository/mod.rs", "the command of a user who makes a bundle: it has no Secrets of the host"),
];

#[test]
fn untrusted_servers_are_asked_by_jobs() {
    let files = source_files();
    let is_marked = |file: &&SourceFile| file.product_lines().any(|(_, line)| MARKS.iter().any(|mark| line.contains(mark)));
    let found: BTreeSet<&str> = files.iter().filter(is_marked).map(|file| file.path.as_str()).collect();
    let allowed: BTreeSet<&str> = ALLOWED.iter().map(|(path, _)| *path).collect();
    let others: Vec<_> = found.difference(&allowed).collect();
    assert!(others.is_empty(), "{others:#?} speak HTTP or TLS in the daemon: use podstead_fetch::Session, or give a reason here");
    let unused: Vec<_> = allowed.difference(&found).collect();
    assert!(unused.is_empty(), "{unused:?} need no reason any more");
}
