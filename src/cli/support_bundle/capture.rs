//! Output of programs, within bounds.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::ErrorKind;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::Command;

/// A program that says nothing for so long says nothing.
const PATIENCE: Duration = Duration::from_secs(30);
/// Most of one output: the end of it.
const MAX_BYTES: usize = 8 << 20;

/// Runs `command` and returns its stdout, stderr and failure. `None` if the program does not exist.
pub(super) async fn output(command: &[OsString]) -> Option<Vec<u8>> {
    let (program, arguments) = command.split_first()?;
    let mut child = Command::new(program);
    child.args(arguments).env("LC_ALL", "C").env("NO_COLOR", "1").env("SYSTEMD_COLORS", "0");
    child.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = match child.spawn() {
        Ok(child) => child,
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(error) => return Some(format!("cannot start: {error}\n").into_bytes()),
    };
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (mut said, mut complained) = (Vec::new(), Vec::new());
    // Dropped at the end of patience: what was read until then is kept.
    let ended = tokio::time::timeout(PATIENCE, async {
        tokio::join!(tail(stdout, &mut said), tail(stderr, &mut complained));
        child.wait().await
    })
    .await;
    said.append(&mut complained);
    let mut end = String::new();
    let _infallible = match ended {
        Ok(Ok(status)) if status.success() => Ok(()),
        Ok(Ok(status)) => writeln!(end, "exited with {status}"),
        Ok(Err(error)) => writeln!(end, "cannot wait for it: {error}"),
        Err(_) => writeln!(end, "killed after {} s", PATIENCE.as_secs()),
    };
    said.extend_from_slice(end.as_bytes());
    Some(said)
}

/// Reads to the end, and keeps the last [`MAX_BYTES`].
async fn tail(source: Option<impl AsyncRead + Unpin>, kept: &mut Vec<u8>) {
    let Some(mut source) = source else { return };
    let mut chunk = vec![0; 64 << 10];
    while let Ok(read @ 1..) = source.read(&mut chunk).await {
        kept.extend_from_slice(&chunk[..read]);
        if kept.len() > 2 * MAX_BYTES {
            kept.drain(..kept.len() - MAX_BYTES);
        }
    }
    if kept.len() > MAX_BYTES {
        kept.drain(..kept.len() - MAX_BYTES);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<OsString> {
        words.iter().map(OsString::from).collect()
    }

    #[tokio::test]
    async fn output_complaints_and_failure_are_kept() {
        let said = output(&words(&["sh", "-c", "echo out; echo err >&2; exit 3"])).await.unwrap();
        assert_eq!(String::from_utf8(said).unwrap(), "out\nerr\nexited with exit status: 3\n");
    }

    #[tokio::test]
    async fn of_much_the_end_is_kept() {
        let said = output(&words(&["sh", "-c", "yes aaaaaaa | head -c 20000000; echo end"])).await.unwrap();
        assert!(said.len() == MAX_BYTES && said.ends_with(b"end\n"), "{}", said.len());
    }

    #[tokio::test]
    async fn a_program_that_is_not_there_is_no_output() {
        assert_eq!(output(&words(&["/nonexistent/program"])).await, None);
    }
}
