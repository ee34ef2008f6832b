//! `podstead status`: the status of this host, its problems and how to fix them.

mod changes;
mod json;
mod report;
mod upstream;

use super::client::{Client, OWN, Target};
use super::doctor::finding::Finding;
use super::doctor::host_troubles;
use super::doctor::network::without_endpoints;
use super::fold::{fold, terminal_width};
use super::output::Form;
use super::pods::{PodNamespaceArgs, ServedList, list, source_of};
use super::trouble::gather;
use super::unserved;
use super::workloads::{list_all, metadata, pods_meant};
use super::{Context, EXIT_FAILED};
use changes::Changes;
use clap::Args;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use podstead_api::{DaemonObject, DaemonPaths, SourceObject};
use podstead_image::RegistryConfig;
use podstead_sys::layout::Paths;
use report::Report;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// Arguments.
#[derive(Debug, Default, Args)]
pub(super) struct StatusArgs {
    /// Only this pod or workload, such as web or deploy/web
    #[arg(value_name = "POD|TYPE/NAME")]
    object: Option<String>,
    #[command(flatten)]
    namespace: PodNamespaceArgs,
    /// Output format
    #[arg(short, long, value_name = "FORM", default_value = "text")]
    output: Form,
    /// Show it again whenever it changes, until interrupted
    #[arg(short, long, conflicts_with = "exit_code")]
    watch: bool,
    /// Exit with 1 if there is a problem
    #[arg(long)]
    exit_code: bool,
}

/// Time between two looks of `--watch` at what has no watch: the daemon, and the host itself, which asks name servers.
const HOST_EVERY: Duration = Duration::from_secs(30);

/// Problems of the host, and the time of the look at it.
type HostLook = Option<(Instant, Vec<Finding>)>;

pub(super) fn run(args: &StatusArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    let color = context.color();
    // Who may not read the configuration is told of names of registries that only their mirrors are asked for.
    let registries = context.load_config().map(|config| config.registries).unwrap_or_default();
    context.block_on(async {
        let mut last = String::new();
        let mut host = None;
        let mut changes = match args.watch {
            true => Some(Changes::watch(&client).await?),
            false => None,
        };
        loop {
            let report = ask(args, &client, &registries, &mut host).await?;
            let now = Timestamp::now();
            let mut text = Vec::new();
            match &args.output {
                Form::Text => text.extend_from_slice(fold(&report.text(now, color), terminal_width()).as_bytes()),
                Form::Structured(form) => form.write(&mut text, &json::json(&report, now), "pods")?,
            }
            // Durations change each second; another look at the same state is no change.
            let state = json::state(&report);
            if state != last {
                write(args.watch, &text)?;
                last = state;
            }
            match &mut changes {
                None => {
                    return Ok(if args.exit_code && !report.is_well() { ExitCode::from(EXIT_FAILED) } else { ExitCode::SUCCESS });
                }
                Some(changes) => changes.next(HOST_EVERY).await?,
            }
        }
    })
}

fn write(is_watched: bool, text: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    if is_watched && io::stdout().is_terminal() {
        // Back to the top of the screen, which is cleared.
        write!(out, "\x1b[H\x1b[2J")?;
    }
    out.write_all(text)?;
    out.flush()
}

async fn ask(args: &StatusArgs, client: &Client, registries: &[RegistryConfig], host: &mut HostLook) -> anyhow::Result<Report> {
    let daemon: DaemonObject = client.get(Target::new(OWN, &["daemon"])).await?;
    let sources: ServedList = client.get(Target::new(OWN, &["sources"])).await?;
    let mut sources: Vec<SourceObject> = sources.items.into_iter().map(serde_json::from_value).collect::<Result<_, _>>()?;
    let mut pods = list(client, None).await?;
    let mut workloads = list_all(client).await?;
    if let Some(object) = &args.object {
        let namespace = args.namespace.namespace.as_deref();
        let meant = pods_meant(client, object, namespace).await?;
        pods.retain(|pod| meant.iter().any(|meant| meant.metadata.uid == pod.metadata.uid));
        let from: Vec<&str> = pods.iter().map(source_of).collect();
        sources.retain(|source| from.contains(&source.metadata.name.as_str()));
        workloads.retain(|workload| object.split_once('/').is_some_and(|(_, name)| metadata(workload, "name") == name));
    }
    let evidence = gather(client, &pods, &workloads).await;
    let unserved = if args.object.is_none() { unserved::gather(client, &pods).await? } else { Vec::new() };
    let mut host = match host {
        Some((at, findings)) if at.elapsed() < HOST_EVERY => findings.clone(),
        _ => {
            let findings = look_at_host(&daemon, pods.clone(), sources.clone(), registries.to_vec()).await?;
            *host = Some((Instant::now(), findings.clone()));
            findings
        }
    };
    host.extend(without_endpoints(&unserved));
    Ok(Report { daemon, host, sources, pods, workloads, evidence })
}

/// Looks at the host itself, in a thread of its own: name servers may be silent for seconds.
async fn look_at_host(
    daemon: &DaemonObject,
    pods: Vec<Pod>,
    sources: Vec<SourceObject>,
    registries: Vec<RegistryConfig>,
) -> anyhow::Result<Vec<Finding>> {
    let paths = daemon.paths.clone().map(|DaemonPaths { state, run, logs }| Paths { state, run, logs });
    Ok(tokio::task::spawn_blocking(move || host_troubles(paths.as_ref(), &pods, &sources, &registries)).await?)
}
