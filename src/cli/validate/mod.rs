//! `podstead validate`: checks manifests with the code of the daemon, without a daemon.
//!
//! A directory is read as a source reads it. Files that are named count as one directory together, so that a pod defined in two of
//! them is found. A directory with kustomizations is built as by a source; with `-R`, one that has them in subdirectories, too: then each
//! kustomization that no other one refers to is checked as a separate source.

mod render;

pub(super) use render::github;

use super::tree::{named_source, path_of, read_source, read_with_surroundings, root_of, subdirectories};
use super::{Context, EXIT_FAILED, EXIT_UNUSABLE};
use anyhow::{Context as _, bail};
use clap::{Args, ValueEnum};
use podstead_artifact::layers::NoLayer;
use podstead_artifact::{Artifact, FileBytes, FileContent, KUSTOMIZATIONS, Layers, Surroundings};
use podstead_config::{SourceConfig, age_keys};
use podstead_manifest::{Limits, PatchesByObject, Problem};
use podstead_pod::{AdmitContext, NodeName, Revision, Severity, SourceId};
use podstead_source::dir;
use podstead_store::undelta::PATCH_WITHOUT_TARGET;
use podstead_store::{CheckContext, Prepared, Set, UndeltaStore, prepare, whole};
use podstead_workload::host_fit::Host;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

/// Name of standard input in problems.
const STDIN: &str = "stdin";

/// Arguments.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 all manifests are valid (warnings count with --strict only), 1 a manifest is rejected, \
                        2 invalid arguments, or a path could not be read.")]
pub(super) struct ValidateArgs {
    /// Manifest files or directories; - reads standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Include subdirectories; each one is checked as a separate source
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Exit with 1 for warnings as well, such as those about objects that are ignored
    #[arg(long)]
    strict: bool,
    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
    /// Name of the host that the manifests are for [default: from the configuration]
    #[arg(long, value_name = "NAME")]
    node_name: Option<String>,
    /// Configured source with the restrictions, variables and layers to apply; a directory is read as this source reads it (a git source: with its subdirectories)
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
}

/// `-o`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// Problems with the lines they are in.
    Text,
    /// One JSON document.
    Json,
    /// GitHub Actions annotations.
    Github,
}

/// Files by the name that problems have for them.
type Files = BTreeMap<String, FileContent>;

/// Files that are checked together.
#[derive(Debug)]
enum Collection {
    /// Files that were named, beside which there may be others.
    Named(Files),
    /// Those of a directory, checked as they are.
    Plain(Files),
    /// The files that a source would report, by path from its root.
    Tree {
        artifact: Artifact,
        /// Goes before paths in problems.
        prefix: PathBuf,
        /// Each directory is a source of its own, once the kustomizations are built.
        separate: bool,
    },
}

impl Collection {
    /// Number of manifests.
    fn len(&self) -> usize {
        match self {
            Collection::Named(files) | Collection::Plain(files) => files.len(),
            Collection::Tree { artifact, .. } => artifact.files.len(),
        }
    }

    /// Content of the file that problems name so.
    fn content(&self, file: &str) -> Option<Vec<u8>> {
        let content = match self {
            Collection::Named(files) | Collection::Plain(files) => files.get(file),
            Collection::Tree { artifact, prefix, .. } => {
                let named = |name: &String| path_of(prefix, name) == Path::new(file);
                let around = artifact.around.files.iter().find(|(path, _)| named(&artifact.around.name_of(path)));
                match Path::new(file).strip_prefix(prefix).ok().and_then(Path::to_str) {
                    Some(name) => artifact.content(name),
                    None => around.map(|(_, content)| content),
                }
            }
        };
        content?.as_ref().ok().map(FileBytes::read)
    }
}

/// Results of a run.
#[derive(Debug, Default)]
struct Findings {
    files: usize,
    pods: usize,
    config_maps: usize,
    secrets: usize,
    claims: usize,
    workloads: usize,
    /// Services and other objects that say how pods are reached.
    network: usize,
    problems: Vec<Problem>,
}

impl Findings {
    fn count(&self, severity: Severity) -> usize {
        self.problems.iter().filter(|problem| problem.severity == severity).count()
    }
}

pub(super) fn run(args: &ValidateArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let config = args.source.as_ref().map(|_| context.load_config()).transpose()?;
    let source = args.source.as_deref().zip(config.as_ref()).map(|(name, config)| named_source(name, config)).transpose()?;
    let check_context = check_context(args, source, context);
    let (mut collections, mut unreadable) = collect(args, source);
    let configurations = set_configurations_aside(&mut collections);
    let mut findings = Findings::default();
    for collection in &collections {
        unreadable.extend(judge(collection, &check_context, &mut findings).err().map(anyhow::Error::from));
    }
    let contents = |file: &str| collections.iter().find_map(|collection| collection.content(file));
    let mut out = std::io::stdout().lock();
    match args.output {
        Format::Text => render::text(&mut out, &findings.problems, &contents, context.color())?,
        Format::Json => render::json(&mut out, &findings)?,
        Format::Github => render::github(&mut out, &findings.problems)?,
    }
    out.flush()?;
    let mut err = std::io::stderr().lock();
    for file in &configurations {
        writeln!(err, "{file}: not checked: it is a configuration of podstead; podstead --config {file} config check checks it")?;
    }
    for error in &unreadable {
        writeln!(err, "podstead: {error:#}")?;
    }
    if findings.files > 0 || unreadable.is_empty() {
        writeln!(err, "{}", render::summary(&findings))?;
    }
    let failures = if args.strict { findings.problems.len() } else { findings.count(Severity::Error) };
    Ok(match (unreadable.is_empty(), failures) {
        (false, _) => ExitCode::from(EXIT_UNUSABLE),
        (true, 0) => ExitCode::SUCCESS,
        (true, _) => ExitCode::from(EXIT_FAILED),
    })
}

/// Takes configuration files out, which a repository may have beside its manifests. Returns their names.
fn set_configurations_aside(collections: &mut [Collection]) -> Vec<String> {
    let mut found = Vec::new();
    for collection in collections {
        let files = match collection {
            Collection::Named(files) | Collection::Plain(files) => files,
            Collection::Tree { artifact, .. } => &mut artifact.files,
        };
        let aside = files.extract_if(.., |_, content| content.as_ref().is_ok_and(|bytes| is_configuration(&bytes.read())));
        found.extend(aside.map(|(name, _)| name));
    }
    found
}

/// Reports whether a file is one document of kind Config of podstead's group.
fn is_configuration(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let value_of = |field: &str| {
        let mut lines = text.lines().filter_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
        let value = lines.next()?.split(" #").next()?.trim().trim_matches(['"', '\'']);
        lines.next().is_none().then_some(value)
    };
    value_of("kind") == Some("Config") && value_of("apiVersion").is_some_and(|version| version.starts_with("podstead.dev/"))
}

/// The rules that the manifests are checked against.
fn check_context(args: &ValidateArgs, source: Option<&SourceConfig>, context: &Context) -> CheckContext {
    let opening = age_keys::for_checks(context.load_config().ok().as_ref());
    let all = CheckContext { opening, host: host(args, context), ..CheckContext::new(admit_context(args, context)) };
    match source.cloned() {
        Some(SourceConfig { allow, requirements, substitute, layers, writable: keeps_names, .. }) => {
            CheckContext { allow, requirements, substitute, layers, keeps_names, ..all }
        }
        None => all,
    }
}

/// The host to validate pods for. A machine that only checks manifests needs no valid configuration or host name.
fn admit_context(args: &ValidateArgs, context: &Context) -> AdmitContext {
    let here = context.load_config().map_or_else(|_| AdmitContext::new(NodeName::new("node")), |config| config.admit_context());
    match &args.node_name {
        Some(name) => AdmitContext { node: NodeName::new(name.to_lowercase()), ..here },
        None => here,
    }
}

/// The host whose labels workloads select; of another host, or without a configuration, they are not known.
fn host(args: &ValidateArgs, context: &Context) -> Option<Host> {
    let config = context.load_config().ok()?;
    let is_here = args.node_name.as_ref().is_none_or(|name| name.to_lowercase() == config.node_name.as_str());
    is_here.then(|| podstead_daemon::workloads::host(&config, &config.labels))
}

/// Judges files as one source, or as one for each directory.
fn judge(collection: &Collection, context: &CheckContext, findings: &mut Findings) -> Result<(), NoLayer> {
    match collection {
        Collection::Named(files) | Collection::Plain(files) => {
            let prepared = Prepared::without_kustomizations(artifact(files.clone()));
            let is_whole = matches!(collection, Collection::Plain(_));
            judge_one(&prepared, prepared.artifact.clone(), (Path::new(""), is_whole), context, findings);
        }
        Collection::Tree { artifact: tree, prefix, separate } => {
            let prepared = prepare(tree, &UndeltaStore::default(), context)?;
            let mut parts: BTreeMap<Option<&Path>, Files> = BTreeMap::new();
            for (name, content) in &prepared.artifact.files {
                let directory = if *separate { Path::new(name).parent() } else { None };
                parts.entry(directory).or_default().insert(name.clone(), content.clone());
            }
            for files in parts.into_values() {
                judge_one(&prepared, artifact(files), (prefix, !separate), context, findings);
            }
        }
    }
    findings.files += collection.len();
    Ok(())
}

fn artifact(files: Files) -> Artifact {
    Artifact {
        revision: Revision(String::new()),
        place: None,
        commit: None,
        files,
        beside: BTreeMap::new(),
        around: Surroundings::default(),
    }
}

/// Judges some prepared files as one source. `place` is what goes before paths in problems, and whether these are all files of the source.
fn judge_one(prepared: &Prepared, files: Artifact, place: (&Path, bool), context: &CheckContext, findings: &mut Findings) {
    let (prefix, is_whole) = place;
    let check = |file: &str, bytes: &[u8], patches: &PatchesByObject| prepared.check(file, bytes, context, patches);
    let store = UndeltaStore::default().in_layers(&context.layers).apply(&files, &check);
    let set = store.set(&SourceId::new("validate"), &files.revision);
    let warnings = whole::exclusive_claims(&set).into_iter().chain(if is_whole { whole::missing_claims(&set) } else { Vec::new() });
    let warnings: Vec<Problem> = warnings.collect();
    let Set { source: _, revision: _, pods, config_maps, secrets, claims, workloads, network, mut problems } = set;
    problems.extend(warnings);
    problems.iter_mut().for_each(|problem| problem.file = path_of(prefix, &problem.file).display().to_string());
    // What a patch is for may be in another directory, as the layers of a host are.
    problems.retain(|problem| problem.code != PATCH_WITHOUT_TARGET);
    problems.sort_by(|a, b| (&a.file, a.position).cmp(&(&b.file, b.position)));
    findings.pods += pods.len();
    findings.config_maps += config_maps.len();
    findings.secrets += secrets.len();
    findings.claims += claims.len();
    findings.workloads += workloads.len();
    findings.network += network.len();
    findings.problems.extend(problems);
}

/// Collects the files to check together, and the errors of unreadable paths.
fn collect(args: &ValidateArgs, source: Option<&SourceConfig>) -> (Vec<Collection>, Vec<anyhow::Error>) {
    let (mut named, mut directories, mut errors) = (Files::new(), Vec::new(), Vec::new());
    for path in &args.paths {
        let outcome = if path.as_os_str() == "-" {
            read_stdin().map(|content| named.extend([(STDIN.to_owned(), content)]))
        } else if let (true, Some(source)) = (path.is_dir(), source) {
            read_as(source, path).map(|files| directories.push(files))
        } else if path.is_dir() {
            read_directory(path, args.recursive).map(|found| directories.extend(found))
        } else {
            read(path, Path::new("")).map(|files| named.extend(files))
        };
        errors.extend(outcome.err());
    }
    if !named.is_empty() {
        directories.insert(0, Collection::Named(named));
    }
    (directories, errors)
}

/// Reads the files that the source would read if `path` stood for its place.
fn read_as(source: &SourceConfig, path: &Path) -> anyhow::Result<Collection> {
    let artifact = read_source(&source.place, &source.layers, &root_of(&source.place, path))?;
    if artifact.files.is_empty() && source.layers.is_empty() {
        bail!("{} contains no manifests of source {} (files ending in .yaml, .yml or .json)", path.display(), source.name);
    }
    Ok(Collection::Tree { artifact, prefix: PathBuf::new(), separate: false })
}

/// Reads as a source does; names get `prefix`.
fn read(path: &Path, prefix: &Path) -> anyhow::Result<Files> {
    Ok(named_below(prefix, dir::read_once(path)?.files))
}

fn named_below(prefix: &Path, files: Files) -> Files {
    files.into_iter().map(|(name, content)| (prefix.join(name).display().to_string(), content)).collect()
}

/// The directory, or with `recursive` all of those below it, as one tree; `None` if there is no kustomization.
fn read_tree(path: &Path, recursive: bool) -> anyhow::Result<Option<Collection>> {
    if !has_kustomization(path, recursive)? {
        return Ok(None);
    }
    let layers = if recursive { Layers::parse(&["**".to_owned()])? } else { Layers::default() };
    let artifact = read_with_surroundings(&Arc::new(layers), path)?;
    Ok(Some(Collection::Tree { artifact, prefix: path.to_owned(), separate: recursive }))
}

fn has_kustomization(path: &Path, recursive: bool) -> anyhow::Result<bool> {
    let mut directories = vec![path.to_owned()];
    while let Some(directory) = directories.pop() {
        if KUSTOMIZATIONS.iter().any(|name| directory.join(name).is_file()) {
            return Ok(true);
        }
        if recursive {
            directories.extend(subdirectories(&directory).with_context(|| format!("list {}", directory.display()))?);
        }
    }
    Ok(false)
}

fn read_stdin() -> anyhow::Result<FileContent> {
    let limit = Limits::default().max_bytes as u64;
    let mut bytes = Vec::new();
    // One byte more than allowed, so that the decoder reports the error.
    std::io::stdin().lock().take(limit + 1).read_to_end(&mut bytes).context("read standard input")?;
    Ok(Ok(bytes.into()))
}

/// The manifests of a directory, or of each directory below it.
fn read_directory(path: &Path, recursive: bool) -> anyhow::Result<Vec<Collection>> {
    if let Some(tree) = read_tree(path, recursive)? {
        return Ok(vec![tree]);
    }
    let mut found = Vec::new();
    let mut directories = vec![path.to_owned()];
    while let Some(directory) = directories.pop() {
        let files = read(&directory, &directory)?;
        if !files.is_empty() {
            found.push(Collection::Plain(files));
        }
        if recursive {
            let mut below = subdirectories(&directory).with_context(|| format!("list {}", directory.display()))?;
            below.sort_by(|a, b| b.cmp(a));
            directories.append(&mut below);
        }
    }
    if found.is_empty() {
        let deeper = if recursive { "" } else { "; use -R to include subdirectories" };
        bail!("{} contains no manifests (files ending in .yaml, .yml or .json){deeper}", path.display());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_configuration_files_are_set_aside() {
        assert!(is_configuration(b"apiVersion: podstead.dev/v1alpha1\nkind: Config # of edge-1\nsources: []\n"));
        for other in [
            &b"apiVersion: v1\nkind: Config\n"[..],
            b"apiVersion: v1\nkind: Pod\n",
            b"apiVersion: podstead.dev/v1alpha1\nkind: Config\n---\napiVersion: v1\nkind: Pod\n",
            b"\xff",
        ] {
            assert!(!is_configuration(other));
        }
    }
}
