//! A directory of the host that attacks aim at, and what an attack may not leave behind.

use crate::support::{PodView, TestHost, eventually, leftovers, make_image, mounts};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A directory that must stay as it is.
#[derive(Debug)]
pub(crate) struct Victim {
    pub(crate) path: PathBuf,
    before: BTreeMap<PathBuf, String>,
}

impl Victim {
    /// Makes one below the host's own directory. It has a file that container runtimes replace in `/dev`.
    pub(crate) fn make(host: &TestHost) -> Self {
        let path = host.path("victim");
        fs::create_dir_all(path.join("deep")).unwrap();
        for name in ["ptmx", "keep", "deep/secret"] {
            fs::write(path.join(name), format!("the host's {name}")).unwrap();
        }
        Self { before: listing(&path), path }
    }

    #[track_caller]
    pub(crate) fn assert_unharmed(&self) {
        assert_eq!(listing(&self.path), self.before, "{} was changed", self.path.display());
        let mounted = mounts(&self.path.display().to_string());
        assert!(mounted.is_empty(), "{mounted:?}");
    }
}

/// Inode, mode, owner and content of everything in a directory.
fn listing(directory: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).unwrap().flatten() {
            let facts = entry.metadata().unwrap();
            let content = match facts.file_type() {
                kind if kind.is_symlink() => fs::read_link(entry.path()).unwrap().display().to_string(),
                kind if kind.is_file() => String::from_utf8_lossy(&fs::read(entry.path()).unwrap()).into_owned(),
                _ => String::new(),
            };
            let line = format!("{} {:o} {} {} {}", facts.ino(), facts.mode(), facts.uid(), facts.rdev(), content);
            found.insert(entry.path(), line);
            if facts.is_dir() {
                directories.push(entry.path());
            }
        }
    }
    found
}

/// A further layer for the test image, which is called `localhost/evil:1`.
#[derive(Debug)]
pub(crate) struct EvilImage {
    layer: PathBuf,
}

impl EvilImage {
    pub(crate) const REFERENCE: &str = "localhost/evil:1";

    pub(crate) fn new(host: &TestHost) -> Self {
        let layer = host.path("layer");
        fs::create_dir(&layer).unwrap();
        Self { layer }
    }

    /// A link; its directory is made.
    pub(crate) fn link(self, name: &str, target: impl AsRef<Path>) -> Self {
        let path = self.layer.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
        self
    }

    /// A directory of the image; with the path of a host's directory, links to it are followed inside of the image, too.
    pub(crate) fn directory(self, path: impl AsRef<Path>) -> Self {
        fs::create_dir_all(self.layer.join(path.as_ref().strip_prefix("/").unwrap_or(path.as_ref()))).unwrap();
        self
    }

    /// A file of the image.
    pub(crate) fn file(self, name: &str, content: &str) -> Self {
        let path = self.layer.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
        self
    }

    /// Has the host's daemon take it.
    pub(crate) fn preload(self, host: &TestHost) {
        make_image(&[OsStr::new("--layer"), self.layer.as_os_str()], &host.path("preload/evil.tar"), Self::REFERENCE);
    }
}

/// Waits until the pod's only container has run or could not be started; returns why it could not, or nothing.
pub(crate) fn outcome(host: &TestHost, name: &str) -> String {
    let pod = host.wait_for_pod(name, "an end", |pod| ["Failed", "Succeeded"].contains(&pod.phase()));
    message(&pod)
}

/// The reason why the container `c` does not run.
pub(crate) fn message(pod: &PodView) -> String {
    let state = &pod.container("c")["state"];
    let of = |kind: &str| state[kind]["message"].as_str().map(str::to_owned);
    of("terminated").or_else(|| of("waiting")).unwrap_or_default()
}

/// Removes the pod, and asserts that the kernel has nothing of it any more.
#[track_caller]
pub(crate) fn remove(host: &TestHost, name: &str) {
    let uid = host.pod(name).unwrap().uid();
    host.remove_manifest(&format!("{name}.yaml"));
    host.wait_gone(name);
    eventually("nothing of the pod to be left", || match leftovers(&uid) {
        left if left.is_empty() => Ok(()),
        left => Err(left.join("\n")),
    });
}

/// A process of root that sleeps; killed in the end. `words` come before its command line.
#[derive(Debug)]
pub(crate) struct Sleeper(Child);

impl Sleeper {
    pub(crate) fn start(words: &[&str]) -> Self {
        let mut words = words.to_vec();
        words.extend(["sleep", "1000"]);
        Self(Command::new(words[0]).args(&words[1..]).stdin(Stdio::null()).spawn().unwrap())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }
}

impl Drop for Sleeper {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}
