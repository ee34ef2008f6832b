//! The configuration that was valid last. It is kept with the state: a host whose file an edit has broken, or a power cut has emptied, starts with
//! it, for the pods that were accepted have to run.

use super::reload::is_blank;
use super::written::WrittenPaths;
use super::{Config, HostFacts, WrittenConfig};
use podstead_settings::ConfigError;
use podstead_sys::atomic_file;
use podstead_sys::layout::Paths;
use podstead_telemetry::error_chain;
use serde::Deserialize;
use std::io;
use std::path::Path;

/// A configuration to start with.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The configuration in force.
    pub config: Config,
    /// Bytes that it was read from, if they are the present file; to be kept.
    pub bytes: Option<Vec<u8>>,
    /// Reason why the file was refused.
    pub refused: Option<String>,
}

impl Loaded {
    /// Reads `path`; what was valid last stands in for a file that is not valid, or that is empty when it was not. A missing file is the default
    /// configuration. An error is one of the file, and nothing was kept.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let facts = HostFacts::of_this_host();
        let Some(bytes) = read(path)? else {
            // Kept as what it means: an empty file.
            return Ok(Self { config: Config::load(path)?, bytes: Some(Vec::new()), refused: None });
        };
        let kept = || {
            let kept = std::fs::read(named_paths(&bytes).last_valid_config()).ok()?;
            Config::parse(&kept, &facts, path).ok()
        };
        match Config::parse(&bytes, &facts, path) {
            Ok(config) if is_blank(&bytes) => match kept() {
                Some(earlier) if earlier != config => {
                    Ok(Self { config: earlier, bytes: None, refused: Some(format!("{} is empty", path.display())) })
                }
                Some(_) | None => Ok(Self { config, bytes: Some(bytes), refused: None }),
            },
            Ok(config) => Ok(Self { config, bytes: Some(bytes), refused: None }),
            Err(error) => match kept() {
                Some(config) => Ok(Self { config, bytes: None, refused: Some(error_chain(&error).to_string()) }),
                None => Err(error),
            },
        }
    }

    /// As [`Loaded::read`]; where nothing was kept, the defaults stand in, with the directories that the file names. For work that has to be done
    /// whatever is configured.
    pub fn read_or_default(path: &Path) -> Result<Self, ConfigError> {
        let error = match Self::read(path) {
            Err(error @ (ConfigError::Syntax { .. } | ConfigError::Invalid { .. })) => error,
            loaded => return loaded,
        };
        let Paths { state, run, logs } = paths(path)?;
        let paths = WrittenPaths { state: Some(state), run: Some(run), logs: Some(logs) };
        let config = WrittenConfig { paths, ..WrittenConfig::default() }.resolve(&HostFacts::of_this_host(), path)?;
        Ok(Self { config, bytes: None, refused: Some(error_chain(&error).to_string()) })
    }
}

/// The directories of the daemon with this configuration file, whatever else is wrong with the file.
pub fn paths(path: &Path) -> Result<Paths, ConfigError> {
    Ok(read(path)?.map(|bytes| named_paths(&bytes)).unwrap_or_default())
}

/// Keeps the bytes of a configuration that is valid, durably. What is kept already is not written again.
pub fn keep(paths: &Paths, bytes: &[u8]) -> io::Result<()> {
    let path = paths.last_valid_config();
    if std::fs::read(&path).is_ok_and(|kept| kept == bytes) {
        return Ok(());
    }
    atomic_file::write_durable(&path, bytes, 0o600)
}

/// `None` if there is no file.
fn read(path: &Path) -> Result<Option<Vec<u8>>, ConfigError> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(ConfigError::Read { path: path.to_owned(), source }),
    }
}

/// The directories that a file names, as far as they can be read (pure).
fn named_paths(bytes: &[u8]) -> Paths {
    #[derive(Default, Deserialize)]
    struct Excerpt {
        #[serde(default)]
        paths: WrittenPaths,
    }
    let WrittenPaths { state, run, logs } = serde_yaml::from_slice(bytes).unwrap_or(Excerpt::default()).paths;
    let usable = |path: Option<std::path::PathBuf>| path.filter(|path| podstead_sys::layout::is_clean_absolute(path));
    let default = Paths::default();
    Paths {
        state: usable(state).unwrap_or(default.state),
        run: usable(run).unwrap_or(default.run),
        logs: usable(logs).unwrap_or(default.logs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = "apiVersion: podstead.dev/v1alpha1\nkind: Config\n";

    /// A file that names private directories, and what is in it beside.
    fn written(root: &Path, more: &str) -> std::path::PathBuf {
        let file = root.join("config.yaml");
        let at = root.display();
        std::fs::write(&file, format!("{HEAD}paths: {{state: {at}/state, run: {at}/run, logs: {at}/logs}}\n{more}")).unwrap();
        file
    }

    #[test]
    fn a_broken_file_is_an_error_only_where_none_was_valid_before() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("state")).unwrap();
        let broken = "podPidsLimt: 5\n";
        let file = written(root.path(), broken);
        assert!(matches!(Loaded::read(&file), Err(ConfigError::Syntax { .. })));
        let defaults = Loaded::read_or_default(&file).unwrap();
        assert_eq!(defaults.config.paths.state, root.path().join("state"));
        assert!(defaults.refused.is_some_and(|reason| reason.contains("podPidsLimt")));

        written(root.path(), "podPidsLimit: 5\n");
        let valid = Loaded::read(&file).unwrap();
        assert!(valid.refused.is_none());
        keep(&valid.config.paths, &valid.bytes.unwrap()).unwrap();

        written(root.path(), broken);
        let kept = Loaded::read(&file).unwrap();
        assert_eq!((kept.config.pod_pids_limit, kept.bytes), (Some(5), None));
        assert!(kept.refused.is_some_and(|reason| reason.contains("podPidsLimt")), "it is told");
        assert_eq!(paths(&file).unwrap().run, root.path().join("run"));
    }

    #[test]
    fn what_is_kept_is_for_root_alone_and_written_once() {
        use std::os::unix::fs::MetadataExt;
        let root = tempfile::tempdir().unwrap();
        let paths = Paths { state: root.path().into(), run: root.path().into(), logs: root.path().into() };
        keep(&paths, b"a").unwrap();
        let first = std::fs::metadata(paths.last_valid_config()).unwrap();
        keep(&paths, b"a").unwrap();
        let second = std::fs::metadata(paths.last_valid_config()).unwrap();
        assert_eq!((first.ino(), first.mode() & 0o777), (second.ino(), 0o600));
        keep(&paths, b"b").unwrap();
        assert_eq!(std::fs::read(paths.last_valid_config()).unwrap(), b"b");
    }

    #[test]
    fn directories_that_cannot_be_read_are_the_default_ones() {
        for text in ["", "paths: 5", "paths: {state: relative}", "paths: [", "- a", "paths: {state: /a/../b}"] {
            assert_eq!(named_paths(text.as_bytes()), Paths::default(), "{text}");
        }
        assert_eq!(named_paths(b"bad: 1\npaths: {run: /r}").run, Path::new("/r"));
    }

    #[test]
    fn a_missing_file_is_the_default_configuration() {
        let loaded = Loaded::read(Path::new("/nowhere/config.yaml")).unwrap();
        assert_eq!((&loaded.config.paths, &loaded.refused), (&Paths::default(), &None));
        let kept = Config::parse(&loaded.bytes.unwrap(), &HostFacts::of_this_host(), Path::new("/c")).unwrap();
        assert_eq!(kept, loaded.config, "a broken file that comes later does not bring back what was before");
    }
}
