//! Differences between two configurations, and those that need a restart. **Pure**.

use super::{Config, SourceConfig};
use podstead_pod::SourceId;

/// Differences of the sources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceChanges {
    /// Not configured any more: their pods go.
    pub removed: Vec<SourceId>,
    /// New ones.
    pub added: Vec<SourceConfig>,
    /// Configured otherwise; what they delivered stays in force until they deliver something else.
    pub changed: Vec<SourceConfig>,
    /// The same ones in another order of precedence.
    pub reordered: bool,
}

impl SourceChanges {
    /// From `old` to `new`.
    pub fn between(old: &[SourceConfig], new: &[SourceConfig]) -> Self {
        let named = |sources: &[SourceConfig], name: &SourceId| sources.iter().find(|source| source.name == *name).cloned();
        let names = |sources: &[SourceConfig], among: &[SourceConfig]| -> Vec<SourceId> {
            let names = sources.iter().map(|source| source.name.clone());
            names.filter(|name| named(among, name).is_some()).collect()
        };
        let changed = |source: &&SourceConfig| named(old, &source.name).is_some_and(|before| before != **source);
        Self {
            removed: old.iter().map(|source| source.name.clone()).filter(|name| named(new, name).is_none()).collect(),
            added: new.iter().filter(|source| named(old, &source.name).is_none()).cloned().collect(),
            changed: new.iter().filter(changed).cloned().collect(),
            reordered: names(old, new) != names(new, old),
        }
    }

    /// Nothing differs.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Fields in which a configuration differs from the one that the daemon was started with, and which it reads only then.
pub fn needs_restart(started: &Config, new: &Config) -> Vec<&'static str> {
    differences(started, new).into_iter().filter(|(_, differs)| *differs).map(|(field, _)| field).collect()
}

/// All fields that are read at the start only, with the result of the comparison.
fn differences(started: &Config, new: &Config) -> impl IntoIterator<Item = (&'static str, bool)> {
    // A new field has to be put on one side or the other.
    let Config {
        node_name,
        // They count where sources and the cluster use them.
        labels: _,
        variables: _,
        paths,
        sources: _,
        preload,
        shim,
        // Pods that start later have it.
        log_rotation: _,
        // They count at once.
        crash_loop_max: _,
        webhook: _,
        monitoring: _,
        pod_pids_limit,
        // It counts at the next boot, which starts the daemon.
        start_stopped_pods_at_boot: _,
        // They count for containers that start later.
        cdi_directories: _,
        api_socket_group,
        api,
        // They count for pulls that begin later.
        registries: _,
        registries_directory: _,
        default_auth_files: _,
        age_key_file,
        allowed_unsafe_sysctls,
        // They count at once.
        max_parallel_layer_pulls: _,
        minimum_pull_rate: _,
        images: _,
        // It counts for images that are given out from now on.
        image_policy: _,
        user_namespaces,
        network,
        upstream,
        // They count at once.
        notify: _,
        logging,
    } = started;
    [
        ("nodeName", *node_name != new.node_name),
        ("paths", *paths != new.paths),
        ("preloadPath", *preload != new.preload),
        ("shimPath", *shim != new.shim),
        ("podPidsLimit", *pod_pids_limit != new.pod_pids_limit),
        ("apiSocketGroup", *api_socket_group != new.api_socket_group),
        ("api", *api != new.api),
        ("ageKeyFile", *age_key_file != new.age_key_file),
        ("allowedUnsafeSysctls", *allowed_unsafe_sysctls != new.allowed_unsafe_sysctls),
        ("userNamespaces", *user_namespaces != new.user_namespaces),
        ("network", *network != new.network),
        ("upstream", *upstream != new.upstream),
        // The level counts at once.
        ("logging.format", logging.format != new.logging.format),
    ]
}

/// Reports whether a file has only comments. An editor may leave such a file for a moment, which must not remove all sources.
pub fn is_blank(bytes: &[u8]) -> bool {
    let line_says_nothing = |line: &[u8]| {
        let line = line.trim_ascii();
        line.is_empty() || line.starts_with(b"#") || line == b"---"
    };
    bytes.split(|byte| *byte == b'\n').all(line_says_nothing)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HostFacts;
    use std::path::Path;

    fn config(text: &str) -> Config {
        let text = format!("apiVersion: podstead.dev/v1alpha1\nkind: Config\n{text}");
        let facts = HostFacts { host_name: "edge".into(), executable: None };
        Config::parse(text.as_bytes(), &facts, Path::new("/c")).unwrap()
    }

    fn changes(old: &str, new: &str) -> (Vec<String>, Vec<String>, Vec<String>, bool) {
        let sources = |names: &str| {
            let entry = |name: &str| format!("{{name: {}, directory: {{path: /{name}}}}}", &name[..1]);
            config(&format!("sources: [{}]\n", names.split_whitespace().map(entry).collect::<Vec<_>>().join(", "))).sources
        };
        let SourceChanges { removed, added, changed, reordered } = SourceChanges::between(&sources(old), &sources(new));
        let names = |sources: Vec<SourceConfig>| sources.into_iter().map(|source| source.name.to_string()).collect();
        (removed.into_iter().map(|name| name.to_string()).collect(), names(added), names(changed), reordered)
    }

    fn all(removed: &[&str], added: &[&str], changed: &[&str], reordered: bool) -> (Vec<String>, Vec<String>, Vec<String>, bool) {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        (owned(removed), owned(added), owned(changed), reordered)
    }

    #[test]
    fn page_lists_the_fields_that_need_a_restart() {
        let page = include_str!("../../docs/reference/config.md");
        let section = page.split("### Fields that need a restart\n").nth(1).and_then(|rest| rest.split("\n#").next()).unwrap();
        let (started, new) = (config(""), config(""));
        let fields: Vec<&str> = differences(&started, &new).into_iter().map(|(field, _)| field).collect();
        let listed: Vec<&str> =
            section.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|(field, _)| field).collect();
        assert_eq!(listed, fields);
    }

    #[test]
    fn sources_are_compared_by_name() {
        assert_eq!(changes("a b", "a b"), all(&[], &[], &[], false));
        assert_eq!(changes("a b", "b"), all(&["a"], &[], &[], false));
        assert_eq!(changes("b", "a b c"), all(&[], &["a", "c"], &[], false));
        assert_eq!(changes("a b", "b2 a c"), all(&[], &["c"], &["b"], true));
    }

    #[test]
    fn what_counts_at_the_next_start_only_is_named() {
        let started = config("sources: []\n");
        assert_eq!(needs_restart(&started, &config("sources: [{name: a, directory: {path: /a}}]\n")), [""; 0]);
        let other = config("nodeName: other\npaths: {logs: /l}\nlogging: {level: debug, format: journal}\n");
        assert_eq!(needs_restart(&started, &other), ["nodeName", "paths", "logging.format"]);
    }

    #[test]
    fn a_file_of_comments_is_blank() {
        assert!(is_blank(b"") && is_blank(b"# x\n\n---\n  # y"));
        assert!(!is_blank(b"# x\nkind: Config\n"));
    }
}
