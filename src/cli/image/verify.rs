//! `podstead image verify`.

use crate::client::{Client, OWN, Target};
use clap::Args;
use podstead_api::VerifyRequest;
use podstead_api::show::human_size;
use podstead_runtime::{Repair, VerifiedImage, VerifyReport};
use podstead_telemetry::counted;
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct VerifyArgs {
    /// Replace damaged layers by new ones, from the preload directory or the registry; containers that run keep the damaged files
    #[arg(long)]
    repair: bool,
    /// Image name as shown by `podstead image ls`; all images without one
    #[arg(value_name = "IMAGE")]
    references: Vec<String>,
}

pub(super) async fn run(args: &VerifyArgs, client: &Client) -> anyhow::Result<ExitCode> {
    let request = VerifyRequest { references: args.references.clone(), repair: args.repair };
    let report: VerifyReport = client.post(Target::new(OWN, &["images", "verify"]), &request).await?;
    let mut out = io::stdout().lock();
    for image in &report.images {
        show(&mut out, image)?;
    }
    let damaged = report.images.iter().filter(|image| image.is_damaged()).count();
    let (count, size) = (counted(report.images.len(), "image"), human_size(report.read_bytes));
    writeln!(out, "verified {count} ({size} read), {damaged} damaged")?;
    Ok(if damaged == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn show(out: &mut impl Write, image: &VerifiedImage) -> io::Result<()> {
    let name = if image.references.is_empty() { image.digest.clone() } else { image.references.join(", ") };
    for part in &image.damage {
        writeln!(out, "damaged {name}: {part}")?;
    }
    match &image.repair {
        Some(Repair::Done { from }) => writeln!(out, "repaired {name} from {from}")?,
        Some(Repair::Failed { reason }) => writeln!(out, "not repaired {name}: {reason}")?,
        None => {}
    }
    if image.unlisted_layers > 0 {
        let count = counted(image.unlisted_layers, "layer");
        writeln!(out, "not verified {name}: an earlier version of podstead stored {count} without checksums")?;
    }
    Ok(())
}
