//! Leftovers of unknown pods: directories, mounts, cgroups.

use super::finding::Finding;
use super::host::{Host, names};
use podstead_container::cgroup::Cgroups;
use podstead_pod::PodUid;
use std::collections::{BTreeMap, BTreeSet};

/// Observed state.
#[derive(Debug, Default)]
struct Observed {
    /// Pods with a record, and pods that the daemon lists.
    known: BTreeSet<String>,
    /// Leftovers of each pod: `directory`, `mount`, `cgroup`.
    found: BTreeMap<String, BTreeSet<&'static str>>,
    daemon_answers: bool,
    is_root: bool,
}

pub(super) fn check(host: &Host) -> Vec<Finding> {
    judge(&look(host))
}

fn look(host: &Host) -> Observed {
    let paths = &host.paths;
    let mut observed = Observed { daemon_answers: host.answers.is_ok(), is_root: host.is_root, ..Observed::default() };
    let mut note = |uid: String, what| {
        observed.found.entry(uid).or_default().insert(what);
    };
    for directory in [paths.pods(), paths.pods_run()] {
        for uid in names(&directory) {
            if paths.pod_record(&PodUid::new(uid.clone())).try_exists().unwrap_or(false) {
                observed.known.insert(uid.clone());
            }
            note(uid, "directory");
        }
        for mount in &host.mounts {
            if let Ok(below) = mount.point.strip_prefix(&directory)
                && let Some(uid) = below.iter().next()
            {
                note(uid.to_string_lossy().into_owned(), "mount");
            }
        }
    }
    if let Ok(cgroups) = Cgroups::detect(&paths.cgroup_slice())
        && let Ok(groups) = cgroups.list()
    {
        for (uid, _) in groups {
            note(uid.to_string(), "cgroup");
        }
    }
    if let Ok(answers) = &host.answers {
        observed.known.extend(answers.pods.iter().filter_map(|pod| pod.metadata.uid.clone()));
    }
    observed
}

fn judge(observed: &Observed) -> Vec<Finding> {
    let strangers: Vec<_> = observed.found.iter().filter(|(uid, _)| !observed.known.contains(*uid)).collect();
    if strangers.is_empty() {
        if !observed.is_root && observed.found.is_empty() {
            return Vec::new();
        }
        return vec![Finding::ok("no leftovers of removed pods")];
    }
    let list: Vec<String> =
        strangers.iter().map(|(uid, what)| format!("{uid} ({})", what.iter().copied().collect::<Vec<_>>().join(", "))).collect();
    let what = format!("leftovers of unknown pods:\n{}", list.join("\n"));
    vec![if observed.daemon_answers {
        Finding::warning(
            what,
            "the daemon removes leftovers after the first sync of all sources; it is about to remove these, or it cannot",
            "journalctl -u podstead shows why it cannot; fuser -m finds processes that still use a mount",
        )
    } else {
        Finding::note(what, "the daemon removes them when it starts", "")
    }]
}

#[cfg(test)]
mod tests {
    use super::super::finding::Severity::{Note, Ok, Warning};
    use super::*;

    #[test]
    fn what_no_record_speaks_for_is_told() {
        let mut observed = Observed { daemon_answers: true, is_root: true, ..Observed::default() };
        assert_eq!(judge(&observed)[0].severity, Ok);
        observed.known.insert("a".into());
        observed.found.insert("a".into(), BTreeSet::from(["directory", "mount"]));
        assert_eq!(judge(&observed)[0].severity, Ok);
        observed.found.insert("b".into(), BTreeSet::from(["cgroup", "mount"]));
        let found = judge(&observed);
        assert_eq!((found[0].severity, found[0].what.lines().last()), (Warning, Some("b (cgroup, mount)")));
        observed.daemon_answers = false;
        assert_eq!(judge(&observed)[0].severity, Note);
    }
}
