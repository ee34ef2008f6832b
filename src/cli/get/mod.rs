//! `podstead get`: objects as tables, or as JSON and YAML.

mod claims;
mod events;
mod images;
mod objects;
mod pods;
mod sources;

pub(super) use claims::{ClaimsArgs, ServedClaim, ask as ask_claims, run as list_claims};
pub(super) use events::{seen_column, type_cell};
pub(super) use images::{ImagesArgs, run as list_images};
pub(super) use pods::style_of;
pub(super) use sources::short_revision;

use super::Context;
use super::output::OutputFormat;
use clap::{Args, Subcommand};
use objects::Plural;
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct GetArgs {
    #[command(subcommand)]
    kind: Kind,
}

#[derive(Debug, Subcommand)]
enum Kind {
    /// Pods of this host
    #[command(visible_aliases = ["pod", "po"])]
    Pods(pods::PodsArgs),
    /// Recent events
    #[command(visible_aliases = ["event", "ev"])]
    Events(events::EventsArgs),
    /// Sources of manifests and their status
    #[command(visible_alias = "source")]
    Sources(sources::SourcesArgs),
    /// ConfigMaps of this host
    #[command(name = "configmaps", visible_aliases = ["configmap", "cm"])]
    ConfigMaps(objects::ObjectsArgs),
    /// Secrets of this host, without their values
    #[command(visible_alias = "secret")]
    Secrets(objects::ObjectsArgs),
    /// PersistentVolumeClaims, including released ones with data on disk
    #[command(name = "persistentvolumeclaims", visible_aliases = ["persistentvolumeclaim", "pvc"])]
    PersistentVolumeClaims(claims::ClaimsArgs),
    /// Images on this host
    #[command(visible_alias = "image")]
    Images(images::ImagesArgs),
}

/// `-o`.
#[derive(Clone, Copy, Debug, Args)]
struct OutputArgs {
    /// Output format
    #[arg(short, long, value_enum, default_value_t = OutputFormat::Table)]
    output: OutputFormat,
    /// Do not print the headings
    #[arg(long)]
    no_headers: bool,
}

pub(super) fn run(args: &GetArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let client = context.client()?;
    context.block_on(async {
        match &args.kind {
            Kind::Pods(args) => pods::run(args, &client, context.color()).await,
            Kind::Events(args) => events::run(args, &client, context.color()).await,
            Kind::Sources(args) => sources::run(args, &client, context.color()).await,
            Kind::ConfigMaps(args) => objects::run(args, Plural::ConfigMaps, &client, context.color()).await,
            Kind::Secrets(args) => objects::run(args, Plural::Secrets, &client, context.color()).await,
            Kind::PersistentVolumeClaims(args) => claims::run(args, &client, context.color()).await,
            Kind::Images(args) => images::run(args, &client, context.color()).await,
        }
    })
}
