//! `podstead render`: the objects that a host would have of some manifests, without a daemon.
//!
//! The host need not be this one: its name, labels and variables are arguments, so that one machine can check a repository for all hosts.

use super::tree::{named_source, path_of, prepared, read_source, read_tree, read_with_surroundings, root_of};
use super::validate::github;
use super::{Context, EXIT_FAILED};
use anyhow::{Context as _, anyhow, bail};
use clap::{Args, ValueEnum};
use podstead_artifact::Layers;
use podstead_config::{Config, HostFacts, NODE_NAME, SourceConfig, WrittenConfig, age_keys};
use podstead_manifest::{Problem, Substitution, is_variable_name, to_yaml, variable_name_problem};
use podstead_pod::{Origin, Severity, SourceId};
use podstead_settings::ConfigError;
use podstead_store::{Accepted, AcceptedObject, CheckContext, UndeltaStore};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Arguments.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit codes: 0 all manifests are valid (warnings count with --strict only), 1 a manifest is rejected or none was found, 2 invalid arguments.\n\
                        Values of Secrets are not printed."
)]
pub(super) struct RenderArgs {
    #[command(flatten)]
    target: RenderTarget,
    /// Exit with 1 for warnings as well, such as those about objects that are ignored
    #[arg(long)]
    strict: bool,
    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Yaml)]
    output: Format,
}

/// Manifests, and the host that they are for.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct RenderTarget {
    /// Manifest file or directory; variables in this path are replaced as in the configuration
    #[arg(value_name = "PATH")]
    pub(super) path: String,
    /// Name of the host [default: from the configuration]
    #[arg(long, value_name = "NAME")]
    pub(super) host: Option<String>,
    /// Labels of the host
    #[arg(long, value_name = "KEY=VALUE,...", value_delimiter = ',')]
    pub(super) labels: Vec<String>,
    /// Variable of the host; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    pub(super) variables: Vec<String>,
    /// Configured source with the restrictions, variables and layers to apply [default: none; variables of the host are replaced]
    #[arg(long, value_name = "NAME")]
    pub(super) source: Option<String>,
    /// Layers of the host: directories or files below PATH, the most general one first; variables in these paths are replaced
    #[arg(long, value_name = "PATH,...", value_delimiter = ',', conflicts_with = "source")]
    pub(super) layers: Vec<String>,
}

/// The way in which a directory is read where no source is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadAs {
    /// As a directory source does.
    Directory,
    /// As a source does that has the tree of a commit, an artifact or a bundle.
    Tree,
}

/// The objects of a host.
#[derive(Debug)]
pub(super) struct Rendered {
    /// The file or directory that was read.
    pub(super) path: PathBuf,
    /// The objects.
    pub(super) store: UndeltaStore,
    /// Their problems.
    pub(super) problems: Vec<Problem>,
}

/// `-o`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// The objects on standard output, problems on standard error.
    Yaml,
    /// Only the problems, as GitHub Actions annotations.
    Github,
}

pub(super) fn run(args: &RenderArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let Rendered { path, store, problems } = render(&args.target, ReadAs::Directory, context)?;
    let mut out = io::stdout().lock();
    match args.output {
        Format::Yaml => {
            for object in store.objects() {
                write!(out, "---\n# {}\n{}", origin(&path, object), to_yaml(&value_of(object)))?;
            }
            for problem in &problems {
                writeln!(io::stderr(), "{problem}")?;
            }
        }
        Format::Github => github(&mut out, &problems)?,
    }
    let is_refused = |problem: &Problem| args.strict || problem.severity == Severity::Error;
    Ok(if problems.iter().any(is_refused) { ExitCode::from(EXIT_FAILED) } else { ExitCode::SUCCESS })
}

/// Reads the manifests and checks them as the host would.
pub(super) fn render(target: &RenderTarget, read_as: ReadAs, context: &Context) -> anyhow::Result<Rendered> {
    let config = config(target, context)?;
    let all = Substitution::new(config.values().into_iter().map(|(name, value)| (name, Some(value))));
    let path = PathBuf::from(all.in_line(&target.path).map_err(|message| anyhow!("{}: {message}", target.path))?);
    let opening = age_keys::for_checks(Some(&config));
    let everything = CheckContext { opening, ..CheckContext::new(config.admit_context()) };
    let source = target.source.as_deref().map(|name| named_source(name, &config)).transpose()?;
    let check_context = match source {
        None => {
            let layers = Arc::new(layers(&target.layers, &all)?);
            CheckContext { substitute: Some(Arc::new(all)), layers, ..everything }
        }
        Some(source) => {
            let SourceConfig { allow, requirements, substitute, layers, writable: keeps_names, .. } = source.clone();
            CheckContext { allow, requirements, substitute, layers, keeps_names, ..everything }
        }
    };
    let path = source.map_or_else(|| path.clone(), |source| root_of(&source.place, &path));
    let artifact = match (source, read_as) {
        (Some(source), _) => read_source(&source.place, &check_context.layers, &path)?,
        (None, ReadAs::Directory) => read_with_surroundings(&check_context.layers, &path)?,
        (None, ReadAs::Tree) => read_tree(&path)?,
    };
    let store = UndeltaStore::default().in_layers(&check_context.layers);
    let prepared = prepared(&artifact, &path, &store, &check_context)?;
    if prepared.artifact.files.is_empty() {
        bail!("{} contains no manifests (files ending in .yaml, .yml or .json)", path.display());
    }
    let store = store.apply(&prepared.artifact, &|file, bytes, patches| prepared.check(file, bytes, &check_context, patches));
    let mut problems = store.set(&SourceId::new("render"), &artifact.revision).problems;
    problems.iter_mut().for_each(|problem| problem.file = shown(&path, &problem.file));
    problems.sort_by(|a, b| (&a.file, a.position).cmp(&(&b.file, b.position)));
    Ok(Rendered { path, store, problems })
}

/// The configuration as the host has it that is asked about. A machine that only renders need not have one.
fn config(args: &RenderTarget, context: &Context) -> anyhow::Result<Config> {
    let (mut labels, mut variables) = (BTreeMap::new(), BTreeMap::new());
    for label in &args.labels {
        let (key, value) = label.split_once('=').with_context(|| format!("--labels {label}: expected KEY=VALUE"))?;
        labels.insert(key.to_owned(), value.to_owned());
    }
    for variable in &args.variables {
        let (name, value) = variable.split_once('=').with_context(|| format!("--set {variable}: expected NAME=VALUE"))?;
        if !is_variable_name(name) || name == NODE_NAME {
            let reason =
                if name == NODE_NAME { "this variable is set with --host".to_owned() } else { variable_name_problem(name) };
            bail!("--set {name}: {reason}");
        }
        variables.insert(name.to_owned(), value.to_owned());
    }
    let host = args.host.as_ref().map(|host| host.to_lowercase());
    let alone = |host, labels, variables| {
        let written = WrittenConfig { node_name: host, labels, variables, ..WrittenConfig::default() };
        // Judges the arguments as if they were written in a file.
        Ok(written.resolve(&HostFacts::of_this_host(), Path::new("command line"))?)
    };
    if host.is_some() && args.source.is_none() {
        return alone(host, labels, variables);
    }
    match Config::load_for(context.config_path(), host.as_deref(), labels.clone(), variables.clone()) {
        Err(ConfigError::Read { source, .. }) if source.kind() == ErrorKind::NotFound && args.source.is_none() => {
            alone(None, labels, variables)
        }
        Err(error) if host.is_none() => bail!("cannot determine the host, name it with --host: {error}"),
        loaded => Ok(loaded?),
    }
}

fn layers(written: &[String], all: &Substitution) -> anyhow::Result<Layers> {
    let expand = |layer: &String| match all.in_line(layer) {
        Ok(text) if text.contains("${") => Err(anyhow!("--layers {layer}: unknown variable")),
        Ok(text) => Ok(text),
        Err(message) => Err(anyhow!("--layers {layer}: {message}")),
    };
    let expanded = written.iter().map(expand).collect::<anyhow::Result<Vec<_>>>()?;
    Layers::parse(&expanded).context("--layers")
}

/// Path of a file relative to the working directory. A single file already has its whole path.
fn shown(root: &Path, file: &str) -> String {
    let prefix = if root.is_dir() { root.strip_prefix(".").unwrap_or(root) } else { Path::new("") };
    path_of(prefix, file).display().to_string()
}

/// Files and lines of the object and of its patches, for a comment: which must not end before its line.
fn origin(root: &Path, object: &Accepted) -> String {
    let place =
        |Origin { file, position }: &Origin| format!("{}:{}", shown(root, file).replace(char::is_control, "?"), position.line);
    let patches: Vec<String> = object.patched_by.iter().map(place).collect();
    let patched = if patches.is_empty() { String::new() } else { format!(", patched by {}", patches.join(", ")) };
    format!("{}{patched}", place(&object.origin))
}

fn value_of(accepted: &Accepted) -> Value {
    let (kind, value) = match &accepted.object {
        AcceptedObject::Pod(pod) => ("Pod", serde_json::to_value(pod)),
        AcceptedObject::ConfigMap(config_map) => ("ConfigMap", serde_json::to_value(config_map)),
        AcceptedObject::Secret(secret) => ("Secret", serde_json::to_value(secret)),
        AcceptedObject::PersistentVolumeClaim(claim) => ("PersistentVolumeClaim", serde_json::to_value(claim)),
        AcceptedObject::Workload(workload) => (workload.kind().as_str(), Ok(workload.to_json())),
        AcceptedObject::Network(object) => (object.kind().as_str(), object.to_json()),
    };
    // These types have string keys only: they are always values.
    let mut value = value.unwrap_or_default();
    if let Value::Object(map) = &mut value {
        map.remove("status");
        map.entry("apiVersion").or_insert_with(|| json!("v1"));
        map.insert("kind".to_owned(), json!(kind));
        for content in ["data", "stringData"] {
            if let (AcceptedObject::Secret(_), Some(Value::Object(entries))) = (&accepted.object, map.get_mut(content)) {
                entries.values_mut().for_each(|value| *value = json!("(redacted)"));
            }
        }
    }
    value
}
