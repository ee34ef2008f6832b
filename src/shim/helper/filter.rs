//! Filters of system calls. libseccomp takes some milliseconds to compile one, so a filter is kept for the containers and processes that have the same,
//! until the host is booted: the files are in the run directory, root's alone, and each begins with the digest of its program. One that is
//! not there, or not what was written, is compiled.

use super::{Attempt, Failure};
use libcontainer::oci_spec::runtime::{
    Arch, LinuxSeccomp, LinuxSeccompAction, LinuxSeccompArg, LinuxSeccompFilterFlag, LinuxSeccompOperator, LinuxSyscall,
};
use libseccomp::error::SeccompError;
use libseccomp::{ScmpAction, ScmpArch, ScmpArgCompare, ScmpCompareOp, ScmpFilterContext, ScmpSyscall};
use nix::sys::memfd::{MFdFlags, memfd_create};
use podstead_container::digest::Digest;
use podstead_sys::atomic_file::write_atomic;
use podstead_sys::seccomp::Program;
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Seek};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

/// Filters that are kept. A host has a few: the default one for each set of capabilities, and those of its files.
const MAX_KEPT: usize = 64;
/// Bytes of a digest.
const DIGEST: usize = 32;

/// A compiled filter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Filter {
    program: Program,
    flags: u32,
}

impl Filter {
    /// The filter that `profile` describes; it is kept in `directory`. `None` for one that only libcontainer can load: a listener decides on some calls.
    pub(super) fn of(profile: &LinuxSeccomp, directory: &Path) -> Result<Option<Self>, Failure> {
        if libcontainer::seccomp::is_notify(profile) || profile.default_action() == LinuxSeccompAction::ScmpActNotify {
            return Ok(None);
        }
        let flags = flags_of(profile);
        // Another build may have another libseccomp.
        let text = serde_json::to_vec(&(env!("CARGO_PKG_VERSION"), profile)).attempt("encode system call filter")?;
        let file = directory.join(Digest::of(&text).hex());
        if let Some(program) = read(&file) {
            return Ok(Some(Self { program, flags }));
        }
        let program = compile(profile).attempt("compile system call filter")?;
        // Without it, the next start compiles it again.
        let _not_kept = keep(&file, &program);
        Ok(Some(Self { program, flags }))
    }

    /// Loads it into this process, for good.
    pub(super) fn load(&self) -> io::Result<()> {
        self.program.load(self.flags)
    }
}

/// The flags for seccomp(2). The one that synchronises threads has no meaning for a process with one, the one about listeners none without.
fn flags_of(profile: &LinuxSeccomp) -> u32 {
    let flag = |flag: &LinuxSeccompFilterFlag| match flag {
        LinuxSeccompFilterFlag::SeccompFilterFlagLog => libc::SECCOMP_FILTER_FLAG_LOG,
        LinuxSeccompFilterFlag::SeccompFilterFlagSpecAllow => libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW,
        LinuxSeccompFilterFlag::SeccompFilterFlagTsync | LinuxSeccompFilterFlag::SeccompFilterFlagWaitKillableRecv => 0,
    };
    let all = profile.flags().iter().flatten().fold(0, |all, one| all | flag(one));
    u32::try_from(all).unwrap_or_default()
}

/// A kept program, if it is what was written.
fn read(file: &Path) -> Option<Program> {
    let mut content = Vec::new();
    let most = u64::try_from(DIGEST + Program::MAX_BYTES + 1).ok()?;
    File::open(file).ok()?.take(most).read_to_end(&mut content).ok()?;
    let (digest, program) = content.split_at_checked(DIGEST)?;
    (Digest::of(program).bytes() == *digest).then(|| Program::new(program.to_vec())).flatten()
}

fn keep(file: &Path, program: &Program) -> io::Result<()> {
    let Some(directory) = file.parent() else { return Ok(()) };
    DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    if fs::read_dir(directory)?.count() >= MAX_KEPT {
        return Ok(());
    }
    let mut content = Digest::of(program.bytes()).bytes().to_vec();
    content.extend_from_slice(program.bytes());
    write_atomic(file, &content, 0o600)
}

/// Compiles as libcontainer does: a call that libseccomp does not know is left out, as is a rule that says what holds in any case.
fn compile(profile: &LinuxSeccomp) -> Result<Program, CompileError> {
    let otherwise = action(profile.default_action(), profile.default_errno_ret())?;
    let mut context = ScmpFilterContext::new(otherwise)?;
    for architecture in profile.architectures().iter().flatten() {
        context.add_arch(machine(*architecture))?;
    }
    for rule in profile.syscalls().iter().flatten() {
        let action = action(rule.action(), rule.errno_ret())?;
        if action != otherwise {
            add(&mut context, action, rule)?;
        }
    }
    let mut file = File::from(memfd_create(c"filter", MFdFlags::MFD_CLOEXEC).map_err(io::Error::from)?);
    context.export_bpf(&file)?;
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Program::new(bytes).ok_or(CompileError::TooLong)
}

/// Reason why there is no filter.
#[derive(Debug, thiserror::Error)]
enum CompileError {
    /// A rule that libseccomp does not take.
    #[error(transparent)]
    Rule(#[from] SeccompError),
    /// The kernel did not give memory for it.
    #[error("read the compiled filter")]
    Memory(#[from] io::Error),
    /// A number that tracers cannot be told.
    #[error("{0} is too large for SCMP_ACT_TRACE")]
    Trace(i32),
    /// More instructions than the kernel takes.
    #[error("the filter has more instructions than the kernel accepts")]
    TooLong,
}

fn add(context: &mut ScmpFilterContext, action: ScmpAction, rule: &LinuxSyscall) -> Result<(), CompileError> {
    let conditions: Vec<ScmpArgCompare> = rule.args().iter().flatten().map(condition).collect();
    let arguments: BTreeSet<usize> = rule.args().iter().flatten().map(LinuxSeccompArg::index).collect();
    for call in rule.names().iter().filter_map(|name| ScmpSyscall::from_name(name).ok()) {
        if conditions.is_empty() {
            context.add_rule(action, call)?;
        } else if arguments.len() < conditions.len() {
            // Several conditions on one argument: one of them has to hold, as with runc.
            for condition in &conditions {
                context.add_rule_conditional(action, call, std::slice::from_ref(condition))?;
            }
        } else {
            context.add_rule_conditional(action, call, &conditions)?;
        }
    }
    Ok(())
}

fn condition(argument: &LinuxSeccompArg) -> ScmpArgCompare {
    let operator = match argument.op() {
        LinuxSeccompOperator::ScmpCmpNe => ScmpCompareOp::NotEqual,
        LinuxSeccompOperator::ScmpCmpLt => ScmpCompareOp::Less,
        LinuxSeccompOperator::ScmpCmpLe => ScmpCompareOp::LessOrEqual,
        LinuxSeccompOperator::ScmpCmpEq => ScmpCompareOp::Equal,
        LinuxSeccompOperator::ScmpCmpGe => ScmpCompareOp::GreaterEqual,
        LinuxSeccompOperator::ScmpCmpGt => ScmpCompareOp::Greater,
        LinuxSeccompOperator::ScmpCmpMaskedEq => ScmpCompareOp::MaskedEqual(argument.value_two().unwrap_or(0)),
    };
    // The kernel has six arguments; libseccomp refuses others.
    ScmpArgCompare::new(u32::try_from(argument.index()).unwrap_or(u32::MAX), operator, argument.value())
}

fn action(action: LinuxSeccompAction, errno: Option<u32>) -> Result<ScmpAction, CompileError> {
    let errno = errno.map_or(libc::EPERM, u32::cast_signed);
    Ok(match action {
        LinuxSeccompAction::ScmpActKill | LinuxSeccompAction::ScmpActKillThread => ScmpAction::KillThread,
        LinuxSeccompAction::ScmpActKillProcess => ScmpAction::KillProcess,
        LinuxSeccompAction::ScmpActTrap => ScmpAction::Trap,
        LinuxSeccompAction::ScmpActErrno => ScmpAction::Errno(errno),
        LinuxSeccompAction::ScmpActTrace => ScmpAction::Trace(errno.try_into().map_err(|_| CompileError::Trace(errno))?),
        LinuxSeccompAction::ScmpActAllow => ScmpAction::Allow,
        LinuxSeccompAction::ScmpActLog => ScmpAction::Log,
        LinuxSeccompAction::ScmpActNotify => ScmpAction::Notify,
    })
}

fn machine(architecture: Arch) -> ScmpArch {
    match architecture {
        Arch::ScmpArchNative => ScmpArch::Native,
        Arch::ScmpArchX86 => ScmpArch::X86,
        Arch::ScmpArchX86_64 => ScmpArch::X8664,
        Arch::ScmpArchX32 => ScmpArch::X32,
        Arch::ScmpArchArm => ScmpArch::Arm,
        Arch::ScmpArchAarch64 => ScmpArch::Aarch64,
        Arch::ScmpArchMips => ScmpArch::Mips,
        Arch::ScmpArchMips64 => ScmpArch::Mips64,
        Arch::ScmpArchMips64n32 => ScmpArch::Mips64N32,
        Arch::ScmpArchMipsel => ScmpArch::Mipsel,
        Arch::ScmpArchMipsel64 => ScmpArch::Mipsel64,
        Arch::ScmpArchMipsel64n32 => ScmpArch::Mipsel64N32,
        Arch::ScmpArchPpc => ScmpArch::Ppc,
        Arch::ScmpArchPpc64 => ScmpArch::Ppc64,
        Arch::ScmpArchPpc64le => ScmpArch::Ppc64Le,
        Arch::ScmpArchS390 => ScmpArch::S390,
        Arch::ScmpArchS390x => ScmpArch::S390X,
        Arch::ScmpArchRiscv64 => ScmpArch::Riscv64,
        Arch::ScmpArchParisc => ScmpArch::Parisc,
        Arch::ScmpArchParisc64 => ScmpArch::Parisc64,
        Arch::ScmpArchLoongarch64 => ScmpArch::Loongarch64,
        Arch::ScmpArchM68k => ScmpArch::M68k,
        Arch::ScmpArchSh => ScmpArch::Sh,
        Arch::ScmpArchSheb => ScmpArch::Sheb,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;
    use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
    use nix::unistd::getpgid;

    fn profile(text: &str) -> LinuxSeccomp {
        serde_json::from_str(text).unwrap()
    }

    fn refusing(call: &str, errno: u32) -> LinuxSeccomp {
        profile(&format!(
            r#"{{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{{"names": ["{call}", "no_such_call"], "action": "SCMP_ACT_ERRNO", "errnoRet": {errno}}}]}}"#
        ))
    }

    #[test]
    fn filter_is_compiled_once_and_again_when_its_file_was_damaged() {
        let directory = tempfile::tempdir().unwrap();
        let kept = directory.path().join("filters");
        let profile = refusing("mkdir", 122);
        let first = Filter::of(&profile, &kept).unwrap().unwrap();
        let file = fs::read_dir(&kept).unwrap().next().unwrap().unwrap().path();
        let written = fs::read(&file).unwrap();
        assert_eq!(read(&file).as_ref(), Some(&first.program));
        // What is read is what was kept: with another program there, that one is used.
        let other = compile(&refusing("mkdir", 7)).unwrap();
        keep(&file, &other).unwrap();
        assert_eq!(Filter::of(&profile, &kept).unwrap().unwrap().program, other);
        for damaged in [&written[..written.len() - 8], &written[..DIGEST - 1], b"", &[0; DIGEST]] {
            fs::write(&file, damaged).unwrap();
            assert_eq!(Filter::of(&profile, &kept).unwrap().unwrap(), first);
            assert_eq!(fs::read(&file).unwrap(), written);
        }
        assert_ne!(Filter::of(&refusing("mkdir", 1), &kept).unwrap().unwrap().program, first.program);
        assert_eq!(fs::read_dir(&kept).unwrap().count(), 2);
    }

    #[test]
    fn directory_does_not_grow_for_ever_and_a_filter_that_is_not_kept_is_one() {
        let directory = tempfile::tempdir().unwrap();
        for errno in 1..=u32::try_from(MAX_KEPT).unwrap() + 5 {
            Filter::of(&refusing("mkdir", errno), directory.path()).unwrap().unwrap();
        }
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), MAX_KEPT);
        let file = directory.path().join("in the way");
        fs::write(&file, "").unwrap();
        assert!(Filter::of(&refusing("mkdir", 1), &file).unwrap().is_some());
    }

    #[test]
    fn filter_with_a_listener_is_left_to_libcontainer() {
        let text = r#"{"defaultAction": "SCMP_ACT_ALLOW", "syscalls": [{"names": ["mkdir"], "action": "SCMP_ACT_NOTIFY"}]}"#;
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Filter::of(&profile(text), directory.path()).unwrap(), None);
    }

    #[test]
    fn flags_are_passed_on() {
        let with = |flags: &str| profile(&format!(r#"{{"defaultAction": "SCMP_ACT_ALLOW", "flags": [{flags}]}}"#));
        assert_eq!(flags_of(&with("")), 0);
        assert_eq!(flags_of(&with(r#""SECCOMP_FILTER_FLAG_LOG", "SECCOMP_FILTER_FLAG_TSYNC""#)), 2);
        assert_eq!(flags_of(&with(r#""SECCOMP_FILTER_FLAG_LOG", "SECCOMP_FILTER_FLAG_SPEC_ALLOW""#)), 6);
    }

    /// Answers to calls in a thread that loads a filter before: whether each was let through.
    fn answers(load: impl FnOnce() + Send + 'static) -> Vec<Result<(), Errno>> {
        let thread = std::thread::spawn(move || {
            nix::sys::prctl::set_no_new_privs().unwrap();
            load();
            let families = [AddressFamily::Unix, AddressFamily::Inet, AddressFamily::Inet6, AddressFamily::Netlink];
            let sockets = families.map(|family| socket(family, SockType::Raw, SockFlag::SOCK_NONBLOCK, None).map(drop));
            let made = std::fs::create_dir("/proc/x").map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or_default()));
            sockets.into_iter().chain([made, getpgid(None).map(drop)]).collect()
        });
        thread.join().unwrap()
    }

    #[test]
    fn filter_lets_through_what_that_of_libcontainer_does() {
        let text = r#"{"defaultAction": "SCMP_ACT_ALLOW", "flags": ["SECCOMP_FILTER_FLAG_LOG"], "syscalls": [
            {"names": ["mkdir", "mkdirat"], "action": "SCMP_ACT_ERRNO", "errnoRet": 122},
            {"names": ["getpgid", "no_such_call"], "action": "SCMP_ACT_ERRNO"},
            {"names": ["getppid"], "action": "SCMP_ACT_ALLOW"},
            {"names": ["socket"], "action": "SCMP_ACT_ERRNO", "errnoRet": 9, "args": [
                {"index": 0, "value": 2, "op": "SCMP_CMP_EQ"}, {"index": 0, "value": 10, "op": "SCMP_CMP_EQ"}]},
            {"names": ["socket"], "action": "SCMP_ACT_ERRNO", "errnoRet": 93, "args": [
                {"index": 0, "value": 16, "op": "SCMP_CMP_EQ"}, {"index": 1, "value": 3, "valueTwo": 3, "op": "SCMP_CMP_MASKED_EQ"}]}]}"#;
        let theirs = answers(move || assert_eq!(libcontainer::seccomp::initialize_seccomp(&profile(text)).unwrap(), None));
        let ours = answers(move || {
            let directory = tempfile::tempdir().unwrap().keep();
            Filter::of(&profile(text), &directory).unwrap().unwrap().load().unwrap();
        });
        assert_eq!(ours, theirs);
        let (refused, unknown) = (Err(Errno::EBADF), Err(Errno::EPROTONOSUPPORT));
        assert_eq!(ours, [Ok(()), refused, refused, unknown, Err(Errno::EDQUOT), Err(Errno::EPERM)]);
    }
}
