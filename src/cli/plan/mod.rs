//! `podstead plan`: what the daemon would do if a source held these manifests.
//!
//! Uses the code of the daemon: manifests are read, validated and merged like those of a source, and the worker plans each pod.
//! The state of the host is read from records on disk, so the daemon need not run. Nothing is changed.

mod change;
mod host;

use super::output::Form;
use super::tree::{named_source, prepared, read_source, root_of, source_at};
use super::{Context, EXIT_FAILED};
use anyhow::Context as _;
use change::{Change, PodChange, Settings};
use clap::Args;
use host::HostPod;
use jiff::Timestamp;
use podstead_config::{Config, SourceConfig, age_keys, sharing};
use podstead_daemon::node;
use podstead_expand::KnownPod;
use podstead_expand::preview::{PodState, Preview};
use podstead_mux::{Applied, Merge};
use podstead_pod::objects::{FingerprintKey, Objects};
use podstead_pod::{DesiredPod, PodUid, Revision, Severity};
use podstead_store::last_good::{LastGood, Record};
use podstead_store::{Accepted, CheckContext, Set, UndeltaStore, relocate, whole};
use podstead_sys_async::clock::Clock;
use podstead_worker::backoff::BackoffPolicy;
use podstead_worker::definition::DefinitionContext;
use serde_json::{Value, json};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Arguments.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 nothing would change; 1 something would change, a manifest is rejected, or something could not be read; \
                        2 invalid arguments."
)]
pub(super) struct PlanArgs {
    /// Directory or file with manifests; for a git source, any path in a clone of its repository
    #[arg(value_name = "PATH")]
    path: PathBuf,
    /// Source that the manifests belong to [default: the source with this directory or this repository, or the only source]
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Also show pods that would not change
    #[arg(short, long)]
    verbose: bool,
    /// Output format
    #[arg(short, long, value_name = "FORM", default_value = "text")]
    output: Form,
}

pub(super) fn run(args: &PlanArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let config = context.load_config()?;
    let source = match &args.source {
        Some(name) => named_source(name, &config)?,
        None => source_at(&args.path, &config)?,
    };
    let set = read(&args.path, source, &config)?;
    let mut err = std::io::stderr().lock();
    for problem in &set.problems {
        writeln!(err, "{problem}")?;
    }
    let is_refused = set.problems.iter().any(|problem| problem.severity == Severity::Error);
    let (changes, conflicts) = forecast(set, &config)?;
    for conflict in &conflicts {
        writeln!(err, "{conflict}")?;
    }
    let mut out = std::io::stdout().lock();
    match &args.output {
        Form::Text => show(&mut out, &changes, args.verbose)?,
        Form::Structured(form) => form.write(&mut out, &json(&changes, args.verbose), "pods")?,
    }
    let is_change = changes.iter().any(|pod| pod.change != Change::Keep);
    Ok(if is_change || is_refused { ExitCode::from(EXIT_FAILED) } else { ExitCode::SUCCESS })
}

/// Reads and validates manifests as the source would: a rejected object keeps its last accepted version.
fn read(path: &Path, source: &SourceConfig, config: &Config) -> anyhow::Result<Set> {
    let check_context = CheckContext {
        allow: source.allow.clone(),
        requirements: source.requirements.clone(),
        substitute: source.substitute.clone(),
        layers: source.layers.clone(),
        keeps_names: source.writable,
        opening: age_keys::for_forecasts(config),
        host: Some(podstead_daemon::workloads::host(config, &config.labels)),
        ..CheckContext::new(config.admit_context())
    };
    let root = root_of(&source.place, path);
    let artifact = read_source(&source.place, &source.layers, &root)?;
    let last = LastGood::new(&config.paths, source.name.clone()).load()?;
    let (before, _) = match last.in_force {
        Some(Record { stamp, files }) => UndeltaStore::restore(relocate(files, source.allow.as_deref()))
            .without(&|accepted: &Accepted| check_context.revokes(accepted, stamp.policy.as_ref())),
        None => (UndeltaStore::default(), Vec::new()),
    };
    let prepared = prepared(&artifact, &root, &before, &check_context)?;
    let store = before
        .in_layers(&source.layers)
        .apply(&prepared.artifact, &|file, bytes, patches| prepared.check(file, bytes, &check_context, patches));
    let mut set = store.set(&source.name, &artifact.revision);
    set.problems.extend(whole::exclusive_claims(&set));
    Ok(set)
}

/// Computes the change of each pod of the source, and lists unused pods and objects of the source.
fn forecast(set: Set, config: &Config) -> anyhow::Result<(Vec<PodChange>, Vec<String>)> {
    let clock = Clock::system();
    let now = clock.now();
    let pods = host::pods(&config.paths).context("read the pods of this host")?;
    let source = set.source.clone();
    let mut workloads = workloads(&pods, config)?;
    let mut merge = merge(&pods, config, &mut workloads, now.wall)?;
    let context = |objects: &Arc<Objects>| DefinitionContext {
        pids_limit: config.pod_pids_limit,
        objects: Arc::clone(objects),
        // What is compared is what two definitions of this forecast have from objects, not what records have.
        fingerprint_key: FingerprintKey::new([0; 32]),
        facts: node::facts(config),
    };
    let before = context(merge.objects());
    let mut applied = Applied::default();
    for set in workloads.apply(set) {
        applied = merge.apply(set, now.wall, &mut PodUid::random);
    }
    let Applied { conflicts, object_conflicts, .. } = applied;
    let of_pods = conflicts.iter().filter(|conflict| conflict.loser.source == source).map(ToString::to_string);
    let of_objects = object_conflicts.iter().filter(|conflict| conflict.loser == source).map(ToString::to_string);
    let conflicts = of_pods.chain(of_objects).collect();
    let desired: Vec<Arc<DesiredPod>> = merge.desired().cloned().collect();
    let after = context(merge.objects());
    let settings = Settings { crash_loop: BackoffPolicy::crash_loop(config.crash_loop_max), before, after, now };

    let mut changes = Vec::new();
    let is_concerned = |desired: &&Arc<DesiredPod>| desired.source == source || settings.sees_other_objects(desired);
    for desired in desired.iter().filter(is_concerned) {
        changes.push(match pods.iter().find(|pod| pod.record.desired.uid == desired.uid) {
            Some(pod) => change::update(pod, Arc::clone(desired), &settings),
            None => change::create(Arc::clone(desired), &settings),
        });
    }
    let is_wanted = |uid: &PodUid| desired.iter().any(|desired| desired.uid == *uid);
    for pod in pods.iter().filter(|pod| pod.record.desired.source == source && !is_wanted(&pod.record.desired.uid)) {
        changes.push(change::remove(pod, &settings));
    }
    changes.sort_by(|a, b| a.full_name.cmp(&b.full_name));
    Ok((changes, conflicts))
}

/// The workloads of this host, from their memory.
fn workloads(pods: &[HostPod], config: &Config) -> anyhow::Result<Preview> {
    let known = pods.iter().filter_map(|pod| {
        let desired = &pod.record.desired;
        let owner = podstead_expand::owner(&desired.pod, &desired.full_name.namespace)?;
        let state = match &pod.record.result {
            None => PodState::Running,
            Some(result) if result.succeeded => PodState::Succeeded,
            Some(_) => PodState::Failed,
        };
        let (uid, name) = (desired.uid.clone(), desired.full_name.name.clone());
        Some((KnownPod { uid, owner, name, is_terminating: false }, state))
    });
    let host = podstead_daemon::workloads::host(config, &config.labels);
    let preview = Preview::new(&config.paths, sharing(&config.sources), host, config.admit_context(), known.collect());
    preview.context("read the memory of workloads")
}

/// All that is wanted, with the sources as they were last accepted.
fn merge(pods: &[HostPod], config: &Config, workloads: &mut Preview, now: Timestamp) -> anyhow::Result<Merge> {
    let mut merge = Merge::new(sharing(&config.sources), pods.iter().map(|pod| pod.record.desired.clone()).collect());
    let mut new_uid = PodUid::random;
    for source in &config.sources {
        let id = &source.name;
        let last = LastGood::new(&config.paths, id.clone()).load()?;
        let (store, revision) = match last.in_force {
            Some(record) => (UndeltaStore::restore(relocate(record.files, source.allow.as_deref())), record.stamp.revision),
            None => (UndeltaStore::default(), Revision(String::new())),
        };
        for set in workloads.apply(store.set(id, &revision)) {
            merge.apply(set, now, &mut new_uid);
        }
    }
    Ok(merge)
}

/// The same as the text says, for programs.
fn json(changes: &[PodChange], verbose: bool) -> Value {
    let shown = changes.iter().filter(|pod| verbose || pod.change != Change::Keep);
    let pods = shown.map(|PodChange { full_name, origin, change, actions, missing }| {
        let actions: Vec<String> = actions.iter().map(ToString::to_string).collect();
        json!({
            "namespace": full_name.namespace, "name": full_name.name, "origin": origin, "change": change.word(),
            "actions": actions, "waitsFor": missing,
        })
    });
    json!({"apiVersion": "podstead.dev/v1alpha1", "kind": "Plan", "pods": pods.collect::<Vec<_>>()})
}

fn show(out: &mut impl Write, changes: &[PodChange], verbose: bool) -> anyhow::Result<()> {
    let count = |change: Change| changes.iter().filter(|pod| pod.change == change).count();
    for pod in changes {
        let mark = match pod.change {
            Change::Create => '+',
            Change::Update => '~',
            Change::Recreate => '±',
            Change::Remove => '-',
            Change::Keep if verbose => '=',
            Change::Keep => continue,
        };
        let word = pod.change.word();
        writeln!(out, "{mark} {word} pod {}/{} ({})", pod.full_name.namespace, pod.full_name.name, pod.origin)?;
        for action in &pod.actions {
            writeln!(out, "    {action}")?;
        }
        for missing in &pod.missing {
            writeln!(out, "    wait: {missing}")?;
        }
    }
    writeln!(
        out,
        "{} to create, {} to update, {} to recreate, {} to remove, {} unchanged",
        count(Change::Create),
        count(Change::Update),
        count(Change::Recreate),
        count(Change::Remove),
        count(Change::Keep)
    )?;
    Ok(())
}
