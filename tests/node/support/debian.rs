//! Images of Debian with programs that nobody made for the tests.

use super::make_image;
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// An image of Debian with one more package.
#[derive(Clone, Copy, Debug, Hash)]
pub(crate) struct DebianImage {
    /// The package, and the name of the image.
    pub(crate) package: &'static str,
    /// A command that mmdebstrap runs before it installs the package, with the tree as `$1`.
    pub(crate) before: &'static str,
    /// Options of `tests/support/make-image.sh`.
    pub(crate) options: &'static [&'static str],
}

impl DebianImage {
    /// Reference of the image.
    pub(crate) fn reference(self) -> String {
        format!("localhost/{}:bookworm", self.package)
    }

    /// The archive. It is made once per build directory, since it takes a minute.
    pub(crate) fn archive(self) -> PathBuf {
        let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
        // Another definition is another archive.
        let mut hasher = DefaultHasher::new();
        self.hash(&mut hasher);
        let name = format!("{}-{:016x}", self.package, hasher.finish());
        let archive = directory.join(format!("{name}.tar"));
        let lock = std::fs::File::create(directory.join(format!("{name}.lock"))).unwrap();
        lock.lock().unwrap();
        if !archive.try_exists().unwrap() {
            self.make(directory, &archive);
        }
        archive
    }

    fn make(self, directory: &Path, archive: &Path) {
        let work = tempfile::tempdir_in(directory).unwrap();
        let (tree, root) = (work.path().join("tree.tar"), work.path().join("root"));
        let run = |command: &mut Command| assert!(command.status().unwrap().success(), "{command:?}");
        run(Command::new("mmdebstrap")
            .args(["--quiet", "--variant=minbase", "--aptopt=APT::Install-Recommends \"false\""])
            .arg(format!("--essential-hook={}", self.before))
            .arg(format!("--include={}", self.package))
            .arg("bookworm")
            .arg(&tree)
            .stdin(Stdio::null()));
        std::fs::create_dir(&root).unwrap();
        run(Command::new("tar").arg("-C").arg(&root).arg("-xf").arg(&tree).arg("--exclude=./dev/*"));
        let made = work.path().join("image.tar");
        let options: Vec<&OsStr> =
            ["--root".as_ref(), root.as_os_str()].into_iter().chain(self.options.iter().map(OsStr::new)).collect();
        make_image(&options, &made, &self.reference());
        std::fs::rename(made, archive).unwrap();
    }
}
