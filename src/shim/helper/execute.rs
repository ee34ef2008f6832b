//! Executing a program with the error that execve gave, in the words that people know from other runtimes.

use super::filter::Filter;
use super::program;
use crate::explain::explain as explain_error;
use libcontainer::oci_spec::runtime::{LinuxCapabilities, Spec};
use libcontainer::syscall::syscall::create_syscall;
use libcontainer::workload::{Executor, ExecutorError, ExecutorSetEnvsError, ExecutorValidationError};
use nix::errno::Errno;
use std::collections::HashMap;
use std::ffi::{CString, OsStr};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Default `PATH`, used when the environment sets none.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// The end of a pipe that closes when the program is executed, and else says why it was not.
#[derive(Debug)]
pub(super) struct Outcome {
    reader: File,
}

impl Outcome {
    /// A pipe: its near end, and the end for the process that executes.
    pub(super) fn new() -> io::Result<(Self, OwnedFd)> {
        let (reader, writer) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
        Ok((Self { reader: File::from(reader) }, writer))
    }

    /// Waits. `None` when the program was executed. All other copies of the far end must be closed.
    pub(super) fn wait(mut self) -> Option<String> {
        let mut text = Vec::new();
        // The text before an error is the result.
        let _broken = self.reader.read_to_end(&mut text);
        (!text.is_empty()).then(|| String::from_utf8_lossy(&text).into_owned())
    }
}

/// Executes a program with exactly the given environment. Returns only with the reason why it could not, in words.
pub(super) fn execute(arguments: &[String], environment: &[String]) -> String {
    let Some(name) = arguments.first() else { return "no program was given".to_owned() };
    let words = |words: &[String]| words.iter().map(|word| CString::new(word.as_str())).collect::<Result<Vec<_>, _>>();
    let (Ok(argv), Ok(envp)) = (words(arguments), words(environment)) else {
        return format!("exec {name:?}: an argument or environment variable contains a NUL byte");
    };
    let path = environment.iter().find_map(|variable| variable.strip_prefix("PATH=")).unwrap_or(DEFAULT_PATH);
    let mut denied = None;
    for candidate in candidates(name, path) {
        let Ok(program) = CString::new(candidate) else { continue };
        let Err(error) = nix::unistd::execve(&program, &argv, &envp);
        match error {
            // As execvp: what is not there or may not be executed is passed over, anything else ends the search.
            Errno::ENOENT | Errno::ENOTDIR if !name.contains('/') => {}
            Errno::EACCES if !name.contains('/') => denied = Some(error),
            // The file is looked at here: the host's files are out of sight, and the container's are those of this process.
            Errno::ENOEXEC => {
                let reason = program::reason(Path::new(OsStr::from_bytes(program.as_bytes())));
                let reason = reason.map_or_else(String::new, |reason| format!(": it is {reason}"));
                return format!("exec {name:?}: exec format error{reason}");
            }
            other => return explain(name, other),
        }
    }
    match denied {
        Some(error) => explain(name, error),
        None => format!("exec {name:?}: executable file not found in $PATH"),
    }
}

fn candidates(name: &str, path: &str) -> Vec<String> {
    if name.contains('/') {
        return vec![name.to_owned()];
    }
    path.split(':')
        .map(|directory| if directory.is_empty() { format!("./{name}") } else { format!("{directory}/{name}") })
        .collect()
}

fn explain(name: &str, error: Errno) -> String {
    match error {
        Errno::ENOENT => format!("exec {name:?}: no such file or directory"),
        Errno::EACCES => format!("exec {name:?}: permission denied"),
        other => format!("exec {name:?}: {}", other.desc()),
    }
}

/// Rights that a process gives up, by this program and not by libcontainer, which compiles the filter anew for each container.
#[derive(Clone, Debug)]
pub(super) struct Confinement {
    /// System calls that are let through.
    pub(super) filter: Filter,
    /// Capabilities that stay; `None` if the others were given up before.
    pub(super) capabilities: Option<LinuxCapabilities>,
}

impl Confinement {
    /// Loads the filter, for which a capability is needed unless no new privileges can be had, and gives up capabilities.
    fn take(&self) -> Result<(), String> {
        self.filter.load().map_err(|error| format!("load system call filter: {error}"))?;
        match &self.capabilities {
            Some(capabilities) => libcontainer::capabilities::drop_privileges(capabilities, create_syscall().as_ref())
                .map_err(|error| format!("drop capabilities: {}", explain_error(&error))),
            None => Ok(()),
        }
    }
}

/// libcontainer's last step. Unlike its own, it executes what the user may execute (mode 0750 included) and keeps the environment's order.
#[derive(Clone, Debug)]
pub(super) struct ExactExecutor {
    outcome: Arc<OwnedFd>,
    enters: Option<PathBuf>,
    confinement: Option<Arc<Confinement>>,
}

impl ExactExecutor {
    /// Reports failure to `outcome`. With `enters`, a working directory that something else was mounted over since libcontainer entered it; with
    /// `confinement`, the rights that libcontainer leaves to it to give up.
    pub(super) fn new(outcome: OwnedFd, enters: Option<PathBuf>, confinement: Option<Confinement>) -> Self {
        Self { outcome: Arc::new(outcome), enters, confinement: confinement.map(Arc::new) }
    }
}

impl Executor for ExactExecutor {
    fn exec(&self, spec: &Spec) -> Result<(), ExecutorError> {
        let process = spec.process().as_ref();
        let arguments = process.and_then(|process| process.args().as_deref()).unwrap_or_default();
        let environment = process.and_then(|process| process.env().as_deref()).unwrap_or_default();
        if let Some(directory) = &self.enters
            && let Err(error) = nix::unistd::chdir(directory)
        {
            fail(&self.outcome, &format!("enter working directory {}: {}", directory.display(), error.desc()));
        }
        fail(&self.outcome, &execute(arguments, environment))
    }

    /// Called where libcontainer has given up its own rights, before anybody knows of the process.
    fn validate(&self, _: &Spec) -> Result<(), ExecutorValidationError> {
        let confined = self.confinement.as_deref().map_or(Ok(()), Confinement::take);
        confined.map_err(ExecutorValidationError::ArgValidationError)
    }

    /// The environment is handed to execve; this process keeps its own, empty one.
    fn setup_envs(&self, _: HashMap<String, String>) -> Result<(), ExecutorSetEnvsError> {
        Ok(())
    }
}

/// Says why and ends the process.
pub(super) fn fail(outcome: &OwnedFd, reason: &str) -> ! {
    // The near end reads an early end as "the process is gone" in any case.
    let _closed = outcome.try_clone().and_then(|pipe| File::from(pipe).write_all(reason.as_bytes()));
    podstead_sys::process::exit_at_once(127)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_is_told_as_other_runtimes_tell_it() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        assert_eq!(
            execute(&words(&["no-such-program"]), &words(&["PATH=/bin:/usr/bin"])),
            r#"exec "no-such-program": executable file not found in $PATH"#
        );
        assert_eq!(execute(&words(&["/no/such"]), &[]), r#"exec "/no/such": no such file or directory"#);
        assert_eq!(execute(&words(&["/etc/passwd"]), &[]), r#"exec "/etc/passwd": permission denied"#);
        assert_eq!(execute(&words(&["/etc"]), &[]), r#"exec "/etc": permission denied"#);
    }

    #[test]
    fn an_empty_entry_of_the_path_is_the_working_directory() {
        assert_eq!(candidates("a", "/bin::/x"), ["/bin/a", "./a", "/x/a"]);
        assert_eq!(candidates("./a", "/bin"), ["./a"]);
    }
}
