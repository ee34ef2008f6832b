//! A program of the host in the place of a job: `ssh`, which reads what a server sends.
//!
//! It has no capabilities, no podstead files and no `/proc`: its root directory is in memory, with the host's programs and settings, read-only, and copies of
//! the few files that it was given. They go with the process. It has the network of the host, and no filter of system calls: nobody knows which ones a
//! program of the host makes.

use crate::channel::Channel;
use crate::confine::{self, ConfineError, Mounts, Rlimits};
use crate::user::JobUser;
use podstead_sys::mount_tree::{self, EventFlow, Submounts};
use podstead_sys::{jail, process};
use rustix::fs::{CWD, Gid, Mode};
use rustix::mount::MountAttrFlags;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Component, Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

/// Name of the task on the command line.
pub const TASK: &str = "program";
/// First words of the error output when it is podstead's, because there was no program to speak.
pub const CANNOT_RUN: &str = "podstead cannot run";
/// Directory of the copies, as the program sees it.
pub const COPIES: &str = "/podstead";
/// Bytes of one copied file at most. The limits of the process must allow that it writes them.
pub const COPY_MAX: u64 = 4 << 20;
/// Programs, libraries and settings of a host, read-only. The last two are those of NixOS and Guix.
const DIRECTORIES: [&str; 10] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/nix/store", "/gnu/store"];
/// Sockets and settings of services that find names.
const NAME_SERVICES: [&str; 3] = ["/run/systemd/resolve", "/run/avahi-daemon", "/run/nscd"];
/// Settings of the resolver, which may be a link to a file of a service.
const RESOLVER: &str = "/etc/resolv.conf";
/// Devices that programs of the host expect.
const DEVICES: [&str; 2] = ["/dev/null", "/dev/urandom"];

/// A program to be executed. Its standard input, output and error output come with it, in this order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Absolute path.
    pub path: PathBuf,
    /// Arguments after its name.
    pub arguments: Vec<String>,
    /// All that there is of an environment.
    pub environment: Vec<(String, String)>,
    /// Files that it reads.
    pub files: Vec<Copied>,
    /// Its limits.
    pub rlimits: Rlimits,
    /// The user that it becomes.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

/// A file that the program may read, whoever may read the original.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Copied {
    /// Path on the host.
    pub from: PathBuf,
    /// Name in [`COPIES`].
    pub name: String,
}

/// Message of this process, before it has executed anything: it cannot give up its rights. A program that was executed does not have the socket.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NotConfined {
    /// Step and error of the kernel.
    pub reason: String,
}

/// Executes the program that the daemon sends to standard input.
pub fn run() -> ExitCode {
    process::close_others();
    let Ok((channel, program, descriptors)) = Channel::open::<Program>() else { return ExitCode::FAILURE };
    let Ok([input, output, errors]) = <[OwnedFd; 3]>::try_from(descriptors) else { return ExitCode::FAILURE };
    let Ok(told) = errors.try_clone() else { return ExitCode::FAILURE };
    let error = match confined(&program) {
        Ok(()) => execute(&program, [input, output, errors]).to_string(),
        Err(ConfineError { step, source }) => {
            let reason = format!("{step}: {source}");
            // Before the words, at which the daemon looks for it.
            let _told = channel.send(&NotConfined { reason: reason.clone() });
            reason
        }
    };
    let name = program.path.file_name().unwrap_or_default().to_string_lossy();
    // A daemon that is gone does not miss it.
    let _told = writeln!(File::from(told), "{CANNOT_RUN} {name}: {error}");
    ExitCode::FAILURE
}

/// Returns the error only.
fn execute(program: &Program, [input, output, errors]: [OwnedFd; 3]) -> io::Error {
    Command::new(&program.path)
        .args(&program.arguments)
        .env_clear()
        .envs(program.environment.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::from(input))
        .stdout(Stdio::from(output))
        .stderr(Stdio::from(errors))
        .exec()
}

fn confined(program: &Program) -> Result<(), ConfineError> {
    let at = |step| move |source| ConfineError { step, source };
    // While the files of the host are there, and this process is root.
    let copies = program.files.iter().map(|file| Ok((file.name.as_str(), read(&file.from)?)));
    let copies: Vec<(&str, Vec<u8>)> = copies.collect::<io::Result<_>>().map_err(at("read a file"))?;
    let user = JobUser { uid: program.uid, gid: program.gid, is_own: true };
    confine::confine_program(user, &program.rlimits, || enter_root(&program.path, &copies, program.gid))
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut content = Vec::new();
    File::open(path)?.take(COPY_MAX + 1).read_to_end(&mut content)?;
    match content.len() as u64 > COPY_MAX {
        true => Err(io::ErrorKind::FileTooLarge.into()),
        false => Ok(content),
    }
}

/// Makes a root directory of its own for this process, which must have one thread, and enters it.
fn enter_root(program: &Path, copies: &[(&str, Vec<u8>)], group: u32) -> io::Result<()> {
    // The file alone: its directory may be all of `/run`.
    let resolver = fs::canonicalize(RESOLVER).ok();
    // Taken while the mounts of the host are those of this process.
    let mut pieces = Vec::new();
    let fixed = DIRECTORIES.iter().chain(&NAME_SERVICES).chain(&DEVICES).map(Path::new);
    for path in fixed.chain(resolver.as_deref()).chain([program]) {
        if !pieces.iter().any(|piece: &Piece| piece.has(path)) {
            pieces.extend(Piece::of(path)?);
        }
    }
    let mounts = Mounts::enter()?;
    let place = mounts.place()?;
    let root = jail::make(&place, &[])?;
    for piece in &pieces {
        piece.put(&place)?;
    }
    put_copies(&below(&place, Path::new(COPIES)), copies, group)?;
    mounts.leave_for(&root)
}

/// Part of the host's files.
enum Piece {
    Link { path: PathBuf, target: PathBuf },
    Tree { path: PathBuf, is_directory: bool, tree: OwnedFd },
}

impl Piece {
    /// The piece that the host has at this path, if it has anything.
    fn of(path: &Path) -> io::Result<Option<Self>> {
        let Ok(metadata) = fs::symlink_metadata(path) else { return Ok(None) };
        if metadata.is_symlink() {
            return Ok(Some(Self::Link { path: path.to_owned(), target: fs::read_link(path)? }));
        }
        // With what is mounted below: a host that is a container has single files there.
        let tree = mount_tree::clone_mount(CWD, path, Submounts::Take)?;
        mount_tree::set_event_flow(&tree, EventFlow::Private)?;
        let flags = MountAttrFlags::MOUNT_ATTR_RDONLY | MountAttrFlags::MOUNT_ATTR_NOSUID;
        mount_tree::set_flags(&tree, flags, Submounts::Take)?;
        Ok(Some(Self::Tree { path: path.to_owned(), is_directory: metadata.is_dir(), tree }))
    }

    /// Returns true if it has what is at `path`, too. What a link leads to is elsewhere.
    fn has(&self, wanted: &Path) -> bool {
        match self {
            Self::Link { path, .. } => wanted == path,
            Self::Tree { path, .. } => wanted.starts_with(path),
        }
    }

    fn put(&self, root: &Path) -> io::Result<()> {
        let (Self::Link { path, .. } | Self::Tree { path, .. }) = self;
        let place = below(root, path);
        fs::create_dir_all(place.parent().unwrap_or(root))?;
        match self {
            Self::Link { target, .. } => symlink(target, place),
            Self::Tree { is_directory, tree, .. } => {
                match is_directory {
                    true => fs::create_dir_all(&place)?,
                    false => drop(File::create(&place)?),
                }
                Ok(mount_tree::attach(tree, &place)?)
            }
        }
    }
}

/// Copies are of root and for the group of the program alone: ssh refuses a key of its own user that others may read.
fn put_copies(directory: &Path, copies: &[(&str, Vec<u8>)], group: u32) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    for (name, content) in copies {
        let mut file = File::options().write(true).create_new(true).mode(0o400).open(directory.join(name))?;
        file.write_all(content)?;
        rustix::fs::fchown(&file, None, Some(Gid::from_raw(group)))?;
        rustix::fs::fchmod(&file, Mode::from_raw_mode(0o440))?;
    }
    Ok(())
}

/// An absolute path below a root. **Pure**.
fn below(root: &Path, path: &Path) -> PathBuf {
    root.join(path.components().filter(|part| matches!(part, Component::Normal(_))).collect::<PathBuf>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_below_their_root() {
        assert_eq!(below(Path::new("/tmp"), Path::new("/usr/lib")), Path::new("/tmp/usr/lib"));
        assert_eq!(below(Path::new("/tmp"), Path::new("/../etc")), Path::new("/tmp/etc"));
    }

    #[test]
    fn large_files_are_not_copied() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        File::create(&path).unwrap().set_len(COPY_MAX).unwrap();
        assert_eq!(read(&path).unwrap().len() as u64, COPY_MAX);
        File::create(&path).unwrap().set_len(COPY_MAX + 1).unwrap();
        assert_eq!(read(&path).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    }
}
