//! `docs/reference/metrics.md`, made from the pages that monitoring reads: of a host with one source, one pod and one container, so that every family
//! has a sample.

use super::cadvisor::cadvisor;
use super::own::{Images, Own, own};
use super::resource::resource;
use super::usage::{ContainerUsage, PodUsage, Snapshot};
use crate::services::{Denied, Figures};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use podstead_container::cgroup::{Counters, DiskCounters, Usage};
use podstead_pod::SourceId;
use podstead_runtime::{HostFigures, PullFigures};
use podstead_settings::HookStanding;
use podstead_store::SourceStatus;
use podstead_sys::net_dev::InterfaceCounters;
use podstead_sys::proc_stat::{HostUsage, ProcessUsage};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/metrics.md");

const HEAD: &str = "\
# Metrics

This page lists all metric families that podstead serves to [monitoring](monitoring.md), with type and labels. It is generated from the code with
`UPDATE=1 cargo test --lib metrics_page`.
";

/// Name, type, labels, help.
type Family = (String, String, Vec<String>, String);

fn families(exposition: &str) -> Vec<Family> {
    let mut families: Vec<Family> = Vec::new();
    for line in exposition.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|line| line.split_once(' ')) {
            families.push((name.to_owned(), String::new(), Vec::new(), help.to_owned()));
            continue;
        }
        let family = families.last_mut().unwrap();
        if let Some((_, kind)) = line.strip_prefix("# TYPE ").and_then(|line| line.split_once(' ')) {
            kind.clone_into(&mut family.1);
        } else {
            assert!(line.starts_with(&family.0), "{line} is no sample of {}", family.0);
            let labels = line.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map_or("", |(labels, _)| labels);
            family.2 = labels.split(',').filter_map(|label| Some(label.split_once('=')?.0.to_owned())).collect();
            family.3.push('\u{1}');
        }
    }
    for family in &mut families {
        assert!(family.3.ends_with('\u{1}'), "{} has no sample here: its labels are not known", family.0);
        family.3 = family.3.trim_end_matches('\u{1}').to_owned();
    }
    families
}

fn observed() -> (SourceStatus, Pod, Snapshot) {
    let source = SourceStatus {
        id: SourceId::new("fleet"),
        kind: "git".into(),
        location: String::new(),
        fetched: None,
        fetched_at: Some(Timestamp::UNIX_EPOCH),
        accepted: None,
        accepted_at: None,
        applied: None,
        applied_at: None,
        hold: None,
        pods: 1,
        last_error: None,
        problems: Vec::new(),
    };
    let pod = serde_json::from_value(serde_json::json!({
        "metadata": {"name": "web", "namespace": "default"},
        "status": {"phase": "Running", "containerStatuses": [{
            "name": "main", "image": "i", "imageID": "i", "ready": true, "restartCount": 0,
            "state": {"running": {}},
        }]},
    }));
    let container = ContainerUsage {
        name: "main".into(),
        id: "c".into(),
        image: "i".into(),
        started_at: Some(Timestamp::UNIX_EPOCH),
        usage: Usage::default(),
        counters: Counters {
            disks: [("8:0".to_owned(), DiskCounters::default())].into(),
            cpu_quota: Some((1, 1)),
            ..Counters::default()
        },
        oom_kills: 0,
    };
    let used = PodUsage {
        namespace: "default".into(),
        name: "web".into(),
        uid: "u".into(),
        started_at: None,
        usage: Usage::default(),
        interfaces: vec![InterfaceCounters::default()],
        containers: vec![container],
    };
    let snapshot = Snapshot {
        at: Timestamp::UNIX_EPOCH,
        node: "edge-1".into(),
        host: HostUsage::default(),
        interfaces: Vec::new(),
        filesystem: None,
        pods: vec![used],
    };
    (source, pod.unwrap(), snapshot)
}

fn page() -> String {
    let (source, pod, snapshot) = observed();
    let process = ProcessUsage::default();
    let deployment = serde_json::json!({
        "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"}, "spec": {"replicas": 1}, "status": {},
    });
    let network = Figures {
        services: vec![("default".to_owned(), "web".to_owned(), 1)],
        changes: 1,
        denied: vec![Denied { namespace: "default".into(), pod: "web".into(), direction: "ingress".into(), packets: 1 }],
    };
    let figures = PullFigures { hosts: [("docker.io".to_owned(), HostFigures::default())].into(), ..PullFigures::default() };
    let observed = Own {
        sources: &[source],
        contact: &|_| Some(Timestamp::UNIX_EPOCH),
        pods: &[pod],
        workloads: &[deployment],
        network: &network,
        hooks: &[HookStanding { name: "ops".into(), ..HookStanding::default() }],
        images: Images { figures, ..Images::default() },
        process,
        started_at: Timestamp::UNIX_EPOCH,
    };
    let pages =
        [("/metrics", own(&observed)), ("/metrics/resource", resource(&snapshot)), ("/metrics/cadvisor", cadvisor(&snapshot))];
    let mut page = HEAD.to_owned();
    for (path, exposition) in pages {
        page.push_str(&format!("\n## `{path}`\n\n| family | type | labels | meaning |\n|---|---|---|---|\n"));
        for (name, kind, labels, help) in families(&exposition) {
            let labels: Vec<String> = labels.iter().map(|label| format!("`{label}`")).collect();
            page.push_str(&format!("| `{name}` | {kind} | {} | {help} |\n", labels.join(", ")));
        }
    }
    page
}

#[test]
fn the_metrics_page_is_made_from_the_families() {
    let made = page();
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(PAGE, &made).unwrap();
    }
    let written = std::fs::read_to_string(PAGE).unwrap_or_default();
    assert!(written == made, "docs/reference/metrics.md is not what is served: run UPDATE=1 cargo test --lib metrics_page");
}
