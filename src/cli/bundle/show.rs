//! `podstead bundle show`.

use crate::EXIT_FAILED;
use crate::printable::printable;
use anyhow::Context as _;
use clap::{Args, ValueEnum};
use jiff::Timestamp;
use podstead_api::show::human_size;
use podstead_image::list_job::Here;
use podstead_source::SignatureRequirement;
use podstead_source::bundle::BUNDLE_NAMESPACE;
use podstead_source::bundle::archive::{Head, read_head, verify_content};
use podstead_source::bundle::document::BundleDocument;
use podstead_telemetry::counted;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
#[command(after_help = "Exit codes: 0 the bundle could be read, and is what --allowed-signers and --check ask for; 1 it is not.")]
pub(super) struct ShowArgs {
    /// The bundle
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// File with the SSH keys that may sign, in the format of ssh's allowed_signers; verifies the signature
    #[arg(long, value_name = "FILE")]
    allowed_signers: Option<PathBuf>,
    /// Read all content and compare it with its digests
    #[arg(long)]
    check: bool,
    /// Output format
    #[arg(short, long, value_enum, value_name = "FORMAT", default_value_t = Format::Text)]
    output: Format,
}

/// `-o`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// For people.
    Text,
    /// The document of the bundle.
    Json,
}

pub(super) fn run(args: &ShowArgs) -> anyhow::Result<ExitCode> {
    let failed = || args.file.display().to_string();
    let file = File::open(&args.file).with_context(failed)?;
    let head = read_head(&file, &Here).with_context(failed)?;
    let signature = signature(&head, args.allowed_signers.as_deref())?;
    let mut out = io::stdout().lock();
    match args.output {
        Format::Json => out.write_all(&head.bytes)?,
        Format::Text => show(&mut out, &head, signature.as_ref().unwrap_or_else(|reason| reason))?,
    }
    out.flush()?;
    if args.check {
        verify_content(&file, &Here, &head.document).with_context(failed)?;
        writeln!(io::stderr(), "all content is there and undamaged")?;
    }
    match signature {
        Err(reason) if args.allowed_signers.is_some() => {
            writeln!(io::stderr(), "podstead: {}: signature: {reason}", args.file.display())?;
            Ok(ExitCode::from(EXIT_FAILED))
        }
        Ok(_) | Err(_) => Ok(ExitCode::SUCCESS),
    }
}

/// The signer, or the reason why nobody is known to have signed.
fn signature(head: &Head, allowed: Option<&Path>) -> anyhow::Result<Result<String, String>> {
    Ok(match (&head.signature, allowed) {
        (None, _) => Err("none".to_owned()),
        (Some(_), None) => Err("not verified (--allowed-signers verifies it)".to_owned()),
        (Some(signature), Some(allowed)) => {
            let required = SignatureRequirement {
                allowed_signers_file: Some(allowed.to_owned()),
                openpgp_keyring_file: None,
                namespace: BUNDLE_NAMESPACE.to_owned(),
            };
            let signer = required.trusted()?.verify(&head.bytes, signature, Timestamp::now());
            signer.map(|signer| format!("by {signer}")).map_err(|error| error.to_string())
        }
    })
}

fn show(out: &mut impl Write, head: &Head, signature: &str) -> io::Result<()> {
    let BundleDocument { name, serial, created, hosts, revision, images, blobs, .. } = &head.document;
    let hosts = if hosts.is_empty() { "any".to_owned() } else { hosts.join(", ") };
    let digest = head.digest().to_string();
    let (serial, created) = (serial.to_string(), created.to_string());
    let fields = [
        ("Name", name.as_str()),
        ("Serial", &serial),
        ("Created", &created),
        ("Hosts", &hosts),
        ("Revision", &digest),
        ("Sources", if revision.is_empty() { "unknown" } else { revision }),
        ("Signature", signature),
    ];
    for (field, value) in fields {
        writeln!(out, "{:<11}{}", format!("{field}:"), printable(value))?;
    }
    let size = |left_out: bool| {
        let chosen: Vec<u64> = blobs.iter().filter(|blob| blob.left_out == left_out).map(|blob| blob.size).collect();
        (chosen.len(), human_size(chosen.iter().fold(0, |sum: u64, size| sum.saturating_add(*size))))
    };
    writeln!(out, "{:<11}{}", "Content:", size(false).1)?;
    let (count, bytes) = size(true);
    if count > 0 {
        writeln!(out, "{:<11}{}, {bytes}", "Left out:", counted(count, "layer"))?;
    }
    writeln!(out, "Images:")?;
    for image in images {
        writeln!(out, "  {}  {}", printable(&image.reference), image.digest)?;
    }
    Ok(())
}
