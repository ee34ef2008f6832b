//! Names for the completion of the shell: pods, containers, sources, images and the like, asked from the daemon.

use crate::Context;
use crate::client::{Client, ClientError, OWN, Target};
use crate::object_type::{ObjectType, parse_object};
use crate::pod_name;
use crate::pods::{ServedList, list, name_of};
use crate::workloads::metadata;
use clap::Args;
use podstead_workload::object::WorkloadKind;
use serde_json::Value;
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Someone waits with a finger on the tabulator.
const PATIENCE: Duration = Duration::from_secs(2);

/// Arguments.
#[derive(Debug, Args)]
pub(crate) struct NamesArgs {
    /// Words of the command line so far; the last one is being typed
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<String>,
}

/// Kind of name that the last word is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Wanted {
    /// Pods.
    Pods,
    /// Containers of this pod.
    Containers(String),
    /// Sources.
    Sources,
    /// Images.
    Images,
    /// Claims.
    Claims,
    /// Pods with a colon, whose files are copied.
    PodsForCopy,
    /// Namespaces in use.
    Namespaces,
    /// Other objects, after this text.
    Listed(String, ObjectType),
    /// Workloads of a kind, alone.
    Workloads(WorkloadKind),
    /// Workloads of a kind, after `TYPE/`.
    Objects(String, WorkloadKind),
}

/// Prints the candidates, one per line. Whatever goes wrong, nothing is printed: a completion has no place for errors.
pub(crate) fn run(args: &NamesArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let words: Vec<&str> = args.words.iter().map(String::as_str).collect();
    let Some(wanted) = wanted(&words) else { return Ok(ExitCode::SUCCESS) };
    let Ok(client) = context.client() else { return Ok(ExitCode::SUCCESS) };
    let asked = context.block_on(async { Ok(tokio::time::timeout(PATIENCE, names(&client, &wanted)).await) })?;
    let last = words.last().copied().unwrap_or_default();
    let mut out = io::stdout().lock();
    for name in asked.ok().and_then(Result::ok).unwrap_or_default().iter().filter(|name| name.starts_with(last)) {
        writeln!(out, "{name}")?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Decides from the words which names fit. **Pure**.
fn wanted(words: &[&str]) -> Option<Wanted> {
    let (last, before) = words.split_last()?;
    // The first word is the program.
    let before = before.get(1..)?;
    let is_value = |index: usize| index > 0 && before.get(index - 1).is_some_and(|option| takes_value(option));
    let plain = before.iter().enumerate().filter(|(index, word)| !word.starts_with('-') && !is_value(*index));
    let plain: Vec<&str> = plain.map(|(_, word)| *word).collect();
    let takes_pod = ["logs", "exec", "attach", "port-forward", "stop", "start", "restart", "status", "trace"];
    if let Some("-c" | "--container") = before.last().copied() {
        let pod = plain.get(1).filter(|_| takes_pod.contains(&plain[0]))?;
        return Some(Wanted::Containers((*pod).to_owned()));
    }
    match before.last().copied() {
        Some("-n" | "--namespace") => return Some(Wanted::Namespaces),
        Some("--for") => return after_for(last),
        Some(_) | None => {}
    }
    if last.starts_with('-') || before.last().is_some_and(|word| word.starts_with('-') && takes_value(word)) {
        return None;
    }
    if let Some((kind, _)) = last.split_once('/') {
        return match ObjectType::named(kind)? {
            ObjectType::Workload(found) => Some(Wanted::Objects(kind.to_owned(), found)),
            found => Some(Wanted::Listed(format!("{kind}/"), found)),
        };
    }
    match plain.as_slice() {
        // What follows the pod is a command, or ports.
        ["exec" | "attach" | "port-forward" | "status" | "trace"] => Some(Wanted::Pods),
        ["logs" | "stop" | "start" | "restart", ..] => Some(Wanted::Pods),
        ["get" | "describe" | "top", kind, ..] if ObjectType::named(kind) == Some(ObjectType::Pod) => Some(Wanted::Pods),
        ["get" | "describe", kind, ..] => match ObjectType::named(kind) {
            Some(ObjectType::Workload(kind)) => Some(Wanted::Workloads(kind)),
            Some(ObjectType::Image) => Some(Wanted::Images),
            Some(found) => Some(Wanted::Listed(String::new(), found)),
            None => None,
        },
        ["cp", ..] => Some(Wanted::PodsForCopy),
        ["history" | "diff" | "rollback" | "suspend" | "resume"] | ["sync", ..] => Some(Wanted::Sources),
        ["image", "rm" | "pin" | "unpin", ..] => Some(Wanted::Images),
        ["volume", "prune" | "export", ..] => Some(Wanted::Claims),
        ["job", "run"] => Some(Wanted::Workloads(WorkloadKind::CronJob)),
        _ => None,
    }
}

/// Behind `--for`: a pod, or `TYPE/NAME`. **Pure**.
fn after_for(last: &str) -> Option<Wanted> {
    let Some((kind, _)) = last.split_once('/') else { return Some(Wanted::Pods) };
    ObjectType::named(kind).map(|found| Wanted::Listed(format!("{kind}/"), found))
}

/// Options before which names would be wrong.
fn takes_value(option: &str) -> bool {
    let with_value = [
        "-n",
        "--namespace",
        "-o",
        "--output",
        "-l",
        "--selector",
        "--field-selector",
        "--tail",
        "--since",
        "--since-time",
        "--until",
        "--timeout",
        "--config",
        "--socket",
        "--color",
        "--sort-by",
        "--for",
        "--type",
        "--to",
        "-f",
        "--file",
        "-c",
        "--container",
    ];
    with_value.contains(&option)
}

async fn names(client: &Client, wanted: &Wanted) -> Result<Vec<String>, ClientError> {
    let of = |items: Vec<Value>| -> Vec<String> { items.iter().map(|item| metadata(item, "name").to_owned()).collect() };
    Ok(match wanted {
        Wanted::Pods => list(client, None).await?.iter().map(|pod| name_of(pod).to_owned()).collect(),
        Wanted::Containers(name) => {
            let pods = list(client, None).await?;
            let name = parse_object(name).map_or_else(|_| name.clone(), |(_, name)| name);
            let spec = pod_name::find(&pods, &name, None).ok().and_then(|pod| pod.spec.as_ref());
            let containers = spec.into_iter().flat_map(|spec| spec.init_containers.iter().flatten().chain(&spec.containers));
            containers.map(|container| container.name.clone()).collect()
        }
        Wanted::Sources => of(client.get::<ServedList>(Target::new(OWN, &["sources"])).await?.items),
        Wanted::Images => {
            let images = client.get::<ServedList>(Target::new(OWN, &["images"])).await?.items;
            let references = images.iter().filter_map(|image| image["references"].as_array()).flatten();
            references.filter_map(Value::as_str).map(str::to_owned).collect()
        }
        Wanted::PodsForCopy => list(client, None).await?.iter().map(|pod| format!("{}:", name_of(pod))).collect(),
        Wanted::Namespaces => of(client.get::<ServedList>(ObjectType::Namespace.collection(None)).await?.items),
        Wanted::Claims => of(client.get::<ServedList>(ObjectType::PersistentVolumeClaim.collection(None)).await?.items),
        Wanted::Listed(before, object_type) => {
            let names = of(client.get::<ServedList>(object_type.collection(None)).await?.items);
            names.into_iter().map(|name| format!("{before}{name}")).collect()
        }
        Wanted::Workloads(kind) => of(crate::workloads::list(client, *kind, None).await?),
        Wanted::Objects(word, kind) => {
            of(crate::workloads::list(client, *kind, None).await?).into_iter().map(|name| format!("{word}/{name}")).collect()
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_word_decides_what_is_completed() {
        let of = |line: &str| wanted(&line.split(' ').collect::<Vec<_>>());
        for line in [
            "podstead logs ",
            "podstead exec -it we",
            "podstead trace w",
            "podstead restart web d",
            "/usr/bin/podstead --socket /s logs d",
            "podstead get pods w",
            "podstead top pod ",
        ] {
            assert_eq!(of(line), Some(Wanted::Pods), "{line}");
        }
        assert_eq!(of("podstead logs web -c "), Some(Wanted::Containers("web".to_owned())));
        assert_eq!(of("podstead rollback f"), Some(Wanted::Sources));
        assert_eq!(of("podstead image rm "), Some(Wanted::Images));
        assert_eq!(of("podstead describe deploy "), Some(Wanted::Workloads(WorkloadKind::Deployment)));
        assert_eq!(of("podstead describe netpol "), Some(Wanted::Listed(String::new(), ObjectType::NetworkPolicy)));
        assert_eq!(of("podstead logs svc/w"), Some(Wanted::Listed("svc/".to_owned(), ObjectType::Service)));
        assert_eq!(of("podstead logs deploy/w"), Some(Wanted::Objects("deploy".to_owned(), WorkloadKind::Deployment)));
        for line in ["podstead logs -n d", "podstead get deploy --namespace "] {
            assert_eq!(of(line), Some(Wanted::Namespaces), "{line}");
        }
        assert_eq!(of("podstead get events --for w"), Some(Wanted::Pods));
        let services = Wanted::Listed("svc/".to_owned(), ObjectType::Service);
        assert_eq!(of("podstead get events --for svc/"), Some(services));
        assert_eq!(of("podstead cp w"), Some(Wanted::PodsForCopy));
        assert_eq!((of("podstead image pin l"), of("podstead get images l")), (Some(Wanted::Images), Some(Wanted::Images)));
        for line in ["podstead logs --", "podstead exec web l", "podstead validate ", "podstead "] {
            assert_eq!(of(line), None, "{line}");
        }
    }
}
