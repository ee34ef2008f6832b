//! `podstead top`: what pods use now.

mod objects;

use super::Context;
use super::client::{Client, ClientError, OWN, Target};
use super::output::{ObjectWriter, OutputFormat};
use super::pod_name;
use super::pods::{NamespaceArgs, list};
use super::table::{Cell, Style, Table};
use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use podstead_api::show::human_size;
use podstead_api::{DiskAnswer, PodDisk};
use podstead_pod::quantity::Amount;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Time between the two looks that a rate is made of.
const BETWEEN: Duration = Duration::from_secs(1);
const MEBIBYTE: u64 = 1 << 20;

/// Arguments.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct TopArgs {
    #[command(subcommand)]
    kind: Option<Kind>,
    #[command(flatten)]
    pods: PodsArgs,
}

#[derive(Debug, Subcommand)]
enum Kind {
    /// CPU, memory and disk usage of pods; CPU is measured over one second
    #[command(visible_aliases = ["pod", "po"])]
    Pods(PodsArgs),
    /// CPU and memory usage of this host, measured over one second
    #[command(visible_alias = "nodes")]
    Node(NodeArgs),
}

#[derive(Debug, Args)]
struct NodeArgs {
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
    /// Measure again and again until interrupted
    #[arg(short, long)]
    watch: bool,
}

#[derive(Debug, Args)]
struct PodsArgs {
    /// Only this pod; the "-<node>" suffix may be omitted
    name: Option<String>,
    #[command(flatten)]
    namespaces: NamespaceArgs,
    /// Show each container on a line of its own
    #[arg(long)]
    containers: bool,
    /// Show disk space instead: writable layers, emptyDir volumes and logs, which takes time with many files
    #[arg(long, conflicts_with = "containers")]
    disk: bool,
    /// Column to sort by, the largest value first
    #[arg(long, value_enum, default_value_t)]
    sort_by: SortBy,
    /// Output format
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    output: OutputFormat,
    /// Do not print the headings
    #[arg(long)]
    no_headers: bool,
    /// Measure again and again until interrupted
    #[arg(short, long, conflicts_with = "disk")]
    watch: bool,
}

// Not documented one by one: that would be a paragraph in every help.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
enum SortBy {
    #[default]
    Name,
    Cpu,
    Memory,
    Disk,
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
    start_time: Option<Timestamp>,
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
    start_time: Option<Timestamp>,
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
    uid: String,
    namespace: String,
    pod: String,
    container: Option<String>,
    milli_cpu: u64,
    memory: u64,
    limits: Limits,
}

pub(super) fn run(args: &TopArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    let color = context.color();
    context.block_on(async {
        match args.kind.as_ref() {
            Some(Kind::Node(args)) => node(args, &client, color).await,
            Some(Kind::Pods(args)) => pods(args, &client, color).await,
            None => pods(&args.pods, &client, color).await,
        }
    })
}

async fn look(client: &Client) -> Result<Summary, ClientError> {
    client.get(Target::new("/stats/summary", &[])).await
}

async fn node(args: &NodeArgs, client: &Client, color: bool) -> anyhow::Result<ExitCode> {
    let mut first = look(client).await?;
    let mut table = Table::new(vec!["NAME", "CPU(cores)", "MEMORY(bytes)"], color);
    let mut writer = ObjectWriter::new(&args.output, true);
    loop {
        tokio::time::sleep(BETWEEN).await;
        let second = look(client).await?;
        let (name, memory) = (second.node.node_name.clone(), second.node.memory.working_set_bytes);
        let cpu = milli_cpu(&first.node.cpu, &second.node.cpu);
        let mut out = io::stdout().lock();
        if args.output.is_table() {
            table.write(&mut out, &[vec![name.into(), cpu_cell(cpu), memory_cell(memory)]])?;
        } else {
            writer.write(&mut out, "node", &[objects::of_node(&name, cpu, memory)], true)?;
        }
        out.flush()?;
        if !args.watch {
            return Ok(ExitCode::SUCCESS);
        }
        first = second;
    }
}

async fn pods(args: &PodsArgs, client: &Client, color: bool) -> anyhow::Result<ExitCode> {
    let namespace = args.namespaces.namespace.as_deref();
    let known = list(client, namespace).await?;
    let meant = match &args.name {
        Some(name) => Some(pod_name::find(&known, name, namespace)?.metadata.uid.clone().unwrap_or_default()),
        None => None,
    };
    if args.disk {
        return disk(args, client, meant.as_deref(), color).await;
    }
    let mut writer = ObjectWriter::new(&args.output, !args.no_headers);
    let mut first = look(client).await?;
    loop {
        tokio::time::sleep(BETWEEN).await;
        let second = look(client).await?;
        let mut used = used(&first, &second, args.containers, &limits(&known));
        used.retain(|used| meant.as_ref().is_none_or(|uid| used.uid == *uid));
        used.retain(|used| namespace.is_none_or(|namespace| used.namespace == namespace));
        sort(&mut used, args.sort_by);
        if args.watch && args.output.is_table() && io::stdout().is_terminal() {
            // Back to the top of the screen, which is cleared.
            write!(io::stdout(), "\x1b[H\x1b[2J")?;
        }
        if args.output.is_table() {
            show(args, used, color)?;
        } else {
            let usages: Vec<_> = used.iter().map(objects::of_pod).collect();
            writer.write(&mut io::stdout().lock(), "pod", &usages, args.name.is_some())?;
        }
        if !args.watch {
            return Ok(ExitCode::SUCCESS);
        }
        first = second;
    }
}

fn show(args: &PodsArgs, used: Vec<Used>, color: bool) -> io::Result<()> {
    let mut headings = if args.containers { vec!["POD", "NAME"] } else { vec!["NAME"] };
    headings.extend(["CPU(cores)", "CPU%", "MEMORY(bytes)", "MEMORY%"]);
    let with_namespace = shows_namespace(args, used.iter().map(|used| used.namespace.as_str()));
    if with_namespace {
        headings.insert(0, "NAMESPACE");
    }
    let rows: Vec<Vec<Cell>> = used.into_iter().map(|used| row(used, with_namespace)).collect();
    table(args, headings, color).write(&mut io::stdout().lock(), &rows)
}

fn shows_namespace<'a>(args: &PodsArgs, mut namespaces: impl Iterator<Item = &'a str>) -> bool {
    let is_wanted = args.namespaces.all_namespaces || namespaces.any(|namespace| namespace != "default");
    is_wanted && args.namespaces.namespace.is_none()
}

fn table(args: &PodsArgs, headings: Vec<&str>, color: bool) -> Table {
    let table = Table::new(headings, color);
    if args.no_headers { table.without_headings() } else { table }
}

async fn disk(args: &PodsArgs, client: &Client, meant: Option<&str>, color: bool) -> anyhow::Result<ExitCode> {
    let DiskAnswer { mut pods, is_complete } = client.get(Target::new(OWN, &["disk"])).await?;
    pods.retain(|pod| meant.is_none_or(|uid| pod.uid == uid));
    pods.retain(|pod| args.namespaces.namespace.as_ref().is_none_or(|namespace| pod.namespace == *namespace));
    let total = |pod: &PodDisk| pod.layer_bytes + pod.volume_bytes + pod.log_bytes;
    match args.sort_by {
        SortBy::Name => pods.sort_by(|a, b| (&a.namespace, &a.name).cmp(&(&b.namespace, &b.name))),
        SortBy::Cpu | SortBy::Memory | SortBy::Disk => pods.sort_by_key(|pod| std::cmp::Reverse(total(pod))),
    }
    if !args.output.is_table() {
        let sizes: Vec<_> = pods.iter().map(objects::of_disk).collect();
        let mut writer = ObjectWriter::new(&args.output, !args.no_headers);
        writer.write(&mut io::stdout().lock(), "pod", &sizes, args.name.is_some())?;
        return say_whether_complete(is_complete);
    }
    let with_namespace = shows_namespace(args, pods.iter().map(|pod| pod.namespace.as_str()));
    let mut headings = vec!["NAME", "DISK", "LAYERS", "VOLUMES", "LOGS"];
    if with_namespace {
        headings.insert(0, "NAMESPACE");
    }
    let row = |pod: &PodDisk| -> Vec<Cell> {
        let sizes = [total(pod), pod.layer_bytes, pod.volume_bytes, pod.log_bytes].map(|bytes| Cell::from(human_size(bytes)));
        let names = with_namespace.then(|| pod.namespace.clone()).into_iter().chain([pod.name.clone()]);
        names.map(Cell::from).chain(sizes).collect()
    };
    let rows: Vec<Vec<Cell>> = pods.iter().map(row).collect();
    table(args, headings, color).write(&mut io::stdout().lock(), &rows)?;
    say_whether_complete(is_complete)
}

fn say_whether_complete(is_complete: bool) -> anyhow::Result<ExitCode> {
    if !is_complete {
        writeln!(io::stderr(), "there are too many files to count all of them: the sizes are lower bounds")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Limits of a pod or a container, in thousandths of a processor and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Limits {
    milli_cpu: Option<u64>,
    memory: Option<u64>,
}

/// Limits by UID of the pod, and by container; those of a pod are the sum if all main containers have one.
fn limits(pods: &[Pod]) -> BTreeMap<(String, Option<String>), Limits> {
    let mut all = BTreeMap::new();
    for pod in pods {
        let uid = pod.metadata.uid.clone().unwrap_or_default();
        let spec = pod.spec.iter();
        let containers: Vec<_> = spec.flat_map(|spec| &spec.containers).collect();
        let mut sum = Some(Limits { milli_cpu: Some(0), memory: Some(0) });
        for container in containers {
            let limits = container.resources.as_ref().and_then(|resources| resources.limits.as_ref());
            let quantity = |name: &str| limits.and_then(|limits| limits.get(name)).and_then(|quantity| Amount::read(quantity).ok());
            let own = Limits {
                milli_cpu: quantity("cpu").and_then(|cpu| u64::try_from(cpu.milli_value()).ok()),
                memory: quantity("memory").and_then(|bytes| u64::try_from(bytes.value()).ok()),
            };
            sum = sum.map(|sum| Limits {
                milli_cpu: sum.milli_cpu.zip(own.milli_cpu).map(|(sum, own)| sum + own),
                memory: sum.memory.zip(own.memory).map(|(sum, own)| sum + own),
            });
            all.insert((uid.clone(), Some(container.name.clone())), own);
        }
        all.insert((uid, None), sum.unwrap_or_default());
    }
    all
}

fn row(used: Used, with_namespace: bool) -> Vec<Cell> {
    let Used { namespace, pod, container, milli_cpu, memory, limits, uid: _ } = used;
    let names = with_namespace.then_some(namespace).into_iter().chain([pod]).chain(container);
    let numbers =
        [cpu_cell(milli_cpu), percent_cell(milli_cpu, limits.milli_cpu), memory_cell(memory), percent_cell(memory, limits.memory)];
    names.map(Cell::from).chain(numbers).collect()
}

/// Percent of a limit; `-` without one.
fn percent_cell(used: u64, limit: Option<u64>) -> Cell {
    match limit.filter(|limit| *limit > 0) {
        Some(limit) => {
            let percent = u128::from(used) * 100 / u128::from(limit);
            let style = if percent >= 90 { Style::Bad } else { Style::Plain };
            Cell::styled(format!("{percent}%"), style)
        }
        None => "-".into(),
    }
}

fn cpu_cell(milli: u64) -> Cell {
    format!("{milli}m").into()
}

fn memory_cell(bytes: u64) -> Cell {
    format!("{}Mi", bytes / MEBIBYTE).into()
}

/// Thousandths of a processor between two samples, or since the start of what had not started at the first.
fn rate(first: Option<&Cpu>, second: &Cpu, started: Option<Timestamp>) -> u64 {
    match (first, started) {
        (Some(first), _) => milli_cpu(first, second),
        (None, Some(time)) => milli_cpu(&Cpu { time, usage_core_nano_seconds: 0 }, second),
        (None, None) => 0,
    }
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

/// Usage of everything in the second sample.
fn used(first: &Summary, second: &Summary, containers: bool, limits: &BTreeMap<(String, Option<String>), Limits>) -> Vec<Used> {
    let mut all = Vec::new();
    for pod in &second.pods {
        let before = first.pods.iter().find(|before| before.pod_ref.uid == pod.pod_ref.uid);
        let of = |container: Option<&str>, milli_cpu, memory| Used {
            uid: pod.pod_ref.uid.clone(),
            limits: limits.get(&(pod.pod_ref.uid.clone(), container.map(str::to_owned))).copied().unwrap_or_default(),
            namespace: pod.pod_ref.namespace.clone(),
            pod: pod.pod_ref.name.clone(),
            container: container.map(str::to_owned),
            milli_cpu,
            memory,
        };
        if !containers {
            let rate = rate(before.map(|before| &before.cpu), &pod.cpu, pod.start_time);
            all.push(of(None, rate, pod.memory.working_set_bytes));
            continue;
        }
        for container in &pod.containers {
            let same = |before: &&ContainerStats| before.name == container.name && before.start_time == container.start_time;
            let before = before.and_then(|before| before.containers.iter().find(same));
            let rate = rate(before.map(|before| &before.cpu), &container.cpu, container.start_time);
            all.push(of(Some(&container.name), rate, container.memory.working_set_bytes));
        }
    }
    all
}

fn sort(used: &mut [Used], by: SortBy) {
    used.sort_by(|a, b| {
        let by_name = (&a.namespace, &a.pod, &a.container).cmp(&(&b.namespace, &b.pod, &b.container));
        match by {
            SortBy::Name | SortBy::Disk => by_name,
            SortBy::Cpu => b.milli_cpu.cmp(&a.milli_cpu).then(by_name),
            SortBy::Memory => b.memory.cmp(&a.memory).then(by_name),
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pod(name: &str, time: &str, nanos: u64, start: Option<&str>) -> Value {
        let cpu = json!({"time": time, "usageCoreNanoSeconds": nanos});
        let memory = json!({"workingSetBytes": nanos / 1000});
        json!({
            "podRef": {"name": name, "namespace": "default", "uid": name}, "startTime": start, "cpu": cpu, "memory": memory,
            "containers": [{"name": "main", "startTime": start, "cpu": cpu, "memory": memory}],
        })
    }

    fn summary(time: &str, pods: Vec<Value>) -> Summary {
        let node = json!({"nodeName": "n", "cpu": {"time": time, "usageCoreNanoSeconds": 0}, "memory": {"workingSetBytes": 1}});
        serde_json::from_value(json!({"node": node, "pods": pods})).unwrap()
    }

    #[test]
    fn rates_are_between_looks_or_since_start() {
        let (start, one, two) = ("2025-12-31T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-01T00:00:02Z");
        let restart = "2026-01-01T00:00:01Z";
        let pods = [("a", 1_000_000_000), ("b", 5_000_000_000)];
        let first = summary(one, pods.map(|(name, nanos)| pod(name, one, nanos, Some(start))).into());
        let mut restarted = pod("b", two, 5_500_000_000, Some(start));
        restarted["containers"][0]["startTime"] = restart.into();
        restarted["containers"][0]["cpu"]["usageCoreNanoSeconds"] = 100_000_000.into();
        let new = pod("new", two, 300_000_000, Some(restart));
        let second = summary(two, vec![pod("a", two, 2_000_000_000, Some(start)), restarted, new, pod("waits", two, 0, None)]);
        let shown = |containers, by| -> Vec<(String, u64)> {
            let mut used = used(&first, &second, containers, &BTreeMap::new());
            sort(&mut used, by);
            used.into_iter().map(|used| (used.pod, used.milli_cpu)).collect()
        };
        let row = |name: &str, milli| (name.to_owned(), milli);
        assert_eq!(shown(false, SortBy::Name), [row("a", 500), row("b", 250), row("new", 300), row("waits", 0)]);
        assert_eq!(shown(false, SortBy::Memory), [row("b", 250), row("a", 500), row("new", 300), row("waits", 0)]);
        assert_eq!(shown(true, SortBy::Cpu), [row("a", 500), row("new", 300), row("b", 100), row("waits", 0)]);
    }

    #[test]
    fn percent_is_of_limits() {
        let pod: Pod = serde_json::from_value(json!({
            "metadata": {"uid": "u"},
            "spec": {"containers": [
                {"name": "a", "resources": {"limits": {"cpu": "500m", "memory": "64Mi"}}},
                {"name": "b", "resources": {"limits": {"memory": "64Mi"}}},
            ]},
        }))
        .unwrap();
        let limits = limits(&[pod]);
        let of = |container: Option<&str>| limits[&("u".to_owned(), container.map(str::to_owned))];
        assert_eq!(of(Some("a")), Limits { milli_cpu: Some(500), memory: Some(64 << 20) });
        assert_eq!(of(None), Limits { milli_cpu: None, memory: Some(128 << 20) });
        assert_eq!(percent_cell(32 << 20, Some(128 << 20)), Cell::styled("25%", Style::Plain));
        assert_eq!(percent_cell(1, None), Cell::from("-"));
    }

    #[test]
    fn a_clock_that_was_set_back_makes_no_rate() {
        let at = |time: &str, nanos| Cpu { time: time.parse().unwrap(), usage_core_nano_seconds: nanos };
        assert_eq!(milli_cpu(&at("2026-01-01T00:00:02Z", 0), &at("1970-01-01T00:00:00Z", 5)), 0);
    }
}
