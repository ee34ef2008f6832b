//! Paths inside of a source: relative, with `/`, without `.` and `..`; the root of the source is the empty path.

/// Reason why a path cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PathFault {
    Absolute,
    LeavesTheSource,
}

/// The path that `path` is when it is written in `directory`.
pub(super) fn join(directory: &str, path: &str) -> Result<String, PathFault> {
    if path.starts_with('/') {
        return Err(PathFault::Absolute);
    }
    let mut steps: Vec<&str> = directory.split('/').filter(|step| !step.is_empty()).collect();
    for step in path.split('/') {
        match step {
            "" | "." => {}
            ".." => {
                steps.pop().ok_or(PathFault::LeavesTheSource)?;
            }
            step => steps.push(step),
        }
    }
    Ok(steps.join("/"))
}

/// Reports whether `path` is `directory` or below it.
pub(super) fn is_in(path: &str, directory: &str) -> bool {
    directory.is_empty() || path.strip_prefix(directory).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Last step of a path.
pub(super) fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Reports whether a path names something on the network, by the rules of upstream: a URL, `user@host:`, or a host that serves git, e.g.
/// `github.com/owner/name//path?ref=v1`.
pub(super) fn is_remote(path: &str) -> bool {
    let lower = path.to_ascii_lowercase();
    let schemes = ["http://", "https://", "ssh://", "git://", "git::", "gh:", "file://", "s3::", "oci://"];
    let hosts = ["github.com/", "github.com:", "gitlab.com/", "bitbucket.org/", "git@"];
    let user = lower.split_once(':').is_some_and(|(host, _)| host.contains('@') && !host.contains('/'));
    schemes.iter().chain(&hosts).any(|start| lower.starts_with(start)) || user || lower.contains("//") && lower.contains("?ref=")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_inside_of_the_source() {
        assert_eq!(join("a/b", "../c/./d.yaml").as_deref(), Ok("a/c/d.yaml"));
        assert_eq!(join("a", "..").as_deref(), Ok(""));
        assert_eq!(join("a", "../.."), Err(PathFault::LeavesTheSource));
        assert_eq!(join("a", "b/../../../a/c"), Err(PathFault::LeavesTheSource));
        assert_eq!(join("a", "/etc/passwd"), Err(PathFault::Absolute));
    }

    #[test]
    fn a_directory_holds_what_is_below() {
        assert!(is_in("a/b", "a") && is_in("a", "a") && is_in("a", ""));
        assert!(!is_in("ab", "a") && !is_in("a", "a/b"));
    }

    #[test]
    fn addresses_of_the_network_are_known() {
        for path in
            ["https://x.org/a.yaml", "github.com/o/r//p?ref=v1", "git@github.com:o/r", "ssh://git@h/r", "h.org/o/r//p?ref=main"]
        {
            assert!(is_remote(path), "{path}");
        }
        for path in ["a.yaml", "../base", "github/com", "./a//b"] {
            assert!(!is_remote(path), "{path}");
        }
    }
}
