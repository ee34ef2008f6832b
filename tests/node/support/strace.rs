//! A process under `strace`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Sees, or disturbs, the system calls of a process; ends with its test.
pub(crate) struct Strace {
    process: Child,
    log: PathBuf,
}

impl Strace {
    /// Attaches to a process and all that it will start, with these further options.
    pub(crate) fn attach(pid: u32, options: &[&str], log: PathBuf) -> Self {
        let mut command = Command::new("strace");
        command.args(["-f", "-y"]).args(options).arg("-o").arg(&log).args(["-p", &pid.to_string()]);
        let mut process = command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        assert!(line.contains("attached"), "{line}");
        // It stops when nobody takes what it says.
        std::thread::spawn(move || drop(std::io::copy(&mut said, &mut std::io::sink())));
        Self { process, log }
    }

    /// Its output so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }
}

impl Drop for Strace {
    fn drop(&mut self) {
        self.process.kill().unwrap_or_default();
        drop(self.process.wait());
    }
}
