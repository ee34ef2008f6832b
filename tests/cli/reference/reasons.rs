//! `docs/reference/reasons.md`: the words by which events and statuses say why. What statuses say is in `src/status/reason.rs`; what events say is
//! a table here, held against the code that records events.

use super::{cell, compare};
use std::collections::BTreeSet;
use std::path::Path;

const HEAD: &str = "\
# Reasons

The words by which [events](events.md) and the status of pods say why. They are the kubelet's where it has one, so that dashboards and alerts that know
them go on working. This page is made by `UPDATE=1 cargo test --test cli reference`, which holds it against the code.
";

/// About what, reason, type, when.
const EVENTS: &[(&str, &str, &str, &str)] = &[
    (
        "container",
        "BackOff",
        "Warning",
        "it ended repeatedly: a pause before the next start; Normal when an image could not be fetched repeatedly",
    ),
    ("container", "Created", "Normal", "it was made"),
    ("container", "ErrImageNeverPull", "Warning", "its image is not there and must not be fetched, or the source may not use it"),
    ("container", "Failed", "Warning", "its image could not be fetched, or it could not be made or started"),
    ("container", "FailedPostStartHook", "Warning", "its hook after the start failed: it is stopped"),
    ("container", "FailedPreStopHook", "Warning", "its hook before the stop failed: it is stopped all the same"),
    (
        "container",
        "FailedToRetrieveImagePullSecret",
        "Warning",
        "a Secret of `imagePullSecrets` is not there; the pull is tried without it",
    ),
    ("container", "InspectFailed", "Warning", "its image cannot be looked up: its name is malformed, or the disk does not give it"),
    ("container", "InvalidEnvironmentVariableNames", "Warning", "keys of an `envFrom` are no names and are left out"),
    ("container", "Killing", "Normal", "it is being stopped; the message says why"),
    ("container", "ProbeWarning", "Warning", "a probe succeeded with something to look at, such as a redirection to another host"),
    ("container", "Pulled", "Normal", "its image is there: fetched, or present before"),
    ("container", "Pulling", "Normal", "its image is being fetched"),
    ("container", "ResizeCompleted", "Normal", "its resources were changed while it ran"),
    ("container", "Started", "Normal", "its program runs"),
    ("container", "Unhealthy", "Warning", "a probe failed"),
    ("pod, container", "ResizeError", "Warning", "resources could not be changed while it ran"),
    ("pod", "BandwidthIgnored", "Warning", "no CNI plugin limits its traffic as its annotations want"),
    ("pod", "DNSConfigForming", "Warning", "more name servers or search domains than a resolver takes: the first ones count"),
    ("pod", "DeadlineExceeded", "Normal", "its `activeDeadlineSeconds` are over"),
    ("pod", "Evicted", "Warning", "it used more of the host's disk than it may"),
    ("pod", "FailedCreatePodSandBox", "Warning", "its sandbox could not be made; tried again"),
    ("pod", "FailedKillPod", "Warning", "something of it could not be stopped or removed; tried again"),
    ("pod", "FailedMirror", "Warning", "the cluster refuses its mirror"),
    ("pod", "FailedMount", "Warning", "a volume could not be made, or a file that it takes values from is missing"),
    ("pod", "FailedSync", "Warning", "what runs of it cannot be looked at; tried again"),
    ("pod", "FailedToRecordPod", "Warning", "the disk does not take its record; nothing is started before it does"),
    ("pod", "FailedUnMount", "Warning", "a volume could not be removed; tried again"),
    ("pod", "HostPortConflict", "Warning", "a port of the host that it wants has an owner"),
    ("pod", "NetworkCheckFailed", "Warning", "a CNI plugin finds it not connected as it was, or something of an interface is gone"),
    ("pod", "NetworkLeftBehind", "Warning", "a CNI plugin could not take back what it made for it"),
    ("pod, host", "NetworkRecordLost", "Warning", "what is recorded of a pod's network cannot be read"),
    ("pod, host", "NetworkNotReady", "Warning", "pods cannot be connected at present; tried again"),
    ("pod", "NetworksIgnored", "Warning", "it asks for further interfaces and is on the host's network"),
    ("pod", "ResizeInfeasible", "Warning", "the host can never give what an edit requests; what runs keeps what it has"),
    ("pod", "SandboxChanged", "Normal", "its sandbox is made anew"),
    ("pod, source", "FailedValidation", "Warning", "an object is refused, or another source has one of its name"),
    ("source", "LastGoodNotWritten", "Warning", "the disk does not take what was delivered; what is in force stays"),
    ("source", "LastGoodUnreadable", "Warning", "what was accepted last cannot be read from the disk; the source is asked"),
    ("source", "SourceDegraded", "Warning", "changes are found by looking from time to time only"),
    ("source", "SourceFailed", "Warning", "it cannot be read, or what it delivers is refused; what is in force stays"),
    ("source", "SourceHeld", "Warning", "it delivers nothing all of a sudden; what is in force stays until that is confirmed"),
    ("source", "SourcePruned", "Normal", "its emptiness was confirmed: its pods go"),
    ("source", "SourceRecovered", "Normal", "it is read again"),
    ("source", "SourceRemoved", "Normal", "it is not configured any more: its pods go"),
    ("source", "SourceResumed", "Normal", "it is not held any more"),
    ("source", "SourceRolledBack", "Normal", "an earlier revision is in force, and held"),
    ("source", "SourceSuspended", "Normal", "it is held at what is in force"),
    ("source", "Validated", "Normal", "all problems of its manifests are mended"),
    ("host", "AgeKey", "Warning", "a key for encrypted manifests cannot be read, or others can read it"),
    ("host", "ConfigurationChanged", "Normal", "the configuration was read again"),
    ("host", "DnsBlocked", "Warning", "a firewall of the host keeps pods from asking for names"),
    ("host", "DnsUnavailable", "Warning", "pods cannot be given names at present"),
    ("host", "ForwardingBlocked", "Warning", "a setting or firewall of the host drops what pods send"),
    ("host", "ForwardingSwitchedOff", "Warning", "somebody had the host pass nothing on; it does again"),
    ("host", "ImageDamaged", "Warning", "something of a stored image is damaged and was put aside"),
    ("host", "ImageImported", "Normal", "an archive of images was imported"),
    ("host", "ImageImportFailed", "Warning", "an archive of images cannot be imported"),
    ("host", "InvalidConfiguration", "Warning", "the configuration is not valid; the earlier one stays in force"),
    ("host", "NetworkConfigBroken", "Warning", "a CNI configuration became unreadable; what it said before counts"),
    ("host", "NetworkModeKept", "Warning", "another `network.mode` is configured than the one that pods are connected in"),
    ("host", "NodeNameTaken", "Warning", "another agent speaks for the Node of this host's name"),
    ("host", "PodRangeCollides", "Warning", "something else on the host uses addresses of the pods' range"),
    ("host", "PodRangeMissing", "Warning", "no range of IPv6 addresses is free for pods: they have IPv4"),
    ("host", "RegistryUnreachable", "Warning", "an image cannot be compared with its registry: the one that is present is used"),
    ("host", "RestartNeeded", "Warning", "changed fields of the configuration count at the next start of the daemon"),
];

/// By what a file that records events can be told from others.
const RECORDING: &[&str] =
    &["EventType::Normal", "EventType::Warning", "tell_once(", "told.good(", "told.trouble(", "tell_standing(", "self.warn("];

/// Words in such files that are no reasons of events.
const OTHER_WORDS: &[&str] = &[
    // Of the API: types and subjects of events, and the columns of their table.
    "Normal",
    "Warning",
    "Event",
    "Node",
    "Pod",
    "Source",
    "Count",
    "Message",
    "Object",
    "Reason",
    "Subobject",
    "Type",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Product code, without tests, of every file below `src`.
fn sources() -> Vec<String> {
    let mut folders = vec![root().join("src")];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                folders.push(path);
            } else if name.ends_with(".rs") && !name.ends_with("test.rs") && name != "tests.rs" {
                let text = std::fs::read_to_string(&path).unwrap();
                sources.push(text.split("#[cfg(test)]\nmod tests {").next().unwrap().to_owned());
            }
        }
    }
    sources
}

/// Words like `"FailedMount"` that stand alone in quotation marks.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_word = |word: &&str| {
        word.len() > 2
            && word.starts_with(|first: char| first.is_ascii_uppercase())
            && word.chars().all(|letter| letter.is_ascii_alphabetic())
            && word.chars().any(|letter| letter.is_ascii_lowercase())
    };
    text.split('"').filter(is_word)
}

/// Constant and value, with its comment, of `src/status/reason.rs`.
fn reasons_of_statuses() -> Vec<(String, String, String)> {
    let text = std::fs::read_to_string(root().join("src/status/reason.rs")).unwrap();
    let mut doc = String::new();
    let mut reasons = Vec::new();
    for line in text.lines() {
        if let Some(more) = line.strip_prefix("///") {
            doc.push_str(more);
        } else if let Some((name, value)) = line.strip_prefix("pub const ").and_then(|line| line.split_once(": &str = ")) {
            reasons.push((name.to_owned(), value.trim_matches(['"', ';']).to_owned(), std::mem::take(&mut doc).trim().to_owned()));
        }
    }
    reasons
}

fn page() -> String {
    let mut page = HEAD.to_owned();
    page.push_str("\n## Of events\n\n| about | reason | type | when |\n|---|---|---|---|\n");
    for (about, reason, kind, when) in EVENTS {
        page.push_str(&format!("| {about} | `{reason}` | {kind} | {} |\n", cell(when)));
    }
    page.push_str("\n## In the status of pods\n\n| where | reason | meaning |\n|---|---|---|\n");
    for (_, reason, doc) in reasons_of_statuses() {
        let (place, meaning) = doc.split_once([':', ' ']).unwrap_or_else(|| panic!("{reason} does not say where it stands"));
        let place = match place {
            "Waiting" => "container, `state.waiting`",
            "Terminated" => "container, `state.terminated`",
            "Pod" => "pod, `status.reason`",
            "Condition" => "pod, `status.conditions`",
            other => panic!("{reason}: {other:?} is no place of a reason"),
        };
        page.push_str(&format!("| {place} | `{reason}` | {} |\n", cell(meaning.trim().trim_end_matches('.'))));
    }
    page
}

#[test]
fn the_page_of_reasons_is_made_from_them() {
    compare("reference/reasons.md", &page());
}

#[test]
fn every_event_that_is_recorded_is_in_the_table_and_no_other() {
    let statuses = reasons_of_statuses();
    let mut recorded = BTreeSet::new();
    for source in sources().iter().filter(|source| RECORDING.iter().any(|idiom| source.contains(idiom))) {
        recorded.extend(words(source).filter(|word| !OTHER_WORDS.contains(word)).map(str::to_owned));
        let constants = statuses.iter().filter(|(name, _, _)| {
            ["Normal", "Warning"].iter().any(|kind| source.contains(&format!("EventType::{kind}, reason::{name},")))
        });
        recorded.extend(constants.map(|(_, value, _)| value.clone()));
    }
    let known: BTreeSet<String> = EVENTS.iter().map(|(_, reason, _, _)| (*reason).to_owned()).collect();
    assert_eq!(known.len(), EVENTS.len(), "a reason is in the table twice");
    assert_eq!(recorded, known, "left: words in files that record events; right: the table");
}
