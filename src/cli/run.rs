//! `podstead run`: a pod that runs once. Its manifest is a file in a directory source for as long as it is needed.

use super::client::{Client, OWN, Target};
use super::logs::default_container;
use super::pods::{ServedList, list, pod_target};
use super::{Context, EXIT_FAILED};
use anyhow::{Context as _, bail};
use clap::Args;
use k8s_openapi::api::core::v1::Pod;
use podstead_api::SourceObject;
use serde_yaml::Value;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// Pause between two looks at the pod.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Largest manifest.
const MAX_BYTES: u64 = 1 << 20;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// Manifest of one Pod; -: standard input
    #[arg(short, long, value_name = "FILE")]
    file: PathBuf,
    /// Source of kind directory that has the pod meanwhile [default: the first one]
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Keep the pod when it has ended, until its file is removed
    #[arg(long)]
    keep: bool,
    /// Longest time to wait until the pod starts, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
}

pub(super) fn run(args: &RunArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let text = read(&args.file)?;
    let client = context.client()?;
    context.block_on(async {
        let directory = directory(args, &client).await?;
        let (name, manifest) = one_off(&text, &format!("{:05x}", std::process::id() & 0xf_ffff))?;
        let file = ManifestFile::create(&directory.join(format!("run-{name}.yaml")), &manifest, args.keep)?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let mut terminate = signal(SignalKind::terminate())?;
        // In each case the file goes, and the pod with it.
        let end = tokio::select! {
            end = follow(args, &client, &name, &file.path) => end,
            _ = interrupt.recv() => Ok(ExitCode::from(130)),
            _ = terminate.recv() => Ok(ExitCode::from(143)),
        };
        drop(file);
        end
    })
}

fn read(path: &Path) -> anyhow::Result<String> {
    let source: Box<dyn Read> = match path.as_os_str() == "-" {
        true => Box::new(io::stdin().lock()),
        false => Box::new(fs::File::open(path).with_context(|| format!("open {}", path.display()))?),
    };
    let mut text = String::new();
    source.take(MAX_BYTES + 1).read_to_string(&mut text).with_context(|| format!("read {}", path.display()))?;
    anyhow::ensure!(text.len() as u64 <= MAX_BYTES, "{} is larger than 1 MiB", path.display());
    Ok(text)
}

/// The directory of the source.
async fn directory(args: &RunArgs, client: &Client) -> anyhow::Result<PathBuf> {
    let sources: ServedList = client.get(Target::new(OWN, &["sources"])).await?;
    let sources: Vec<SourceObject> = sources.items.into_iter().map(serde_json::from_value).collect::<Result<_, _>>()?;
    let mut directories = sources.into_iter().filter(|source| source.spec.kind == "directory");
    let found = directories.find(|source| args.source.as_ref().is_none_or(|name| source.metadata.name == *name));
    match (found, &args.source) {
        (Some(source), _) => Ok(PathBuf::from(source.spec.location)),
        (None, Some(name)) => bail!("there is no source {name:?} of kind directory"),
        (None, None) => bail!(
            "a pod that runs once needs a source of kind directory; add one to the configuration, such as\n  \
             - name: local\n    directory: {{path: /etc/podstead/manifests}}"
        ),
    }
}

/// The manifest under a name of its own, and that name. **Pure**.
fn one_off(text: &str, suffix: &str) -> anyhow::Result<(String, String)> {
    let mut documents = serde_yaml::Deserializer::from_str(text).map(<Value as serde::Deserialize>::deserialize);
    let mut pod = documents.next().context("the manifest is empty")?.context("the manifest is not valid YAML")?;
    pod.apply_merge().context("the manifest has a wrong merge key")?;
    if documents.next().is_some() || pod.get("kind").and_then(Value::as_str) != Some("Pod") {
        bail!("expected one object of kind Pod; podstead job run starts a CronJob");
    }
    let name = pod.get("metadata").and_then(|metadata| metadata.get("name")).and_then(Value::as_str);
    let name: String = name.context("metadata.name: is missing")?.chars().take(40).collect();
    let name = format!("{name}-run-{suffix}");
    let metadata = pod.get_mut("metadata").and_then(Value::as_mapping_mut).context("metadata: is not a mapping")?;
    metadata.insert("name".into(), name.as_str().into());
    metadata.remove("uid");
    let spec = pod.get_mut("spec").and_then(Value::as_mapping_mut).context("spec: is missing")?;
    match spec.get("restartPolicy").and_then(Value::as_str) {
        None => drop(spec.insert("restartPolicy".into(), "Never".into())),
        Some("Never" | "OnFailure") => {}
        Some(other) => bail!("spec.restartPolicy: is {other}, so the pod would never end; set Never or OnFailure"),
    }
    Ok((name, podstead_manifest::to_manifest(&serde_json::to_value(&pod).context("the manifest has no form in JSON")?)))
}

/// A manifest in a source, which goes with this value.
struct ManifestFile {
    path: PathBuf,
    is_kept: bool,
}

impl ManifestFile {
    fn create(path: &Path, text: &str, is_kept: bool) -> anyhow::Result<Self> {
        // The source reads it when it is complete: other names are not manifests.
        let temporary = path.with_extension("part");
        let failed = || format!("write {}; podstead run needs the rights of the owner of the source", path.display());
        fs::write(&temporary, text).with_context(failed)?;
        fs::rename(&temporary, path).with_context(failed)?;
        Ok(Self { path: path.to_owned(), is_kept })
    }
}

impl Drop for ManifestFile {
    fn drop(&mut self) {
        if !self.is_kept
            && let Err(error) = fs::remove_file(&self.path)
        {
            writeln!(io::stderr(), "podstead: cannot remove {}, so the pod stays: {error}", self.path.display()).ok();
        }
    }
}

/// Copies the log until the pod has ended; the exit code of its container.
async fn follow(args: &RunArgs, client: &Client, name: &str, file: &Path) -> anyhow::Result<ExitCode> {
    let started = tokio::time::timeout(Duration::from_secs(args.timeout), started(client, name, file)).await;
    let pod = started.unwrap_or_else(|_| bail!("the pod did not start within {} seconds", args.timeout))?;
    let container = default_container(&pod, "showing", "")?;
    let target = pod_target(&pod, &["log"]).with("container", &container).with_flag("follow", true);
    let mut lines = client.get_lines(target).await?;
    while let Some(bytes) = lines.next_piece().await? {
        let mut out = io::stdout().lock();
        out.write_all(&bytes)?;
        out.flush()?;
    }
    loop {
        let present: Pod = client.get(pod_target(&pod, &[])).await?;
        let status = present.status.unwrap_or_default();
        if let Some(phase @ ("Succeeded" | "Failed")) = status.phase.as_deref() {
            let codes = status.container_statuses.iter().flatten().filter(|status| status.name == container);
            let code = codes.filter_map(|status| Some(status.state.as_ref()?.terminated.as_ref()?.exit_code)).next();
            return Ok(match (code, phase) {
                (Some(code), _) => ExitCode::from(u8::try_from(code).unwrap_or(EXIT_FAILED)),
                (None, "Succeeded") => ExitCode::SUCCESS,
                (None, _) => ExitCode::from(EXIT_FAILED),
            });
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// Waits until the container has a log.
async fn started(client: &Client, name: &str, file: &Path) -> anyhow::Result<Pod> {
    let file_name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let mut reported = String::new();
    loop {
        let sources: ServedList = client.get(Target::new(OWN, &["sources"])).await?;
        for source in sources.items {
            let source: SourceObject = serde_json::from_value(source)?;
            let problem = source.status.problems.iter().find(|problem| problem.file.ends_with(&file_name));
            if let Some(problem) = problem.filter(|problem| problem.severity == podstead_pod::Severity::Error) {
                bail!("{}: {}", problem.field, problem.message);
            }
        }
        let pods = list(client, None).await?;
        let is_meant = |pod: &&Pod| {
            let found = pod.metadata.name.as_deref().and_then(|found| found.strip_prefix(name));
            found.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        if let Some(pod) = pods.iter().find(is_meant) {
            let status = pod.status.clone().unwrap_or_default();
            let has_run = |status: &k8s_openapi::api::core::v1::ContainerStatus| {
                status.state.as_ref().is_some_and(|state| state.running.is_some() || state.terminated.is_some())
            };
            if status.container_statuses.iter().flatten().any(has_run) || status.phase.as_deref() == Some("Failed") {
                return Ok(pod.clone());
            }
            let mut waiting =
                status.container_statuses.iter().flatten().filter_map(|status| status.state.as_ref()?.waiting.as_ref());
            let message = waiting.find_map(|waiting| waiting.message.clone()).unwrap_or_default();
            if !message.is_empty() && message != reported {
                writeln!(io::stderr(), "{message}")?;
                reported = message;
            }
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifest_gets_own_name_and_ends() {
        let (name, text) = one_off("kind: Pod\nmetadata: {name: fsck, uid: x}\nspec: {containers: []}\n", "0001").unwrap();
        assert_eq!(name, "fsck-run-0001");
        assert!(text.contains("name: fsck-run-0001") && text.contains("restartPolicy: Never") && !text.contains("uid"), "{text}");
        let (_, text) =
            one_off("kind: Pod\nmetadata: {name: a}\nspec: {x: &x {args: ['yes']}, containers: [{<<: *x}]}\n", "1").unwrap();
        assert!(text.contains("- args:\n    - \"yes\"\n"), "{text}");
        for wrong in [
            "",
            "kind: Job\nmetadata: {name: a}\n",
            "kind: Pod\nmetadata: {}\nspec: {}\n",
            "a: [",
            "kind: Pod\nmetadata: {name: a}\nspec: {restartPolicy: Always}\n",
            "kind: Pod\nmetadata: {name: a}\nspec: {}\n---\nkind: Pod\n",
        ] {
            assert!(one_off(wrong, "1").is_err(), "{wrong}");
        }
    }
}
