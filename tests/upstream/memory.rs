//! Memory does not grow with what a server sends, nor with the time for which it is not there.

use crate::daemon::{NODE, POD, host, wait_for_phase, wait_for_phase_within};
use crate::host::Host;
use crate::malice::Malice;
use crate::server::Server;
use crate::support::{TestHost, eventually_within};
use crate::unreliable::{Unreliable, Weather};
use crate::wire::Wire;
use podstead::pod::{PodFullName, PodUid};
use podstead::telemetry::events::{EventRecorder as _, EventType, Subject};
use serde_json::json;
use std::fs;
use std::process::Command;
use std::time::Duration;

/// Cost limit of one answer, in KiB: the longest page and what is made of it, with the room that an allocator takes beside it.
const MOST_KIB: u64 = 80 << 10;

/// Time for a few answers, with the pauses between them.
const PATIENCE: Duration = Duration::from_secs(180);

/// The most memory that the daemon had since the last look, KiB.
fn peak_kib(host: &TestHost) -> u64 {
    let pid = host.daemon_pid();
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    // Begins the count anew (proc_pid_clear_refs(5)).
    fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
    line.split_whitespace().next().unwrap().parse().unwrap()
}

#[test]
fn endless_pages_cost_bounded_memory() {
    // More than would be held if nothing were counted.
    costs_bounded_memory(Malice::Pages, 15, 60_000_000);
}

#[test]
fn endless_pods_cost_bounded_memory() {
    // One watch goes on for minutes; these are more pods than a Node can have.
    costs_bounded_memory(Malice::Pods, 1, 40_000_000);
}

#[test]
fn endless_heads_cost_bounded_memory() {
    costs_bounded_memory(Malice::Head, 2, 1_000_000);
}

#[test]
fn endless_bodies_cost_bounded_memory() {
    costs_bounded_memory(Malice::Body, 2, 1_000_000);
}

#[test]
fn endless_refusals_cost_bounded_memory() {
    costs_bounded_memory(Malice::Refusal, 2, 1_000_000);
}

#[test]
fn endless_trees_cost_bounded_memory() {
    costs_bounded_memory(Malice::Tree, 2, 1_000_000);
}

#[test]
fn endless_lines_cost_bounded_memory() {
    costs_bounded_memory(Malice::Line, 2, 1_000_000);
}

/// A server that sends at least so many answers and bytes of a kind: the pod goes on, and is mirrored again when the server is well.
fn costs_bounded_memory(malice: Malice, least_answers: u64, least_bytes: u64) {
    let server = Server::new(NODE);
    let wire = Wire::start(server.clone());
    wire.known.lock().unwrap().token = Some("t".into());
    let mut host = host(&wire, &json!({"token": "t"}));
    host.start_daemon();
    host.write_manifest("web.yaml", POD);
    let pid = host.container_pid(&host.wait_running("web"), "c");
    let shown = wait_for_phase(&server, "Running");
    peak_kib(&host);
    let usual = peak_kib(&host);
    wire.mood.set(Some(malice));
    // The watch has to begin anew: a change that it has not seen is forgotten.
    {
        let mut store = server.store();
        store.put("pods", json!({"metadata": {"name": "other", "namespace": "default"}, "spec": {"nodeName": "elsewhere"}}));
        store.compact();
    }
    eventually_within(PATIENCE, &format!("{malice:?} to be heard"), || match wire.mood.sent() {
        (answers, bytes) if answers >= least_answers && bytes >= least_bytes => Ok(()),
        few => Err(format!("{few:?}")),
    });
    let (answers, bytes) = wire.mood.sent();
    let peak = peak_kib(&host);
    eprintln!("{malice:?}: {answers} answers, {} MiB sent; at most {peak} KiB held, {usual} before", bytes >> 20);
    assert!(peak < usual + MOST_KIB, "{malice:?}: {peak} KiB, {usual} before");
    assert_eq!(host.container_pid(&host.wait_running("web"), "c"), pid);
    wire.mood.set(None);
    server.store().remove("pods", "default", &format!("web-{NODE}"));
    // After the longest pause of a client whose server answers badly.
    let again = wait_for_phase_within(PATIENCE, &server, "Running");
    assert_ne!(again["metadata"]["uid"], shown["metadata"]["uid"]);
    assert_eq!(host.container_pid(&host.wait_running("web"), "c"), pid);
    host.remove_manifest("web.yaml");
    host.wait_gone("web");
}

/// Set for the process that is measured.
const MEASURED: &str = "PODSTEAD_TEST_MEASURED";

fn resident_kib() -> u64 {
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * rustix::param::page_size() as u64 / 1024
}

/// An hour in which pods come, change and go, with what there is to tell of each.
async fn hour(host: &mut Host, server: &Server, serial: &mut u32) {
    for _ in 0..60 {
        for _ in 0..20 {
            *serial += 1;
            host.set_content(&format!("default/pod-{serial}"));
            host.set_status(&format!("default/pod-{serial}"), "Running");
            let subject = Subject::Pod {
                uid: PodUid::new(format!("local-{serial}")),
                full_name: PodFullName { name: format!("pod-{serial}"), namespace: "default".into() },
                field_path: None,
            };
            host.events.record(&subject, EventType::Warning, "Changed", &format!("{serial} {}", "x".repeat(500)));
            if let Some(old) = serial.checked_sub(100) {
                host.remove(&format!("default/pod-{old}"));
            }
        }
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    // The server is in this process, and would keep everything.
    server.store().compact();
    server.store().drop_all("events");
}

async fn churn() {
    let server = Server::new(crate::host::NODE);
    let transport = Unreliable::new(server.clone(), 1);
    let mut host = Host::new(&transport, "a");
    host.start();
    let mut serial = 0;
    // Nothing large before, whose room would be there for what is kept by mistake.
    host.set_content("default/first");
    host.settle(&server, Duration::from_secs(60)).await;
    for weather in [Weather::Down, Weather::Stuck, Weather::Foul] {
        transport.set(weather);
        // Journals and logs are full after that.
        for _ in 0..2 {
            hour(&mut host, &server, &mut serial).await;
        }
        let before = resident_kib();
        for _ in 0..6 {
            hour(&mut host, &server, &mut serial).await;
        }
        let after = resident_kib();
        eprintln!("{weather:?}: {before} KiB after two hours, {after} KiB after eight and {serial} pods");
        // Less than a name of each pod would take. What reaches the server is in this process for an hour.
        let most = if weather == Weather::Foul { 8192 } else { 3072 };
        assert!(after < before + most, "{weather:?}: from {before} to {after} KiB");
    }
    transport.set(Weather::Fair);
    host.settle(&server, Duration::from_secs(400)).await;
}

#[test]
fn absent_server_costs_no_memory() {
    if std::env::var_os(MEASURED).is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(churn());
        return;
    }
    // A process of its own: what other tests hold does not count.
    let name = "memory::absent_server_costs_no_memory";
    let out = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(MEASURED, "1")
        .output()
        .unwrap();
    let said = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    eprintln!("{said}");
    assert!(out.status.success() && said.contains("1 passed"), "{said}");
}
