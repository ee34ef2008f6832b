//! `podstead render`: the objects that a host would have of some manifests, without a daemon.

use super::{Context, EXIT_FAILED};
use crate::config::NODE_NAME;
use crate::manifest::{Problem, Severity, Substitution, is_variable_name, to_yaml, variable_name_problem};
use crate::pod::{AdmitContext, NodeName, SourceId};
use crate::source::dir;
use crate::store::{CheckContext, Set, UndeltaStore, check};
use anyhow::{Context as _, anyhow, bail};
use clap::Args;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

/// Arguments.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 all manifests are good, 1 one is refused, 2 the command was not understood.\n\
                        What Secrets hold is not written.")]
pub(super) struct RenderArgs {
    /// Manifest file or directory; variables in it are replaced as in the configuration
    #[arg(value_name = "PATH")]
    path: String,
    /// Name of the host [default: from the configuration]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,
    /// A variable of the host; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    variables: Vec<String>,
    /// Source of the configuration whose restrictions and variables count [default: none, and the variables of the host]
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
}

pub(super) fn run(args: &RenderArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let (node, values) = host(args, context)?;
    let all = || values.iter().map(|(name, value)| (name.clone(), Some(value.clone())));
    let path = Substitution::new(all()).in_line(&args.path).map_err(|message| anyhow!("{}: {message}", args.path))?;
    let everything = CheckContext::new(AdmitContext::new(node));
    let check_context = match &args.source {
        None => CheckContext { substitute: Some(Arc::new(Substitution::new(all()))), ..everything },
        Some(name) => {
            let config = context.load_config()?;
            let source = config.sources.into_iter().find(|source| source.name.as_str() == name);
            let source = source.ok_or_else(|| anyhow!("no source {name:?} is configured"))?;
            // The names that the source lists, with the values of the host that is asked about.
            let listed =
                |names: &Substitution| names.names().map(|name| (name.to_owned(), values.get(name).cloned())).collect::<Vec<_>>();
            let substitute = source.substitute.map(|names| Arc::new(Substitution::new(listed(&names))));
            CheckContext { allow: source.allow, substitute, ..everything }
        }
    };
    let set = read(Path::new(&path), &check_context)?;
    let mut out = io::stdout().lock();
    for object in objects(&set) {
        writeln!(out, "---")?;
        write!(out, "{}", to_yaml(&object))?;
    }
    for problem in &set.problems {
        writeln!(io::stderr(), "{problem}")?;
    }
    let is_refused = |problem: &Problem| problem.severity == Severity::Error;
    Ok(if set.problems.iter().any(is_refused) { ExitCode::from(EXIT_FAILED) } else { ExitCode::SUCCESS })
}

/// The host that is asked about: its name and all its variables. A machine that only renders need not have a configuration.
fn host(args: &RenderArgs, context: &Context) -> anyhow::Result<(NodeName, BTreeMap<String, String>)> {
    let config = context.load_config();
    let node = match (&args.host, &config) {
        (Some(name), _) => NodeName::new(name.to_lowercase()),
        (None, Ok(config)) => config.node_name.clone(),
        (None, Err(error)) => bail!("say which host with --host: {error}"),
    };
    // Of another host, nothing is known but what is said.
    let mut values = match (&args.host, config) {
        (None, Ok(config)) => config.variables,
        (Some(_), _) | (None, Err(_)) => BTreeMap::new(),
    };
    for variable in &args.variables {
        let (name, value) = variable.split_once('=').with_context(|| format!("--set {variable}: write NAME=VALUE"))?;
        if !is_variable_name(name) || name == NODE_NAME {
            let reason = if name == NODE_NAME { "is what --host says".to_owned() } else { variable_name_problem(name) };
            bail!("--set {name}: {reason}");
        }
        values.insert(name.to_owned(), value.to_owned());
    }
    values.insert(NODE_NAME.to_owned(), node.to_string());
    Ok((node, values))
}

fn read(path: &Path, context: &CheckContext) -> anyhow::Result<Set> {
    let artifact = dir::read_once(path)?;
    if artifact.files.is_empty() {
        bail!("{} holds no manifests (files that end in .yaml, .yml or .json)", path.display());
    }
    let store = UndeltaStore::default().apply(&artifact, &|file, bytes| check(file, bytes, context));
    Ok(store.set(&SourceId::new("render"), &artifact.revision))
}

/// Everything in the set, in the order of kinds and names.
fn objects(set: &Set) -> Vec<Value> {
    let typed = |kind: &str, value: Result<Value, serde_json::Error>| {
        // These types have string keys only: they are always values.
        let mut value = value.unwrap_or_default();
        if let Value::Object(map) = &mut value {
            map.remove("status");
            map.insert("apiVersion".to_owned(), json!("v1"));
            map.insert("kind".to_owned(), json!(kind));
        }
        value
    };
    let config_maps = set.config_maps.values().map(|object| typed("ConfigMap", serde_json::to_value(object)));
    let secrets = set.secrets.values().map(|object| {
        let mut secret = typed("Secret", serde_json::to_value(object));
        for content in ["data", "stringData"] {
            if let Some(Value::Object(entries)) = secret.get_mut(content) {
                entries.values_mut().for_each(|value| *value = json!("(redacted)"));
            }
        }
        secret
    });
    let pods = set.pods.values().map(|object| typed("Pod", serde_json::to_value(&object.pod)));
    config_maps.chain(secrets).chain(pods).collect()
}
