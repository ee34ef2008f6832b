//! Text of files that are imported.

use anyhow::Context as _;
use std::fs;
use std::io::Read;
use std::path::Path;

/// Largest file that is read.
pub(super) const MAX_BYTES: u64 = 1 << 20;

/// Reads a text file of limited size.
pub(super) fn read_text(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let file = fs::File::open(path).with_context(|| format!("open {}", path.display()))?;
    file.take(MAX_BYTES + 1).read_to_string(&mut text).with_context(|| format!("read {}", path.display()))?;
    anyhow::ensure!(text.len() as u64 <= MAX_BYTES, "{} is larger than 1 MiB", path.display());
    Ok(text)
}
