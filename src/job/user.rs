//! The user of jobs.

use std::path::Path;

/// The system user that the package makes.
pub const NAME: &str = "podstead-job";
/// A user that nobody else is, where the package made none: a checkout, a test. 65534 is `nobody`, as whom others run, too.
const FALLBACK: u32 = 65533;
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
    let is_short = std::fs::metadata(passwd).is_ok_and(|metadata| metadata.len() <= LONGEST);
    let text = if is_short { std::fs::read(passwd).unwrap_or_default() } else { Vec::new() };
    find_in(&String::from_utf8_lossy(&text)).unwrap_or(JobUser { uid: FALLBACK, gid: FALLBACK, is_own: false })
}

fn find_in(text: &str) -> Option<JobUser> {
    text.lines().find_map(|line| {
        let mut fields = line.split(':');
        let (name, _password, uid, gid) = (fields.next()?, fields.next()?, fields.next()?, fields.next()?);
        let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
        // Root under another name would be no wall.
        (name == NAME && uid != 0 && gid != 0).then_some(JobUser { uid, gid, is_own: true })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_is_looked_up_and_never_root() {
        let text = "root:x:0:0:root:/root:/bin/bash\npodstead-job:x:997:996:podstead jobs:/:/usr/sbin/nologin\n";
        assert_eq!(find_in(text), Some(JobUser { uid: 997, gid: 996, is_own: true }));
        assert_eq!(find_in("podstead-job:x:0:996::/:\n"), None);
        assert_eq!(find_in("podstead-job:x:997\n"), None);
        let without = find(Path::new("/nowhere/passwd"));
        assert_eq!(without, JobUser { uid: FALLBACK, gid: FALLBACK, is_own: false });
    }
}
