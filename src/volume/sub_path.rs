//! `subPath` and `subPathExpr`: a path below a volume, resolved without leaving it and pinned by a bind mount.

use k8s_openapi::api::core::v1::VolumeMount;
use podstead_pod::env::expand;
use podstead_sys::beneath::{make_beneath, open_beneath};
use podstead_sys::mounts::{bind_descriptor, detach, is_mounted_at};
use rustix::fs::{FileType, Mode, OFlags, fstat};
use std::cell::RefCell;
use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Component, Path, PathBuf};

/// Reason why a sub-path cannot be mounted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum SubPathProblem {
    /// It never can be, as it is written or as the volume is.
    Lasting(String),
    /// It may be later.
    Passing(String),
}

/// Handling of a missing path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    /// A directory is made.
    Made,
    /// It is waited for.
    Refused,
}

/// The path below the volume that a mount names; `None` for the volume itself.
pub(super) fn wanted(mount: &VolumeMount, environment: &[(String, String)]) -> Result<Option<PathBuf>, SubPathProblem> {
    let expression = mount.sub_path_expr.as_deref().unwrap_or_default();
    let path = if expression.is_empty() {
        mount.sub_path.clone().unwrap_or_default()
    } else {
        let missing = RefCell::new(Vec::new());
        let value_of = |name: &str| {
            let value = environment.iter().rev().find(|(other, _)| other == name).map(|(_, value)| value.clone());
            if value.is_none() {
                missing.borrow_mut().push(name.to_owned());
            }
            value
        };
        let path = expand(expression, &value_of);
        if let Some(name) = missing.into_inner().first() {
            return Err(SubPathProblem::Lasting(format!("subPathExpr {expression:?} refers to the unset variable {name:?}")));
        }
        path
    };
    if path.is_empty() {
        return Ok(None);
    }
    let path = PathBuf::from(path);
    let stays = path.components().all(|component| matches!(component, Component::Normal(_) | Component::CurDir));
    if stays { Ok(Some(path)) } else { Err(SubPathProblem::Lasting(format!("subPath {path:?} points outside the volume"))) }
}

/// As [`pin_below`], for a volume with a path that only podstead can change.
pub(super) fn pin(volume: &Path, path: &Path, pin: &Path, missing: Missing) -> Result<(), SubPathProblem> {
    let base = rustix::fs::open(volume, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    let base = base.map_err(|error| SubPathProblem::Passing(format!("open volume {volume:?}: {}", io::Error::from(error))))?;
    pin_below(&base, path, pin, missing)
}

/// Finds `path` below `base`, the volume's directory, makes it if it is missing and may be made (as a directory with the volume's mode), and binds
/// it at `pin`, where it stays what it is. A pin that holds the same thing is kept.
pub(super) fn pin_below(base: &OwnedFd, path: &Path, pin: &Path, missing: Missing) -> Result<(), SubPathProblem> {
    let passing = |what: &str| {
        let what = what.to_owned();
        move |error: io::Error| SubPathProblem::Passing(format!("{what}: {error}"))
    };
    let mode = fstat(base).map_err(|error| passing("stat volume")(error.into()))?.st_mode & 0o2777;
    let found = match missing {
        Missing::Made => make_beneath(base, path, mode),
        Missing::Refused => open_beneath(base, path),
    };
    let found = found.map_err(|error| match error.raw_os_error() {
        Some(nix::libc::ENOENT) if missing == Missing::Refused => {
            SubPathProblem::Passing(format!("subPath {path:?} does not exist in the volume"))
        }
        Some(nix::libc::EXDEV) => SubPathProblem::Lasting(format!("subPath {path:?} points outside the volume through a symlink")),
        Some(nix::libc::ELOOP) => SubPathProblem::Lasting(format!("subPath {path:?} contains a loop of symlinks")),
        Some(nix::libc::ENOTDIR) => SubPathProblem::Lasting(format!("subPath {path:?} has a file where a directory is expected")),
        Some(nix::libc::ENOENT | nix::libc::EEXIST) => {
            SubPathProblem::Lasting(format!("subPath {path:?} contains a dangling symlink"))
        }
        _ => SubPathProblem::Passing(format!("open subPath {path:?}: {error}")),
    })?;
    hold(&found, pin).map_err(passing(&format!("pin subPath {path:?}")))
}

fn hold(found: impl AsFd, pin: &Path) -> io::Result<()> {
    let stat = fstat(&found)?;
    let is_directory = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
    let (Some(parent), Some(name)) = (pin.parent(), pin.file_name()) else { return Err(io::ErrorKind::InvalidInput.into()) };
    fs::DirBuilder::new().recursive(true).mode(0o750).create(parent)?;
    let pin = &fs::canonicalize(parent)?.join(name);
    if is_mounted_at(pin)? {
        let present = fs::metadata(pin)?;
        if (present.dev(), present.ino()) == (stat.st_dev, stat.st_ino) {
            return Ok(());
        }
        // Running containers keep what they have.
        detach(pin)?;
    }
    match fs::symlink_metadata(pin) {
        Ok(present) if present.is_dir() == is_directory => {}
        Ok(present) if present.is_dir() => fs::remove_dir(pin)?,
        Ok(_) => fs::remove_file(pin)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    if is_directory {
        fs::DirBuilder::new().recursive(true).mode(0o750).create(pin)?;
    } else {
        fs::OpenOptions::new().write(true).create(true).truncate(false).open(pin)?;
    }
    bind_descriptor(found, pin)
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_sys::mounts::mounts;
    use podstead_sys::testing::in_private_mounts;
    use std::os::unix::fs::symlink;

    fn mount(sub_path: &str, expression: &str) -> VolumeMount {
        VolumeMount { sub_path: Some(sub_path.into()), sub_path_expr: Some(expression.into()), ..VolumeMount::default() }
    }

    #[test]
    fn expressions_see_the_environment_and_nothing_else() {
        let environment = [("POD".to_owned(), "web".to_owned()), ("EVIL".to_owned(), "../..".to_owned())];
        let path = |sub_path, expression| wanted(&mount(sub_path, expression), &environment);
        assert_eq!(path("", ""), Ok(None));
        assert_eq!(path("a/b", ""), Ok(Some("a/b".into())));
        assert_eq!(path("", "logs/$(POD)/$$(x)"), Ok(Some("logs/web/$(x)".into())));
        let refused = |sub_path, expression| match path(sub_path, expression).unwrap_err() {
            SubPathProblem::Lasting(reason) => reason,
            SubPathProblem::Passing(reason) => panic!("{reason} will not pass"),
        };
        assert_eq!(refused("", "$(NOT)"), "subPathExpr \"$(NOT)\" refers to the unset variable \"NOT\"");
        assert_eq!(refused("", "a/$(EVIL)"), "subPath \"a/../..\" points outside the volume");
        assert_eq!(refused("/etc", ""), "subPath \"/etc\" points outside the volume");
    }

    #[test]
    fn a_pin_holds_what_was_found_and_follows_a_replacement_at_the_next_start() {
        in_private_mounts("sub_path::tests::a_pin_holds_what_was_found_and_follows_a_replacement_at_the_next_start", || {
            let root = tempfile::tempdir().unwrap();
            let (volume, place) = (root.path().join("volume"), root.path().join("pins/c/0"));
            fs::create_dir(&volume).unwrap();
            fs::write(root.path().join("secret"), "secret").unwrap();
            pin(&volume, Path::new("made/dir"), &place, Missing::Made).unwrap();
            fs::write(volume.join("made/dir/file"), "one").unwrap();
            assert_eq!(fs::read(place.join("file")).unwrap(), b"one");

            // Later changes of the path by the container do not affect the pin.
            fs::rename(volume.join("made/dir"), volume.join("away")).unwrap();
            symlink("/etc", volume.join("made/dir")).unwrap();
            assert_eq!(fs::read(place.join("file")).unwrap(), b"one");
            let refused = pin(&volume, Path::new("made/dir"), &place, Missing::Made).unwrap_err();
            assert_eq!(refused, SubPathProblem::Lasting("subPath \"made/dir\" points outside the volume through a symlink".into()));

            fs::remove_file(volume.join("made/dir")).unwrap();
            fs::write(volume.join("made/dir"), "a file now").unwrap();
            pin(&volume, Path::new("made/dir"), &place, Missing::Made).unwrap();
            assert_eq!(fs::read(&place).unwrap(), b"a file now");
            pin(&volume, Path::new("away"), &place, Missing::Made).unwrap();
            pin(&volume, Path::new("away"), &place, Missing::Made).unwrap();
            assert_eq!(fs::read(place.join("file")).unwrap(), b"one");
            assert_eq!(mounts().unwrap().iter().filter(|mount| mount.point == place).count(), 1, "pins do not pile up");
        });
    }

    #[test]
    fn traps_in_the_volume_are_named() {
        let root = tempfile::tempdir().unwrap();
        symlink("loop", root.path().join("loop")).unwrap();
        symlink("nowhere", root.path().join("dangling")).unwrap();
        fs::write(root.path().join("file"), "").unwrap();
        for (path, expected) in [
            ("loop", "subPath \"loop\" contains a loop of symlinks"),
            ("dangling", "subPath \"dangling\" contains a dangling symlink"),
            ("dangling/x", "subPath \"dangling/x\" contains a dangling symlink"),
            ("file/x", "subPath \"file/x\" has a file where a directory is expected"),
        ] {
            let problem = pin(root.path(), Path::new(path), &root.path().join("pin"), Missing::Made).unwrap_err();
            assert_eq!(problem, SubPathProblem::Lasting(expected.into()));
        }
        let problem = pin(&root.path().join("absent"), Path::new("x"), &root.path().join("pin"), Missing::Made).unwrap_err();
        assert!(matches!(problem, SubPathProblem::Passing(_)), "{problem:?}");
    }
}
