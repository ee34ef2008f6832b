//! `podstead get images`, which is also `podstead image ls`.

use super::OutputArgs;
use crate::client::{Client, ClientError, OWN, Target};
use crate::output::{OutputFormat, say_nothing_found};
use crate::table::{Cell, Table};
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
    #[command(flatten)]
    output: OutputArgs,
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
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServedImageMetadata {
    creation_timestamp: Timestamp,
}

pub(crate) async fn run(args: &ImagesArgs, client: &Client, color: bool) -> anyhow::Result<ExitCode> {
    let ServedImages { items, usage } = client.get(Target::new(OWN, &["images"])).await?;
    let format = &args.output.output;
    let mut out = io::stdout().lock();
    match format {
        OutputFormat::Structured(_) => args.output.writer().write(&mut out, "image", &items, false)?,
        OutputFormat::Name => {
            let references = items.iter().filter_map(|item| item["references"].as_array()).flatten().filter_map(Value::as_str);
            for reference in references {
                writeln!(out, "{reference}")?;
            }
        }
        OutputFormat::Table | OutputFormat::Wide if items.is_empty() => say_nothing_found(None)?,
        OutputFormat::Table | OutputFormat::Wide => {
            let typed: Result<Vec<ServedImage>, _> = items.into_iter().map(serde_json::from_value).collect();
            let typed = typed.map_err(|source| ClientError::NotUnderstood { source })?;
            let table = Table::new(vec!["IMAGE", "DIGEST", "SIZE", "UNIQUE", "PINNED", "AGE"], color);
            let mut table = if args.output.no_headers { table.without_headings() } else { table };
            table.write(&mut out, &rows(&typed, format.is_wide(), Timestamp::now()))?;
            // Beside the table, for whoever counts its lines. A closed stderr is not an error.
            writeln!(io::stderr(), "{}", total(&usage)).ok();
        }
    }
    Ok(ExitCode::SUCCESS)
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
