//! `podstead bundle`.

mod apply;
mod contents;
mod create;
mod inventory;
mod show;
mod sign;
mod status;

use super::Context;
use clap::{Args, Subcommand};
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct BundleArgs {
    #[command(subcommand)]
    command: BundleCommand,
}

#[derive(Debug, Subcommand)]
enum BundleCommand {
    /// Create a bundle from manifests, with all images that they need
    ///
    /// The manifests are rendered as each host would render them, and the images are fetched from their registries with the credentials of this
    /// machine. Needs no daemon. A command that was interrupted goes on where it was.
    Create(Box<create::CreateArgs>),
    /// Show the content of a bundle
    Show(show::ShowArgs),
    /// Apply a bundle to this host
    ///
    /// The host needs a source of the type bundle. The file is read where it is and must stay there until the command ends. An apply that was interrupted
    /// goes on with the images that are missing.
    Apply(apply::ApplyArgs),
    /// Write down which layers of images this host has
    ///
    /// podstead bundle create --since leaves out the layers that are in the file. Pin images that nothing needs until the bundle is applied.
    Inventory(inventory::InventoryArgs),
    /// Show the bundles in force on this host, and why another one is not taken
    Status(status::StatusArgs),
}

pub(super) fn run(args: &BundleArgs, context: &Context) -> anyhow::Result<ExitCode> {
    match &args.command {
        BundleCommand::Create(args) => create::run(args, context),
        BundleCommand::Show(args) => show::run(args),
        BundleCommand::Apply(args) => apply::run(args, context),
        BundleCommand::Inventory(args) => inventory::run(args, context),
        BundleCommand::Status(args) => status::run(args, context),
    }
}
