//! `podstead kustomize`: a kustomization as `kubectl kustomize` prints it, before any check and without defaults.

use super::{Context, EXIT_FAILED};
use anyhow::{Context as _, bail};
use clap::Args;
use podstead_manifest::kustomize::{BuildLimits, Files, build, is_kustomization};
use std::fs;
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Arguments.
#[derive(Debug, Args)]
#[command(
    after_help = "The output is that of `kubectl kustomize`. It contains the values of Secrets. `podstead render` shows the objects that a host gets.\n\
                        Exit codes: 0 the kustomization was built, 1 it was not, 2 invalid arguments."
)]
pub(super) struct KustomizeArgs {
    /// Directory with a kustomization.yaml
    #[arg(value_name = "DIRECTORY", default_value = ".")]
    directory: PathBuf,
}

pub(super) fn run(args: &KustomizeArgs, _context: &Context) -> anyhow::Result<ExitCode> {
    let directory = fs::canonicalize(&args.directory).with_context(|| format!("read {}", args.directory.display()))?;
    let entries = fs::read_dir(&directory).with_context(|| format!("read {}", args.directory.display()))?;
    if !entries.flatten().any(|entry| entry.file_name().to_str().is_some_and(is_kustomization)) {
        bail!("{} contains no kustomization.yaml", args.directory.display());
    }
    let path = directory.strip_prefix("/").unwrap_or(&directory);
    let path = path.to_str().with_context(|| format!("{} is not UTF-8", path.display()))?;
    let limits = BuildLimits::default();
    let built = build(&WholeDisk { max_bytes: limits.max_bytes }, path, &limits);
    let here = std::env::current_dir().unwrap_or_default();
    for problem in &built.problems {
        let mut problem = problem.clone();
        let file = Path::new("/").join(&problem.file);
        problem.file = file.strip_prefix(&here).unwrap_or(&file).display().to_string();
        writeln!(io::stderr(), "{problem}")?;
    }
    if built.has_failed() {
        return Ok(ExitCode::from(EXIT_FAILED));
    }
    io::stdout().lock().write_all(built.to_yaml().as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// All files of this machine, since bases may be anywhere; paths are relative to `/`.
struct WholeDisk {
    max_bytes: usize,
}

impl Files for WholeDisk {
    fn read(&self, path: &str) -> Result<Option<Vec<u8>>, String> {
        let open = || -> io::Result<Option<Vec<u8>>> {
            let path = Path::new("/").join(path);
            // A pipe or a device would never end.
            if !fs::metadata(&path)?.is_file() {
                return Ok(None);
            }
            let mut bytes = Vec::new();
            fs::File::open(path)?.take(self.max_bytes as u64 + 1).read_to_end(&mut bytes)?;
            Ok(Some(bytes))
        };
        match open() {
            Ok(bytes) => Ok(bytes),
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
            Err(error) => Err(error.to_string()),
        }
    }

    fn is_directory(&self, path: &str) -> bool {
        Path::new("/").join(path).is_dir()
    }
}
