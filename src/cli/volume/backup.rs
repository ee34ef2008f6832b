//! `podstead volume export` and `podstead volume import`: the data of a claim in an archive, and back.

use super::{archive, block};
use crate::Context;
use crate::client::{Client, ClientError, OWN, Target};
use crate::pods::{list, name_of, namespace_of, pod_target, shown_name};
use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use k8s_openapi::api::core::v1::Pod;
use podstead_config::last_valid;
use podstead_image::compression::Decoder;
use podstead_image::limits::{Budget, Limits};
use podstead_image::space::{Reserve, Space};
use podstead_image::tar::Streamed;
use podstead_image::unpack::{Meter, Unpacked, unpack_volume};
use podstead_pod::PodUid;
use podstead_pod::claims::ClaimName;
use podstead_status::reason;
use podstead_sys::layout::Paths;
use podstead_sys::remove_tree::remove_tree;
use podstead_telemetry::counted;
use podstead_worker::record;
use rustix::fs::{CWD, RenameFlags, renameat_with, syncfs};
use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

/// Pause between two looks at a pod that is being stopped.
const LOOK_EVERY: Duration = Duration::from_millis(200);
/// Mode of the data of a claim, as the daemon creates it.
const DATA_MODE: u32 = 0o777;

/// Arguments of `export`.
#[derive(Debug, Args)]
pub(super) struct ExportArgs {
    /// Name of the claim
    claim: String,
    /// Namespace of the claim
    #[arg(short, long, value_name = "NAME", default_value = "default")]
    namespace: String,
    /// File to write; -: standard output
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Do not stop the pods that use the claim: files that change meanwhile may be inconsistent
    #[arg(long)]
    live: bool,
    /// Longest time to wait until a pod is stopped, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
}

/// Arguments of `import`.
#[derive(Debug, Args)]
pub(super) struct ImportArgs {
    /// Name of the claim
    claim: String,
    /// Archive of podstead volume export, or another tar archive, also compressed; -: standard input. For a block device: a disk image, also compressed
    file: PathBuf,
    /// Namespace of the claim
    #[arg(short, long, value_name = "NAME", default_value = "default")]
    namespace: String,
    /// Replace the data of a claim that is not empty
    #[arg(long)]
    replace: bool,
    /// Largest size of the data, such as 200Gi
    #[arg(long, value_name = "SIZE", default_value = "64Gi", value_parser = parse_size)]
    max_size: u64,
    /// Largest number of files
    #[arg(long, value_name = "NUMBER", default_value_t = 2_000_000)]
    max_files: u64,
    /// Longest time to wait until a pod is stopped, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 300)]
    timeout: u64,
}

fn parse_size(text: &str) -> Result<u64, String> {
    podstead_pod::quantity::Amount::read(&k8s_openapi::apimachinery::pkg::api::resource::Quantity(text.to_owned()))
        .ok()
        .and_then(|amount| u64::try_from(amount.value()).ok())
        .ok_or_else(|| "expected a size such as 500Mi or 200Gi".to_owned())
}

pub(super) fn export(args: &ExportArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let paths = last_valid::paths(context.config_path())?;
    let claim = claim_name(&args.namespace, &args.claim)?;
    if let Some(device) = block::device(context, &claim)? {
        return export_device(args, context, &paths, &claim, &device);
    }
    let data = paths.persistent_data(&claim);
    if !data.is_dir() {
        bail!("claim {}/{} has no data in {}; podstead volume ls lists all claims", claim.namespace, claim.name, data.display());
    }
    let users = if args.live { Users::none() } else { Users::stop(context, &paths, &claim, args.timeout)? };
    let written = write_file(&args.output, |out| archive::write(&data, out));
    users.start(context)?;
    let written = written?;
    let mut err = io::stderr();
    for skipped in &written.skipped {
        writeln!(err, "skipped {skipped}")?;
    }
    let entries = counted_entries(written.entries);
    writeln!(err, "exported {entries} with {} bytes from claim {}/{}", written.bytes, claim.namespace, claim.name)?;
    Ok(ExitCode::SUCCESS)
}

fn export_device(
    args: &ExportArgs,
    context: &Context,
    paths: &Paths,
    claim: &ClaimName,
    device: &Path,
) -> anyhow::Result<ExitCode> {
    let users = if args.live { Users::none() } else { Users::stop(context, paths, claim, args.timeout)? };
    let copied = write_file(&args.output, |out| block::export(device, out));
    users.start(context)?;
    let block::Copied { length, content } = copied?;
    let (namespace, name, at) = (&claim.namespace, &claim.name, device.display());
    writeln!(io::stderr(), "exported {length} bytes of {at}, {content} of them in use, from claim {namespace}/{name}")?;
    Ok(ExitCode::SUCCESS)
}

fn import_device(
    args: &ImportArgs,
    context: &Context,
    paths: &Paths,
    claim: &ClaimName,
    device: &Path,
) -> anyhow::Result<ExitCode> {
    let (namespace, name, at) = (&claim.namespace, &claim.name, device.display());
    if !args.replace {
        bail!("claim {namespace}/{name} is the block device {at}; --replace replaces its content");
    }
    let image = block::Image::check(&args.file, device)
        .with_context(|| format!("{} was not imported, and {at} is unchanged", args.file.display()))?;
    let users = Users::stop(context, paths, claim, args.timeout)?;
    let written = image.write(device);
    users.start(context)?;
    writeln!(io::stderr(), "imported {} bytes into {at} of claim {namespace}/{name}", written?.length)?;
    Ok(ExitCode::SUCCESS)
}

fn counted_entries(number: u64) -> String {
    counted(usize::try_from(number).unwrap_or(usize::MAX), "entry").replace("entrys", "entries")
}

/// A file gets its name when it is complete, so that an interrupted export leaves the earlier one.
fn write_file<T>(output: &Path, write: impl FnOnce(&mut dyn Write) -> anyhow::Result<T>) -> anyhow::Result<T> {
    if output.as_os_str() == "-" {
        return write(&mut io::stdout().lock());
    }
    let mut temporary = output.as_os_str().to_owned();
    temporary.push(".part");
    let temporary = PathBuf::from(temporary);
    let create = File::options().write(true).create(true).truncate(true).mode(0o600).open(&temporary);
    let mut file = create.with_context(|| format!("create {}", temporary.display()))?;
    let complete = || -> anyhow::Result<T> {
        let written = write(&mut file)?;
        file.sync_all()?;
        fs::rename(&temporary, output)?;
        Ok(written)
    };
    complete().inspect_err(|_| {
        // What is left of it is of no use; the error is the one to report.
        fs::remove_file(&temporary).ok();
    })
}

pub(super) fn import(args: &ImportArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let paths = last_valid::paths(context.config_path())?;
    let claim = claim_name(&args.namespace, &args.claim)?;
    if let Some(device) = block::device(context, &claim)? {
        return import_device(args, context, &paths, &claim, &device);
    }
    let data = paths.persistent_data(&claim);
    let is_empty = fs::read_dir(&data).map_or(true, |mut entries| entries.next().is_none());
    if !is_empty && !args.replace {
        bail!("claim {}/{} has data; --replace replaces it", claim.namespace, claim.name);
    }
    // On the same file system as the data, and removed by the daemon if this process dies.
    let staging = paths.volume_trash().join(format!("import-{}", std::process::id()));
    let unpacked = unpack_into(&staging, args).inspect_err(|_| {
        // The daemon removes what is left.
        remove_tree(&staging).ok();
    })?;
    let users = Users::stop(context, &paths, &claim, args.timeout)?;
    let replaced = put_in_place(&paths, &claim, &staging);
    users.start(context)?;
    replaced?;
    let mut err = io::stderr();
    if unpacked.lost_xattrs > 0 {
        writeln!(err, "this file system cannot store {} extended attributes of the archive", unpacked.lost_xattrs)?;
    }
    writeln!(
        err,
        "imported {} with {} bytes into claim {}/{}",
        counted_entries(unpacked.entries),
        unpacked.bytes,
        claim.namespace,
        claim.name
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Unpacks the whole archive before anything of the claim changes.
fn unpack_into(staging: &Path, args: &ImportArgs) -> anyhow::Result<Unpacked> {
    let source: Box<dyn Read> = match args.file.as_os_str() == "-" {
        true => Box::new(io::stdin().lock()),
        false => Box::new(File::open(&args.file).with_context(|| format!("open {}", args.file.display()))?),
    };
    let limits = Limits {
        entries: args.max_files,
        unpacked_bytes: args.max_size,
        compressed_bytes: args.max_size,
        // Data may compress well, and the size is limited.
        ratio: u64::MAX,
        file_bytes: args.max_size,
        ..Limits::default()
    };
    let decoder = Decoder::new(BufReader::new(source), &limits).with_context(|| format!("read {}", args.file.display()))?;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(staging).with_context(|| format!("create {}", staging.display()))?;
    fs::set_permissions(staging, fs::Permissions::from_mode(DATA_MODE))?;
    let root = File::open(staging)?;
    let meter = Meter::new(&limits, &Arc::new(Budget::of(limits, 1)), &Space::of(staging, Reserve::default()));
    let unpacked = unpack_volume(Streamed(decoder), root.try_clone()?.into(), meter)
        .with_context(|| format!("{} was not imported, and claim {} is unchanged", args.file.display(), args.claim))?;
    syncfs(&root)?;
    Ok(unpacked)
}

/// Exchanges the data of the claim by one rename, and removes the earlier data.
fn put_in_place(paths: &Paths, claim: &ClaimName, staging: &Path) -> anyhow::Result<()> {
    let (volume, data) = (paths.persistent_volume(claim), paths.persistent_data(claim));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&volume)?;
    let exchange = if data.try_exists()? { RenameFlags::EXCHANGE } else { RenameFlags::NOREPLACE };
    renameat_with(CWD, staging, CWD, &data, exchange).with_context(|| format!("move the data to {}", data.display()))?;
    File::open(&volume)?.sync_all()?;
    if exchange == RenameFlags::EXCHANGE {
        remove_tree(staging).with_context(|| format!("remove the earlier data in {}", staging.display()))?;
    }
    Ok(())
}

/// Names become parts of paths.
fn claim_name(namespace: &str, name: &str) -> anyhow::Result<ClaimName> {
    let is_name = |text: &str| {
        let mut characters = text.chars();
        !text.is_empty()
            && text.len() <= 253
            && !text.starts_with('.')
            && characters.all(|character| character.is_ascii_lowercase() || character.is_ascii_digit() || "-.".contains(character))
    };
    match is_name(namespace) && is_name(name) {
        true => Ok(ClaimName { namespace: namespace.to_owned(), name: name.to_owned() }),
        false => bail!("{namespace}/{name} is not a namespace and the name of a claim"),
    }
}

/// Pods that were stopped for the time of an export or import.
struct Users {
    pods: Vec<Pod>,
}

impl Users {
    fn none() -> Self {
        Self { pods: Vec::new() }
    }

    /// Stops the pods that use the claim and are not stopped already.
    fn stop(context: &Context, paths: &Paths, claim: &ClaimName, timeout: u64) -> anyhow::Result<Self> {
        let client = context.client()?;
        let stopped = context.block_on(async {
            let pods = list(&client, Some(&claim.namespace)).await?;
            let users: Vec<Pod> = pods.into_iter().filter(|pod| uses(pod, &claim.name) && !is_stopped(pod)).collect();
            let mut stopped = Self::none();
            for pod in users {
                if has_ended(&pod) {
                    continue;
                }
                match stop(&client, &pod, timeout).await {
                    Ok(()) => stopped.pods.push(pod),
                    Err(error) => {
                        stopped.pods.push(pod);
                        stopped.start_with(&client).await.ok();
                        return Err(error);
                    }
                }
            }
            Ok(stopped)
        });
        match stopped {
            Err(error) if crate::is_unreachable(&error) => match recorded_users(paths, claim)?.as_slice() {
                [] => Ok(Self::none()),
                users => Err(error
                    .context(format!("{} may use the claim, and only the daemon can stop pods; start it first", users.join(", ")))),
            },
            stopped => stopped,
        }
    }

    /// Starts them again.
    fn start(self, context: &Context) -> anyhow::Result<()> {
        if self.pods.is_empty() {
            return Ok(());
        }
        let client = context.client()?;
        context.block_on(async { self.start_with(&client).await })
    }

    async fn start_with(&self, client: &Client) -> anyhow::Result<()> {
        let mut failed = Vec::new();
        for pod in &self.pods {
            match order(client, pod, "start").await {
                // Removed or replaced meanwhile.
                Ok(()) | Err(ClientError::Refused { code: 404 | 409, .. }) => {}
                Err(error) => failed.push(format!("{}: {error}", shown_name(pod))),
            }
        }
        if failed.is_empty() {
            Ok(())
        } else {
            Err(anyhow!("pods stay stopped; podstead start starts them: {}", failed.join("; ")))
        }
    }
}

async fn order(client: &Client, pod: &Pod, order: &str) -> Result<(), ClientError> {
    let target = Target::new(OWN, &["namespaces", namespace_of(pod), "pods", name_of(pod), order]);
    client.post::<serde_json::Value>(target, &serde_json::json!({})).await.map(drop)
}

async fn stop(client: &Client, pod: &Pod, timeout: u64) -> anyhow::Result<()> {
    writeln!(io::stderr(), "stopping pod {}", shown_name(pod))?;
    order(client, pod, "stop").await?;
    let wait = async {
        loop {
            let present: Pod = match client.get(pod_target(pod, &[])).await {
                Err(ClientError::Refused { code: 404, .. }) => return Ok(()),
                present => present?,
            };
            if is_stopped(&present) {
                return Ok::<(), ClientError>(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    };
    match tokio::time::timeout(Duration::from_secs(timeout), wait).await {
        Ok(waited) => Ok(waited?),
        Err(_) => bail!("pod {} is not stopped after {timeout} seconds", shown_name(pod)),
    }
}

fn uses(pod: &Pod, claim: &str) -> bool {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.into_iter().any(|volume| volume.persistent_volume_claim.as_ref().is_some_and(|source| source.claim_name == claim))
}

fn has_ended(pod: &Pod) -> bool {
    matches!(pod.status.as_ref().and_then(|status| status.phase.as_deref()), Some("Succeeded" | "Failed"))
}

/// Returns true if an operator stopped the pod and nothing of it runs.
fn is_stopped(pod: &Pod) -> bool {
    let status = pod.status.iter();
    let all: Vec<_> =
        status.flat_map(|status| status.init_container_statuses.iter().chain(&status.container_statuses).flatten()).collect();
    let waits_as = |container: &&&k8s_openapi::api::core::v1::ContainerStatus| {
        let waiting = container.state.as_ref().and_then(|state| state.waiting.as_ref());
        waiting.is_some_and(|waiting| waiting.reason.as_deref() == Some(reason::STOPPED))
    };
    let runs = all.iter().any(|container| container.state.as_ref().is_some_and(|state| state.running.is_some()));
    !runs && all.iter().any(|container| waits_as(&container))
}

/// Pods that use the claim by their records, for a host whose daemon does not run.
fn recorded_users(paths: &Paths, claim: &ClaimName) -> anyhow::Result<Vec<String>> {
    let records = record::read_all(paths)?;
    if let Some((uid, _)) = records.unreadable.first() {
        let uid: &PodUid = uid;
        bail!("the record of pod {uid} cannot be read, so it is not known whether it uses the claim");
    }
    let users = records.records.iter().map(|record| &record.desired).filter(|desired| {
        let volumes = desired.pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
        let mut claims = volumes.filter_map(|volume| volume.persistent_volume_claim.as_ref());
        desired.full_name.namespace == claim.namespace && claims.any(|source| source.claim_name == claim.name)
    });
    Ok(users.map(|desired| desired.full_name.name.clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn claim_names_cannot_leave_directory() {
        assert!(claim_name("default", "data-db-0").is_ok());
        for (namespace, name) in
            [("default", ".."), ("..", "data"), ("default", "a/b"), ("", "data"), ("default", ".trash"), ("default", "")]
        {
            assert!(claim_name(namespace, name).is_err(), "{namespace} {name}");
        }
    }
}
