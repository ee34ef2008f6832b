//! `podstead get deployments` and so on, `podstead get deploy,rs`, `podstead get deploy/web`, `podstead get all`.

use super::OutputArgs;
use super::server_table::{Columns, Printer, ServedTable};
use crate::client::{Client, Target};
use crate::object_type::{ObjectType, parse_object, parse_types};
use crate::output::{ObjectWriter, OutputFormat, say_nothing_found};
use crate::pods::{self, NamespaceArgs, ServedList};
use crate::watch::{WatchEvent, watch};
use crate::workloads::{FindWorkloadError, metadata, nearest};
use anyhow::bail;
use clap::Args;
use serde_json::Value;
use std::io::{self, Write};
use std::process::ExitCode;

/// Options of listing.
#[derive(Debug, Args)]
pub(super) struct ListOptions {
    #[command(flatten)]
    namespace: NamespaceArgs,
    /// Only objects with these labels, e.g. app=web,tier!=cache
    #[arg(short = 'l', long, value_name = "LABELS")]
    selector: Option<String>,
    /// Only objects with these fields, e.g. metadata.name=web
    #[arg(long, value_name = "FIELDS")]
    field_selector: Option<String>,
    /// Add a column with the labels
    #[arg(long)]
    show_labels: bool,
    #[command(flatten)]
    output: OutputArgs,
    /// After listing, watch for changes; for one type
    #[arg(short, long)]
    watch: bool,
}

/// Arguments of a subcommand for one type.
#[derive(Debug, Args)]
pub(super) struct TypeArgs {
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

/// `podstead get deployments`.
pub(super) async fn run_type(args: &TypeArgs, object_type: ObjectType, client: &Client, color: bool) -> anyhow::Result<ExitCode> {
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

/// Keeps the named objects; each name must mean one.
fn keep<T>(
    items: &mut Vec<T>,
    asked: &Asked,
    namespace: Option<&str>,
    name_of: impl Fn(&T) -> &str,
) -> Result<(), FindWorkloadError> {
    if asked.names.is_empty() {
        return Ok(());
    }
    if let Some(missing) = asked.names.iter().find(|name| !items.iter().any(|item| name_of(item) == *name)) {
        return Err(FindWorkloadError::NotFound {
            kind: asked.object_type.qualified_plural(),
            name: missing.clone(),
            namespace: namespace.map(str::to_owned),
            suggestion: nearest(items.iter().map(&name_of), missing),
        });
    }
    items.retain(|item| asked.names.iter().any(|name| name == name_of(item)));
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
        // An order may be by any field.
        let whole = options.output.is_sorted().then_some("Object");
        let target = target(options, asked).with_some("includeObject", whole);
        let mut table: ServedTable = client.get(target.in_columns()).await?;
        let kept = keep(&mut table.rows, asked, namespace.as_deref(), |row| row.name());
        explained(kept, asked, namespace.as_deref(), client).await?;
        options.output.sort(&mut table.rows, |row| row.object())?;
        tables.push((asked, table));
    }
    let namespaced = tables.iter().filter(|(asked, _)| asked.object_type.is_namespaced());
    let is_elsewhere = namespaced.flat_map(|(_, table)| &table.rows).any(|row| row.namespace() != "default");
    let columns = Columns {
        wide: options.output.output.is_wide(),
        with_namespace: *all_namespaces || namespace.is_none() && is_elsewhere,
        prefix: None,
        labels: options.show_labels,
        headings: !options.output.no_headers,
        color,
    };
    if tables.iter().all(|(_, table)| table.rows.is_empty()) && !options.watch {
        say_nothing_found(namespace.as_deref())?;
        return Ok(());
    }
    let mut is_first = true;
    for (asked, table) in &tables {
        let prefix = (tables.len() > 1).then(|| asked.object_type.qualified_singular());
        let with_namespace = columns.with_namespace && asked.object_type.is_namespaced();
        let mut printer = Printer::new(table, Columns { prefix, with_namespace, ..columns.clone() });
        if !table.rows.is_empty() {
            let mut out = io::stdout().lock();
            if !is_first {
                writeln!(out)?;
            }
            is_first = false;
            printer.print(&mut out, &table.rows)?;
            out.flush()?;
        }
        if options.watch {
            follow_table(options, asked, table, &mut printer, client).await?;
        }
    }
    Ok(())
}

/// Prints changes. Never ends but with an error.
async fn follow_table(
    options: &ListOptions,
    asked: &Asked,
    table: &ServedTable,
    printer: &mut Printer,
    client: &Client,
) -> anyhow::Result<()> {
    let mut events = watch(client, target(options, asked).in_columns(), &table.metadata.resource_version).await?;
    loop {
        match events.next().await? {
            WatchEvent::Changed(object) | WatchEvent::Deleted(object) => {
                let mut table = ServedTable::parse(object)?;
                table.rows.retain(|row| asked.names.is_empty() || asked.names.iter().any(|name| name == row.name()));
                let mut out = io::stdout().lock();
                printer.print(&mut out, &table.rows)?;
                out.flush()?;
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
        let kept = keep(&mut list.items, asked, namespace, |item| metadata(item, "name"));
        explained(kept, asked, namespace, client).await?;
        options.output.sort(&mut list.items, |item| item)?;
        version = list.metadata.resource_version;
        all.push((asked.object_type, list.items));
    }
    let is_empty = all.iter().all(|(_, items)| items.is_empty());
    write_all(format, &mut writer, &all, is_single)?;
    if let ([asked], true) = (asked, options.watch) {
        let word = asked.object_type.qualified_singular();
        let mut events = watch(client, target(options, asked), &version).await?;
        loop {
            match events.next().await? {
                WatchEvent::Changed(object) | WatchEvent::Deleted(object) => {
                    if asked.names.is_empty() || asked.names.iter().any(|name| name == metadata(&object, "name")) {
                        let mut out = io::stdout().lock();
                        writer.write(&mut out, &word, &[object], true)?;
                        out.flush()?;
                    }
                }
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
            for (object_type, items) in all {
                writer.write(&mut out, &object_type.qualified_singular(), items, false)?;
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
