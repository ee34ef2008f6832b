//! A compressed archive, written file by file.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{self, Write};
use tar_core::EntryType;
use tar_core::builder::EntryBuilder;

const BLOCK: usize = 512;

/// A `.tar.gz` whose files all lie in one folder.
pub(super) struct Archive<W: Write> {
    out: GzEncoder<W>,
    folder: String,
    /// Seconds since 1970 that all files bear.
    time: u64,
}

impl<W: Write> Archive<W> {
    pub(super) fn new(out: W, folder: String, time: u64) -> Self {
        Self { out: GzEncoder::new(out, Compression::default()), folder, time }
    }

    /// Adds a file that only its owner can read.
    pub(super) fn add(&mut self, name: &str, content: &[u8]) -> io::Result<()> {
        let mut entry = EntryBuilder::new_gnu();
        entry.path(format!("{}/{name}", self.folder)).entry_type(EntryType::Regular);
        entry.mode(0o600).map_err(io::Error::other)?;
        entry.uid(0).map_err(io::Error::other)?;
        entry.gid(0).map_err(io::Error::other)?;
        entry.size(content.len() as u64).map_err(io::Error::other)?;
        entry.mtime(self.time).map_err(io::Error::other)?;
        self.out.write_all(&entry.finish_bytes())?;
        self.out.write_all(content)?;
        self.out.write_all(&[0; BLOCK][..content.len().next_multiple_of(BLOCK) - content.len()])
    }

    /// Ends the archive and gives back what it was written to.
    pub(super) fn finish(mut self) -> io::Result<W> {
        self.out.write_all(&[0; 2 * BLOCK])?;
        self.out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn tar_reads_what_was_written() {
        let mut archive = Archive::new(Vec::new(), "bundle".into(), 0);
        let long = format!("{}/name.txt", "x".repeat(150));
        archive.add("empty", b"").unwrap();
        archive.add(&long, &[b'a'; 513]).unwrap();
        archive.add("last", b"text\n").unwrap();
        let bytes = archive.finish().unwrap();
        let mut tar = Command::new("tar").args(["-tvzf", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        tar.stdin.take().unwrap().write_all(&bytes).unwrap();
        let out = tar.wait_with_output().unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        let listed: Vec<_> = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
        let sizes_and_names: Vec<_> = listed.iter().map(|words| (words[2], *words.last().unwrap())).collect();
        assert!(out.status.success());
        assert_eq!(sizes_and_names, [("0", "bundle/empty"), ("513", format!("bundle/{long}").as_str()), ("5", "bundle/last")]);
        assert!(text.lines().all(|line| line.starts_with("-rw-------")), "{text}");
    }
}
