//! Sysctls: their namespaces, and the unsafe ones that a host allows its pods to set.

/// Patterns of sysctls that pods may set beside the safe ones (the kubelet's `allowedUnsafeSysctls`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedSysctls(Vec<String>);

impl AllowedSysctls {
    /// From names, or beginnings of names with a final `*`. Says which pattern cannot be one, by its index, and why: a sysctl that is of no
    /// namespace would be set for the whole host.
    pub fn parse(patterns: &[String]) -> Result<Self, (usize, String)> {
        for (index, pattern) in patterns.iter().enumerate() {
            let name = pattern.strip_suffix('*').unwrap_or(pattern);
            let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | '_' | '/');
            let problem = if name.is_empty() || !name.chars().all(inner) {
                "is neither a sysctl such as net.core.somaxconn nor a prefix such as kernel.msg*"
            } else if !is_of_network(name) && !is_of_ipc(name) {
                "is not namespaced: only net.*, kernel.shm*, kernel.msg*, kernel.sem and fs.mqueue.* are"
            } else {
                continue;
            };
            return Err((index, format!("{pattern:?} {problem}")));
        }
        Ok(Self(patterns.to_vec()))
    }

    /// As they were written.
    pub fn patterns(&self) -> &[String] {
        &self.0
    }

    /// Returns true if a pod may set it; `name` has dots as separators.
    pub fn allow(&self, name: &str) -> bool {
        self.0.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(beginning) => name.starts_with(beginning),
            None => name == pattern,
        })
    }
}

/// Returns true if it belongs to a network namespace.
pub(crate) fn is_of_network(name: &str) -> bool {
    name.starts_with("net.")
}

/// Returns true if it belongs to an IPC namespace.
pub(crate) fn is_of_ipc(name: &str) -> bool {
    name == "kernel.sem" || ["kernel.shm", "kernel.msg", "fs.mqueue."].iter().any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(patterns: &[&str]) -> Result<AllowedSysctls, (usize, String)> {
        AllowedSysctls::parse(&patterns.iter().map(|pattern| (*pattern).to_owned()).collect::<Vec<_>>())
    }

    /// As upstream's `TestWhitelist`.
    #[test]
    fn names_and_beginnings_are_matched() {
        let allowed = parse(&["kernel.shm_rmid_forced", "kernel.msg*", "net.core.somaxconn", "net.ipv4.conf.eth0/1.*"]).unwrap();
        for name in ["kernel.shm_rmid_forced", "kernel.msgmax", "net.core.somaxconn", "net.ipv4.conf.eth0/1.forwarding"] {
            assert!(allowed.allow(name), "{name}");
        }
        for name in ["kernel.shmmax", "kernel.sem", "net.core.somaxconn2", "net.core", ""] {
            assert!(!allowed.allow(name), "{name}");
        }
    }

    #[test]
    fn what_would_be_set_for_the_whole_host_cannot_be_allowed() {
        for (pattern, word) in [
            ("kernel.pid_max", "is not namespaced"),
            ("vm.*", "is not namespaced"),
            ("net*", "is not namespaced"),
            ("kernel.*", "is not namespaced"),
            ("*", "neither"),
            ("", "neither"),
            ("net.*.x", "neither"),
            ("net.**", "neither"),
            ("Net.core", "neither"),
        ] {
            let (index, told) = parse(&["net.*", pattern]).unwrap_err();
            assert!(index == 1 && told.contains(word), "{pattern}: {told}");
        }
    }
}
