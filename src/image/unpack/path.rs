//! Meaning of the names of a layer. **Pure**.

/// Reason why a path is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadPath {
    /// Leads upwards.
    #[error("path has a .. component")]
    Parent,
    /// Longer than a file system takes.
    #[error("path component is longer than 255 bytes")]
    LongComponent,
    /// Longer than the kernel takes.
    #[error("path is longer than 4095 bytes")]
    Long,
    /// More components than allowed.
    #[error("path is too deep")]
    Deep,
    /// Ends the name for the kernel but not for the archive.
    #[error("path contains a NUL byte")]
    Zero,
    /// `.wh.` of nothing, of `.` or of `..`.
    #[error("whiteout without a name")]
    Whiteout,
}

const NAME_MAX: usize = 255;
const PATH_MAX: usize = 4095;
const WHITEOUT: &[u8] = b".wh.";
const OPAQUE: &[u8] = b".wh..wh..opq";

/// The path relative to the root, without `.` and empty components; empty for the root itself.
pub(super) fn clean(path: &[u8], depth: usize) -> Result<Vec<u8>, BadPath> {
    let mut clean = Vec::with_capacity(path.len());
    let mut components = 0;
    for component in path.split(|byte| *byte == b'/') {
        match component {
            b"" | b"." => continue,
            b".." => return Err(BadPath::Parent),
            component if component.contains(&0) => return Err(BadPath::Zero),
            component if component.len() > NAME_MAX => return Err(BadPath::LongComponent),
            component => {
                components += 1;
                if components > depth {
                    return Err(BadPath::Deep);
                }
                if !clean.is_empty() {
                    clean.push(b'/');
                }
                clean.extend_from_slice(component);
            }
        }
    }
    match clean.len() > PATH_MAX {
        true => Err(BadPath::Long),
        false => Ok(clean),
    }
}

/// Directory and last component of a clean path; the directory is empty for the root.
pub(super) fn split(path: &[u8]) -> (&[u8], &[u8]) {
    match path.iter().rposition(|byte| *byte == b'/') {
        Some(slash) => (&path[..slash], &path[slash + 1..]),
        None => (b"", path),
    }
}

/// Effect of a clean path on the layers below (OCI image specification, "Whiteouts").
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Whiteout {
    /// Nothing: it is an ordinary name.
    No,
    /// This path does not show.
    Of(Vec<u8>),
    /// Nothing below shows in this directory.
    Opaque(Vec<u8>),
    /// Metadata of AUFS.
    Ignored,
}

pub(super) fn whiteout(path: &[u8]) -> Result<Whiteout, BadPath> {
    let (directory, name) = split(path);
    // A directory called `.wh.x` would be a whiteout with content: only the last component may be one.
    if directory.split(|byte| *byte == b'/').any(|component| component.starts_with(WHITEOUT)) {
        return match directory.split(|byte| *byte == b'/').any(|component| component.starts_with(b".wh..wh.")) {
            true => Ok(Whiteout::Ignored),
            false => Err(BadPath::Whiteout),
        };
    }
    match name.strip_prefix(WHITEOUT) {
        None => Ok(Whiteout::No),
        Some(_) if name == OPAQUE => Ok(Whiteout::Opaque(directory.to_vec())),
        Some(target) if target.starts_with(WHITEOUT) => Ok(Whiteout::Ignored),
        Some(b"" | b"." | b"..") => Err(BadPath::Whiteout),
        Some(target) => {
            let mut path = directory.to_vec();
            if !path.is_empty() {
                path.push(b'/');
            }
            path.extend_from_slice(target);
            Ok(Whiteout::Of(path))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_become_relative_and_upward_ones_are_refused() {
        for (path, wanted) in [("./a/b/", "a/b"), ("/a//b/.", "a/b"), ("", ""), ("./", ""), ("/", ""), ("..a/b..", "..a/b..")] {
            assert_eq!(clean(path.as_bytes(), 9).unwrap(), wanted.as_bytes(), "{path}");
        }
        let (deep, long) = ("d/".repeat(10), "x".repeat(256));
        let very_long = format!("{}/", "y".repeat(200)).repeat(21);
        for (path, error) in [
            ("..", BadPath::Parent),
            ("a/../b", BadPath::Parent),
            ("/../etc/passwd", BadPath::Parent),
            ("a\0b", BadPath::Zero),
            (&deep, BadPath::Deep),
            (&long, BadPath::LongComponent),
        ] {
            assert_eq!(clean(path.as_bytes(), 9), Err(error), "{path}");
        }
        assert_eq!(clean(very_long.as_bytes(), 99), Err(BadPath::Long));
    }

    #[test]
    fn whiteouts_are_told_from_names() {
        for (path, wanted) in [
            ("a/b", Whiteout::No),
            ("a/x.wh.b", Whiteout::No),
            (".wh.b", Whiteout::Of(b"b".to_vec())),
            ("a/.wh.b", Whiteout::Of(b"a/b".to_vec())),
            (".wh..wh..opq", Whiteout::Opaque(vec![])),
            ("a/b/.wh..wh..opq", Whiteout::Opaque(b"a/b".to_vec())),
            (".wh..wh.plnk", Whiteout::Ignored),
            (".wh..wh.aufs/x", Whiteout::Ignored),
        ] {
            assert_eq!(whiteout(path.as_bytes()), Ok(wanted), "{path}");
        }
        for path in [".wh.", "a/.wh..", "a/.wh...", "a/.wh.b/c"] {
            assert_eq!(whiteout(path.as_bytes()), Err(BadPath::Whiteout), "{path}");
        }
    }

    proptest! {
        #[test]
        fn a_clean_path_has_ordinary_components_only(path in proptest::collection::vec(prop_oneof![Just(b'/'), Just(b'.'), any::<u8>()], 0..64)) {
            if let Ok(clean) = clean(&path, 16) {
                prop_assert!(!clean.starts_with(b"/") && !clean.ends_with(b"/"));
                if !clean.is_empty() {
                    prop_assert!(clean.split(|b| *b == b'/').all(|c| !matches!(c, b"" | b"." | b"..") && !c.contains(&0)));
                }
                if let Ok(Whiteout::Of(target)) = whiteout(&clean) {
                    let (_, name) = split(&target);
                    prop_assert!(!matches!(name, b"" | b"." | b".."));
                }
            }
        }
    }
}
