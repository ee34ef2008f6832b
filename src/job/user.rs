//! The user of jobs.

use std::path::{Path, PathBuf};

/// The system user that the package makes.
pub const NAME: &str = "podstead-job";
/// A user that nobody else is, where the package made none: a checkout, a test. 65534 is `nobody`, as whom others run, too.
const FALLBACK: u32 = 65533;
const UNLISTED: JobUser = JobUser { uid: FALLBACK, gid: FALLBACK, is_own: false };
/// The file that lists users.
pub const PASSWD: &str = "/etc/passwd";
/// A list of users that is longer is not read.
const LONGEST: u64 = 4 << 20;

/// User of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobUser {
    /// Its number; not 0: a process with uid 0 may signal every process of root without any capability.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
    /// True for the system user [`NAME`].
    pub is_own: bool,
}

/// The user in the list at `passwd`, or the one that is used without it.
pub fn find(passwd: &Path) -> JobUser {
    named(NAME, &text_of(passwd)).unwrap_or(UNLISTED)
}

/// As [`find`], for a program that wants its user to be in the list: without the system user, that is `nobody`.
pub fn find_listed(passwd: &Path) -> JobUser {
    let text = text_of(passwd);
    let nobody = || Some(JobUser { is_own: false, ..named("nobody", &text)? });
    named(NAME, &text).or_else(nobody).unwrap_or(UNLISTED)
}

/// Home directory of root.
pub fn home_of_root(passwd: &Path) -> Option<PathBuf> {
    let text = text_of(passwd);
    let home = text.lines().find_map(|line| match line.split(':').collect::<Vec<_>>()[..] {
        [_, _, "0", _, _, home, ..] => Some(home),
        _ => None,
    });
    home.filter(|home| home.starts_with('/')).map(PathBuf::from)
}

fn text_of(passwd: &Path) -> String {
    let is_short = std::fs::metadata(passwd).is_ok_and(|metadata| metadata.len() <= LONGEST);
    let text = if is_short { std::fs::read(passwd).unwrap_or_default() } else { Vec::new() };
    String::from_utf8_lossy(&text).into_owned()
}

fn named(wanted: &str, text: &str) -> Option<JobUser> {
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _password, uid, gid) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
        // Root under another name would be no wall.
        (name == wanted && uid != 0 && gid != 0).then_some(JobUser { uid, gid, is_own: true })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_is_looked_up_and_never_root() {
        let text = "root:x:0:0:root:/root:/bin/bash\npodstead-job:x:997:996:podstead jobs:/:/usr/sbin/nologin\n";
        assert_eq!(named(NAME, text), Some(JobUser { uid: 997, gid: 996, is_own: true }));
        assert_eq!(named(NAME, "podstead-job:x:0:996::/:\n"), None);
        assert_eq!(named(NAME, "podstead-job:x:997\n"), None);
        assert_eq!(find(Path::new("/nowhere/passwd")), UNLISTED);
    }

    #[test]
    fn programs_run_as_nobody_without_the_user() {
        let list = tempfile::NamedTempFile::new().unwrap();
        let others = "root:x:0:0:root:/home/root:/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/bin/false\n";
        std::fs::write(&list, others).unwrap();
        assert_eq!(find_listed(list.path()), JobUser { uid: 65534, gid: 65534, is_own: false });
        assert_eq!(home_of_root(list.path()).as_deref(), Some(Path::new("/home/root")));
        std::fs::write(&list, format!("{others}podstead-job:x:997:996::/:\n")).unwrap();
        assert_eq!(find_listed(list.path()), JobUser { uid: 997, gid: 996, is_own: true });
        assert_eq!(find_listed(Path::new("/nowhere/passwd")), UNLISTED);
    }
}
