//! The command line: a file per subcommand. Data goes to stdout, everything else to stderr.
//!
//! Exit codes: 0 done; 1 what was asked for is not so or could not be done (no such pod, problems in manifests, a plan that is not
//! empty); 2 the command was not understood, or the daemon could not be asked. `exec` and `attach` end with the code of the process.

mod bundle;
mod client;
mod completion;
mod config;
mod context;
mod credential;
mod daemon;
mod describe;
mod diff;
mod doctor;
mod endpoints;
mod exit;
mod fold;
mod foreign;
mod get;
mod global;
mod help;
mod history;
mod image;
mod import;
mod job;
mod kubeconfig;
mod kustomize;
mod logs;
mod network;
mod object_type;
mod output;
mod page;
mod plan;
mod pod_name;
mod pod_orders;
mod pods;
mod port_forward;
mod printable;
mod render;
mod resume;
mod rollback;
mod rollout;
mod run;
mod session;
mod source_name;
mod status;
mod stop;
mod support_bundle;
mod suspend;
mod sync;
mod table;
mod top;
mod trace;
mod tree;
mod trouble;
mod unserved;
mod validate;
mod version;
mod volume;
mod watch;
mod workloads;

use context::Context;

use clap::{CommandFactory, Parser, Subcommand};
use exit::{EXIT_FAILED, EXIT_UNUSABLE, is_unreachable};
use global::{ColorChoice, Global};
use std::io::{ErrorKind, Write};
use std::process::ExitCode;

/// Runs Kubernetes Pod manifests on this host, without a cluster.
#[derive(Debug, Parser)]
#[command(name = "podstead", version, disable_help_subcommand = true, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    global: Global,
    /// Subcommand [default: status]
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the status of this host, its problems and how to fix them
    Status(status::StatusArgs),
    /// Show the status of this host as a page for a browser
    Page(page::PageArgs),
    /// Check this host for problems and show how to fix them
    Doctor(doctor::DoctorArgs),
    /// Show pods, events, sources, images and other objects
    Get(get::GetArgs),
    /// Show the details of a pod or a workload
    Describe(describe::DescribeArgs),
    /// Show CPU and memory usage
    Top(top::TopArgs),
    /// Show the steps of the last start or change of a pod, and how long each took
    Trace(trace::TraceArgs),
    /// Show the logs of a container
    Logs(logs::LogsArgs),
    /// Run a command in a container
    Exec(session::exec::ExecArgs),
    /// Attach to the input and output of a running container
    Attach(session::attach::AttachArgs),
    /// Copy files and directories to and from a container
    Cp(session::copy::CopyArgs),
    /// Forward local ports to a pod
    PortForward(port_forward::PortForwardArgs),
    /// Run a pod once from a manifest, show its log, and remove it
    Run(run::RunArgs),
    /// Start CronJobs
    Job(job::JobArgs),
    /// Show the progress and the revisions of a rollout
    Rollout(rollout::RolloutArgs),
    /// Explain which connections of pods NetworkPolicies allow
    Network(network::NetworkArgs),
    /// List, import, pull and remove images
    Image(image::ImageArgs),
    /// Put manifests and images into one file, and apply it on hosts without a network
    Bundle(bundle::BundleArgs),
    /// List, export, import and delete the data of persistent volumes
    Volume(volume::VolumeArgs),
    /// Run the daemon
    Daemon(daemon::DaemonArgs),
    /// Check manifests without a daemon
    Validate(validate::ValidateArgs),
    /// Fetch sources now, or remove the pods of a source that cannot be fetched
    Sync(sync::SyncArgs),
    /// Show the objects that a host would get from manifests
    Render(render::RenderArgs),
    /// Print what a kustomization builds, as kubectl does
    Kustomize(kustomize::KustomizeArgs),
    /// Show the accepted revisions of a source
    History(history::HistoryArgs),
    /// Compare the revision in force with an earlier one
    Diff(diff::DiffArgs),
    /// Return a source to an earlier revision and hold it there
    Rollback(rollback::RollbackArgs),
    /// Hold a source at the revision in force
    Suspend(suspend::SuspendArgs),
    /// Resume a source that is held
    Resume(resume::ResumeArgs),
    /// Make manifests from a compose file, Quadlet units or a docker run command
    Import(import::ImportArgs),
    /// Show what the daemon would change if a source had these manifests
    Plan(plan::PlanArgs),
    /// Stop pods until they are started, edited or the host is booted
    Stop(stop::StopArgs),
    /// Start pods that were stopped
    Start(pod_orders::PodOrderArgs),
    /// Replace pods by new ones; those of workloads get the newest revision
    Restart(pod_orders::PodOrderArgs),
    /// Collect diagnostic information about this host into an archive, without secrets
    SupportBundle(support_bundle::SupportBundleArgs),
    /// Print a configuration of kubectl for this host
    Kubeconfig(kubeconfig::KubeconfigArgs),
    /// Print a token for kubectl
    Credential(credential::CredentialArgs),
    /// Check or show the configuration
    Config(config::ConfigArgs),
    /// Show the version of this command and of the daemon
    Version(version::VersionArgs),
    /// Print a completion script for a shell
    Completion(completion::CompletionArgs),
    /// Print names that complete a command line, for the completion scripts
    #[command(hide = true)]
    CompleteNames(completion::names::NamesArgs),
    /// Show the help of podstead or of a subcommand
    Help(help::HelpArgs),
}

/// The command line as clap knows it: manual pages and completions are made from it.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Parses the arguments of this process and runs the subcommand.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return foreign::report(&error),
    };
    fold::read_terminal_width();
    let context = Context::new(cli.global);
    let command = cli.command.unwrap_or_else(|| Command::Status(status::StatusArgs::default()));
    let result = match command {
        Command::Status(args) => status::run(&args, &context),
        Command::Page(args) => page::run(&args, &context),
        Command::Doctor(args) => doctor::run(&args, &context),
        Command::Get(args) => get::run(&args, &context),
        Command::Describe(args) => describe::run(&args, &context),
        Command::Trace(args) => trace::run(&args, &context),
        Command::Logs(args) => logs::run(&args, &context),
        Command::Exec(args) => session::exec::run(&args, &context),
        Command::Attach(args) => session::attach::run(&args, &context),
        Command::Cp(args) => session::copy::run(&args, &context),
        Command::PortForward(args) => port_forward::run(&args, &context),
        Command::Run(args) => run::run(&args, &context),
        Command::Job(args) => job::run(&args, &context),
        Command::Rollout(args) => rollout::run(&args, &context),
        Command::Network(args) => network::run(&args, &context),
        Command::Image(args) => image::run(&args, &context),
        Command::Bundle(args) => bundle::run(&args, &context),
        Command::Volume(args) => volume::run(&args, &context),
        Command::Daemon(args) => daemon::run(&args, &context),
        Command::Validate(args) => validate::run(&args, &context),
        Command::Sync(args) => sync::run(&args, &context),
        Command::Render(args) => render::run(&args, &context),
        Command::Kustomize(args) => kustomize::run(&args, &context),
        Command::History(args) => history::run(&args, &context),
        Command::Diff(args) => diff::run(&args, &context),
        Command::Rollback(args) => rollback::run(&args, &context),
        Command::Suspend(args) => suspend::run(&args, &context),
        Command::Resume(args) => resume::run(&args, &context),
        Command::Import(args) => import::run(&args, &context),
        Command::Plan(args) => plan::run(&args, &context),
        Command::Top(args) => top::run(&args, &context),
        Command::Stop(args) => stop::run(&args, &context),
        Command::Start(args) => pod_orders::run(pod_orders::PodOrder::Start, &args, &context),
        Command::Restart(args) => pod_orders::run(pod_orders::PodOrder::Restart, &args, &context),
        Command::SupportBundle(args) => support_bundle::run(&args, &context),
        Command::Kubeconfig(args) => kubeconfig::run(&args, &context),
        Command::Credential(args) => credential::run(&args, &context),
        Command::Config(args) => config::run(&args, &context),
        Command::Version(args) => version::run(&args, &context),
        Command::Completion(args) => completion::run(&args, &mut self::command()),
        Command::CompleteNames(args) => completion::names::run(&args, &context),
        Command::Help(args) => help::run(&args, self::command()),
    };
    match result {
        Ok(code) => code,
        // The reader of our output went away (`podstead get pods | head`): nothing is wrong.
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::from(if is_unreachable(&error) { EXIT_UNUSABLE } else { EXIT_FAILED })
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| cause.downcast_ref::<std::io::Error>().is_some_and(|error| error.kind() == ErrorKind::BrokenPipe))
}

fn report(error: &anyhow::Error) {
    // A closed stderr is not an error.
    writeln!(std::io::stderr(), "podstead: {error:#}").ok();
}
