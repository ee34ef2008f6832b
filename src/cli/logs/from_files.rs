//! Logs from the files while the daemon does not answer: pods from their records, lines by the reader that the API has.

use super::{LogOf, LogsArgs, Tail, containers, no_such_labels, prefix, prefixed};
use crate::Context;
use crate::pod_name;
use anyhow::{Context as _, bail};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use podstead_api::log::{self, LogOptions};
use podstead_config::last_valid;
use podstead_manifest::LabelSelector;
use podstead_pod::DesiredPod;
use podstead_sys::layout::Paths;
use podstead_worker::record;
use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

/// Bytes of a line without an end that are held for its prefix.
const MAX_LINE: usize = 1 << 20;

/// Copies what is there now; `unreachable` is why the daemon cannot be asked.
pub(super) fn run(args: &LogsArgs, context: &Context, unreachable: anyhow::Error) -> anyhow::Result<ExitCode> {
    let paths = last_valid::paths(context.config_path())?;
    let Ok(records) = record::read_all(&paths) else { return Err(unreachable) };
    let mut known: Vec<DesiredPod> = records.records.into_iter().map(|record| record.desired).collect();
    // As the API lists them; directories have no order.
    known.sort_by(|a, b| a.full_name.cmp(&b.full_name));
    if known.is_empty() {
        return Err(unreachable);
    }
    if args.follow {
        return Err(unreachable.context("logs can be followed only while the daemon runs; without -f they are read from the files"));
    }
    writeln!(io::stderr(), "the daemon does not answer: reading the log files")?;
    let pods: Vec<Pod> = known.iter().map(object).collect();
    let chosen = choose(args, &pods)?;
    let mut logs = Vec::new();
    for pod in chosen {
        logs.extend(containers(args, pod)?.into_iter().map(|container| LogOf { pod, container }));
    }
    let options = options(args);
    let is_single = logs.len() == 1 && !args.prefix;
    for (index, log) in logs.iter().enumerate() {
        let found = known.iter().find(|desired| log.pod.metadata.uid.as_deref() == Some(desired.uid.as_str()));
        let Some(desired) = found else { continue };
        let path = newest(&paths, desired, &log.container, args.previous)?;
        let out = io::stdout().lock();
        let copied = match is_single {
            true => log::copy(&path, &options, &mut { out }),
            false => {
                let mut out = Prefixed { out, prefix: prefix(log, index, context.color()), line: Vec::new() };
                log::copy(&path, &options, &mut out).and_then(|()| out.finish())
            }
        };
        copied.with_context(|| format!("read {}", path.display()))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The pod with the names that the API gives it.
fn object(desired: &DesiredPod) -> Pod {
    let mut pod = (*desired.pod).clone();
    pod.metadata.name = Some(desired.full_name.name.clone());
    pod.metadata.namespace = Some(desired.full_name.namespace.clone());
    pod.metadata.uid = Some(desired.uid.to_string());
    // The types of manifests have fields that are newer than the client's.
    serde_json::to_value(pod).and_then(serde_json::from_value).unwrap_or_default()
}

fn choose<'a>(args: &LogsArgs, pods: &'a [Pod]) -> anyhow::Result<Vec<&'a Pod>> {
    let namespace = args.namespace.namespace.as_deref();
    if let Some(selector) = &args.selector {
        let labels = LabelSelector::parse(selector)?;
        let is_meant = |pod: &&Pod| {
            let in_namespace = namespace.is_none_or(|namespace| pod.metadata.namespace.as_deref() == Some(namespace));
            in_namespace && labels.matches(pod.metadata.labels.as_ref())
        };
        let found: Vec<&Pod> = pods.iter().filter(is_meant).collect();
        return if found.is_empty() { Err(no_such_labels(selector)) } else { Ok(found) };
    }
    let mut chosen = Vec::new();
    for name in &args.pods {
        if name.contains('/') && !name.starts_with("pod/") && !name.starts_with("pods/") {
            bail!("{name}: only the daemon knows the pods of workloads; name a pod, or use -l");
        }
        chosen.push(pod_name::find(pods, name, namespace)?);
    }
    Ok(chosen)
}

fn options(args: &LogsArgs) -> LogOptions {
    let now = Timestamp::now();
    let since = args.since.map(|since| now.checked_sub(since).unwrap_or(Timestamp::MIN)).or(args.since_time);
    let tail = args.tail.and_then(|tail| match tail {
        Tail::All => None,
        Tail::Lines(lines) => Some(lines),
    });
    let until = args.until.map(|until| until.resolve(now));
    LogOptions { timestamps: args.timestamps, since, until, tail, ..LogOptions::default() }
}

/// The live file of the newest run, or of the one before it.
fn newest(paths: &Paths, desired: &DesiredPod, container: &str, previous: bool) -> anyhow::Result<PathBuf> {
    let directory = paths.pod_logs(&desired.full_name, &desired.uid).join(container);
    let names = fs::read_dir(&directory).with_context(|| {
        format!("pod {} has no log of a container {container:?} in {}", desired.full_name.name, directory.display())
    })?;
    let attempts = names.flatten().filter_map(|entry| entry.file_name().to_str()?.strip_suffix(".log")?.parse::<u32>().ok());
    let mut attempts: Vec<u32> = attempts.collect();
    attempts.sort_unstable();
    let attempt = attempts.iter().rev().nth(usize::from(previous));
    let Some(attempt) = attempt else { bail!("no log of a previous run of container {container:?} in {}", directory.display()) };
    Ok(directory.join(format!("{attempt}.log")))
}

/// Writes lines with a prefix.
struct Prefixed<W> {
    out: W,
    prefix: String,
    /// The beginning of a line.
    line: Vec<u8>,
}

impl<W: Write> Prefixed<W> {
    fn finish(&mut self) -> io::Result<()> {
        if self.line.is_empty() {
            return Ok(());
        }
        let line = std::mem::take(&mut self.line);
        self.out.write_all(&prefixed(&self.prefix, &line))
    }
}

impl<W: Write> Write for Prefixed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(piece);
            if self.line.ends_with(b"\n") || self.line.len() > MAX_LINE {
                self.finish()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_get_prefix_across_writes() {
        let mut out = Vec::new();
        let mut prefixed = Prefixed { out: &mut out, prefix: "[web] ".to_owned(), line: Vec::new() };
        prefixed.write_all(b"on").unwrap();
        prefixed.write_all(b"e\ntwo\nthr").unwrap();
        prefixed.finish().unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "[web] one\n[web] two\n[web] thr\n");
    }
}
