//! `podstead get images`, which is also `podstead image ls`.

use super::OutputArgs;
use crate::client::{Client, ClientError, OWN, Target};
use crate::output::{OutputFormat, say_nothing_found, write_objects};
use crate::pods::ServedList;
use crate::table::{Cell, Table};
use clap::Args;
use jiff::Timestamp;
use podstead_api::show::{age_since, human_size, short_digest};
use serde::Deserialize;
use serde_json::Value;
use std::io;
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
    metadata: ServedImageMetadata,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ServedImageMetadata {
    creation_timestamp: Timestamp,
}

pub(crate) async fn run(args: &ImagesArgs, client: &Client, color: bool) -> anyhow::Result<ExitCode> {
    let items = client.get::<ServedList>(Target::new(OWN, &["images"])).await?.items;
    let format = args.output.output;
    let mut out = io::stdout().lock();
    match format {
        OutputFormat::Json | OutputFormat::Yaml => write_objects(&mut out, format, "image", &items, false)?,
        OutputFormat::Name => {
            let references = items.iter().filter_map(|item| item["references"].as_array()).flatten().filter_map(Value::as_str);
            for reference in references {
                io::Write::write_all(&mut out, format!("{reference}\n").as_bytes())?;
            }
        }
        OutputFormat::Table | OutputFormat::Wide if items.is_empty() => say_nothing_found(None)?,
        OutputFormat::Table | OutputFormat::Wide => {
            let typed: Result<Vec<ServedImage>, _> = items.into_iter().map(serde_json::from_value).collect();
            let typed = typed.map_err(|source| ClientError::NotUnderstood { source })?;
            let table = Table::new(vec!["IMAGE", "DIGEST", "SIZE", "AGE"], color);
            let mut table = if args.output.no_headers { table.without_headings() } else { table };
            table.write(&mut out, &rows(&typed, format == OutputFormat::Wide, Timestamp::now()))?;
        }
    }
    Ok(ExitCode::SUCCESS)
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
            vec![name.as_str().into(), digest.into(), human_size(image.size_bytes).into(), age.into()]
        }));
    }
    rows
}
