//! `podstead job`: CronJobs that are started by hand.

use super::Context;
use super::client::{OWN, Target};
use super::object_type::{ObjectType, parse_object};
use super::pods::PodNamespaceArgs;
use super::workloads::{find, metadata};
use anyhow::bail;
use clap::{Args, Subcommand};
use podstead_api::JobRunAnswer;
use podstead_workload::object::WorkloadKind;
use std::io::{self, Write};
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct JobArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Start a run of a CronJob now, whatever its schedule
    Run(RunArgs),
}

#[derive(Debug, Args)]
struct RunArgs {
    /// Name of the CronJob
    #[arg(value_name = "CRONJOB")]
    name: String,
    #[command(flatten)]
    namespace: PodNamespaceArgs,
}

pub(super) fn run(args: &JobArgs, context: &Context) -> anyhow::Result<ExitCode> {
    match &args.action {
        Action::Run(args) => run_now(args, context),
    }
}

fn run_now(args: &RunArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let name = name(&args.name)?;
    let client = context.client()?;
    context.block_on(async {
        let found = find(&client, WorkloadKind::CronJob, &name, args.namespace.namespace.as_deref()).await?;
        let target = Target::new(OWN, &["namespaces", metadata(&found, "namespace"), "cronjobs", &name, "run"]);
        let JobRunAnswer { job } = client.post(target, &serde_json::json!({})).await?;
        writeln!(io::stdout(), "job.batch/{job} created")?;
        Ok(ExitCode::SUCCESS)
    })
}

/// `dump` of `dump`, `cj/dump` and `cronjob/dump`.
fn name(argument: &str) -> anyhow::Result<String> {
    if !argument.contains('/') {
        return Ok(argument.to_owned());
    }
    let (object_type, name) = parse_object(argument).map_err(anyhow::Error::msg)?;
    if object_type != ObjectType::Workload(WorkloadKind::CronJob) {
        bail!("only a CronJob can be started, such as cronjob/{name}");
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_cron_jobs_are_started() {
        assert_eq!(name("dump").unwrap(), "dump");
        assert_eq!(name("cj/dump").unwrap(), "dump");
        assert_eq!(name("deploy/web").unwrap_err().to_string(), "only a CronJob can be started, such as cronjob/web");
    }
}
