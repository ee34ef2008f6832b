//! `podstead doctor`: checks this host for problems, with or without a running daemon.
//!
//! A file per check. Each has a struct of what was observed, `look`, which fills it from a [`Host`], and `judge`, which is pure and makes
//! [`Finding`]s of it. Nothing is changed.

mod agents;
mod cgroups;
mod clock;
mod configuration;
mod daemon;
mod disk;
mod dns;
mod encryption;
pub(super) mod finding;
mod host;
mod jobs;
mod kernel;
mod limits;
pub(super) mod network;
mod pods;
mod ports;
mod remains;
mod secrets;
mod security;
mod sources;
mod unit;
mod upstream;
pub(super) mod users;

use super::fold::{fold, terminal_width};
use super::output::Form;
use super::{Context, EXIT_FAILED};
use clap::Args;
use finding::{Finding, Findings};
use host::Host;
use k8s_openapi::api::core::v1::Pod;
use podstead_api::SourceObject;
use podstead_image::RegistryConfig;
use podstead_sys::layout::Paths;
use std::io::Write;
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
#[command(
    after_long_help = "The check \"security\" runs only when it is named. It lists the pods that have rights on the host, with source, file and line of \
                       each.\n\nExit codes: 0 no problem was found (warnings and notes do not count), 1 there is a problem."
)]
pub(super) struct DoctorArgs {
    /// Run only these checks
    #[arg(value_name = "CHECK", value_parser = checks())]
    only: Vec<String>,
    /// Output format
    #[arg(short, long, value_name = "FORM", default_value = "text")]
    output: Form,
}

/// One check: observes the host and returns findings.
type Check = fn(&Host) -> Vec<Finding>;

/// All checks, the causes of others first.
const CHECKS: &[(&str, Check)] = &[
    ("configuration", configuration::check),
    ("daemon", daemon::check),
    ("unit", unit::check),
    ("cgroups", cgroups::check),
    ("kernel", kernel::check),
    ("jobs", jobs::check),
    ("disk", disk::check),
    ("clock", clock::check),
    ("limits", limits::check),
    ("network", network::check),
    ("dns", dns::check),
    ("agents", agents::check),
    ("users", users::check),
    ("secrets", secrets::check),
    ("encryption", encryption::check),
    ("sources", sources::check),
    ("upstream", upstream::check),
    ("pods", pods::check),
    ("remains", remains::check),
];

/// Checks that are made only when they are named: they find nothing that does not work.
const ON_REQUEST: &[(&str, Check)] = &[("security", security::check)];

fn checks() -> Vec<&'static str> {
    CHECKS.iter().chain(ON_REQUEST).map(|(name, _)| *name).collect()
}

/// Problems of the host that stop pods from working, for `podstead status`: disks that are full, names that do not resolve.
pub(super) fn host_troubles(
    paths: Option<&Paths>,
    pods: &[Pod],
    sources: &[SourceObject],
    registries: &[RegistryConfig],
) -> Vec<Finding> {
    let resolv_conf = std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
    let space = paths.map(|paths| disk::space(paths, pods)).unwrap_or_default();
    space.into_iter().chain(dns::trouble(&resolv_conf, pods, sources, registries)).collect()
}

pub(super) fn run(args: &DoctorArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let host = Host::look(context)?;
    let is_named = |name: &str| args.only.iter().any(|only| only == name);
    let usual = CHECKS.iter().filter(|(name, _)| args.only.is_empty() || is_named(name));
    let wanted = usual.chain(ON_REQUEST.iter().filter(|(name, _)| is_named(name)));
    let findings = wanted.map(|(name, check)| (*name, check(&host)));
    let findings = Findings(findings.collect());
    let mut out = std::io::stdout().lock();
    match &args.output {
        Form::Text => out.write_all(fold(&findings.text(context.color()), terminal_width()).as_bytes())?,
        Form::Structured(form) => form.write(&mut out, &findings.json(), "findings")?,
    }
    Ok(if findings.has_problems() { ExitCode::from(EXIT_FAILED) } else { ExitCode::SUCCESS })
}
