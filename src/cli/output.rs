//! `-o`: the forms that objects are written in.

use clap::ValueEnum;
use serde_json::{Value, json};
use std::io::{self, Write};

/// `-o`.
// Not documented one by one: that would be a paragraph in every help.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum OutputFormat {
    #[default]
    Table,
    Wide,
    Json,
    Yaml,
    Name,
}

impl OutputFormat {
    /// True for formats that people read.
    pub(super) fn is_table(self) -> bool {
        match self {
            Self::Table | Self::Wide => true,
            Self::Json | Self::Yaml | Self::Name => false,
        }
    }
}

/// Writes one object, or several as a `List`; not for tables. `kind` is the word before the name with `-o name`.
pub(super) fn write_objects(
    out: &mut impl Write,
    format: OutputFormat,
    kind: &str,
    objects: &[Value],
    single: bool,
) -> anyhow::Result<()> {
    let whole = || match objects {
        [object] if single => object.clone(),
        objects => json!({"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": objects}),
    };
    match format {
        OutputFormat::Name => {
            for object in objects {
                writeln!(out, "{kind}/{}", object["metadata"]["name"].as_str().unwrap_or_default())?;
            }
        }
        OutputFormat::Json => writeln!(out, "{}", serde_json::to_string_pretty(&whole())?)?,
        OutputFormat::Yaml => write!(out, "{}", podstead_manifest::to_yaml(&whole()))?,
        OutputFormat::Table | OutputFormat::Wide => {}
    }
    Ok(())
}

/// Says on stderr that there is nothing, as kubectl does.
pub(super) fn say_nothing_found(namespace: Option<&str>) -> io::Result<()> {
    match namespace {
        Some(namespace) => writeln!(io::stderr(), "No resources found in {namespace} namespace."),
        None => writeln!(io::stderr(), "No resources found."),
    }
}
