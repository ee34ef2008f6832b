//! Copying files in a container: the process that exec made, in place of a program.
//!
//! It has what a program of the container would have: namespaces, cgroup, user, capabilities, system call filter. So links and mounts of the
//! container lead to what the container sees, and nowhere else.

use super::execute;
use libcontainer::oci_spec::runtime::LinuxCapabilities;
use nix::sys::prctl;
use podstead_container::CopyJob;
use podstead_copy::{CopyError, Owners, Target, pack, unpack};
use podstead_sys::process::{close_others, exit_at_once};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, Write};
use std::os::fd::{AsFd, OwnedFd};

/// Bytes that are read and written at once.
const BUFFER: usize = 64 << 10;

/// Capabilities that a program of this user would have: executing takes from a user that is not root all capabilities that are not ambient, and a process that
/// copies executes nothing.
pub(super) fn capabilities(of_container: &LinuxCapabilities, uid: u32) -> LinuxCapabilities {
    let mut given = of_container.clone();
    if uid != 0 {
        let ambient = Some(of_container.ambient().clone().unwrap_or_default());
        given.set_effective(ambient.clone()).set_permitted(ambient.clone()).set_inheritable(ambient.clone()).set_ambient(ambient);
    }
    given
}

/// Confines this process at once: what was asked for so far takes effect when a program is executed.
fn confine(profile: &str) -> io::Result<()> {
    for path in ["/proc/self/attr/apparmor/current", "/proc/self/attr/current"] {
        match File::options().write(true).open(path) {
            // A container may have mounted something else there.
            Ok(file) if rustix::fs::fstatfs(&file)?.f_type != rustix::fs::PROC_SUPER_MAGIC => {
                return Err(io::Error::other("/proc of the container is no procfs"));
            }
            Ok(mut file) => return file.write_all(format!("changeprofile {profile}").as_bytes()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::ErrorKind::NotFound.into())
}

/// Copies and ends the process: with 0, or with 1 and the reason on stderr. `outcome` tells the helper that it runs.
pub(super) fn run(job: &CopyJob, profile: Option<&str>, outcome: OwnedFd) -> ! {
    // Processes of the container must not look into this one, nor reach its program. A change of user may have allowed it (`fs.suid_dumpable`).
    if let Err(error) = prctl::set_dumpable(false) {
        execute::fail(&outcome, &format!("disable tracing: {error}"));
    }
    if let Some(profile) = profile.filter(|profile| !profile.is_empty())
        && let Err(error) = confine(profile)
    {
        execute::fail(&outcome, &format!("apply AppArmor profile: {error}"));
    }
    drop(outcome);
    // What the helper has open is of the host. Nothing of it is used any more, since this process ends here.
    close_others();
    let result = match job {
        CopyJob::From { path } => stdout().and_then(|out| {
            let mut out = BufWriter::with_capacity(BUFFER, out);
            let left_out = pack(path, &mut out)?;
            out.flush().map_err(CopyError::Write)?;
            left_out.iter().for_each(|line| say(&format!("left out {line}")));
            Ok(())
        }),
        CopyJob::Into { path, name, preserve } => {
            let is_kept = *preserve && nix::unistd::geteuid().is_root();
            let owners = if is_kept { Owners::Kept } else { Owners::OfUser };
            let target = Target::Container { path: path.clone(), name: name.into(), owners };
            unpack(BufReader::with_capacity(BUFFER, io::stdin()), &target).map(drop)
        }
    };
    match result {
        Ok(()) => exit_at_once(0),
        Err(error) => {
            say(&super::super::explain(&error));
            exit_at_once(1)
        }
    }
}

fn stdout() -> Result<File, CopyError> {
    io::stdout().as_fd().try_clone_to_owned().map(File::from).map_err(CopyError::Write)
}

fn say(line: &str) {
    // The client may have gone.
    writeln!(io::stderr(), "{line}").ok();
}

#[cfg(test)]
mod tests {
    use super::*;
    use libcontainer::oci_spec::runtime::Capability;
    use std::collections::HashSet;

    #[test]
    fn only_root_keeps_capabilities_without_executing() {
        let all = Some(HashSet::from([Capability::DacOverride, Capability::Chown]));
        let mut of_container = LinuxCapabilities::default();
        of_container.set_bounding(all.clone()).set_effective(all.clone()).set_permitted(all.clone()).set_inheritable(all.clone());
        of_container.set_ambient(None);
        assert_eq!(capabilities(&of_container, 0), of_container);
        let none = Some(HashSet::new());
        let given = capabilities(&of_container, 1000);
        assert_eq!((given.effective(), given.permitted(), given.inheritable()), (&none, &none, &none));
        assert_eq!(given.bounding(), &all);
    }
}
