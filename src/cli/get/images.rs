//! `podstead get images`, which is also `podstead image ls`.

use super::OutputArgs;
use crate::client::{Client, ClientError, OWN, Target};
use crate::output::{ObjectWriter, OutputFormat, say_nothing_found};
use crate::pods::ServedListMetadata;
use crate::table::{Cell, Table};
use crate::watch::{WatchEvent, watch};
use anyhow::bail;
use clap::Args;
use jiff::Timestamp;
use podstead_api::show::{age_since, human_size, short_digest};
use podstead_runtime::ImageUsage;
use podstead_telemetry::counted;
use serde::Deserialize;
use serde_json::Value;
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(crate) struct ImagesArgs {
    /// Only this image, by a name or the beginning of its digest
    name: Option<String>,
    #[command(flatten)]
    output: OutputArgs,
    /// After listing, watch for changes
    #[arg(short, long)]
    watch: bool,
}

/// An image as served.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ServedImage {
    references: Vec<String>,
    digest: String,
    size_bytes: u64,
    unique_bytes: u64,
    pinned: bool,
    metadata: ServedImageMetadata,
}

/// The list as served.
#[derive(Debug, Deserialize)]
struct ServedImages {
    items: Vec<Value>,
    usage: ImageUsage,
    #[serde(default)]
    metadata: ServedListMetadata,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServedImageMetadata {
    creation_timestamp: Timestamp,
}

pub(crate) async fn run(args: &ImagesArgs, client: &Client, color: bool) -> anyhow::Result<ExitCode> {
    let target = || Target::new(OWN, &["images"]);
    let ServedImages { mut items, usage, metadata } = client.get(target()).await?;
    let is_wanted = |image: &Value| args.name.as_deref().is_none_or(|name| is_called(image, name));
    items.retain(is_wanted);
    if let Some(name) = &args.name
        && items.is_empty()
    {
        bail!("images {name:?} not found");
    }
    args.output.sort(&mut items, |image| image)?;
    let table = Table::new(vec!["IMAGE", "DIGEST", "SIZE", "UNIQUE", "PINNED", "AGE"], color);
    let table = if args.output.no_headers { table.without_headings() } else { table };
    let mut printer = Printer { format: &args.output.output, writer: args.output.writer(), table };
    if args.output.output.is_table() && items.is_empty() && !args.watch {
        say_nothing_found(None)?;
        return Ok(ExitCode::SUCCESS);
    }
    printer.print(items, args.name.is_some())?;
    if args.output.output.is_table() && args.name.is_none() {
        // Beside the table, for whoever counts its lines. A closed stderr is not an error.
        writeln!(io::stderr(), "{}", total(&usage)).ok();
    }
    if args.watch {
        let mut events = watch(client, target(), &metadata.resource_version).await?;
        loop {
            match events.next().await? {
                WatchEvent::Changed(object) | WatchEvent::Deleted(object) if is_wanted(&object) => {
                    printer.print(vec![object], true)?;
                }
                WatchEvent::Changed(_) | WatchEvent::Deleted(_) => {}
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Reports whether an image has this name, or a digest that begins so.
fn is_called(image: &Value, name: &str) -> bool {
    let digest = image["digest"].as_str().unwrap_or_default();
    let bare = digest.split_once(':').map_or(digest, |(_, digits)| digits);
    let is_name = image["references"].as_array().into_iter().flatten().any(|reference| reference == name);
    is_name || name.len() >= 6 && (digest.starts_with(name) || bare.starts_with(name))
}

struct Printer<'a> {
    format: &'a OutputFormat,
    writer: ObjectWriter,
    table: Table,
}

impl Printer<'_> {
    fn print(&mut self, items: Vec<Value>, single: bool) -> anyhow::Result<()> {
        let mut out = io::stdout().lock();
        match self.format {
            OutputFormat::Structured(_) => self.writer.write(&mut out, "image", &items, single)?,
            OutputFormat::Name => {
                let references = items.iter().filter_map(|item| item["references"].as_array()).flatten().filter_map(Value::as_str);
                for reference in references {
                    writeln!(out, "{reference}")?;
                }
            }
            OutputFormat::Table | OutputFormat::Wide => {
                let typed: Result<Vec<ServedImage>, _> = items.into_iter().map(serde_json::from_value).collect();
                let typed = typed.map_err(|source| ClientError::NotUnderstood { source })?;
                self.table.write(&mut out, &rows(&typed, self.format.is_wide(), Timestamp::now()))?;
            }
        }
        Ok(out.flush()?)
    }
}

/// States the space of all images: layers that several have count once.
fn total(usage: &ImageUsage) -> String {
    let ImageUsage { images, disk_bytes, unused_bytes, free_bytes, all_bytes, .. } = usage;
    format!(
        "{}: {} on disk, {} of it unused; {} of {} free",
        counted(*images, "image"),
        human_size(*disk_bytes),
        human_size(*unused_bytes),
        human_size(*free_bytes),
        human_size(*all_bytes)
    )
}

/// A row for every reference: an image may have several, and one that has none is shown too.
fn rows(images: &[ServedImage], wide: bool, now: Timestamp) -> Vec<Vec<Cell>> {
    let mut rows = Vec::new();
    for image in images {
        let digest = if wide { image.digest.as_str() } else { short_digest(&image.digest) };
        let nameless = ["<none>".to_owned()];
        let names = if image.references.is_empty() { &nameless[..] } else { &image.references };
        rows.extend(names.iter().map(|name| {
            let age = age_since(Some(image.metadata.creation_timestamp), now);
            let pinned = if image.pinned { "yes" } else { "no" };
            let (size, unique) = (human_size(image.size_bytes), human_size(image.unique_bytes));
            vec![name.as_str().into(), digest.into(), size.into(), unique.into(), pinned.into(), age.into()]
        }));
    }
    rows
}
