//! A day of random faults in paused time: whatever happened, at the end the mirrors equal the pods, and at no time was there a busy loop.

use crate::host::{Host, NODE};
use crate::server::Server;
use crate::unreliable::{Dice, Unreliable, Weather};
use serde_json::json;
use std::time::Duration;

/// Requests of one host in a minute that nothing explains but a loop without pause; two changes a second at most are made here.
const MOST_REQUESTS_A_MINUTE: u64 = 400;

/// Windows of two minutes in which the work that the storm left comes to its end.
const MOST_WINDOWS_TO_REST: u32 = 5;

async fn storm(seed: u64, steps: u32) {
    let server = Server::new(NODE);
    let transport = Unreliable::new(server.clone(), seed);
    let mut dice = Dice::new(seed + 7);
    let mut host = Host::new(&transport, "a");
    host.start();
    let pods: Vec<String> =
        (0..8).map(|number| format!("{}/pod-{number}", if number == 7 { "later" } else { "default" })).collect();
    let mut minute = (tokio::time::Instant::now(), 0);
    for step in 0..steps {
        let name = pods[dice.roll(8) as usize].clone();
        let (namespace, pod) = name.split_once('/').unwrap();
        match dice.roll(16) {
            0 | 1 => host.set_content(&name),
            2..=4 => host.set_status(&name, if dice.roll(2) == 0 { "Running" } else { "Pending" }),
            5 => host.remove(&name),
            6 => drop(server.store().remove("pods", namespace, pod)),
            7 => server.store().begin_deletion(namespace, pod),
            8 => {
                let serial = dice.roll(5);
                let orphan = json!({
                    "metadata": {"name": format!("orphan-{serial}"), "namespace": "default", "annotations": {"kubernetes.io/config.mirror": "x"}},
                    "spec": {"nodeName": NODE},
                });
                server.store().put("pods", orphan);
            }
            9 => server.store().compact(),
            10 => transport.set(Weather::Down),
            11 => transport.set(Weather::Fair),
            12 | 13 => transport.set(Weather::Foul),
            14 => drop(server.store().remove("nodes", "", NODE)),
            _ => {
                // The daemon dies, and comes back knowing nothing.
                host.kill().await;
                host.start();
            }
        }
        tokio::time::sleep(Duration::from_millis(500 + dice.roll(60_000))).await;
        let elapsed = minute.0.elapsed();
        if elapsed >= Duration::from_secs(60) {
            let requests = server.store().requests;
            let minutes = elapsed.as_secs() / 60 + 1;
            assert!(requests - minute.1 < MOST_REQUESTS_A_MINUTE * minutes, "seed {seed}, step {step}: {requests}");
            minute = (tokio::time::Instant::now(), requests);
        }
    }
    server.store().namespaces.insert("later".into());
    transport.set(Weather::Fair);
    // A watch may be half open, which is noticed after three minutes, and a refused pod waits a minute.
    let took = host.settle(&server, Duration::from_secs(400)).await;
    // A request that hangs, events and pauses after failures may come to their end after that; then the Lease is all that is written.
    let writes = 'rest: {
        for _ in 0..MOST_WINDOWS_TO_REST {
            server.store().writes.clear();
            tokio::time::sleep(Duration::from_secs(120)).await;
            let writes = server.store().writes.clone();
            if writes.keys().eq(["leases"]) {
                break 'rest writes["leases"];
            }
        }
        panic!("seed {seed}: no rest, at last {:?}", server.store().writes);
    };
    assert!(writes <= 13, "seed {seed}: the Lease every ten seconds, not {writes} times in 120 s");
    assert_eq!(host.difference(&server), Ok(()), "seed {seed}, settled after {took:?}");
    host.kill().await;
}

#[tokio::test(start_paused = true)]
async fn after_day_of_faults_mirrors_equal_pods() {
    for seed in 1..=12 {
        storm(seed, 500).await;
    }
}
