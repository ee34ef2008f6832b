//! `docs/reference/reasons.md`: the words by which events and statuses say why. What statuses say is in `src/status/reason.rs`; what events say is
//! a table here, held against the code that records events.

use super::{cell, compare};
use std::collections::BTreeSet;
use std::path::Path;

const HEAD: &str = "\
# Reasons

This page lists the reasons in [events](events.md) and in the status of pods. Where the kubelet has a reason for a situation, podstead uses the same one, so that
existing dashboards and alerts keep working. The page is generated from the code with `UPDATE=1 cargo test --test cli reference`.
";

/// About what, reason, type, when.
const EVENTS: &[(&str, &str, &str, &str)] = &[
    (
        "container",
        "BackOff",
        "Warning",
        "the container ended repeatedly and waits before the next start; type Normal if its image could not be pulled repeatedly",
    ),
    ("container", "Created", "Normal", "the container was created"),
    ("container", "DeviceAttached", "Normal", "a device that the running container names was plugged in; it can open it again"),
    ("container", "DeviceDetached", "Warning", "a device of the running container was unplugged; it cannot open it any more"),
    (
        "container",
        "ErrImageNeverPull",
        "Warning",
        "the image is not present and `imagePullPolicy` is `Never`, or the source is not allowed to use it",
    ),
    ("container", "Failed", "Warning", "the image could not be pulled, or the container could not be created or started"),
    (
        "container",
        "FailedAttachDevice",
        "Warning",
        "a device could not be given to the running container, or not taken away; podstead retries",
    ),
    ("container", "FailedPostStartHook", "Warning", "the `postStart` hook failed; the container is stopped"),
    ("container", "FailedPreStopHook", "Warning", "the `preStop` hook failed; the container is stopped anyway"),
    (
        "container",
        "FailedToRetrieveImagePullSecret",
        "Warning",
        "a Secret in `imagePullSecrets` does not exist; podstead tries to pull without it",
    ),
    ("container", "InspectFailed", "Warning", "the image cannot be inspected: its name is invalid, or it cannot be read from disk"),
    (
        "container",
        "InvalidEnvironmentVariableNames",
        "Warning",
        "keys of an `envFrom` are not valid variable names and are skipped",
    ),
    ("container", "Killing", "Normal", "the container is being stopped; the message gives the reason"),
    ("container", "ProbeWarning", "Warning", "a probe succeeded with a warning, such as a redirect to another host"),
    ("container", "Pulled", "Normal", "the image was pulled, or was already present"),
    ("container", "Pulling", "Normal", "the image is being pulled"),
    ("container", "ResizeCompleted", "Normal", "the resources of the running container were changed"),
    ("container", "Started", "Normal", "the container was started"),
    ("container", "Unhealthy", "Warning", "a probe failed"),
    ("pod, container", "ResizeError", "Warning", "the resources of the running pod or container could not be changed"),
    ("pod", "BandwidthIgnored", "Warning", "the pod has bandwidth annotations, but no CNI plugin limits its traffic"),
    (
        "pod",
        "DNSConfigForming",
        "Warning",
        "there are more name servers or search domains than resolvers support; only the first ones are used",
    ),
    ("pod", "DeadlineExceeded", "Normal", "`activeDeadlineSeconds` was exceeded"),
    ("pod", "Evicted", "Warning", "the pod exceeded its limit of disk space"),
    ("pod", "FailedCreatePodSandBox", "Warning", "the sandbox could not be created; podstead retries"),
    ("pod", "FailedKillPod", "Warning", "a part of the pod could not be stopped or removed; podstead retries"),
    ("pod", "FailedMirror", "Warning", "the cluster rejects the mirror pod"),
    ("pod", "FailedMount", "Warning", "a volume could not be mounted, or a file that the pod takes values from is missing"),
    ("pod", "FailedSync", "Warning", "the state of the containers cannot be read; podstead retries"),
    (
        "pod",
        "FailedToRecordPod",
        "Warning",
        "the record of the pod cannot be written to disk; no container is started before that succeeds",
    ),
    ("pod", "FailedUnMount", "Warning", "a volume could not be removed; podstead retries"),
    ("pod", "HostPortConflict", "Warning", "a host port of the pod is already in use"),
    (
        "pod",
        "NetworkCheckFailed",
        "Warning",
        "the check of a CNI plugin failed, or an interface of the pod has lost an address or route",
    ),
    ("pod", "NetworkLeftBehind", "Warning", "a CNI plugin could not remove the network of the pod"),
    ("pod, host", "NetworkRecordLost", "Warning", "the record of a pod's network cannot be read"),
    ("pod, host", "NetworkNotReady", "Warning", "pods cannot be connected to the network; podstead retries"),
    (
        "pod",
        "ServicesNotReached",
        "Warning",
        "CNI plugins connect the pod to a network whose router is not this host: addresses of Services lead nowhere from it",
    ),
    ("pod", "NetworkPolicyIgnored", "Warning", "a NetworkPolicy selects the pod, which uses the host network"),
    (
        "pod",
        "NetworkPolicyNotEnforced",
        "Warning",
        "a NetworkPolicy selects the pod and cannot be enforced for it: it does not start, or goes on if it runs",
    ),
    (
        "host",
        "NetworkPolicyRecordLost",
        "Warning",
        "the record of NetworkPolicies cannot be read; pods are closed until all sources are synced",
    ),
    ("pod", "NetworksIgnored", "Warning", "the pod requests additional networks, but uses the host network"),
    (
        "pod",
        "ResizeInfeasible",
        "Warning",
        "an edit requests more resources than the host has; the pod keeps its current resources",
    ),
    ("pod", "PodStopped", "Normal", "an operator stopped the pod"),
    ("pod", "PodStarted", "Normal", "an operator or an edit started a pod that was stopped"),
    ("pod", "SandboxChanged", "Normal", "the sandbox is created again"),
    ("pod, source", "FailedValidation", "Warning", "an object is rejected, or another source has an object with the same name"),
    (
        "service",
        "ServiceAddressTaken",
        "Warning",
        "another Service has the address, or it is outside of the range; the Service keeps what it had",
    ),
    ("service", "NodePortTaken", "Warning", "somebody has the port of the host, or it is outside of the range; podstead retries"),
    ("service", "LoadBalancerPortTaken", "Warning", "somebody has the port of the host; the Service gets it when it is free"),
    (
        "service",
        "ServiceUnserved",
        "Warning",
        "the Service is not served, or not all of its endpoints are used; the message gives the reason",
    ),
    (
        "source",
        "CommitStatusFailed",
        "Warning",
        "the status of a commit was not reported to its server; the message says whether podstead tries again",
    ),
    ("source", "LastGoodNotWritten", "Warning", "a new revision cannot be written to disk; the current one stays in force"),
    ("source", "LastGoodUnreadable", "Warning", "the last accepted revision cannot be read from disk; the source is fetched"),
    ("source", "SourceDegraded", "Warning", "changes are found only by polling"),
    (
        "source",
        "SourceFailed",
        "Warning",
        "the source cannot be fetched, or its content is rejected; the current revision stays in force",
    ),
    (
        "source",
        "SourceHeld",
        "Warning",
        "the source has become empty; its pods stay until `podstead sync --prune` confirms their removal",
    ),
    ("source", "SourcePruned", "Normal", "removal was confirmed with `podstead sync --prune`: the pods of the source are removed"),
    ("source", "SourceRecovered", "Normal", "the source can be fetched again"),
    ("source", "SourceRemoved", "Normal", "the source was removed from the configuration: its pods are removed"),
    ("source", "SourceResumed", "Normal", "the source was resumed"),
    ("source", "SourceRolledBack", "Normal", "the source was rolled back to an earlier revision and is held there"),
    ("source", "SourceSuspended", "Normal", "the source is held at its current revision"),
    ("source", "Validated", "Normal", "all problems in the manifests of the source are fixed"),
    ("host", "AgeKey", "Warning", "an age key cannot be read, or other users can read it"),
    ("host", "ConfigurationChanged", "Normal", "the configuration was reloaded"),
    ("host", "DnsBlocked", "Warning", "a firewall of the host blocks DNS queries of pods"),
    ("host", "DnsUnavailable", "Warning", "the DNS server for pods cannot run"),
    ("host", "ForwardingBlocked", "Warning", "a setting or firewall of the host drops packets of pods"),
    ("host", "ForwardingSwitchedOff", "Warning", "another program disabled IP forwarding; podstead enabled it again"),
    ("host", "DiskPressure", "Warning", "the disk of the image store is full: no image is pulled until there is space"),
    ("host", "DiskRecovered", "Normal", "the disk of the image store has space again"),
    ("host", "ImageDamaged", "Warning", "a part of a stored image is damaged; a reference that cannot be read was moved aside"),
    ("host", "ImageImported", "Normal", "an archive of images was imported"),
    ("host", "ImageRepaired", "Normal", "a part of a stored image was damaged, and podstead replaced it"),
    ("host", "ImageImportFailed", "Warning", "an archive of images cannot be imported"),
    ("host", "ImagesCollected", "Normal", "unused images were removed, because the disk got full or a pull needed space"),
    (
        "host",
        "PreloadRemoved",
        "Normal",
        "an imported archive is not in the preload directory any more; its images stay only while something needs them",
    ),
    (
        "host",
        "PullInterrupted",
        "Warning",
        "a download of a layer was interrupted, and several attempts to resume it failed; podstead goes on trying",
    ),
    ("host", "PullResumed", "Normal", "an interrupted download of a layer goes on"),
    ("host", "InvalidConfiguration", "Warning", "the configuration is invalid; the previous one stays in force"),
    (
        "host",
        "JobViolation",
        "Warning",
        "a process that asks servers, unpacks images or reads git objects did something forbidden and was killed: the server, image or repository is hostile, or podstead has an error",
    ),
    (
        "host",
        "JobNotConfined",
        "Warning",
        "a process that asks servers, unpacks images or reads git objects could not give up its rights, and refused to work; `podstead doctor jobs` says why",
    ),
    (
        "host",
        "LimitExceeded",
        "Warning",
        "a process that asks servers, unpacks images or reads git objects used up its memory or time and was killed",
    ),
    (
        "host",
        "MirrorFailed",
        "Warning",
        "a mirror of a registry failed, and another host delivered; told at most once an hour for each mirror",
    ),
    ("host", "NetworkConfigBroken", "Warning", "a CNI configuration cannot be read any more; its previous content is used"),
    ("host", "NetworkModeKept", "Warning", "`network.mode` was changed, but pods are still connected in the previous mode"),
    ("host", "NodeNameTaken", "Warning", "another agent renews the Lease of the Node with the name of this host"),
    ("host", "PodRangeCollides", "Warning", "another interface or route of the host uses addresses of the pod range"),
    ("host", "PodRangeMissing", "Warning", "no IPv6 range is free for pods: they have only IPv4 addresses"),
    ("host", "RegistryUnreachable", "Warning", "the registry of an image is unreachable; the image that is present is used"),
    ("host", "RestartNeeded", "Warning", "changed configuration fields take effect when the daemon is restarted"),
];

/// Events of workloads: kinds, reason, type and meaning.
const WORKLOAD_EVENTS: &[(&str, &str, &str, &str)] = &[
    ("job", "BackoffLimitExceeded", "Warning", "the Job failed: more attempts failed than `backoffLimit` allows"),
    (
        "deployment, replicaset, statefulset",
        "ClaimInUse",
        "Warning",
        "one pod only can mount the claim; the others are not created",
    ),
    ("cronjob", "ClockNotCredible", "Warning", "the clock shows a time before podstead was built; nothing starts"),
    ("cronjob", "ClockWentBack", "Warning", "the clock was set back; the schedule goes on from the new time"),
    ("job", "Completed", "Normal", "the Job is complete"),
    ("job", "DeadlineExceeded", "Warning", "the Job failed: it was active for longer than `activeDeadlineSeconds`"),
    ("all, cronjob", "FailedCreate", "Warning", "a pod is invalid, or a source has a Job of the name of a run"),
    ("job", "FailedIndexes", "Warning", "the Job failed: all indexes are done and some failed"),
    ("all but job", "FailedScheduling", "Warning", "node selector or affinity do not match this host"),
    (
        "deployment, replicaset, statefulset",
        "HostPortTaken",
        "Warning",
        "one pod only can use the host port; the others are not created",
    ),
    ("cronjob", "JobAlreadyActive", "Normal", "the policy is Forbid and a Job is active"),
    ("job", "MaxFailedIndexesExceeded", "Warning", "the Job failed: more indexes failed than `maxFailedIndexes` allows"),
    ("job", "MemoryLost", "Warning", "the Job failed: what it did before is not known any more, so it does not run again"),
    ("cronjob", "MissSchedule", "Warning", "a run was missed: it is later than `startingDeadlineSeconds` allows"),
    ("job", "PodFailurePolicy", "Warning", "the Job failed by a rule of its `podFailurePolicy`"),
    ("job", "Resumed", "Normal", "`suspend` was removed"),
    ("cronjob", "SawCompletedJob", "Normal", "a Job of it ended"),
    ("deployment", "ScalingReplicaSet", "Normal", "a revision has another number of pods"),
    ("all but deployment and job", "SuccessfulCreate", "Normal", "a pod, or a Job of a CronJob, was created"),
    ("all but deployment and job", "SuccessfulDelete", "Normal", "a pod, or a Job of a CronJob, was removed"),
    ("job", "Suspended", "Normal", "`suspend` was set; the pods are stopped"),
    ("cronjob", "TooManyMissedTimes", "Warning", "over 100 runs were missed; the latest one counts"),
    ("cronjob", "UnknownTimeZone", "Warning", "the zone is not in the time zone database of this host"),
    ("cronjob", "UnparseableSchedule", "Warning", "this version cannot read the schedule"),
    (
        "deployment, statefulset, daemonset",
        "WaitingForImages",
        "Warning",
        "pods are replaced when the images of the new ones are present",
    ),
];

/// By what a file that records events can be told from others.
const RECORDING: &[&str] = &[
    "EventType::Normal",
    "EventType::Warning",
    "tell_once(",
    "told.good(",
    "told.trouble(",
    "tell_standing(",
    "self.warn(",
    // Above constants of a file that decides, whose events others record.
    "/// Reasons of events.",
];

/// Words in such files that are no reasons of events.
const OTHER_WORDS: &[&str] = &[
    // Of the API: types and subjects of events, and the columns of their table.
    "Normal",
    "Warning",
    "Event",
    "Node",
    "Pod",
    "Source",
    "Service",
    "Count",
    "Message",
    "Object",
    "Reason",
    "Subobject",
    "Type",
    // Of the API: values of a Service.
    "ClusterIP",
    "LoadBalancer",
    "None",
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
    page.push_str("\n## Events\n\n| object | reason | type | meaning |\n|---|---|---|---|\n");
    for (about, reason, kind, when) in EVENTS.iter().chain(WORKLOAD_EVENTS) {
        page.push_str(&format!("| {about} | `{reason}` | {kind} | {} |\n", cell(when)));
    }
    page.push_str("\n## Pod status\n\n| field | reason | meaning |\n|---|---|---|\n");
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

/// Reasons that are written where an event of a workload is made, and those of enums that are events.
fn reasons_of_workloads() -> BTreeSet<String> {
    let mut reasons = BTreeSet::new();
    for source in sources() {
        let made = ["WorkloadEvent::normal(", "WorkloadEvent::warning("].into_iter().flat_map(|maker| source.split(maker).skip(1));
        let written = made.filter_map(|after| after.trim_start().strip_prefix('"')?.split('"').next());
        reasons.extend(written.map(str::to_owned));
    }
    for (file, function) in
        [("cron/event.rs", "fn reason(&self)"), ("job/outcome.rs", "impl FailureReason"), ("failure.rs", "pub fn failure(")]
    {
        let text = std::fs::read_to_string(root().join("src/workload").join(file)).unwrap();
        let (_, after) = text.split_once(function).unwrap_or_else(|| panic!("{file} has no {function}"));
        let body = after.split("\n    }\n").next().unwrap();
        reasons.extend(words(body).map(str::to_owned));
    }
    reasons
}

#[test]
fn page_of_reasons_is_made_from_them() {
    compare("reference/reasons.md", &page());
}

#[test]
fn table_of_reasons_matches_recorded_events() {
    let statuses = reasons_of_statuses();
    let mut recorded = BTreeSet::new();
    for source in sources().iter().filter(|source| RECORDING.iter().any(|idiom| source.contains(idiom))) {
        recorded.extend(words(source).filter(|word| !OTHER_WORDS.contains(word)).map(str::to_owned));
        let constants = statuses.iter().filter(|(name, _, _)| {
            ["Normal", "Warning"].iter().any(|kind| source.contains(&format!("EventType::{kind}, reason::{name},")))
        });
        recorded.extend(constants.map(|(_, value, _)| value.clone()));
    }
    recorded.extend(reasons_of_workloads());
    let reasons = |table: &[(&str, &str, &str, &str)]| -> BTreeSet<String> {
        let reasons: BTreeSet<String> = table.iter().map(|(_, reason, _, _)| (*reason).to_owned()).collect();
        assert_eq!(reasons.len(), table.len(), "a reason is in a table twice");
        reasons
    };
    let known: BTreeSet<String> = reasons(EVENTS).union(&reasons(WORKLOAD_EVENTS)).cloned().collect();
    assert_eq!(recorded, known, "left: words in files that record events; right: the table");
}
