//! Log files of runs that are forgotten. They go with the run (kubelet rule D17), so that a container which is restarted for years has the
//! logs of its present and its last run and no others.

use std::fs;
use std::io;
use std::path::Path;

/// Removes the log of a run, rotated and compressed files included, and those that runs before all of `left` have left behind: a file
/// that was being compressed when its run went, and what versions that kept all logs have left. `left` are the numbers of the
/// container's other runs. A directory that has nothing else goes, too.
pub(super) fn remove(log: &Path, left: &[u32]) -> io::Result<()> {
    let (Some(directory), Some(run)) = (log.parent(), log.file_name().and_then(|name| run_of(name.to_str()?))) else {
        return Ok(());
    };
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let is_surplus = |found: u32| found == run || left.iter().all(|other| found < *other);
    for entry in entries {
        let entry = entry?;
        if entry.file_name().to_str().and_then(run_of).is_some_and(is_surplus) {
            match fs::remove_file(entry.path()) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                Ok(()) | Err(_) => {}
            }
        }
    }
    if left.is_empty() {
        // One that is not empty holds what is not podstead's.
        fs::remove_dir(directory).ok();
    }
    Ok(())
}

/// The run that a log file is of: 3 of `3.log`, `3.log.20260102-030405` and `3.log.20260102-030405.gz`.
fn run_of(name: &str) -> Option<u32> {
    let (run, rest) = name.split_once(".log")?;
    let is_log = rest.is_empty() || rest.starts_with('.');
    let is_number = run.bytes().all(|byte| byte.is_ascii_digit());
    if is_log && is_number { run.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn directory(files: &[&str]) -> (tempfile::TempDir, PathBuf) {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().join("web");
        fs::create_dir(&directory).unwrap();
        for file in files {
            fs::write(directory.join(file), "x").unwrap();
        }
        (root, directory)
    }

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn d17_all_files_of_the_run_go_and_those_of_others_stay() {
        let (_root, web) = directory(&[
            "3.log",
            "3.log.20260102-030405",
            "3.log.20260102-030400.gz",
            "4.log",
            "5.log",
            "33.log",
            "3.logs",
            "note",
        ]);
        remove(&web.join("3.log"), &[4, 5]).unwrap();
        assert_eq!(names(&web), ["3.logs", "33.log", "4.log", "5.log", "note"]);
        remove(&web.join("3.log"), &[4, 5]).unwrap();
    }

    #[test]
    fn what_earlier_runs_left_behind_goes_and_what_later_ones_write_stays() {
        let (_root, web) = directory(&["0.log", "1.log.20260102-030405.gz.tmp", "2.log", "3.log", "4.log", "+1.log"]);
        remove(&web.join("2.log"), &[3]).unwrap();
        assert_eq!(names(&web), ["+1.log", "3.log", "4.log"]);
    }

    #[test]
    fn the_directory_goes_with_the_last_run_unless_somebody_else_uses_it() {
        let (_root, web) = directory(&["0.log", "1.log"]);
        remove(&web.join("1.log"), &[]).unwrap();
        assert!(!web.try_exists().unwrap());
        remove(&web.join("1.log"), &[]).unwrap();
        let (_root, web) = directory(&["1.log", "note"]);
        remove(&web.join("1.log"), &[]).unwrap();
        assert_eq!(names(&web), ["note"]);
    }
}
