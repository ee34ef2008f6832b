//! Signing with `ssh-keygen`, which knows keys in files, in agents and on tokens.

use anyhow::{Context as _, bail};
use podstead_source::bundle::BUNDLE_NAMESPACE;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

/// The signature of a document by the key in a file; a public key stands for one in the agent.
pub(super) fn sign(document: &[u8], key: &Path) -> anyhow::Result<Vec<u8>> {
    let mut command = Command::new("ssh-keygen");
    command.args(["-Y", "sign", "-n", BUNDLE_NAMESPACE, "-f"]).arg(key);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("--sign-key: run ssh-keygen (Debian package openssh-client)")?;
    let mut stdin = child.stdin.take().context("--sign-key: write to ssh-keygen")?;
    // It reads the key first, and ends early if that fails: its own words are better.
    let written = stdin.write_all(document);
    drop(stdin);
    let output = child.wait_with_output().context("--sign-key: run ssh-keygen")?;
    if !output.status.success() {
        bail!("--sign-key {}: ssh-keygen failed: {}", key.display(), String::from_utf8_lossy(&output.stderr).trim());
    }
    written.context("--sign-key: write to ssh-keygen")?;
    Ok(output.stdout)
}
