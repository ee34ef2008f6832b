//! `podstead top`: what pods use now.

use super::Context;
use super::client::Target;
use super::pods::NamespaceArgs;
use super::table::{Cell, Table};
use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;
use serde::Deserialize;
use std::io;
use std::process::ExitCode;
use std::time::Duration;

/// Time between the two looks that a rate is made of.
const BETWEEN: Duration = Duration::from_secs(1);
const MEBIBYTE: u64 = 1 << 20;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct TopArgs {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Debug, Subcommand)]
enum Kind {
    /// CPU and memory usage of pods, measured over one second
    #[command(visible_aliases = ["pod", "po"])]
    Pods(PodsArgs),
    /// CPU and memory usage of this host, measured over one second
    #[command(visible_alias = "nodes")]
    Node,
}

#[derive(Debug, Args)]
struct PodsArgs {
    #[command(flatten)]
    namespaces: NamespaceArgs,
    /// Show each container on a line of its own
    #[arg(long)]
    containers: bool,
    /// Column to sort by, the largest value first
    #[arg(long, value_enum, default_value_t)]
    sort_by: SortBy,
    /// Do not print the headings
    #[arg(long)]
    no_headers: bool,
}

// Not documented one by one: that would be a paragraph in every help.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
enum SortBy {
    #[default]
    Name,
    Cpu,
    Memory,
}

/// The needed fields of `/stats/summary`.
#[derive(Debug, Deserialize)]
struct Summary {
    node: NodeStats,
    pods: Vec<PodStats>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct NodeStats {
    node_name: String,
    cpu: Cpu,
    memory: Memory,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct PodStats {
    pod_ref: PodRef,
    cpu: Cpu,
    memory: Memory,
    containers: Vec<ContainerStats>,
}

#[derive(Debug, Deserialize)]
struct PodRef {
    name: String,
    namespace: String,
    uid: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ContainerStats {
    name: String,
    /// Tells one run of a container from the next.
    start_time: Option<String>,
    cpu: Cpu,
    memory: Memory,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Cpu {
    time: Timestamp,
    usage_core_nano_seconds: u64,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Memory {
    working_set_bytes: u64,
}

/// Usage between two samples.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Used {
    namespace: String,
    pod: String,
    container: Option<String>,
    milli_cpu: u64,
    memory: u64,
}

pub(super) fn run(args: &TopArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    let (first, second): (Summary, Summary) = context.block_on(async {
        let look = || client.get(Target::new("/stats/summary", &[]));
        let first = look().await?;
        tokio::time::sleep(BETWEEN).await;
        Ok((first, look().await?))
    })?;
    let mut out = io::stdout().lock();
    match &args.kind {
        Kind::Node => {
            let (node, memory) = (second.node.node_name.clone(), second.node.memory.working_set_bytes);
            let cells = vec![node.into(), cpu_cell(milli_cpu(&first.node.cpu, &second.node.cpu)), memory_cell(memory)];
            Table::new(vec!["NAME", "CPU(cores)", "MEMORY(bytes)"], context.color()).write(&mut out, &[cells])?;
        }
        Kind::Pods(args) => {
            let mut used = used(&first, &second, args.containers);
            if let Some(namespace) = &args.namespaces.namespace {
                used.retain(|used| used.namespace == *namespace);
            }
            sort(&mut used, args.sort_by);
            let with_namespace = args.namespaces.all_namespaces || used.iter().any(|used| used.namespace != "default");
            let with_namespace = with_namespace && args.namespaces.namespace.is_none();
            let mut headings = if args.containers { vec!["POD", "NAME"] } else { vec!["NAME"] };
            headings.extend(["CPU(cores)", "MEMORY(bytes)"]);
            if with_namespace {
                headings.insert(0, "NAMESPACE");
            }
            let rows: Vec<Vec<Cell>> = used.into_iter().map(|used| row(used, with_namespace)).collect();
            let mut table = Table::new(headings, context.color());
            if args.no_headers {
                table = table.without_headings();
            }
            table.write(&mut out, &rows)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn row(used: Used, with_namespace: bool) -> Vec<Cell> {
    let names = with_namespace.then_some(used.namespace).into_iter().chain([used.pod]).chain(used.container);
    names.map(Cell::from).chain([cpu_cell(used.milli_cpu), memory_cell(used.memory)]).collect()
}

fn cpu_cell(milli: u64) -> Cell {
    format!("{milli}m").into()
}

fn memory_cell(bytes: u64) -> Cell {
    format!("{}Mi", bytes / MEBIBYTE).into()
}

/// Thousandths of a processor.
fn milli_cpu(first: &Cpu, second: &Cpu) -> u64 {
    let nanos = second.time.duration_since(first.time).as_nanos();
    let used = second.usage_core_nano_seconds.saturating_sub(first.usage_core_nano_seconds);
    match u128::try_from(nanos) {
        Ok(nanos @ 1..) => u64::try_from(u128::from(used) * 1000 / nanos).unwrap_or(u64::MAX),
        // The clock was set back in between.
        Ok(0) | Err(_) => 0,
    }
}

/// Usage of everything in both samples; containers that started in between have no rate yet.
fn used(first: &Summary, second: &Summary, containers: bool) -> Vec<Used> {
    let mut all = Vec::new();
    for pod in &second.pods {
        let Some(before) = first.pods.iter().find(|before| before.pod_ref.uid == pod.pod_ref.uid) else { continue };
        let of = |container: Option<&str>, milli_cpu, memory| Used {
            namespace: pod.pod_ref.namespace.clone(),
            pod: pod.pod_ref.name.clone(),
            container: container.map(str::to_owned),
            milli_cpu,
            memory,
        };
        if !containers {
            all.push(of(None, milli_cpu(&before.cpu, &pod.cpu), pod.memory.working_set_bytes));
            continue;
        }
        for container in &pod.containers {
            let same = |before: &&ContainerStats| before.name == container.name && before.start_time == container.start_time;
            let rate = before.containers.iter().find(same).map_or(0, |before| milli_cpu(&before.cpu, &container.cpu));
            all.push(of(Some(&container.name), rate, container.memory.working_set_bytes));
        }
    }
    all
}

fn sort(used: &mut [Used], by: SortBy) {
    used.sort_by(|a, b| {
        let by_name = (&a.namespace, &a.pod, &a.container).cmp(&(&b.namespace, &b.pod, &b.container));
        match by {
            SortBy::Name => by_name,
            SortBy::Cpu => b.milli_cpu.cmp(&a.milli_cpu).then(by_name),
            SortBy::Memory => b.memory.cmp(&a.memory).then(by_name),
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(name: &str, time: &str, nanos: u64, start: &str) -> Value {
        let cpu = json!({"time": time, "usageCoreNanoSeconds": nanos});
        let memory = json!({"workingSetBytes": nanos / 1000});
        json!({
            "podRef": {"name": name, "namespace": "default", "uid": name}, "cpu": cpu, "memory": memory,
            "containers": [{"name": "main", "startTime": start, "cpu": cpu, "memory": memory}],
        })
    }

    fn summary(time: &str, pods: Vec<Value>) -> Summary {
        let node = json!({"nodeName": "n", "cpu": {"time": time, "usageCoreNanoSeconds": 0}, "memory": {"workingSetBytes": 1}});
        serde_json::from_value(json!({"node": node, "pods": pods})).unwrap()
    }

    #[test]
    fn rates_are_of_what_was_there_at_both_looks() {
        let (one, two) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:02Z");
        let first = summary(one, vec![pod("a", one, 1_000_000_000, "s"), pod("b", one, 5_000_000_000, "s")]);
        let pods = vec![pod("a", two, 2_000_000_000, "s"), pod("b", two, 5_500_000_000, "other"), pod("new", two, 9, "s")];
        let second = summary(two, pods);
        let shown = |containers, by| -> Vec<(String, u64)> {
            let mut used = used(&first, &second, containers);
            sort(&mut used, by);
            used.into_iter().map(|used| (used.pod, used.milli_cpu)).collect()
        };
        assert_eq!(shown(false, SortBy::Name), [("a".into(), 500), ("b".into(), 250)]);
        assert_eq!(shown(false, SortBy::Memory), [("b".into(), 250), ("a".into(), 500)]);
        assert_eq!(
            shown(true, SortBy::Cpu),
            [("a".into(), 500), ("b".into(), 0)],
            "a container that was restarted has no rate yet"
        );
    }

    #[test]
    fn a_clock_that_was_set_back_makes_no_rate() {
        let at = |time: &str, nanos| Cpu { time: time.parse().unwrap(), usage_core_nano_seconds: nanos };
        assert_eq!(milli_cpu(&at("2026-01-01T00:00:02Z", 0), &at("1970-01-01T00:00:00Z", 5)), 0);
    }
}
