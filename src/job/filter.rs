//! The system calls that jobs may make, as tables. Any other call ends the job.
//!
//! No table has execve, fork, kill, ptrace, mount, unshare, setns, bpf, keyctl, io_uring or userfaultfd.

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule, sock_filter,
};
use std::collections::BTreeMap;
use std::io;

/// A system call: its name and its number on this machine.
pub type Call = (&'static str, i64);

macro_rules! calls {
    ($($number:ident)*) => { &[$((stringify!($number), libc::$number)),*] };
}

/// Memory, threads, time, and what is open already.
pub static COMMON: &[Call] = calls! {
    SYS_read SYS_write SYS_readv SYS_writev SYS_close SYS_fstat SYS_fcntl SYS_lseek
    SYS_mmap SYS_munmap SYS_mprotect SYS_mremap SYS_brk SYS_madvise
    SYS_futex SYS_sched_yield SYS_set_robust_list SYS_rseq SYS_gettid SYS_getpid SYS_sched_getaffinity
    SYS_rt_sigprocmask SYS_rt_sigaction SYS_rt_sigreturn SYS_sigaltstack SYS_restart_syscall
    SYS_clock_gettime SYS_clock_nanosleep SYS_nanosleep SYS_getrandom SYS_ppoll
    SYS_exit SYS_exit_group SYS_statx SYS_newfstatat
};

/// Files by name and descriptor. With the last one, a layer goes to the disk in small steps.
pub static FILES: &[Call] = calls! {
    SYS_pread64 SYS_pwrite64 SYS_openat SYS_openat2 SYS_mkdirat SYS_mknodat SYS_symlinkat SYS_linkat SYS_unlinkat SYS_renameat2
    SYS_fchmod SYS_fchmodat SYS_fchown SYS_fchownat SYS_utimensat SYS_fsetxattr SYS_lsetxattr SYS_flistxattr SYS_fgetxattr SYS_ftruncate SYS_getdents64
    SYS_fchdir SYS_getcwd SYS_sync_file_range
};

/// Calls of libgit2 beside those, for writing a pack.
pub static PACK: &[Call] = calls! {
    SYS_faccessat SYS_faccessat2 SYS_readlinkat SYS_msync SYS_fsync SYS_fdatasync SYS_umask SYS_getuid SYS_geteuid SYS_getppid SYS_sysinfo
};

/// Calls of libgit2 by names that only older machines have.
#[cfg(target_arch = "x86_64")]
pub static OLD_PACK: &[Call] = calls! {
    SYS_open SYS_access SYS_stat SYS_lstat SYS_rename SYS_link SYS_unlink SYS_mkdir SYS_rmdir SYS_chmod SYS_readlink
};
/// Calls of libgit2 by names that only older machines have.
#[cfg(not(target_arch = "x86_64"))]
pub static OLD_PACK: &[Call] = &[];

/// Calls that only older machines have, under names that newer ones replaced.
#[cfg(target_arch = "x86_64")]
static OLD: &[Call] = calls! { SYS_poll SYS_renameat };
#[cfg(target_arch = "aarch64")]
static OLD: &[Call] = calls! { SYS_renameat };
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
static OLD: &[Call] = &[];

/// Calls beside those for a job that asks servers: sockets, the wait for them, and the files of the resolver.
pub static NETWORK: &[Call] = calls! {
    SYS_connect SYS_sendto SYS_recvfrom SYS_sendmsg SYS_recvmsg SYS_sendmmsg SYS_getsockname SYS_getpeername SYS_getsockopt SYS_shutdown
    SYS_epoll_ctl SYS_epoll_pwait
    SYS_openat SYS_uname
};

/// Calls of [`NETWORK`] by names that only older machines have.
#[cfg(target_arch = "x86_64")]
pub static OLD_NETWORK: &[Call] = calls! { SYS_epoll_wait SYS_open SYS_access SYS_stat };
/// Calls of [`NETWORK`] by names that only older machines have.
#[cfg(not(target_arch = "x86_64"))]
pub static OLD_NETWORK: &[Call] = &[];

/// A call that some arguments make harmless: the name for people, its number, and the conditions on its arguments. With several entries for a call,
/// one of them has to hold.
struct Conditional {
    call: Call,
    /// Argument, bits of it that count, and their value.
    conditions: &'static [(u8, u64, u64)],
}

/// Threads may be made, processes may not.
const THREAD: u64 = (libc::CLONE_THREAD | libc::CLONE_VM) as u64;
/// Names of threads.
const NAME: u64 = libc::PR_SET_NAME as u64;

static CONDITIONAL: &[Conditional] = &[
    Conditional { call: ("SYS_clone", libc::SYS_clone), conditions: &[(0, THREAD, THREAD)] },
    Conditional { call: ("SYS_prctl", libc::SYS_prctl), conditions: &[(0, u64::MAX, NAME)] },
];

macro_rules! when {
    ($($call:ident [$($argument:literal & $mask:expr => $value:expr),*])*) => {
        &[$(Conditional { call: (stringify!($call), libc::$call), conditions: &[$(($argument, $mask, $value as u64)),*] }),*]
    };
}

const ALL: u64 = u64::MAX;
/// The type of a socket without its flags.
const KIND: u64 = 0xf;

/// Conditional calls of [`NETWORK`]: sockets of IP alone, without raw ones, and their harmless options. Other families are answered with
/// EAFNOSUPPORT, see [`in_front`].
static NETWORK_CONDITIONAL: &[Conditional] = when! {
    SYS_socket [0 & ALL => libc::AF_INET, 1 & KIND => libc::SOCK_STREAM]
    SYS_socket [0 & ALL => libc::AF_INET, 1 & KIND => libc::SOCK_DGRAM]
    SYS_socket [0 & ALL => libc::AF_INET6, 1 & KIND => libc::SOCK_STREAM]
    SYS_socket [0 & ALL => libc::AF_INET6, 1 & KIND => libc::SOCK_DGRAM]
    SYS_setsockopt [1 & ALL => libc::SOL_SOCKET, 2 & ALL => libc::SO_KEEPALIVE]
    SYS_setsockopt [1 & ALL => libc::IPPROTO_TCP, 2 & ALL => libc::TCP_NODELAY]
    SYS_setsockopt [1 & ALL => libc::IPPROTO_TCP, 2 & ALL => libc::TCP_KEEPIDLE]
    SYS_setsockopt [1 & ALL => libc::IPPROTO_TCP, 2 & ALL => libc::TCP_KEEPINTVL]
    SYS_setsockopt [1 & ALL => libc::IPPROTO_TCP, 2 & ALL => libc::TCP_KEEPCNT]
    SYS_setsockopt [1 & ALL => libc::IPPROTO_TCP, 2 & ALL => libc::TCP_USER_TIMEOUT]
    SYS_setsockopt [1 & ALL => libc::IPPROTO_IP, 2 & ALL => libc::IP_RECVERR]
    SYS_setsockopt [1 & ALL => libc::IPPROTO_IPV6, 2 & ALL => libc::IPV6_RECVERR]
    SYS_ioctl [1 & ALL => libc::FIONBIO]
    SYS_ioctl [1 & ALL => libc::FIONREAD]
};

/// A filter that the kernel takes.
pub struct Filter(BpfProgram);

impl std::fmt::Debug for Filter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Filter({} instructions)", self.0.len())
    }
}

impl Filter {
    /// A filter for this process that lets the calls of `tables` and [`COMMON`] pass.
    pub fn of(tables: &[&[Call]]) -> io::Result<Self> {
        Self::with(tables, CONDITIONAL)
    }

    /// A filter for this process that lets the calls of [`NETWORK`] and [`COMMON`] pass.
    pub fn of_network() -> io::Result<Self> {
        let conditional = CONDITIONAL.iter().chain(NETWORK_CONDITIONAL);
        Self::with(&[NETWORK, OLD_NETWORK], conditional)
    }

    fn with(tables: &[&[Call]], conditional: impl IntoIterator<Item = &'static Conditional>) -> io::Result<Self> {
        let failed = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
        let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
        for (_, number) in [COMMON, OLD].iter().chain(tables).flat_map(|table| table.iter()) {
            rules.insert(*number, Vec::new());
        }
        let condition = |(argument, mask, value): (u8, u64, u64)| {
            SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(mask), value).map_err(|e| failed(&e))
        };
        let rule = |conditions: Vec<(u8, u64, u64)>| -> io::Result<Vec<SeccompRule>> {
            let conditions = conditions.into_iter().map(condition).collect::<io::Result<_>>()?;
            Ok(vec![SeccompRule::new(conditions).map_err(|error| failed(&error))?])
        };
        for Conditional { call: (_, number), conditions } in conditional {
            rules.entry(*number).or_default().extend(rule(conditions.to_vec())?);
        }
        let has_sockets = rules.contains_key(&libc::SYS_socket);
        // abort(3), of this process alone: the end of one without memory is to be told from a violation.
        let own = u64::from(std::process::id());
        rules.insert(libc::SYS_tgkill, rule(vec![(0, u64::MAX, own), (2, u64::MAX, libc::SIGABRT as u64)])?);
        let architecture = std::env::consts::ARCH.try_into().map_err(|_| io::Error::from(io::ErrorKind::Unsupported))?;
        let filter = SeccompFilter::new(rules, SeccompAction::KillProcess, SeccompAction::Allow, architecture);
        let program: BpfProgram = filter.and_then(TryInto::try_into).map_err(|error| failed(&error))?;
        Ok(Self(in_front(program, has_sockets)))
    }

    /// Restricts this process, which must have one thread, for good.
    pub fn apply(&self) -> io::Result<()> {
        seccompiler::apply_filter(&self.0).map_err(|error| io::Error::other(error.to_string()))
    }
}

/// Puts the answers in front that a harmless caller goes on after: clone3 is answered with ENOSYS, for its flags are in memory, where no filter can look, and
/// the C library then uses clone; sockets of other families than IP with EAFNOSUPPORT, for the resolver asks for them, too. By hand, since seccompiler
/// has one answer for all that it refuses; in front, since of two filters the stricter answer counts.
fn in_front(program: BpfProgram, has_sockets: bool) -> BpfProgram {
    const LOAD: u16 = 0x20;
    const JUMP_IF_EQUAL: u16 = 0x15;
    const RETURN: u16 = 0x06;
    const ERRNO: u32 = 0x0005_0000;
    /// Places of the number of the call and of the lower half of its first argument in what a filter sees.
    const NUMBER: u32 = 0;
    const FIRST: u32 = if cfg!(target_endian = "little") { 16 } else { 20 };
    let number = |call: i64| u32::try_from(call).unwrap_or_default();
    let family = |family: i32| family.unsigned_abs();
    let instruction = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let mut all = vec![
        instruction(LOAD, 0, 0, NUMBER),
        instruction(JUMP_IF_EQUAL, 0, 1, number(libc::SYS_clone3)),
        instruction(RETURN, 0, 0, ERRNO | libc::ENOSYS.unsigned_abs()),
    ];
    if has_sockets {
        all.extend([
            instruction(JUMP_IF_EQUAL, 0, 4, number(libc::SYS_socket)),
            instruction(LOAD, 0, 0, FIRST),
            instruction(JUMP_IF_EQUAL, 2, 0, family(libc::AF_INET)),
            instruction(JUMP_IF_EQUAL, 1, 0, family(libc::AF_INET6)),
            instruction(RETURN, 0, 0, ERRNO | libc::EAFNOSUPPORT.unsigned_abs()),
        ]);
    }
    all.extend(program);
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(table: &[Call]) -> Vec<&'static str> {
        table.iter().map(|(name, _)| name.trim_start_matches("SYS_")).collect()
    }

    /// The tables, for a reviewer. No call may come here without a reason.
    #[test]
    fn tables_are_these() {
        assert_eq!(
            names(COMMON).join(" "),
            "read write readv writev close fstat fcntl lseek mmap munmap mprotect mremap brk madvise futex sched_yield set_robust_list \
             rseq gettid getpid sched_getaffinity rt_sigprocmask rt_sigaction rt_sigreturn sigaltstack restart_syscall clock_gettime \
             clock_nanosleep nanosleep getrandom ppoll exit exit_group statx newfstatat"
        );
        assert_eq!(
            names(FILES).join(" "),
            "pread64 pwrite64 openat openat2 mkdirat mknodat symlinkat linkat unlinkat renameat2 fchmod fchmodat fchown fchownat \
             utimensat fsetxattr lsetxattr flistxattr fgetxattr ftruncate getdents64 fchdir getcwd \
             sync_file_range"
        );
        assert_eq!(
            names(PACK).join(" "),
            "faccessat faccessat2 readlinkat msync fsync fdatasync umask getuid geteuid getppid sysinfo"
        );
        let conditional: Vec<Call> = CONDITIONAL.iter().map(|conditional| conditional.call).collect();
        assert_eq!(names(&conditional), ["clone", "prctl"]);
        assert_eq!(
            names(NETWORK).join(" "),
            "connect sendto recvfrom sendmsg recvmsg sendmmsg getsockname getpeername getsockopt shutdown epoll_ctl \
             epoll_pwait openat uname"
        );
        let conditional: Vec<Call> = NETWORK_CONDITIONAL.iter().map(|conditional| conditional.call).collect();
        let mut conditional = names(&conditional);
        conditional.dedup();
        assert_eq!(conditional, ["socket", "setsockopt", "ioctl"]);
    }

    #[test]
    fn no_table_has_calls_that_lead_out() {
        let out = [
            "execve",
            "execveat",
            "fork",
            "vfork",
            "clone3",
            "kill",
            "tkill",
            "ptrace",
            "mount",
            "move_mount",
            "open_tree",
            "fsopen",
            "unshare",
            "setns",
            "pivot_root",
            "chroot",
            "bpf",
            "keyctl",
            "add_key",
            "io_uring_setup",
            "userfaultfd",
            "socket",
            "socketpair",
            "connect",
            "process_vm_readv",
            "perf_event_open",
            "open_by_handle_at",
            "capset",
            "setresuid",
            "ioctl",
        ];
        for table in [COMMON, FILES, OLD, PACK, OLD_PACK] {
            let found: Vec<_> = names(table).into_iter().filter(|name| out.contains(name)).collect();
            assert!(found.is_empty(), "{found:?}");
        }
        assert!(Filter::of(&[FILES, PACK, OLD_PACK]).is_ok());
        // A job that asks servers connects to them. It serves nobody, and makes and changes no files.
        let others = [
            "bind",
            "listen",
            "accept",
            "accept4",
            "socketpair",
            "unlinkat",
            "mkdirat",
            "renameat2",
            "fchmodat",
            "fchownat",
            "ftruncate",
        ];
        for table in [NETWORK, OLD_NETWORK] {
            let found = names(table).into_iter().filter(|name| out.contains(name) || others.contains(name));
            assert_eq!(
                found.collect::<Vec<_>>(),
                ["connect"].into_iter().filter(|_| std::ptr::eq(table, NETWORK)).collect::<Vec<_>>()
            );
        }
        assert!(Filter::of_network().is_ok());
    }
}
