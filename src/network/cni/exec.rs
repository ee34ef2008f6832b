//! Call of one plugin: bounded in time and output, and killed with its children.

use super::spec::fault::Fault;
use super::spec::quoted;
use super::spec::result::MAX_RESULT_BYTES;
use super::strays;
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::Value;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
use tokio_util::sync::CancellationToken;

/// Plugins call `iptables`, `nft`, `ipset`.
const SEARCH_PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Number of bytes that are kept of a plugin's standard error.
const MAX_ERROR_BYTES: usize = 64 << 10;
/// Time that a plugin's output may stay open after its exit: by children that it left.
const LINGER: Duration = Duration::from_secs(2);

/// Reason why a plugin did not do what it was called for.
#[derive(Debug, thiserror::Error)]
pub(super) enum ExecError {
    /// It is not there.
    #[error("plugin not found in {0}")]
    NotFound(String),
    /// It does not start.
    #[error("start {}", path.display())]
    Start {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The connection to it broke.
    #[error("communicate with the plugin")]
    Talk(#[source] io::Error),
    /// It did not come to an end.
    #[error("did not end within {} s and was killed", _0.as_secs())]
    TimedOut(Duration),
    /// The call was cancelled.
    #[error("was cancelled")]
    BrokenOff,
    /// It printed too much.
    #[error("printed more than {MAX_RESULT_BYTES} bytes")]
    TooLong,
    /// It says what is wrong.
    #[error("{0}")]
    Fault(Fault),
    /// It failed and says nothing that is specified.
    #[error("{status}{output}")]
    Failed { status: String, output: String },
}

/// Directories of plugins, and their time limit.
#[derive(Clone, Debug)]
pub(super) struct Plugins {
    pub(super) directories: Vec<PathBuf>,
    pub(super) timeout: Duration,
}

/// A call.
#[derive(Debug)]
pub(super) struct Call<'a> {
    /// The plugin.
    pub(super) kind: &'a str,
    /// Its environment, but for `PATH`.
    pub(super) variables: Vec<(&'static str, String)>,
    /// Its standard input.
    pub(super) input: &'a Value,
    /// The container that it is about; what is left of the call is found by it.
    pub(super) container: Option<&'a str>,
}

impl Plugins {
    /// `CNI_PATH`.
    pub(super) fn path(&self) -> String {
        let names: Vec<String> = self.directories.iter().map(|directory| directory.display().to_string()).collect();
        names.join(":")
    }

    /// The program of a plugin.
    pub(super) fn find(&self, kind: &str) -> Result<PathBuf, ExecError> {
        let is_program =
            |path: &PathBuf| fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
        let found = self.directories.iter().map(|directory| directory.join(kind)).find(is_program);
        found.ok_or_else(|| ExecError::NotFound(self.path().replace(':', ", ")))
    }

    /// Calls a plugin; what it printed. Ends it when `cancel` is cancelled.
    pub(super) async fn call(&self, call: Call<'_>, cancel: &CancellationToken) -> Result<Vec<u8>, ExecError> {
        let path = self.find(call.kind)?;
        let mut child = start(&path, &call)?;
        let group = child.id();
        let ended = tokio::select! {
            ended = talk(&mut child, call.input) => ended,
            () = tokio::time::sleep(self.timeout) => Err(ExecError::TimedOut(self.timeout)),
            () = cancel.cancelled() => Err(ExecError::BrokenOff),
        };
        let is_whole = matches!(ended, Ok(Ended { is_closed: true, .. }));
        if !is_whole {
            end(&mut child, group).await;
            if let Some(container) = call.container {
                strays::end(container.to_owned(), Duration::ZERO).await;
            }
        }
        let Ended { success, status, output, errors, .. } = ended?;
        let errors = quoted(&String::from_utf8_lossy(&errors));
        if !errors.is_empty() {
            tracing::debug!(plugin = call.kind, errors, "standard error of a CNI plugin");
        }
        if success {
            return Ok(output);
        }
        Err(match Fault::parse(&output) {
            Some(fault) => ExecError::Fault(fault),
            None => {
                let printed = quoted(&String::from_utf8_lossy(&output));
                let said = [printed, errors].into_iter().filter(|text| !text.is_empty()).map(|text| format!(": {text}"));
                ExecError::Failed { status, output: said.collect() }
            }
        })
    }
}

#[derive(Debug)]
struct Ended {
    success: bool,
    status: String,
    output: Vec<u8>,
    errors: Vec<u8>,
    /// Its output is closed.
    is_closed: bool,
}

fn start(path: &Path, call: &Call<'_>) -> Result<Child, ExecError> {
    let mut command = Command::new(path);
    command.env_clear().envs(call.variables.iter().map(|(name, value)| (name, value))).envs(SEARCH_PATH.split_once('='));
    command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    // A group of its own, to be ended as a whole.
    command.process_group(0).kill_on_drop(true);
    command.spawn().map_err(|source| ExecError::Start { path: path.to_owned(), source })
}

/// Gives the plugin its input, reads what it prints, waits for its end.
async fn talk(child: &mut Child, input: &Value) -> Result<Ended, ExecError> {
    let bytes = input.to_string().into_bytes();
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let writing = tokio::spawn(async move {
        if let Some(mut stdin) = stdin {
            // A plugin need not read it.
            stdin.write_all(&bytes).await.ok();
        }
    });
    let mut reading = tokio::spawn(async move {
        let (output, errors) = tokio::join!(read(stdout, MAX_RESULT_BYTES + 1), read(stderr, MAX_ERROR_BYTES));
        (output, errors)
    });
    let status = child.wait().await.map_err(ExecError::Talk)?;
    writing.abort();
    let read = tokio::time::timeout(LINGER, &mut reading).await;
    reading.abort();
    let (output, errors, is_closed) = match read {
        Ok(Ok((output, errors))) => (output.map_err(ExecError::Talk)?, errors.map_err(ExecError::Talk)?, true),
        Ok(Err(_)) | Err(_) => (Vec::new(), Vec::new(), false),
    };
    if output.len() > MAX_RESULT_BYTES {
        return Err(ExecError::TooLong);
    }
    if !is_closed {
        return Err(ExecError::Failed {
            status: "left child processes that keep its output open".to_owned(),
            output: String::new(),
        });
    }
    Ok(Ended { success: status.success(), status: status.to_string(), output, errors, is_closed })
}

/// Reads to the end; keeps the first `limit` bytes.
async fn read(from: Option<impl AsyncRead + Unpin>, limit: usize) -> io::Result<Vec<u8>> {
    let Some(mut from) = from else { return Ok(Vec::new()) };
    let mut kept = Vec::new();
    (&mut from).take(limit as u64).read_to_end(&mut kept).await?;
    tokio::io::copy(&mut from, &mut tokio::io::sink()).await?;
    Ok(kept)
}

/// Ends a plugin and its group. Its number is its own until it is waited for.
async fn end(child: &mut Child, group: Option<u32>) {
    let group = group.and_then(|group| i32::try_from(group).ok());
    if let (Some(group), Some(_)) = (group, child.id()) {
        // ESRCH: all of it has ended.
        killpg(Pid::from_raw(group), Signal::SIGKILL).ok();
    }
    child.wait().await.ok();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    async fn call(script: &str, timeout: Duration) -> Result<Vec<u8>, ExecError> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("fake");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let plugins = Plugins { directories: vec!["/nowhere".into(), directory.path().into()], timeout };
        let input = serde_json::json!({"name": "a"});
        let container = directory.path().file_name().unwrap().to_str().unwrap().to_owned();
        let variables = vec![("CNI_COMMAND", "ADD".to_owned()), ("CNI_CONTAINERID", container.clone())];
        let call = Call { kind: "fake", variables, input: &input, container: Some(&container) };
        plugins.call(call, &CancellationToken::new()).await
    }

    const LONG: Duration = Duration::from_secs(60);

    fn text(result: Result<Vec<u8>, ExecError>) -> String {
        match result {
            Ok(output) => String::from_utf8(output).unwrap(),
            Err(error) => format!("error: {error}"),
        }
    }

    #[tokio::test]
    async fn a_plugin_has_its_input_and_a_small_environment() {
        let seen = text(call("cat; echo; env | grep -v ^PWD | sort", LONG).await);
        let lines: Vec<&str> = seen.lines().collect();
        assert_eq!((lines[0], lines[1]), (r#"{"name":"a"}"#, "CNI_COMMAND=ADD"), "{seen}");
        assert!(lines[3].starts_with("PATH=/usr") && lines.iter().skip(4).all(|line| line.starts_with('_')), "{seen}");
    }

    #[tokio::test]
    async fn a_failure_is_told_in_the_plugins_words() {
        assert_eq!(
            text(call(r#"echo '{"code": 7, "msg": "bad", "details": "eth9"}'; exit 1"#, LONG).await),
            "error: code 7 (invalid configuration): bad: eth9"
        );
        assert_eq!(text(call("echo oops >&2; exit 3", LONG).await), "error: exit status: 3: oops");
        assert_eq!(text(call("kill -9 $$", LONG).await), "error: signal: 9 (SIGKILL)");
        let plugins = Plugins { directories: vec!["/nowhere".into(), "/proc".into()], timeout: LONG };
        let call = Call { kind: "version", variables: Vec::new(), input: &Value::Null, container: None };
        let error = plugins.call(call, &CancellationToken::new()).await.unwrap_err();
        assert_eq!(error.to_string(), "plugin not found in /nowhere, /proc");
    }

    #[tokio::test]
    async fn a_plugin_that_hangs_is_ended_with_its_children() {
        let marker = tempfile::tempdir().unwrap();
        let pids = marker.path().join("pids");
        // One child in its group, one that left it.
        let script = format!("sleep 1000 & echo $! > {0}; setsid sh -c 'echo $$ >> {0}; exec sleep 1000' & wait", pids.display());
        let began = Instant::now();
        assert_eq!(text(call(&script, Duration::from_secs(2)).await), "error: did not end within 2 s and was killed");
        assert!(began.elapsed() < LONG);
        let pids = fs::read_to_string(&pids).unwrap();
        assert_eq!(pids.lines().count(), 2);
        for pid in pids.lines() {
            let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            assert!(state.is_empty() || state.contains(") Z "), "{pid} lives: {state}");
        }
    }

    #[tokio::test]
    async fn output_without_end_is_refused_and_a_child_that_holds_it_open_is_ended() {
        assert_eq!(text(call("head -c 3000000 /dev/zero", LONG).await), "error: printed more than 1048576 bytes");
        assert_eq!(text(call("head -c 3000000 /dev/zero >&2; echo fine", LONG).await), "fine\n", "what is said beside is cut off");
        assert_eq!(text(call("sleep 1000 & echo {}", LONG).await), "error: left child processes that keep its output open");
    }
}
