//! `podstead logs`.

mod from_files;

use super::Context;
use super::client::{Client, Target};
use super::pods::{PodNamespaceArgs, ServedList, collection, name_of, pod_target};
use super::table::Style;
use super::workloads::{choose_pod, pods_meant};
use bytes::Bytes;
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Pod;
use std::io::{self, Write};
use std::process::ExitCode;
use tokio::sync::mpsc;

/// Pieces waiting to be written, of all containers together: the daemon waits when the terminal does.
const QUEUE: usize = 16;

/// Arguments.
// One type because it mirrors the options of `kubectl logs`.
#[derive(Debug, Args)]
pub(super) struct LogsArgs {
    /// Pods, of which the "-<node>" suffix may be omitted; or workloads and Services, such as deploy/web
    #[arg(value_name = "POD|TYPE/NAME", required_unless_present = "selector")]
    pods: Vec<String>,
    /// Pods with these labels, e.g. app=web,tier!=cache
    #[arg(short = 'l', long, value_name = "LABELS", conflicts_with = "pods")]
    selector: Option<String>,
    /// All pods of a workload, not only one
    #[arg(long)]
    all_pods: bool,
    #[command(flatten)]
    namespace: PodNamespaceArgs,
    /// Name of the container; may be repeated [default: the one in the annotation kubectl.kubernetes.io/default-container, or the first one]
    #[arg(short, long = "container", value_name = "NAME", conflicts_with = "all_containers")]
    containers: Vec<String>,
    /// All containers of the pod, init containers first
    #[arg(long)]
    all_containers: bool,
    /// Stream new lines until the container exits
    #[arg(short, long)]
    follow: bool,
    /// Logs of the previous run of the container, e.g. the one that crashed
    #[arg(short, long)]
    previous: bool,
    /// Number of lines to show from the end of the log
    #[arg(long, value_name = "LINES", allow_negative_numbers = true, value_parser = parse_tail)]
    tail: Option<Tail>,
    /// Only lines newer than this duration, e.g. 30s, 5m, 2h, 1d
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, conflicts_with = "since_time")]
    since: Option<SignedDuration>,
    /// Only lines after this time, e.g. 2026-01-31T12:00:00Z
    #[arg(long, value_name = "TIME")]
    since_time: Option<Timestamp>,
    /// Only lines up to this time, e.g. 2026-01-31T12:00:00Z, or older than this duration, e.g. 1h
    #[arg(long, value_name = "TIME|DURATION", value_parser = parse_until, conflicts_with_all = ["follow", "tail"])]
    until: Option<Until>,
    /// Start each line with its timestamp
    #[arg(long)]
    timestamps: bool,
    /// Start each line with the names of pod and container [default: only for several pods or containers]
    #[arg(long)]
    prefix: bool,
}

/// End of the wanted time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Until {
    /// A point in time.
    Time(Timestamp),
    /// So long ago.
    Ago(SignedDuration),
}

impl Until {
    fn resolve(self, now: Timestamp) -> Timestamp {
        match self {
            Self::Time(time) => time,
            Self::Ago(duration) => now.checked_sub(duration).unwrap_or(Timestamp::MIN),
        }
    }
}

fn parse_until(text: &str) -> Result<Until, String> {
    let time = text.parse().map(Until::Time);
    time.or_else(|_| parse_duration(text).map(Until::Ago))
        .map_err(|_| "expected a time such as 2026-01-31T12:00:00Z or a duration such as 1h".to_owned())
}

/// A number of lines, or all (-1, as in kubectl).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tail {
    All,
    Lines(u64),
}

fn parse_tail(text: &str) -> Result<Tail, String> {
    match text {
        "-1" => Ok(Tail::All),
        _ => text.parse().map(Tail::Lines).map_err(|_| "expected a number of lines, or -1 for all".to_owned()),
    }
}

/// `30s`, `5m`, `1h30m`, `2d`; a bare number is seconds.
fn parse_duration(text: &str) -> Result<SignedDuration, String> {
    let wrong = || "expected a duration such as 30s, 5m or 1h30m".to_owned();
    let mut seconds: i64 = 0;
    let mut rest = text;
    while !rest.is_empty() {
        let digits = rest.find(|character: char| !character.is_ascii_digit()).unwrap_or(rest.len());
        let (number, unit_and_rest) = rest.split_at(digits);
        let unit = unit_and_rest.chars().next();
        let factor = match unit {
            Some('s') => 1,
            None if number.len() == text.len() => 1,
            Some('m') => 60,
            Some('h') => 3600,
            Some('d') => 86_400,
            _ => return Err(wrong()),
        };
        let amount = number.parse::<i64>().ok().and_then(|number| number.checked_mul(factor)).ok_or_else(wrong)?;
        seconds = seconds.checked_add(amount).ok_or_else(wrong)?;
        rest = unit_and_rest.get(1..).unwrap_or_default();
    }
    if seconds > 0 { Ok(SignedDuration::from_secs(seconds)) } else { Err(wrong()) }
}

pub(super) fn run(args: &LogsArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    let answered = context.block_on(async {
        let pods = pods(args, &client).await?;
        let mut logs = Vec::new();
        for pod in &pods {
            logs.extend(containers(args, pod)?.into_iter().map(|container| LogOf { pod, container }));
        }
        match logs.as_slice() {
            [log] if !args.prefix => copy(&client, target(args, log)).await?,
            several if args.follow => follow_all(&client, args, several, context.color()).await?,
            several => {
                for (index, log) in several.iter().enumerate() {
                    copy_lines(&client, target(args, log), &prefix(log, index, context.color())).await?;
                }
            }
        }
        Ok(ExitCode::SUCCESS)
    });
    match answered {
        Err(error) if crate::is_unreachable(&error) => from_files::run(args, context, error),
        answered => answered,
    }
}

/// The pods that are meant.
async fn pods(args: &LogsArgs, client: &Client) -> anyhow::Result<Vec<Pod>> {
    let namespace = args.namespace.namespace.as_deref();
    if let Some(selector) = &args.selector {
        let list: ServedList = client.get(collection("pods", namespace).with("labelSelector", selector)).await?;
        let found: Vec<Pod> = list.items.into_iter().map(serde_json::from_value).collect::<Result<_, _>>()?;
        return if found.is_empty() { Err(no_such_labels(selector)) } else { Ok(found) };
    }
    let mut all = Vec::new();
    for argument in &args.pods {
        match args.all_pods {
            true => all.extend(pods_meant(client, argument, namespace).await?),
            false => all.push(choose_pod(client, argument, namespace).await?),
        }
    }
    Ok(all)
}

fn no_such_labels(selector: &str) -> anyhow::Error {
    anyhow::anyhow!("no pod has the labels {selector}; podstead get pods -o json shows the labels of all")
}

impl LogsArgs {
    fn has_several_pods(&self) -> bool {
        self.all_pods || self.selector.is_some() || self.pods.len() > 1
    }
}

/// One log.
#[derive(Clone, Debug)]
struct LogOf<'a> {
    pod: &'a Pod,
    container: String,
}

/// The containers that are meant; says on stderr which one was chosen of several.
fn containers(args: &LogsArgs, pod: &Pod) -> anyhow::Result<Vec<String>> {
    if !args.containers.is_empty() {
        return Ok(args.containers.clone());
    }
    let spec = pod.spec.clone().unwrap_or_default();
    let main: Vec<String> = spec.containers.into_iter().map(|container| container.name).collect();
    let init: Vec<String> = spec.init_containers.unwrap_or_default().into_iter().map(|container| container.name).collect();
    if args.all_containers {
        return Ok(init.into_iter().chain(main).collect());
    }
    Ok(vec![default_container(pod, "showing", ", or use --all-containers")?])
}

/// The container that is meant where none is named: the one in the annotation, or the first one. Says on stderr which one it is of several.
pub(super) fn default_container(pod: &Pod, doing: &str, hint: &str) -> anyhow::Result<String> {
    let spec = pod.spec.iter();
    let main: Vec<&str> = spec.flat_map(|spec| &spec.containers).map(|container| container.name.as_str()).collect();
    let default = super::pods::annotation(pod, "kubectl.kubernetes.io/default-container");
    let Some(container) = default.filter(|name| main.contains(name)).or_else(|| main.first().copied()) else {
        anyhow::bail!("pod {:?} has no containers", name_of(pod));
    };
    if main.len() > 1 {
        writeln!(io::stderr(), "{doing} container {container} of {}; choose another one with -c{hint}", main.join(", "))?;
    }
    Ok(container.to_owned())
}

fn target(args: &LogsArgs, log: &LogOf<'_>) -> Target {
    let tail = args.tail.and_then(|tail| match tail {
        Tail::All => None,
        Tail::Lines(lines) => Some(lines),
    });
    pod_target(log.pod, &["log"])
        .with("container", &log.container)
        .with_flag("follow", args.follow)
        .with_flag("previous", args.previous)
        .with_flag("timestamps", args.timestamps)
        .with_some("tailLines", tail)
        .with_some("sinceSeconds", args.since.map(|since| since.as_secs()))
        .with_some("sinceTime", args.since_time)
        .with_some("untilTime", args.until.map(|until| until.resolve(Timestamp::now())))
}

/// Bytes as they come.
async fn copy(client: &Client, target: Target) -> anyhow::Result<()> {
    let mut lines = client.get_lines(target).await?;
    while let Some(bytes) = lines.next_piece().await? {
        write(&bytes)?;
    }
    Ok(())
}

async fn copy_lines(client: &Client, target: Target, prefix: &str) -> anyhow::Result<()> {
    let mut lines = client.get_lines(target).await?;
    while let Some(line) = lines.next_line().await? {
        write(&prefixed(prefix, &line))?;
    }
    Ok(())
}

/// All logs at once, whole lines as they come. One that has no log does not keep the others from being followed.
async fn follow_all(client: &Client, args: &LogsArgs, logs: &[LogOf<'_>], color: bool) -> anyhow::Result<()> {
    let (sender, mut received) = mpsc::channel::<Bytes>(QUEUE);
    let mut tasks = tokio::task::JoinSet::new();
    for (index, log) in logs.iter().enumerate() {
        let (client, target, sender) = (client.clone(), target(args, log), sender.clone());
        let prefix = prefix(log, index, color);
        let name = if args.has_several_pods() { format!("{}/{}", name_of(log.pod), log.container) } else { log.container.clone() };
        tasks.spawn(async move {
            let follow = async {
                let mut lines = client.get_lines(target).await?;
                while let Some(line) = lines.next_line().await? {
                    if sender.send(prefixed(&prefix, &line)).await.is_err() {
                        break;
                    }
                }
                Ok::<_, super::client::ClientError>(())
            };
            if let Err(error) = follow.await {
                writeln!(io::stderr(), "{name}: {}", podstead_telemetry::error_chain(&error)).ok();
            }
        });
    }
    drop(sender);
    while let Some(line) = received.recv().await {
        write(&line)?;
    }
    Ok(())
}

fn write(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}

fn prefix(log: &LogOf<'_>, index: usize, color: bool) -> String {
    const STYLES: [Style; 6] = [Style::Cyan, Style::Pending, Style::Good, Style::Magenta, Style::Blue, Style::Bold];
    let text = format!("[{}/{}]", name_of(log.pod), log.container);
    format!("{} ", STYLES[index % STYLES.len()].paint(&text, color))
}

/// The line with the prefix before it; a last line without a newline gets one, since another container's may follow.
fn prefixed(prefix: &str, line: &[u8]) -> Bytes {
    let mut whole = Vec::with_capacity(prefix.len() + line.len() + 1);
    whole.extend_from_slice(prefix.as_bytes());
    whole.extend_from_slice(line);
    if !line.ends_with(b"\n") {
        whole.push(b'\n');
    }
    Bytes::from(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read() {
        for (text, seconds) in [("30s", 30), ("5m", 300), ("1h30m", 5400), ("2d", 172_800), ("45", 45)] {
            assert_eq!(parse_duration(text), Ok(SignedDuration::from_secs(seconds)), "{text}");
        }
        for text in ["", "0s", "5x", "m", "-5m", "1h30", "999999999999999d"] {
            assert!(parse_duration(text).is_err(), "{text}");
        }
    }

    #[test]
    fn until_is_a_time_or_a_duration() {
        let time = "2026-01-31T12:00:00Z";
        assert_eq!(parse_until(time), Ok(Until::Time(time.parse().unwrap())));
        assert_eq!(parse_until("1h"), Ok(Until::Ago(SignedDuration::from_hours(1))));
        let now: Timestamp = time.parse().unwrap();
        assert_eq!(Until::Ago(SignedDuration::from_hours(1)).resolve(now).to_string(), "2026-01-31T11:00:00Z");
        assert!(parse_until("noon").is_err());
    }

    #[test]
    fn a_tail_of_minus_one_is_all() {
        assert_eq!(parse_tail("-1"), Ok(Tail::All));
        assert_eq!(parse_tail("20"), Ok(Tail::Lines(20)));
        assert!(parse_tail("-2").is_err());
    }
}
