//! Compressing rotated log files (kubelet rule D18), in a process of its own: it costs seconds of a small processor and some 300 KiB.

use flate2::Compression;
use flate2::write::GzEncoder;
use rustix::fs::{FlockOperation, flock};
use rustix::process::nice;
use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// It has low priority.
const NICE: i32 = 19;

/// `podstead-shim compress FILE...`: each file becomes `FILE.gz`. Returns the first failure; the other files are tried all the same.
pub(crate) fn run(files: &[OsString]) -> io::Result<()> {
    let _unchanged_priority = nice(NICE);
    files.iter().map(|file| compress(Path::new(file))).fold(Ok(()), io::Result::and)
}

/// Until the compressed file is whole and on disk it has another name; then it stands beside the plain one for a moment, and readers
/// take the compressed one. A crash in between is mended by the next call.
fn compress(path: &Path) -> io::Result<()> {
    let (unfinished, finished) = (with_suffix(path, ".tmp"), with_suffix(path, ".gz"));
    let plain = match File::open(path) {
        Ok(plain) => plain,
        // Pruned meanwhile.
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o640).open(&unfinished)?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        // Another one, of a shim that has died, is at it.
        return Ok(());
    }
    file.set_len(0)?;
    let mut encoder = GzEncoder::new(file, Compression::default());
    io::copy(&mut BufReader::new(plain), &mut encoder)?;
    encoder.finish()?.sync_data()?;
    fs::rename(&unfinished, &finished)?;
    fs::remove_file(path)
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::MultiGzDecoder;
    use std::io::Read;

    fn unpacked(path: &Path) -> String {
        let mut text = String::new();
        MultiGzDecoder::new(File::open(path).unwrap()).read_to_string(&mut text).unwrap();
        text
    }

    #[test]
    fn a_file_is_replaced_by_its_compressed_copy_also_after_a_crash_in_the_middle() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("0.log.20260102-030405");
        for left_behind in ["", ".tmp", ".gz"] {
            fs::write(&path, "line\n".repeat(1000)).unwrap();
            fs::write(with_suffix(&path, left_behind), "half of something longer than what will be written".repeat(1000)).unwrap();
            fs::write(&path, "line\n".repeat(1000)).unwrap();
            compress(&path).unwrap();
            let names: Vec<_> = fs::read_dir(directory.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
            assert_eq!(names, [with_suffix(&path, ".gz")], "{left_behind:?}");
            assert_eq!(unpacked(&names[0]), "line\n".repeat(1000));
        }
    }

    #[test]
    fn a_file_that_is_gone_or_being_compressed_is_left_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("0.log.20260102-030405");
        compress(&path).unwrap();
        fs::write(&path, "line\n").unwrap();
        let other = File::create(with_suffix(&path, ".tmp")).unwrap();
        flock(&other, FlockOperation::LockExclusive).unwrap();
        compress(&path).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "line\n");
    }
}
