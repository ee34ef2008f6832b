//! The images that are pulled, made of files of this machine, and the registry that has them.

use crate::support::make_image;
pub(super) use crate::support::registry::Registry;
use serde_json::Value;
use std::collections::hash_map::DefaultHasher;
use std::ffi::OsString;
use std::fs;
use std::hash::{Hash as _, Hasher as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Unpacked bytes of the large layer; a third of them when compressed.
const LARGE: u64 = 820 << 20;
/// Unpacked bytes of each of the small layers.
const SMALL: u64 = 3 << 20;
const LAYERS: usize = 40;
/// Files that are more than this part of a layer are left out.
const PART: u64 = 8;

/// Images of a registry.
pub(super) trait Images {
    /// The image with one layer.
    fn large(&self) -> String;
    /// The image with many layers.
    fn small(&self) -> String;
    /// Digests and sizes of the layers.
    fn layers(&self, image: &str) -> Vec<(String, u64)>;
    /// Compressed bytes of all layers.
    fn size(&self, image: &str) -> u64 {
        self.layers(image).iter().map(|(_, size)| size).sum()
    }
}

impl Images for Registry {
    fn large(&self) -> String {
        push(self, "large", || vec![LARGE])
    }

    fn small(&self) -> String {
        push(self, "small", || vec![SMALL; LAYERS])
    }

    fn layers(&self, image: &str) -> Vec<(String, u64)> {
        let mut skopeo = Command::new("skopeo");
        let raw = skopeo.args(["inspect", "--raw", "--tls-verify=false"]).arg(format!("docker://{image}")).output().unwrap();
        let manifest: Value = serde_json::from_slice(&raw.stdout).unwrap();
        let layer = |layer: &Value| (layer["digest"].as_str().unwrap().to_owned(), layer["size"].as_u64().unwrap());
        manifest["layers"].as_array().unwrap().iter().map(layer).collect()
    }
}

/// Makes an archive with layers of such sizes, if an earlier run has not, and pushes it.
fn push(registry: &Registry, name: &str, layers: impl FnOnce() -> Vec<u64>) -> String {
    let archive = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("bench-{name}.tar"));
    if !archive.try_exists().unwrap() {
        make(&archive, name, &layers());
    }
    registry.push(&archive, &format!("{name}:1"))
}

fn make(archive: &Path, name: &str, sizes: &[u64]) {
    let work = tempfile::tempdir().unwrap();
    let most = sizes.iter().min().unwrap() / PART;
    let mut files = files_of_this_machine(most).into_iter();
    let mut options: Vec<OsString> = Vec::new();
    for (number, size) in sizes.iter().enumerate() {
        let layer = work.path().join(number.to_string());
        let mut bytes = 0;
        while bytes < *size {
            let Some(file) = files.next() else { break };
            bytes += copy(&file, &layer);
        }
        options.extend([if number == 0 { "--root" } else { "--layer" }.into(), layer.into()]);
    }
    let options: Vec<_> = options.iter().map(OsString::as_os_str).collect();
    make_image(&options, archive, &format!("localhost/{name}:1"));
}

/// Copies a file or a link below a directory; its bytes.
fn copy(file: &Path, below: &Path) -> u64 {
    let target = below.join(file.strip_prefix("/").unwrap());
    fs::create_dir_all(target.parent().unwrap()).unwrap();
    match fs::read_link(file) {
        Ok(link) => symlink(link, target).map_or(0, |()| 0),
        Err(_) => fs::copy(file, target).unwrap_or(0),
    }
}

/// Programs, libraries and data of at most so many bytes each, in an order that mixes them and is the same in each run.
fn files_of_this_machine(most: u64) -> Vec<PathBuf> {
    let (mut directories, mut files) = (vec![PathBuf::from("/usr")], Vec::new());
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let Ok(found) = entry.metadata() else { continue };
            if found.is_dir() {
                directories.push(entry.path());
            } else if found.is_symlink() || (found.is_file() && found.len() <= most) {
                files.push(entry.path());
            }
        }
    }
    files.sort_by_cached_key(|path| {
        let mut hasher = DefaultHasher::new();
        path.hash(&mut hasher);
        hasher.finish()
    });
    files
}
