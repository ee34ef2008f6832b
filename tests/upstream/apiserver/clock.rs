//! A host whose clock is wrong by a year: the loops in this process, on a clock of their own, against a real server.

use crate::host::{Host, NODE};
use crate::kube::RealCluster;
use crate::server::Server;
use crate::support::eventually;
use crate::unreliable::Unreliable;
use jiff::{SignedDuration, Timestamp};
use podstead::pod::{PodFullName, PodUid};
use podstead::telemetry::events::{EventRecorder as _, EventType, Subject};
use std::sync::Arc;
use std::time::{Duration, Instant};

const YEAR: SignedDuration = SignedDuration::from_hours(24 * 365);

/// At rest for this long.
const REST: Duration = Duration::from_secs(35);

fn behind() -> Timestamp {
    Timestamp::now() - YEAR
}

fn ahead() -> Timestamp {
    Timestamp::now() + YEAR
}

/// Requests for what this host writes and reads, since the server started.
fn requests(cluster: &RealCluster) -> u64 {
    let metrics = cluster.ok(&["get", "--raw", "/metrics"]);
    let is_it = |line: &&str| {
        line.starts_with("apiserver_request_total{")
            && ["leases", "nodes", "pods", "events"].iter().any(|kind| line.contains(&format!("resource=\"{kind}\"")))
    };
    metrics.lines().filter(is_it).filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok()).sum()
}

fn pod_subject() -> Subject {
    let full_name = PodFullName { name: "web".into(), namespace: "default".into() };
    Subject::Pod { uid: PodUid::new("local-default/web"), full_name, field_path: None }
}

/// True if a time of the cluster is what the host's clock shows.
fn is_by(clock: fn() -> Timestamp, at: &str) -> bool {
    at.parse::<Timestamp>().is_ok_and(|at| clock().duration_since(at).abs() < SignedDuration::from_mins(10))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a real kube-apiserver: make cluster"]
async fn clock_a_year_off_changes_nothing() {
    let cluster = RealCluster::start();
    let client = Arc::new(cluster.client(&format!("system:node:{NODE}"), "system:nodes"));
    let unused = Unreliable::new(Server::new(NODE), 1);
    let lease =
        || cluster.get("lease", "kube-node-lease", NODE).map(|lease| lease["spec"]["renewTime"].as_str().unwrap().to_owned());
    let mirror = || cluster.get("pod", "default", "web");
    // Each finds what the one before dated.
    for (turn, clock) in [behind as fn() -> Timestamp, ahead, Timestamp::now, behind].into_iter().enumerate() {
        let mut host = Host::new(&unused, "a").with_cluster(client.clone()).with_clock(clock);
        host.set_content("default/web");
        host.set_status("default/web", if turn % 2 == 0 { "Running" } else { "Pending" });
        host.start();
        let phase = if turn % 2 == 0 { "Running" } else { "Pending" };
        let shown = eventually("the mirror", || match mirror() {
            Some(mirror) if mirror["status"]["phase"] == phase => Ok(mirror),
            other => Err(format!("turn {turn}: {other:?} {:?}", *host.status.borrow())),
        });
        let first = eventually("the Lease", || lease().filter(|at| is_by(clock, at)).ok_or_else(|| format!("{:?}", lease())));
        eventually("the Lease to be renewed", || lease().filter(|at| *at != first).ok_or_else(|| first.clone()));
        eventually("the Node to be Ready by this clock", || {
            let node = cluster.get("node", "", NODE).unwrap();
            let ready =
                node["status"]["conditions"].as_array().unwrap().iter().find(|condition| condition["type"] == "Ready").unwrap();
            let is_there = ready["status"] == "True" && is_by(clock, ready["lastHeartbeatTime"].as_str().unwrap());
            if is_there { Ok(()) } else { Err(ready.to_string()) }
        });
        host.events.record(&pod_subject(), EventType::Normal, "Turned", &format!("turn {turn}"));
        eventually("the event", || match cluster.ok(&["get", "events", "--output", "json"]) {
            events if events.contains(&format!("turn {turn}")) => Ok(()),
            events => Err(events),
        });
        cluster.ok(&["delete", "pod", "web", "--force", "--grace-period=0", "--wait=false"]);
        eventually("another mirror", || match mirror() {
            Some(mirror) if mirror["metadata"]["uid"] != shown["metadata"]["uid"] && mirror["status"]["phase"] == phase => Ok(()),
            other => Err(format!("{other:?}")),
        });
        // A turn every ten seconds takes two requests.
        let (before, began) = (requests(&cluster), Instant::now());
        tokio::time::sleep(REST).await;
        let (made, took) = (requests(&cluster) - before, began.elapsed());
        assert!(made <= 2 * (took.as_secs() / 10 + 1) + 3, "turn {turn}: {made} requests in {took:?} without a change");
        host.kill().await;
    }
}
