//! `podstead get deployments` and so on, `podstead get deploy,rs`, `podstead get deploy/web`, `podstead get all`.

use super::server_table::{Columns, Printer, ServedTable};
use super::{OutputArgs, claims, images};
use crate::client::{Client, Target};
use crate::fold::{fold, terminal_width};
use crate::object_type::{ObjectType, parse_object, parse_types};
use crate::output::{ObjectWriter, OutputFormat, say_nothing_found};
use crate::pods::{self, NamespaceArgs, ServedList};
use crate::printable::printable;
use crate::watch::{WatchEvent, watch};
use crate::workloads::{FindWorkloadError, metadata, nearest};
use anyhow::bail;
use clap::Args;
use serde_json::Value;
use std::io::{self, Write};
use std::process::ExitCode;

/// Options of listing.
#[derive(Debug, Default, Args)]
pub(super) struct ListOptions {
    #[command(flatten)]
    pub(super) namespace: NamespaceArgs,
    /// Only objects with these labels, e.g. app=web,tier!=cache
    #[arg(short = 'l', long, value_name = "LABELS")]
    pub(super) selector: Option<String>,
    /// Only objects with these fields, e.g. metadata.name=web
    #[arg(long, value_name = "FIELDS")]
    pub(super) field_selector: Option<String>,
    /// Add a column with the labels
    #[arg(long)]
    pub(super) show_labels: bool,
    #[command(flatten)]
    pub(super) output: OutputArgs,
    /// After listing, watch for changes; for one type
    #[arg(short, long)]
    pub(super) watch: bool,
}

/// Arguments of a subcommand for one type whose objects are in no namespace and have no labels.
#[derive(Debug, Args)]
pub(crate) struct HostArgs {
    /// Only the objects with these names
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    output: OutputArgs,
    /// After listing, watch for changes
    #[arg(short, long)]
    watch: bool,
}

/// Arguments of a subcommand for one type.
#[derive(Debug, Args)]
pub(crate) struct TypeArgs {
    /// Only the objects with these names
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    #[command(flatten)]
    options: ListOptions,
}

/// Arguments of `podstead get` itself.
#[derive(Debug, Args)]
pub(super) struct ObjectsArgs {
    /// Types, such as deploy,rs,pods or all, and names; or objects, such as deploy/web
    #[arg(value_name = "TYPES|TYPE/NAME", required = true)]
    what: Vec<Words>,
    #[command(flatten)]
    options: ListOptions,
}

/// A positional argument of `podstead get`.
#[derive(Clone, Debug)]
enum Words {
    /// `deploy,rs`, or a name behind it.
    Plain(String),
    /// `deploy/web`.
    Object(ObjectType, String),
}

impl std::str::FromStr for Words {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if !text.contains('/') {
            return Ok(Self::Plain(text.to_owned()));
        }
        parse_object(text).map(|(object_type, name)| Self::Object(object_type, name))
    }
}

/// Objects of one type.
#[derive(Clone, Debug, PartialEq)]
struct Asked {
    object_type: ObjectType,
    /// All if empty.
    names: Vec<String>,
}

/// `podstead get TYPES [NAME]...` and `podstead get TYPE/NAME...`. The error is a sentence.
fn asked(what: &[Words]) -> Result<Vec<Asked>, String> {
    let mut asked: Vec<Asked> = Vec::new();
    match what {
        [Words::Plain(types), names @ ..] => {
            let mut given = Vec::new();
            for name in names {
                match name {
                    Words::Plain(name) => given.push(name.clone()),
                    Words::Object(_, name) => return Err(format!("there is no need to name a type before {name:?} after types")),
                }
            }
            asked.extend(parse_types(types)?.into_iter().map(|object_type| Asked { object_type, names: given.clone() }));
        }
        objects => {
            for object in objects {
                let Words::Object(object_type, name) = object else {
                    return Err("name a type before every name, such as deploy/web".to_owned());
                };
                match asked.iter_mut().find(|asked| asked.object_type == *object_type) {
                    Some(asked) => asked.names.push(name.clone()),
                    None => asked.push(Asked { object_type: *object_type, names: vec![name.clone()] }),
                }
            }
        }
    }
    Ok(asked)
}

/// `podstead get deploy,rs`. An argument that means no type is an error of the command line.
pub(super) async fn run_objects(args: &ObjectsArgs, client: &Client, color: bool) -> anyhow::Result<ExitCode> {
    match asked(&args.what) {
        Ok(asked) => run(&args.options, &asked, client, color).await,
        Err(error) => {
            writeln!(io::stderr(), "podstead: {error}; see podstead get --help")?;
            Ok(ExitCode::from(crate::EXIT_UNUSABLE))
        }
    }
}

/// Objects of one type, all of them.
pub(super) async fn run_options(
    options: &ListOptions,
    object_type: ObjectType,
    client: &Client,
    color: bool,
) -> anyhow::Result<ExitCode> {
    run(options, &[Asked { object_type, names: Vec::new() }], client, color).await
}

/// `podstead get sources`.
pub(crate) async fn run_host_type(
    args: &HostArgs,
    object_type: ObjectType,
    client: &Client,
    color: bool,
) -> anyhow::Result<ExitCode> {
    let options = ListOptions { output: args.output.clone(), watch: args.watch, ..ListOptions::default() };
    run(&options, &[Asked { object_type, names: args.names.clone() }], client, color).await
}

/// `podstead get deployments`.
pub(crate) async fn run_type(args: &TypeArgs, object_type: ObjectType, client: &Client, color: bool) -> anyhow::Result<ExitCode> {
    run(&args.options, &[Asked { object_type, names: args.names.clone() }], client, color).await
}

/// `podstead get all`.
pub(super) async fn run_all(options: &ListOptions, client: &Client, color: bool) -> anyhow::Result<ExitCode> {
    let all: Vec<_> = ObjectType::all().into_iter().map(|object_type| Asked { object_type, names: Vec::new() }).collect();
    run(options, &all, client, color).await
}

async fn run(options: &ListOptions, asked: &[Asked], client: &Client, color: bool) -> anyhow::Result<ExitCode> {
    if options.watch && asked.len() != 1 {
        bail!("only one type can be watched at a time");
    }
    let namespace = options.namespace.namespace.as_deref();
    let mut whole = Vec::new();
    for Asked { object_type, names } in asked {
        whole.push(Asked { object_type: *object_type, names: whole_names(client, *object_type, names, namespace).await? });
    }
    if options.output.output.is_table() {
        print_tables(options, &whole, client, color).await?
    } else {
        print_objects(options, &whole, client).await?
    }
    Ok(ExitCode::SUCCESS)
}

/// Names of pods may be given without the node.
async fn whole_names(
    client: &Client,
    object_type: ObjectType,
    names: &[String],
    namespace: Option<&str>,
) -> anyhow::Result<Vec<String>> {
    if object_type != ObjectType::Pod {
        return Ok(names.to_vec());
    }
    let mut whole = Vec::new();
    for name in names {
        whole.push(pods::name_of(&pods::find(client, name, namespace).await?).to_owned());
    }
    Ok(whole)
}

fn target(options: &ListOptions, asked: &Asked) -> Target {
    let target = asked.object_type.collection(options.namespace.namespace.as_deref());
    let target = target.with_some("labelSelector", options.selector.as_ref());
    target.with_some("fieldSelector", options.field_selector.as_ref())
}

impl Asked {
    /// Reports whether an object is one of those that are named, if any are.
    fn has(&self, object: &Value) -> bool {
        self.names.is_empty() || self.names.iter().any(|name| self.object_type.is_called(object, name))
    }
}

/// Keeps the named objects; each name must mean one.
fn keep<T>(
    items: &mut Vec<T>,
    asked: &Asked,
    namespace: Option<&str>,
    object: impl Fn(&T) -> &Value,
) -> Result<(), FindWorkloadError> {
    let is_missing = |name: &&String| !items.iter().any(|item| asked.object_type.is_called(object(item), name));
    if let Some(missing) = asked.names.iter().find(is_missing) {
        return Err(FindWorkloadError::NotFound {
            kind: asked.object_type.qualified_plural(),
            name: missing.clone(),
            namespace: namespace.map(str::to_owned),
            suggestion: nearest(items.iter().map(|item| metadata(object(item), "name")), missing),
        });
    }
    items.retain(|item| asked.has(object(item)));
    Ok(())
}

/// For an object that is not there and has no neighbour of a similar name, the answer of the daemon, which names the sources that it searched.
async fn explained(
    kept: Result<(), FindWorkloadError>,
    asked: &Asked,
    namespace: Option<&str>,
    client: &Client,
) -> anyhow::Result<()> {
    if let Err(FindWorkloadError::NotFound { name, suggestion: None, .. }) = &kept
        && matches!(asked.object_type, ObjectType::ConfigMap | ObjectType::Secret)
        && namespace.is_some()
    {
        client.get::<Value>(asked.object_type.collection(namespace).below(name)).await?;
    }
    Ok(kept?)
}

async fn print_tables(options: &ListOptions, asked: &[Asked], client: &Client, color: bool) -> anyhow::Result<()> {
    let NamespaceArgs { namespace, all_namespaces } = &options.namespace;
    let mut tables = Vec::new();
    for asked in asked {
        tables.push((asked, served(options, asked, client).await?));
    }
    if tables.iter().all(|(_, table)| table.rows.is_empty()) && !options.watch {
        say_nothing_found(namespace.as_deref())?;
        return Ok(());
    }
    let namespaced = tables.iter().filter(|(asked, _)| asked.object_type.is_namespaced());
    // Names of events say nothing of a namespace.
    let is_elsewhere = namespaced
        .filter(|(asked, _)| asked.object_type != ObjectType::Event)
        .flat_map(|(_, table)| &table.rows)
        .any(|row| row.namespace() != "default");
    let with_namespace = *all_namespaces || namespace.is_none() && is_elsewhere;
    let mut is_first = true;
    for (asked, table) in &tables {
        let columns = Columns {
            object_type: asked.object_type,
            wide: options.output.output.is_wide(),
            with_namespace: with_namespace && asked.object_type.is_namespaced(),
            prefix: (tables.len() > 1).then(|| asked.object_type.qualified_singular()),
            labels: options.show_labels,
            headings: !options.output.no_headers,
            color,
        };
        let mut printer = Printer::new(table, columns);
        if !table.rows.is_empty() {
            let mut out = io::stdout().lock();
            if !is_first {
                writeln!(out)?;
            }
            is_first = false;
            print(&mut out, &mut printer, table, asked.object_type)?;
        }
        if asked.object_type == ObjectType::Image && asked.names.is_empty() {
            // Beside the table, for whoever counts its lines. A closed stderr is not an error.
            writeln!(io::stderr(), "{}", images::total(client).await?).ok();
        }
        if options.watch {
            follow_table(options, asked, table, &mut printer, client).await?;
        }
    }
    Ok(())
}

/// Objects in columns, in the order in which they are shown.
async fn served(options: &ListOptions, asked: &Asked, client: &Client) -> anyhow::Result<ServedTable> {
    let namespace = options.namespace.namespace.as_deref();
    // An order may be by any field.
    let whole = options.output.is_sorted() || asked.object_type.needs_objects();
    let target = target(options, asked).with_some("includeObject", whole.then_some("Object"));
    let mut table: ServedTable = client.get(target.in_columns()).await?;
    let kept = keep(&mut table.rows, asked, namespace, |row| row.object());
    explained(kept, asked, namespace, client).await?;
    if asked.object_type == ObjectType::PersistentVolumeClaim {
        claims::add_sizes(&mut table, client, namespace).await?;
    }
    asked.object_type.sort(&mut table.rows, |row| row.object());
    options.output.sort(&mut table.rows, |row| row.object())?;
    Ok(table)
}

fn print(out: &mut impl Write, printer: &mut Printer, table: &ServedTable, object_type: ObjectType) -> io::Result<()> {
    printer.print(out, table)?;
    for below in table.rows.iter().filter_map(|row| object_type.below(row.object())) {
        out.write_all(fold(&format!("\n{}\n", printable(&below)), terminal_width()).as_bytes())?;
    }
    out.flush()
}

/// Prints changes. Never ends but with an error.
async fn follow_table(
    options: &ListOptions,
    asked: &Asked,
    table: &ServedTable,
    printer: &mut Printer,
    client: &Client,
) -> anyhow::Result<()> {
    let whole = asked.object_type.needs_objects().then_some("Object");
    let target = target(options, asked).with_some("includeObject", whole).in_columns();
    let mut events = watch(client, target, &table.metadata.resource_version).await?;
    loop {
        match events.next().await? {
            WatchEvent::Deleted(_) if !asked.object_type.shows_deletions() => {}
            WatchEvent::Changed(object) | WatchEvent::Deleted(object) => {
                let mut table = ServedTable::parse(object)?;
                table.rows.retain(|row| asked.has(row.object()));
                print(&mut io::stdout().lock(), printer, &table, asked.object_type)?;
            }
        }
    }
}

async fn print_objects(options: &ListOptions, asked: &[Asked], client: &Client) -> anyhow::Result<()> {
    let namespace = options.namespace.namespace.as_deref();
    let format = &options.output.output;
    let mut writer = options.output.writer();
    let is_single = matches!(asked, [Asked { names, .. }] if names.len() == 1);
    let mut all: Vec<(ObjectType, Vec<Value>)> = Vec::new();
    let mut version = String::new();
    for asked in asked {
        let mut list: ServedList = client.get(target(options, asked)).await?;
        let kept = keep(&mut list.items, asked, namespace, |item| item);
        explained(kept, asked, namespace, client).await?;
        if asked.object_type == ObjectType::PersistentVolumeClaim {
            claims::note_sizes(&mut list.items, client, namespace).await?;
        }
        asked.object_type.sort(&mut list.items, |item| item);
        options.output.sort(&mut list.items, |item| item)?;
        version = list.metadata.resource_version;
        all.push((asked.object_type, list.items));
    }
    let is_empty = all.iter().all(|(_, items)| items.is_empty());
    write_all(format, &mut writer, &all, is_single)?;
    if let ([asked], true) = (asked, options.watch) {
        let mut events = watch(client, target(options, asked), &version).await?;
        loop {
            match events.next().await? {
                WatchEvent::Deleted(_) if !asked.object_type.shows_deletions() => {}
                WatchEvent::Changed(object) | WatchEvent::Deleted(object) if asked.has(&object) => {
                    write_all(format, &mut writer, &[(asked.object_type, vec![object])], true)?;
                }
                WatchEvent::Changed(_) | WatchEvent::Deleted(_) => {}
            }
        }
    }
    if is_empty && *format == OutputFormat::Name {
        say_nothing_found(namespace)?;
    }
    Ok(())
}

fn write_all(
    format: &OutputFormat,
    writer: &mut ObjectWriter,
    all: &[(ObjectType, Vec<Value>)],
    is_single: bool,
) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    match format {
        OutputFormat::Name => {
            for word in all.iter().flat_map(|(object_type, items)| items.iter().flat_map(|item| object_type.words(item))) {
                writeln!(out, "{}", printable(&word))?;
            }
        }
        OutputFormat::Structured(_) => {
            let items: Vec<Value> = all.iter().flat_map(|(_, items)| items.iter().cloned()).collect();
            writer.write(&mut out, "", &items, is_single)?;
        }
        OutputFormat::Table | OutputFormat::Wide => {}
    }
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_workload::object::WorkloadKind;

    fn read(words: &[&str]) -> Result<Vec<(ObjectType, Vec<String>)>, String> {
        let words: Result<Vec<Words>, String> = words.iter().map(|word| word.parse()).collect();
        Ok(asked(&words?)?.into_iter().map(|Asked { object_type, names }| (object_type, names)).collect())
    }

    #[test]
    fn types_and_objects_are_understood() {
        let (deployment, job) = (ObjectType::Workload(WorkloadKind::Deployment), ObjectType::Workload(WorkloadKind::Job));
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        assert_eq!(read(&["deploy,po"]).unwrap(), [(deployment, names(&[])), (ObjectType::Pod, names(&[]))]);
        assert_eq!(read(&["deploy", "a", "b"]).unwrap(), [(deployment, names(&["a", "b"]))]);
        assert_eq!(read(&["deploy/a", "job/b", "deploy/c"]).unwrap(), [(deployment, names(&["a", "c"])), (job, names(&["b"]))]);
        for (words, error) in [
            (&["deploy/a", "b"][..], "name a type before every name, such as deploy/web"),
            (&["deploy", "job/b"], r#"there is no need to name a type before "b" after types"#),
            (&["ingresses"], r#"unknown type "ingresses""#),
            (&["deploy/"], r#"expected TYPE/NAME, not "deploy/""#),
        ] {
            assert_eq!(read(words).unwrap_err(), error);
        }
    }
}
