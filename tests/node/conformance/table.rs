//! Tables of pods on one daemon.

use super::away;
use super::facts::Pod;
use super::logs;
use super::manifest::{OTHER_IMAGE, Registries};
use super::reach::Progress;
use super::row::{End, Row, rows};
use super::snapshot::Snapshot;
use super::world::{Ends, World};
use crate::support::{TestHost, eventually_within, make_image};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

/// Time for all pods of a table, on an emulated processor, too.
const PATIENCE: Duration = Duration::from_secs(600);

/// The pod that comes after all others: when it runs, the daemon has looked at each of them.
const LAST: &str = "apiVersion: v1\nkind: Pod\nmetadata: {name: last}\nspec:\n  terminationGracePeriodSeconds: 1\n  \
                    containers: [{name: main, image: 'localhost/busybox:1', command: [sleep, '1000000']}]\n";

/// Has all rows of the tables, each with a name, become what they say.
pub(super) fn check(tables: &[(&str, &str)]) {
    let named = tables
        .iter()
        .flat_map(|(name, table)| rows(table).into_iter().enumerate().map(move |(at, row)| (format!("{name}-{at:02}"), row)));
    let rows: Vec<(String, Row)> = named.collect();
    let mut host = TestHost::prepare("");
    make_image(&[], &host.path("preload/other.tar"), OTHER_IMAGE);
    let mark = host.path("").file_name().unwrap().to_string_lossy().into_owned();

    for (pod, row) in &rows {
        row.files_before(pod, &mark).iter().for_each(|(name, content)| host.write_manifest(name, content));
    }
    host.start_daemon();
    let mut progress: BTreeMap<&str, Progress> = BTreeMap::new();
    let with_sandbox = || rows.iter().filter(|(_, row)| row.sandbox.is_some());
    progress.extend(with_sandbox().map(|(pod, row)| (pod.as_str(), Progress::of(row))));
    let mut ends = Ends::new();
    let views = eventually_within(PATIENCE, "pods to be as far as their rows need it", || {
        let views = host.pods();
        let snapshot = Snapshot::take(&mark, views.clone());
        let mut open = Vec::new();
        for (pod, row) in with_sandbox() {
            match snapshot.pod(pod) {
                Some(view) => {
                    let progress = progress.get_mut(pod.as_str()).unwrap();
                    open.extend(progress.advance(&host, &snapshot.processes, row, (pod, &view.uid()), &mut ends));
                }
                None => open.push(format!("{pod} is not known")),
            }
        }
        if open.is_empty() { Ok(views) } else { Err(open.join("\n")) }
    });

    host.kill_daemon();
    let registry = (TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(), tokio::net::TcpSocket::new_v4().unwrap());
    registry.1.bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let registries =
        Registries { silent: registry.0.local_addr().unwrap().to_string(), refusing: registry.1.local_addr().unwrap().to_string() };
    let snapshot = Snapshot::take(&mark, views.clone());
    for (pod, row) in &rows {
        if let Some(view) = snapshot.pod(pod) {
            away::arrange(&host, &snapshot.processes, row, (pod, &view.uid()), &mut ends);
        }
        let (before, after) = (row.files_before(pod, &mark), row.files_after(pod, &mark, &registries));
        before.keys().filter(|name| !after.contains_key(*name)).for_each(|name| host.remove_manifest(name));
        let changed = after.iter().filter(|(name, content)| before.get(*name) != Some(*content));
        changed.for_each(|(name, content)| host.write_manifest(name, content));
        if let Some(view) = snapshot.pod(pod) {
            away::announce(&host, &view.uid(), after.get(&format!("{pod}.yaml")).map(String::as_str));
        }
    }
    away::forget_source(&host);
    let snapshot = Snapshot::take(&mark, views);
    let before = rows.iter().map(|(pod, row)| {
        let uid = snapshot.pod(pod).map(|view| view.uid()).unwrap_or_default();
        for container in row.names() {
            logs::keep(&away::log_directory(&host, pod, &uid).join(&container), &away::kept_logs(&host, &uid).join(&container));
        }
        let world = World::of(&host, &snapshot.processes, row, (pod, &uid), &ends);
        (pod.clone(), (uid, world))
    });
    let before: BTreeMap<String, (String, World)> = before.collect();

    host.start_daemon();
    let mut wanted: BTreeSet<&String> = rows.iter().map(|(pod, _)| pod).collect();
    let what = "pods to become what their rows say";
    eventually_within(PATIENCE, what, || differences(&host, &mark, &rows, &before, &ends, &mut wanted));
    // What is as it should be stays so when the daemon has had time for everything. The logs of those that are gone do not.
    host.write_manifest("last.yaml", LAST);
    host.wait_running("last");
    let remaining = rows.iter().filter(|(_, row)| {
        !matches!(row.end, Some(End::Removed(_))) || row.world.as_ref().is_some_and(|it| it["sandbox"] != "gone")
    });
    wanted = remaining.map(|(pod, _)| pod).collect();
    eventually_within(PATIENCE, "pods to stay what they are", || differences(&host, &mark, &rows, &before, &ends, &mut wanted));
}

/// Compares those pods that are `wanted`, and strikes off each that is as it should be.
fn differences(
    host: &TestHost,
    mark: &str,
    rows: &[(String, Row)],
    before: &BTreeMap<String, (String, World)>,
    ends: &Ends,
    wanted: &mut BTreeSet<&String>,
) -> Result<(), String> {
    let snapshot = Snapshot::of(host, mark);
    let mut wrong = Vec::new();
    for (pod, row) in rows {
        if !wanted.contains(pod) {
            continue;
        }
        let (uid_before, world_before) = &before[pod];
        let uid = snapshot.pod(pod).map_or_else(|| uid_before.clone(), |view| view.uid());
        let now = World::of(host, &snapshot.processes, row, (pod, &uid), ends);
        let expected = row.world.as_ref().unwrap();
        let mut found = now.since(world_before);
        if found.iter().any(|(key, value)| expected.get(key) != Some(value)) {
            wrong.push(format!("{pod} {}\n  expected {expected:?}\n  found    {found:?}", row.name));
            continue;
        }
        let facts = Pod { host, snapshot: &snapshot, name: pod, uid: &uid, before: world_before, now: &now };
        found.extend(expected.iter().filter_map(|(key, value)| Some((key.clone(), facts.fact(key, value)?))));
        if *expected != found {
            wrong.push(format!("{pod} {}\n  expected {expected:?}\n  found    {found:?}", row.name));
            continue;
        }
        let remains = now.remains(&snapshot, &uid);
        if remains.is_empty() {
            wanted.remove(pod);
        }
        wrong.extend(remains.into_iter().map(|it| format!("{pod} {}\n  left is {it}", row.name)));
    }
    if wrong.is_empty() { Ok(()) } else { Err(format!("{} of {} rows:\n{}", wrong.len(), rows.len(), wrong.join("\n"))) }
}
