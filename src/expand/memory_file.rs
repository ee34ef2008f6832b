//! Files of the memory: `<state>/workloads/<namespace>/<kind>/<name>`, and moments of this boot below the run directory.
//!
//! A file is a line with version, name and SHA-256, and the memory as JSON. One whose sum is wrong is set aside, for a person to look at: what it
//! said must not be guessed.

use crate::memory::{KindMemory, Memories, Memory};
use podstead_manifest::ObjectKey;
use podstead_sys::atomic_file;
use podstead_sys::layout::Paths;
use podstead_workload::job::memory::JobBoot;
use podstead_workload::object::WorkloadKind;
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use std::error::Error;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const VERSION: u32 = 1;
/// The largest file that is read: a memory has at most some hundred templates.
const MAX_BYTES: u64 = 64 << 20;
/// The longest name that is used for a file as it is; temporary files have longer ones.
const LONGEST_NAME: usize = 200;
/// Files of workloads may hold values of environment variables.
const MODE: u32 = 0o600;
const DIRECTORY_MODE: u32 = 0o700;

/// First line of a file.
#[derive(Serialize, Deserialize)]
struct Header {
    version: u32,
    /// The name of the workload, which may be longer than a name of a file.
    name: String,
    sha256: String,
}

/// Change of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The workload.
    pub key: ObjectKey,
    /// The memory as JSON; `None` when it is forgotten.
    pub content: Option<Vec<u8>>,
    /// Moments of this boot as JSON.
    pub boot: Option<Vec<u8>>,
}

/// Makes changes durable. All of them can be repeated.
pub(crate) fn write(paths: &Paths, changes: &[Change]) -> io::Result<()> {
    for Change { key, content, boot } in changes {
        let (file, of_boot) = (file(&paths.workloads(), key), file(&paths.workloads_run(), key));
        match content {
            Some(content) => {
                make_directory(&file)?;
                atomic_file::write_durable(&file, &framed(&key.name, content), MODE)?;
            }
            None => {
                atomic_file::remove_durable(&file)?;
                remove(&of_boot)?;
            }
        }
        if let Some(boot) = boot {
            if let Some(directory) = of_boot.parent() {
                fs::create_dir_all(directory)?;
            }
            atomic_file::write_atomic(&of_boot, boot, MODE)?;
        }
    }
    Ok(())
}

/// Treatment of a damaged file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Damaged {
    /// It is renamed and reported.
    SetAside,
    /// It stays as it is.
    Leave,
}

/// Reads all files.
pub(crate) fn read(paths: &Paths, damaged: Damaged) -> io::Result<Memories> {
    let mut memories = Memories::default();
    for key in keys(&paths.workloads())? {
        let path = file(&paths.workloads(), &key);
        match read_one(&path) {
            Ok((name, mut memory)) => {
                let key = ObjectKey { name: name.into(), ..key };
                if let KindMemory::Job { job, .. } = &mut memory.kind {
                    job.boot = read_boot(&file(&paths.workloads_run(), &key));
                }
                memories.read.insert(key, memory);
            }
            Err(error) => {
                if damaged == Damaged::SetAside {
                    tracing::error!(file = %path.display(), %error, "memory of a workload is damaged and was set aside");
                    set_aside(&path);
                }
                memories.lost.insert(key);
            }
        }
    }
    Ok(memories)
}

/// Without moments of this boot pauses begin again (W54).
fn read_boot(path: &Path) -> JobBoot {
    let bytes = fs::read(path).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

fn read_one(path: &Path) -> io::Result<(String, Memory)> {
    let size = fs::metadata(path)?.len();
    if size > MAX_BYTES {
        return Err(invalid(format!("{size} bytes are more than {MAX_BYTES}")));
    }
    let bytes = fs::read(path)?;
    let end = bytes.iter().position(|byte| *byte == b'\n').ok_or_else(|| invalid("the first line has no end"))?;
    let (header, content) = (&bytes[..end], &bytes[end + 1..]);
    let header: Header = serde_json::from_slice(header).map_err(invalid)?;
    if header.version != VERSION {
        return Err(invalid(format!("version {} is not {VERSION}", header.version)));
    }
    if header.sha256 != sum(content) {
        return Err(invalid("the sum is wrong"));
    }
    let memory = serde_json::from_slice(content).map_err(invalid)?;
    Ok((header.name, memory))
}

fn framed(name: &str, content: &[u8]) -> Vec<u8> {
    let header = Header { version: VERSION, name: name.to_owned(), sha256: sum(content) };
    // Writing to memory cannot fail.
    let mut bytes = serde_json::to_vec(&header).unwrap_or_default();
    bytes.push(b'\n');
    bytes.extend_from_slice(content);
    bytes
}

fn sum(content: &[u8]) -> String {
    hex::encode(digest(&SHA256, content))
}

fn invalid(reason: impl Into<Box<dyn Error + Send + Sync>>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, reason)
}

/// Names of objects are DNS subdomains and never begin with a dot: a name of a file cannot leave its directory.
fn file(directory: &Path, key: &ObjectKey) -> PathBuf {
    directory.join(&key.namespace).join(&key.kind).join(file_name(&key.name))
}

/// The name of a file: of a long name the beginning and its sum.
fn file_name(name: &str) -> String {
    match name.get(..LONGEST_NAME / 2) {
        Some(beginning) if name.len() > LONGEST_NAME => format!("{beginning}-{}", sum(name.as_bytes())),
        Some(_) | None => name.to_owned(),
    }
}

fn make_directory(file: &Path) -> io::Result<()> {
    match file.parent() {
        Some(directory) if !directory.is_dir() => atomic_file::make_directories(directory, DIRECTORY_MODE),
        Some(_) | None => Ok(()),
    }
}

fn remove(file: &Path) -> io::Result<()> {
    match fs::remove_file(file) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// A name that begins with a dot is not read again. A file that cannot be renamed stays, and is reported at the next start.
fn set_aside(path: &Path) {
    if let Some(name) = path.file_name() {
        let mut aside = std::ffi::OsString::from(".damaged-");
        aside.push(name);
        fs::rename(path, path.with_file_name(aside)).ok();
    }
}

/// Keys of all files; temporary ones and those that were set aside begin with a dot.
fn keys(directory: &Path) -> io::Result<Vec<ObjectKey>> {
    let mut keys = Vec::new();
    for namespace in names(directory)? {
        for kind in names(&directory.join(&namespace))? {
            if WorkloadKind::named(&kind).is_none() {
                continue;
            }
            for name in names(&directory.join(&namespace).join(&kind))? {
                keys.push(ObjectKey { kind: (&kind).into(), namespace: (&namespace).into(), name: name.into() });
            }
        }
    }
    Ok(keys)
}

fn names(directory: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        if let Ok(name) = entry?.file_name().into_string()
            && !name.starts_with('.')
        {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_pod::SourceId;
    use podstead_workload::job::memory::JobMemory;
    use podstead_workload::moment::Moment;
    use std::collections::BTreeMap;
    use std::time::Duration;

    fn key(name: &str) -> ObjectKey {
        ObjectKey { kind: "Job".into(), namespace: "default".into(), name: name.into() }
    }

    fn memory() -> Memory {
        let identity = serde_json::from_value(serde_json::json!({
            "uid": "u", "generation": 1, "first_seen": "2026-01-01T00:00:00Z", "spec": 7
        }));
        let run = serde_json::json!({"template": {}, "fixed": {"completion_mode": null, "pod_failure_policy": null,
            "success_policy": null, "backoff_limit_per_index": null, "annotation": null}});
        let job: JobMemory = serde_json::from_value(serde_json::json!({"run": run, "stage": "Clearing"})).unwrap();
        Memory {
            source: SourceId::new("apps"),
            kind: KindMemory::Job { identity: identity.unwrap(), job: Box::new(job) },
            lost_restarts: BTreeMap::new(),
        }
    }

    fn paths(root: &Path) -> Paths {
        Paths { state: root.join("state"), run: root.join("run"), logs: root.join("logs") }
    }

    fn change(name: &str, boot: Option<&JobBoot>) -> Change {
        let boot = boot.map(|boot| serde_json::to_vec(boot).unwrap());
        Change { key: key(name), content: Some(memory().to_json(Moment::default())), boot }
    }

    #[test]
    fn memory_survives_and_is_forgotten() {
        let root = tempfile::tempdir().unwrap();
        let paths = paths(root.path());
        assert!(read(&paths, Damaged::SetAside).unwrap().read.is_empty());
        let boot = JobBoot { last_failure: Some(Moment::after_boot(Duration::from_secs(7))), ..JobBoot::default() };
        write(&paths, &[change("a", Some(&boot)), change("b", None)]).unwrap();
        let found = read(&paths, Damaged::SetAside).unwrap();
        assert_eq!(found.read.keys().cloned().collect::<Vec<_>>(), [key("a"), key("b")]);
        assert_eq!(found.read[&key("a")].boot(), Some(&boot));
        let forget = [Change { key: key("a"), content: None, boot: None }];
        write(&paths, &forget).unwrap();
        write(&paths, &forget).unwrap();
        assert_eq!(read(&paths, Damaged::SetAside).unwrap().read.into_keys().collect::<Vec<_>>(), [key("b")]);
    }

    #[test]
    fn damaged_file_is_set_aside() {
        let root = tempfile::tempdir().unwrap();
        let paths = paths(root.path());
        let intact = framed("a", &memory().to_json(Moment::default()));
        let mut flipped = intact.clone();
        *flipped.last_mut().unwrap() ^= 1;
        let other_version = String::from_utf8(intact.clone()).unwrap().replacen(":1,", ":2,", 1).into_bytes();
        for damaged in [&flipped[..], &intact[..intact.len() - 1], b"", b"{}\n", &other_version] {
            write(&paths, &[change("a", None), change("b", None)]).unwrap();
            fs::write(file(&paths.workloads(), &key("a")), damaged).unwrap();
            let found = read(&paths, Damaged::SetAside).unwrap();
            assert_eq!(found.lost.into_iter().collect::<Vec<_>>(), [key("a")]);
            assert_eq!(found.read.into_keys().collect::<Vec<_>>(), [key("b")]);
            assert!(read(&paths, Damaged::SetAside).unwrap().lost.is_empty(), "it is reported once");
        }
    }

    /// TX4.
    #[test]
    fn writes_that_end_anywhere_leave_each_memory_whole() {
        let of = |name: &str, source: &str| {
            let memory = Memory { source: SourceId::new(source), ..memory() };
            Change { boot: Some(b"{}".to_vec()), content: Some(memory.to_json(Moment::default())), ..change(name, None) }
        };
        let forget = |name: &str| Change { content: None, ..change(name, None) };
        let before = [of("edited", "old"), of("forgotten", "old"), of("later", "old")];
        let after = [of("edited", "new"), of("added", "new"), forget("forgotten"), of("later", "new")];
        let stands = |paths: &Paths| -> Vec<(String, String)> {
            let found = read(paths, Damaged::SetAside).unwrap();
            assert!(found.lost.is_empty(), "{:?}", found.lost);
            found.read.into_iter().map(|(key, memory)| (key.name.to_string(), memory.source.as_str().to_owned())).collect()
        };
        let named = |all: &[(&str, &str)]| -> Vec<(String, String)> {
            all.iter().map(|(name, source)| ((*name).to_owned(), (*source).to_owned())).collect()
        };
        let old = named(&[("edited", "old"), ("forgotten", "old"), ("later", "old")]);
        let edited = named(&[("edited", "new"), ("forgotten", "old"), ("later", "old")]);
        let added = named(&[("added", "new"), ("edited", "new"), ("forgotten", "old"), ("later", "old")]);
        let forgotten = named(&[("added", "new"), ("edited", "new"), ("later", "old")]);
        let all = named(&[("added", "new"), ("edited", "new"), ("later", "new")]);
        // What a process that ends there leaves: the file that it began, and nothing behind it.
        let ends = [
            ("edited", true, &old),
            ("edited", false, &edited),
            ("added", true, &edited),
            ("added", false, &added),
            ("later", true, &forgotten),
            ("later", false, &all),
        ];
        for (name, is_durable, expected) in ends {
            let root = tempfile::tempdir().unwrap();
            let paths = paths(root.path());
            write(&paths, &before).unwrap();
            let base = if is_durable { paths.workloads() } else { paths.workloads_run() };
            let begun = file(&base, &key(&format!(".{name}.tmp")));
            fs::create_dir(&begun).unwrap();
            write(&paths, &after).unwrap_err();
            assert_eq!(stands(&paths), *expected, "{name}, {is_durable}");
            fs::remove_dir(&begun).unwrap();
            fs::write(&begun, "cut o").unwrap();
            assert_eq!(stands(&paths), *expected, "{name}, {is_durable}");
            write(&paths, &after).unwrap();
            assert_eq!(stands(&paths), all, "{name}, {is_durable}");
            assert!(!begun.try_exists().unwrap(), "{name}, {is_durable}");
        }
    }

    /// A name as long as Kubernetes allows.
    #[test]
    fn longest_name_has_a_file() {
        let root = tempfile::tempdir().unwrap();
        let paths = paths(root.path());
        let name = "a".repeat(253);
        write(&paths, &[change(&name, None)]).unwrap();
        assert_eq!(read(&paths, Damaged::SetAside).unwrap().read.into_keys().collect::<Vec<_>>(), [key(&name)]);
    }
}
