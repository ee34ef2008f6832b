//! The API's unix socket: made so that it is never seen with wrong permissions, and served by one daemon at a time.

use nix::errno::Errno;
use nix::fcntl::{Flock, FlockArg};
use nix::unistd::{Gid, chown};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tokio::net::UnixListener;

/// Time for which a lock that somebody has is tried again.
const HANDOVER: Duration = Duration::from_secs(2);
/// Time between two tries.
const LOOK: Duration = Duration::from_millis(10);

/// Errors of opening the socket.
#[derive(Debug, thiserror::Error)]
pub enum SocketError {
    /// Another daemon has it.
    #[error("another podstead daemon is already listening on {}", path.display())]
    InUse {
        /// The socket.
        path: PathBuf,
    },
    /// The configured group is not in `/etc/group`.
    #[error("group {group:?} (apiSocketGroup) does not exist")]
    NoSuchGroup {
        /// The configured name.
        group: String,
    },
    /// The system refused.
    #[error("{operation} {}", path.display())]
    System {
        /// The failed operation.
        operation: &'static str,
        /// With which file.
        path: PathBuf,
        /// Error of the system.
        #[source]
        source: std::io::Error,
    },
}

/// A listening socket, and the lock that makes it the only one.
#[derive(Debug)]
pub struct ApiSocket {
    pub(super) listener: UnixListener,
    path: PathBuf,
    // Given up by the kernel with the process, so a crash leaves nothing to clean up.
    _lock: Flock<File>,
}

impl ApiSocket {
    /// Listens at `path`, for root alone, also for a group, or for everybody where roles decide. Replaces a socket that a dead daemon left. The directory must exist.
    /// Must be called inside a tokio runtime.
    pub fn bind(path: &Path, group: Option<&str>, has_roles: bool) -> Result<Self, SocketError> {
        let failed = |operation, path: &Path| {
            let path = path.to_owned();
            move |source| SocketError::System { operation, path, source }
        };
        let lock_path = path.with_extension("lock");
        let lock_file = OpenOptions::new().create(true).append(true).mode(0o600).open(&lock_path);
        let lock_file = lock_file.map_err(failed("open the lock file", &lock_path))?;
        let lock = lock(lock_file).map_err(|errno| match errno {
            Errno::EWOULDBLOCK => SocketError::InUse { path: path.to_owned() },
            errno => failed("lock", &lock_path)(errno.into()),
        })?;
        let group = group.map(|name| Ok((find_group(name)?, name))).transpose()?;

        // Owner and mode are set before the socket gets its name.
        let temporary = path.with_extension("sock.tmp");
        remove(&temporary).map_err(failed("remove", &temporary))?;
        let listener = UnixListener::bind(&temporary).map_err(failed("listen on", &temporary))?;
        if let Some((gid, _)) = group {
            chown(&temporary, None, Some(gid)).map_err(|errno| failed("change the group of", &temporary)(errno.into()))?;
        }
        let mode = match (has_roles, group) {
            (true, _) => 0o666,
            (false, Some(_)) => 0o660,
            (false, None) => 0o600,
        };
        fs::set_permissions(&temporary, Permissions::from_mode(mode)).map_err(failed("set the mode of", &temporary))?;
        fs::rename(&temporary, path).map_err(failed("rename the socket to", path))?;
        Ok(Self { listener, path: path.to_owned(), _lock: lock })
    }

    /// Path of the socket.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// Takes the lock. A daemon that was killed while it started a process may leave a child that has not executed its program yet: it has the lock
/// for that moment.
fn lock(mut file: File) -> Result<Flock<File>, Errno> {
    let end = Instant::now() + HANDOVER;
    loop {
        file = match Flock::lock(file, FlockArg::LockExclusiveNonblock) {
            Ok(lock) => return Ok(lock),
            Err((file, Errno::EWOULDBLOCK)) if Instant::now() < end => file,
            Err((_, errno)) => return Err(errno),
        };
        std::thread::sleep(LOOK);
    }
}

fn remove(path: &Path) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Reads `/etc/group` itself: a static binary cannot load the modules that `getgrnam` wants.
fn find_group(name: &str) -> Result<Gid, SocketError> {
    let path = Path::new("/etc/group");
    let content =
        fs::read_to_string(path).map_err(|source| SocketError::System { operation: "read", path: path.to_owned(), source })?;
    group_id(&content, name).map(Gid::from_raw).ok_or_else(|| SocketError::NoSuchGroup { group: name.to_owned() })
}

fn group_id(content: &str, name: &str) -> Option<u32> {
    content.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(name)).then(|| fields.nth(1)?.parse().ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[tokio::test]
    async fn lock_of_a_dying_daemon_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("podstead.sock");
        let held = ApiSocket::bind(&path, None, false).unwrap();
        let second = {
            let path = path.clone();
            std::thread::spawn(move || lock(File::open(path.with_extension("lock")).unwrap()).is_ok())
        };
        drop(held);
        assert!(second.join().unwrap());
        let _held = ApiSocket::bind(&path, None, false).unwrap();
        assert!(matches!(ApiSocket::bind(&path, None, false), Err(SocketError::InUse { .. })));
    }

    #[tokio::test]
    async fn the_socket_is_for_root_alone_or_for_a_group() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("podstead.sock");
        let socket = ApiSocket::bind(&path, None, false).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        drop(socket);
        let of_group = ApiSocket::bind(&path, Some("daemon"), false).unwrap();
        let metadata = fs::metadata(&path).unwrap();
        assert_eq!((metadata.mode() & 0o777, metadata.gid()), (0o660, 1));
        drop(of_group);
        let _socket = ApiSocket::bind(&path, None, true).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o666, "roles decide");
    }

    #[tokio::test]
    async fn only_one_daemon_serves_a_socket_and_a_dead_ones_is_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("podstead.sock");
        let first = ApiSocket::bind(&path, None, false).unwrap();
        assert!(matches!(ApiSocket::bind(&path, None, false), Err(SocketError::InUse { .. })));
        assert!(tokio::net::UnixStream::connect(&path).await.is_ok(), "the refused one left the socket alone");
        drop(first);
        let _second = ApiSocket::bind(&path, None, false).unwrap();
        assert!(tokio::net::UnixStream::connect(&path).await.is_ok());
    }

    #[tokio::test]
    async fn an_unknown_group_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let error = ApiSocket::bind(&directory.path().join("s.sock"), Some("no-such-group"), false).unwrap_err();
        assert_eq!(error.to_string(), r#"group "no-such-group" (apiSocketGroup) does not exist"#);
    }

    #[test]
    fn groups_are_found_by_their_whole_name() {
        let content = "adm:x:4:syslog\nadmin:x:116:\nbroken\n";
        assert_eq!(group_id(content, "admin"), Some(116));
        assert_eq!(group_id(content, "adm"), Some(4));
        assert_eq!(group_id(content, "broken"), None);
        assert_eq!(group_id(content, "ad"), None);
    }
}
