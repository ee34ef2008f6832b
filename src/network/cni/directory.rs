//! The directory of network configurations. Read whenever a pod is connected; a broken file is used in its last good version.

use super::spec::conflist::{Conflist, ConflistError, Form, MAX_CONFLIST_BYTES};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// Files of one directory that are looked at.
const MAX_FILES: usize = 256;

/// Reason why a network is not there.
#[derive(Debug, thiserror::Error)]
pub(super) enum DirectoryError {
    /// Nothing is configured. In the kubelet's words.
    #[error("no CNI configuration file in {}. Has your network provider started?", _0.display())]
    Empty(PathBuf),
    /// The directory cannot be read.
    #[error("list {}", path.display())]
    List {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A file cannot be read.
    #[error("read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// A file is no configuration.
    #[error("{}", path.display())]
    Broken {
        path: PathBuf,
        #[source]
        source: ConflistError,
    },
    /// No file is about this network.
    #[error("no network {name} in {}{}", directory.display(), known(there))]
    Unknown { name: String, directory: PathBuf, there: Vec<String> },
}

fn known(there: &[String]) -> String {
    if there.is_empty() { String::new() } else { format!(" (available: {})", there.join(", ")) }
}

/// The configurations, by the names of their files.
#[derive(Debug)]
pub(super) struct Directory {
    path: PathBuf,
    good: BTreeMap<String, Conflist>,
}

/// Errors of files whose last good version is used.
pub(super) type Troubles = Vec<DirectoryError>;

impl Directory {
    /// Nothing is read yet.
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, good: BTreeMap::new() }
    }

    /// The network of the first file by name, and what is wrong with files. Blocks.
    pub(super) fn first(&mut self) -> Result<(Conflist, Troubles), DirectoryError> {
        let (names, mut troubles) = self.read()?;
        let Some(first) = names.first() else { return Err(DirectoryError::Empty(self.path.clone())) };
        match self.good.get(first) {
            Some(network) => Ok((network.clone(), troubles)),
            // Its intended content is unknown: using the next file would be a guess.
            None => Err(troubles.swap_remove(0)),
        }
    }

    /// The network of this name, and what is wrong with files. Blocks.
    pub(super) fn named(&mut self, name: &str) -> Result<(Conflist, Troubles), DirectoryError> {
        let (_, mut troubles) = self.read()?;
        match self.good.values().find(|network| network.name == name) {
            Some(network) => Ok((network.clone(), troubles)),
            // It may be the one that is meant.
            None if !troubles.is_empty() => Err(troubles.swap_remove(0)),
            None => {
                let there = self.good.values().map(|network| network.name.clone()).collect();
                Err(DirectoryError::Unknown { name: name.to_owned(), directory: self.path.clone(), there })
            }
        }
    }

    /// Reads all files. Their names in order, and what is wrong with them, in the same order.
    fn read(&mut self) -> Result<(Vec<String>, Troubles), DirectoryError> {
        let failed = |source| DirectoryError::List { path: self.path.clone(), source };
        let entries = match fs::read_dir(&self.path) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), Vec::new())),
            Err(error) => return Err(failed(error)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            names.extend(name.into_string().ok().filter(|name| Form::of(name).is_some()));
        }
        names.sort_unstable();
        names.truncate(MAX_FILES);
        self.good.retain(|name, _| names.contains(name));
        let mut troubles = Vec::new();
        for name in &names {
            let path = self.path.join(name);
            let bytes = match content(&path) {
                Ok(bytes) => bytes,
                Err(source) => {
                    troubles.push(DirectoryError::Read { path, source });
                    continue;
                }
            };
            match Conflist::parse(&bytes, Form::of(name).unwrap_or(Form::List)) {
                Ok(network) => drop(self.good.insert(name.clone(), network)),
                Err(source) => troubles.push(DirectoryError::Broken { path, source }),
            }
        }
        Ok((names, troubles))
    }
}

fn content(path: &Path) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_CONFLIST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_telemetry::error_chain;

    fn conf(name: &str) -> String {
        format!("{{\"cniVersion\": \"1.0.0\", \"name\": \"{name}\", \"type\": \"bridge\"}}")
    }

    #[test]
    fn the_first_file_by_name_is_the_network_of_all_pods() {
        let root = tempfile::tempdir().unwrap();
        let mut directory = Directory::new(root.path().into());
        let said = directory.first().unwrap_err().to_string();
        assert!(
            said.starts_with("no CNI configuration file in /") && said.ends_with("Has your network provider started?"),
            "{said}"
        );
        assert!(Directory::new("/nowhere".into()).first().is_err(), "a directory that comes later");
        fs::write(root.path().join("20-b.conf"), conf("b")).unwrap();
        fs::write(root.path().join("10-a.conf"), conf("a")).unwrap();
        fs::write(root.path().join("05-notes.txt"), "x").unwrap();
        assert_eq!(directory.first().unwrap().0.name, "a");
        assert_eq!(directory.named("b").unwrap().0.name, "b");
        let said = directory.named("c").unwrap_err().to_string();
        assert!(said.starts_with("no network c in /") && said.ends_with(" (available: a, b)"), "{said}");
    }

    #[test]
    fn the_examples_are_networks() {
        let mut directory = Directory::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../manifests/network/cni").into());
        let (first, troubles) = directory.first().unwrap();
        assert!(troubles.is_empty(), "{troubles:?}");
        assert!(first.is_capable("portMappings") && first.is_capable("bandwidth"));
        assert!(directory.named("plant").unwrap().0.is_capable("ips"));
    }

    #[test]
    fn a_broken_file_keeps_what_it_was_and_is_never_passed_over() {
        let root = tempfile::tempdir().unwrap();
        let (first, second) = (root.path().join("10-a.conf"), root.path().join("20-b.conf"));
        fs::write(&first, conf("a")).unwrap();
        fs::write(&second, conf("b")).unwrap();
        let mut directory = Directory::new(root.path().into());
        directory.first().unwrap();
        fs::write(&first, "{").unwrap();
        let (network, troubles) = directory.first().unwrap();
        assert_eq!(network.name, "a");
        let said = error_chain(&troubles[0]).to_string();
        assert!(said.ends_with("10-a.conf: line 1, column 1: EOF while parsing an object"), "{said}");
        let mut fresh = Directory::new(root.path().into());
        fresh.first().unwrap_err();
        assert_eq!(fresh.named("b").unwrap().0.name, "b");
        fs::remove_file(&first).unwrap();
        assert_eq!(directory.first().unwrap().0.name, "b", "a file that is gone is gone");
    }
}
