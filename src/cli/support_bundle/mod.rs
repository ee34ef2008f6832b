//! `podstead support-bundle`: diagnostic information about this host in one file, without secrets.
//!
//! With or without a running daemon. Nothing is changed, and nothing is sent anywhere.

mod archive;
mod capture;
mod redact;

use super::Context;
use super::client::{Client, OWN, Target};
use anyhow::Context as _;
use archive::Archive;
use clap::Args;
use jiff::Timestamp;
use serde_json::Value;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// Time limit for one response of the daemon.
const PATIENCE: Duration = Duration::from_secs(15);
/// Most of one file.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Arguments.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Not included: Secrets, values of ConfigMaps, credentials in the kubeconfig, values of environment variables and HTTP headers in pods, credentials in the configuration \
and in the environment of the service, and logs of containers unless --logs is set. Included: command lines of containers, texts that explain a failure (the last log line of a failed \
container, termination messages, output of probes and hooks) and the log of the daemon. Check the bundle before you share it.")]
pub(super) struct SupportBundleArgs {
    /// File to write [default: podstead-<node>-<time>.tar.gz in the current directory]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Also include this number of log lines of each container
    #[arg(long, value_name = "LINES", default_value_t = 0)]
    logs: u32,
}

/// Subcommands of podstead with output that needs no redaction.
const OWN_COMMANDS: &[(&str, &[&str])] = &[
    ("version.txt", &["version"]),
    ("status.txt", &["status"]),
    ("doctor.txt", &["doctor"]),
    ("config-check.txt", &["config", "check"]),
    ("pods.txt", &["get", "pods", "--output", "wide"]),
    ("workloads.txt", &["get", "deploy,rs,sts,ds,job,cj,rc", "--output", "wide"]),
    ("events.txt", &["get", "events"]),
    ("sources.yaml", &["get", "sources", "--output", "yaml"]),
    ("images.txt", &["image", "ls", "--output", "wide"]),
    ("persistentvolumeclaims.txt", &["get", "pvc"]),
];

/// May have credentials of a proxy in it.
const UNIT_FILES: &str = "host/unit-files.txt";

/// Programs of the host; one that is not there is left out.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("host/journal.txt", &["journalctl", "--unit", "podstead", "--lines", "20000", "--no-pager", "--output", "short-iso-precise"]),
    ("host/kernel.txt", &["dmesg"]),
    ("host/unit.txt", &["systemctl", "status", "--no-pager", "--full", "podstead.service"]),
    (UNIT_FILES, &["systemctl", "cat", "--no-pager", "podstead.service"]),
    ("host/package.txt", &["dpkg-query", "--status", "podstead"]),
    ("host/addresses.txt", &["ip", "-details", "address"]),
    ("host/routes.txt", &["ip", "route", "show", "table", "all"]),
    ("host/rules.txt", &["nft", "list", "ruleset"]),
    ("host/listeners.txt", &["ss", "--listening", "--numeric", "--processes", "--tcp", "--udp"]),
    ("host/disks.txt", &["df", "--print-type"]),
    ("host/inodes.txt", &["df", "--inodes"]),
    ("host/processes.txt", &["ps", "-eo", "pid,ppid,user,stat,lstart,rss,cgroup:100,comm"]),
];

/// Files of the host.
const FILES: &[&str] = &[
    "/etc/os-release",
    "/proc/version",
    "/proc/uptime",
    "/proc/loadavg",
    "/proc/meminfo",
    "/proc/cpuinfo",
    "/proc/self/mountinfo",
    "/proc/cgroups",
    "/proc/self/cgroup",
    "/proc/pressure/cpu",
    "/proc/pressure/io",
    "/proc/pressure/memory",
    "/sys/fs/cgroup/cgroup.controllers",
    "/etc/resolv.conf",
];

pub(super) fn run(args: &SupportBundleArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let now = Timestamp::now();
    let of_kernel = || rustix::system::uname().nodename().to_string_lossy().into_owned();
    let node = context.load_config().map_or_else(|_| of_kernel(), |config| config.node_name.to_string());
    let name = format!("podstead-{node}-{}", now.strftime("%Y%m%dT%H%M%SZ"));
    let path = args.output.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.tar.gz")));
    // An existing file may belong to another user, or be readable by others.
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let file = file.with_context(|| format!("create {}", path.display()))?;
    let written = context.block_on(write(file, args, context, name, now));
    if let Err(error) = written {
        let _half = fs::remove_file(&path);
        return Err(error.context(format!("write {}", path.display())));
    }
    writeln!(std::io::stdout(), "{}", path.display())?;
    Ok(ExitCode::SUCCESS)
}

async fn write(file: File, args: &SupportBundleArgs, context: &Context, folder: String, now: Timestamp) -> anyhow::Result<()> {
    let mut bundle = Archive::new(file, folder, u64::try_from(now.as_second()).unwrap_or(0));
    let own = |words: &[&str]| own_command(context, words);
    for (name, words) in OWN_COMMANDS {
        bundle.add(name, &capture::output(&own(words)?).await.unwrap_or_default())?;
    }
    bundle.add("config.yaml", configuration(context).as_bytes())?;
    if let Some(text) = kubeconfig(context) {
        bundle.add("kubeconfig.yaml", text.as_bytes())?;
    }
    let pods = match context.socket() {
        Ok(socket) => {
            let client = Client::new(socket);
            let pods = ask(&client, Target::new("/api/v1/pods", &[]), redact::pods).await;
            let maps = ask(&client, Target::new("/api/v1/configmaps", &[]), redact::config_maps).await;
            bundle.add("configmaps.yaml", yaml(&maps).as_bytes())?;
            bundle.add("pods.yaml", yaml(&pods).as_bytes())?;
            let sources = ask(&client, Target::new(OWN, &["sources"]), |_| ()).await;
            for (_, source) in names(&sources) {
                let history = own(&["history", &source, "--output", "wide"])?;
                bundle.add(&format!("history/{source}.txt"), &capture::output(&history).await.unwrap_or_default())?;
            }
            names(&pods)
        }
        Err(_) => Vec::new(),
    };
    if args.logs > 0 {
        for (namespace, pod) in pods {
            let lines = args.logs.to_string();
            let logs = own(&["logs", &pod, "--namespace", &namespace, "--all-containers", "--timestamps", "--tail", &lines])?;
            bundle.add(&format!("logs/{namespace}/{pod}.txt"), &capture::output(&logs).await.unwrap_or_default())?;
        }
    }
    for (name, words) in PROGRAMS {
        let command: Vec<OsString> = words.iter().map(OsString::from).collect();
        match capture::output(&command).await {
            Some(output) if *name == UNIT_FILES => bundle.add(name, redact::unit(&String::from_utf8_lossy(&output)).as_bytes())?,
            Some(output) => bundle.add(name, &output)?,
            None => {}
        }
    }
    for path in FILES {
        if let Some(content) = beginning(Path::new(path)) {
            bundle.add(&format!("host{path}"), &content)?;
        }
    }
    // The end of the archive is the last to reach the disk.
    bundle.finish()?.sync_all()?;
    Ok(())
}

/// This program with the same configuration and socket.
fn own_command(context: &Context, words: &[&str]) -> anyhow::Result<Vec<OsString>> {
    let mut command = vec![std::env::current_exe().context("find the podstead binary")?.into_os_string()];
    command.extend(["--color".into(), "never".into(), "--config".into(), context.config_path().as_os_str().to_owned()]);
    if let Ok(socket) = context.socket() {
        command.extend(["--socket".into(), socket.into_os_string()]);
    }
    command.extend(words.iter().map(OsString::from));
    Ok(command)
}

/// The configuration with every default; without credentials.
fn configuration(context: &Context) -> String {
    let config = match context.load_config() {
        Ok(config) => config,
        Err(error) => return format!("# {}\n", podstead_telemetry::error_chain(&error)),
    };
    match serde_json::to_value(config.to_written()) {
        Ok(mut written) => {
            redact::config(&mut written);
            podstead_manifest::to_yaml(&written)
        }
        Err(error) => format!("# {error}\n"),
    }
}

/// The kubeconfig, if a cluster is configured; without credentials.
fn kubeconfig(context: &Context) -> Option<String> {
    let path = context.load_config().ok()?.upstream?.kubeconfig;
    // An error may quote the content of the file.
    let read = beginning(&path).map(|bytes| serde_yaml::from_slice::<Value>(&bytes));
    Some(match read {
        Some(Ok(mut written)) => {
            redact::kubeconfig(&mut written);
            yaml(&written)
        }
        Some(Err(_)) => "# not valid YAML\n".to_owned(),
        None => "# cannot be read\n".to_owned(),
    })
}

/// An answer of the daemon, or why there is none.
async fn ask(client: &Client, target: Target, redact: fn(&mut Value)) -> Value {
    match tokio::time::timeout(PATIENCE, client.get::<Value>(target)).await {
        Ok(Ok(mut answer)) => {
            redact(&mut answer);
            answer
        }
        Ok(Err(error)) => Value::from(podstead_telemetry::error_chain(&error).to_string()),
        Err(_) => Value::from(format!("no response within {} s", PATIENCE.as_secs())),
    }
}

fn yaml(value: &Value) -> String {
    podstead_manifest::to_yaml(value)
}

/// Namespace and name of each object of a list.
fn names(list: &Value) -> Vec<(String, String)> {
    let items = list["items"].as_array().into_iter().flatten();
    let text = |item: &Value, field: &str| item["metadata"][field].as_str().unwrap_or_default().to_owned();
    items.map(|item| (text(item, "namespace"), text(item, "name"))).collect()
}

/// The beginning of a file that can be read.
fn beginning(path: &Path) -> Option<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path).ok()?.take(MAX_FILE_BYTES).read_to_end(&mut content).ok()?;
    Some(content)
}
