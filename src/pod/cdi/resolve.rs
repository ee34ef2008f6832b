//! Resolution of device names to container edits.

use super::{CdiSpec, ContainerEdits, DeviceName, SpecError};
use std::path::PathBuf;

/// A file of a directory of specs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecFile {
    /// Path of the file.
    pub path: PathBuf,
    /// A device in a later directory wins over one in an earlier.
    pub directory: usize,
    /// The parsed spec, or the reason why it cannot be used.
    pub spec: Result<CdiSpec, SpecError>,
}

/// Reason why a container cannot have its devices.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// No file has them.
    #[error("unresolvable CDI devices {}{}", join(devices), because(broken))]
    Unknown {
        /// All that are missing.
        devices: Vec<DeviceName>,
        /// Files that cannot be used: they may be there.
        broken: Vec<(PathBuf, SpecError)>,
    },
    /// Two files of one directory have it.
    #[error("CDI device {device} is defined in both {} and {}", one.display(), other.display())]
    Conflict {
        /// The device.
        device: DeviceName,
        /// A file that has it.
        one: PathBuf,
        /// Another one.
        other: PathBuf,
    },
}

fn join(devices: &[DeviceName]) -> String {
    devices.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn because(broken: &[(PathBuf, SpecError)]) -> String {
    broken.iter().map(|(path, error)| format!("; {} cannot be used: {error}", path.display())).collect()
}

/// Collects the edits of the devices for a container: the common edits of a spec are added once, before those of its devices.
pub fn resolve(devices: &[DeviceName], files: &[SpecFile]) -> Result<Vec<ContainerEdits>, ResolveError> {
    let mut unknown = Vec::new();
    let mut found: Vec<(&SpecFile, &CdiSpec, &ContainerEdits)> = Vec::new();
    for device in devices {
        let mut best: Option<(&SpecFile, &CdiSpec, &ContainerEdits)> = None;
        for file in files {
            let Ok(spec) = &file.spec else { continue };
            let Some(own) = spec.devices.iter().find(|own| spec.kind == device.kind && own.name == device.name) else { continue };
            match best {
                Some((other, ..)) if other.directory == file.directory => {
                    let (one, other) = (other.path.clone(), file.path.clone());
                    return Err(ResolveError::Conflict { device: device.clone(), one, other });
                }
                Some((other, ..)) if other.directory > file.directory => {}
                Some(_) | None => best = Some((file, spec, &own.container_edits)),
            }
        }
        match best {
            Some(best) => found.push(best),
            None => unknown.push(device.clone()),
        }
    }
    if !unknown.is_empty() {
        let broken = files.iter().filter_map(|file| Some((file.path.clone(), file.spec.as_ref().err()?.clone()))).collect();
        return Err(ResolveError::Unknown { devices: unknown, broken });
    }
    let mut edits = Vec::new();
    let mut begun: Vec<&PathBuf> = Vec::new();
    for (file, spec, own) in found {
        if !begun.contains(&&file.path) {
            begun.push(&file.path);
            edits.push(spec.container_edits.clone());
        }
        edits.push(own.clone());
    }
    Ok(edits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, directory: usize, text: &str) -> SpecFile {
        SpecFile { path: path.into(), directory, spec: CdiSpec::parse(text.as_bytes()) }
    }

    fn spec(path: &str, directory: usize, mark: &str) -> SpecFile {
        let device = |name: &str| format!("{{name: {name}, containerEdits: {{env: [{name}={mark}]}}}}");
        let text = format!(
            "{{cdiVersion: 0.5.0, kind: v.org/radio, containerEdits: {{env: [ALL={mark}]}}, devices: [{}, {}]}}",
            device("a"),
            device("b")
        );
        file(path, directory, &text)
    }

    fn env(names: &[&str], files: &[SpecFile]) -> Result<Vec<String>, String> {
        let names: Vec<DeviceName> = names.iter().map(|name| DeviceName::parse(name).unwrap()).collect();
        let edits = resolve(&names, files).map_err(|error| error.to_string())?;
        Ok(edits.into_iter().flat_map(|edits| edits.env).collect())
    }

    #[test]
    fn a_device_comes_with_what_its_file_gives_to_all_once() {
        let files = [spec("/etc/cdi/a.yaml", 0, "1")];
        assert_eq!(env(&["v.org/radio=a", "v.org/radio=b"], &files).unwrap(), ["ALL=1", "a=1", "b=1"]);
        assert_eq!(env(&[], &files).unwrap(), [""; 0]);
    }

    #[test]
    fn a_later_directory_wins_and_one_directory_must_agree() {
        let files = [spec("/etc/cdi/a.yaml", 0, "1"), spec("/run/cdi/a.yaml", 1, "2")];
        assert_eq!(env(&["v.org/radio=a"], &files).unwrap(), ["ALL=2", "a=2"]);
        let twice = [spec("/etc/cdi/a.yaml", 0, "1"), spec("/etc/cdi/b.yaml", 0, "2")];
        let error = env(&["v.org/radio=a"], &twice).unwrap_err();
        assert_eq!(error, "CDI device v.org/radio=a is defined in both /etc/cdi/a.yaml and /etc/cdi/b.yaml");
    }

    #[test]
    fn what_is_missing_is_named_with_the_files_that_cannot_be_used() {
        let files = [spec("/etc/cdi/a.yaml", 0, "1"), file("/etc/cdi/bad.json", 0, "{kind: 1")];
        let error = env(&["v.org/radio=a", "v.org/radio=c", "x.org/y=z"], &files).unwrap_err();
        assert!(
            error.starts_with("unresolvable CDI devices v.org/radio=c, x.org/y=z; /etc/cdi/bad.json cannot be used: "),
            "{error}"
        );
        assert_eq!(env(&["v.org/radio=b"], &files).unwrap(), ["ALL=1", "b=1"], "what is there can be had");
    }
}
