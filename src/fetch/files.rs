//! The files that a job sees: copies of those of the host's resolver, in memory, and nothing else. They go with the process.

use podstead_job::confine::Mounts;
use podstead_sys::jail;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Files of the resolver. Each job copies them anew, so that a new name server counts from the next poll on.
const FILES: [&str; 5] = ["resolv.conf", "hosts", "nsswitch.conf", "host.conf", "gai.conf"];
/// Their directory.
const DIRECTORY: &str = "etc";
/// Bytes of one copied file at most: some hosts list all servers of advertisements.
pub(crate) const COPY_MAX: u64 = 16 << 20;

/// A file of the resolver.
pub(crate) type Copied = (&'static str, Vec<u8>);

/// Reads the files of the resolver that `directory` has. One that is too long counts as missing.
pub(crate) fn read(directory: &Path) -> Vec<Copied> {
    let read = |name| {
        let mut content = Vec::new();
        File::open(directory.join(name)).ok()?.take(COPY_MAX + 1).read_to_end(&mut content).ok()?;
        (content.len() as u64 <= COPY_MAX).then_some((name, content))
    };
    FILES.into_iter().filter_map(read).collect()
}

/// Makes a root directory with these files for this process, which must have one thread, and enters it. Nobody but root can change anything there.
pub(crate) fn enter_root(copies: &[Copied]) -> io::Result<()> {
    let mounts = Mounts::enter()?;
    let place = mounts.place()?;
    let root = jail::make(&place, &[DIRECTORY])?;
    for (name, content) in copies {
        let path = place.join(DIRECTORY).join(name);
        File::options().write(true).create_new(true).mode(0o444).open(path)?.write_all(content)?;
    }
    mounts.leave_for(&root)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn files_of_the_resolver_are_read_through_links_within_their_limit() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path();
        fs::write(path.join("stub"), "nameserver 127.0.0.53\n").unwrap();
        std::os::unix::fs::symlink("stub", path.join("resolv.conf")).unwrap();
        fs::write(path.join("shadow"), "root").unwrap();
        File::create(path.join("hosts")).unwrap().set_len(COPY_MAX + 1).unwrap();
        assert_eq!(read(path), [("resolv.conf", b"nameserver 127.0.0.53\n".to_vec())]);
        File::create(path.join("hosts")).unwrap().set_len(1).unwrap();
        assert_eq!(read(path).len(), 2);
    }
}
