//! System call filters: the built-in default profile, and profiles from files in the format of OCI or Docker. **Pure**.

mod allowed;
mod file;

pub use file::{ProfileError, ProfileFile, parse_profile};

use super::{BuildExt, OciError};
use oci_spec::runtime::{
    Capabilities, Capability, LinuxSeccomp, LinuxSeccompAction, LinuxSeccompArg, LinuxSeccompArgBuilder, LinuxSeccompBuilder,
    LinuxSeccompOperator, LinuxSyscall, LinuxSyscallBuilder,
};

/// The machine that a filter is for. Only its native system calls are let through: a filter for the 32-bit ones too costs
/// 20 ms per container start, and with this one 32-bit programs are killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    /// 64-bit x86.
    X86_64,
    /// 64-bit ARM.
    Aarch64,
    /// Any other: no rules of its own.
    Other,
}

impl Machine {
    /// The architecture that podstead was built for.
    pub const NATIVE: Self = if cfg!(target_arch = "x86_64") {
        Self::X86_64
    } else if cfg!(target_arch = "aarch64") {
        Self::Aarch64
    } else {
        Self::Other
    };
}

const EPERM: u32 = 1;
const ENOSYS: u32 = 38;
/// All namespace flags of clone(2): CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET.
const CLONE_NAMESPACES: u64 = 0x7e02_0000;
/// Values of personality(2) that do not weaken the process: Linux, UNAME26 and both of the 32-bit ones, and "tell me".
const PERSONALITIES: [u64; 5] = [0x0, 0x8, 0x2_0000, 0x2_0008, 0xffff_ffff];

/// `RuntimeDefault`: what containerd's default lets through, by the container's capabilities.
///
/// One rule is stricter: socket(2) is let through by a list of address families instead of by "anything but AF_VSOCK". A comparison
/// is made on 64 bits and the kernel looks at 32 of them, so that a list of exceptions can be walked around. AF_ALG is not in the list.
pub(super) fn default_profile(granted: &Capabilities, machine: Machine) -> Result<LinuxSeccomp, OciError> {
    let mut rules = vec![allow(&allowed::ALWAYS)?];
    for (operator, family) in allowed::socket_families() {
        rules.push(allow_if("socket", argument(0, operator, family, None)?)?);
    }
    for value in PERSONALITIES {
        rules.push(allow_if("personality", argument(0, LinuxSeccompOperator::ScmpCmpEq, value, None)?)?);
    }
    match machine {
        Machine::X86_64 => rules.push(allow(&allowed::X86_64)?),
        Machine::Aarch64 => rules.push(allow(&allowed::AARCH64)?),
        Machine::Other => {}
    }
    for (capability, names) in allowed::WITH_CAPABILITY {
        if granted.contains(&capability) {
            rules.push(allow(names)?);
        }
    }
    if !granted.contains(&Capability::SysAdmin) {
        let no_namespace = argument(0, LinuxSeccompOperator::ScmpCmpMaskedEq, CLONE_NAMESPACES, Some(0))?;
        rules.push(allow_if("clone", no_namespace)?);
        // A filter cannot see clone3's flags. ENOSYS, unlike EPERM, makes libc fall back to clone.
        let refuse = LinuxSyscallBuilder::default()
            .names(vec!["clone3".to_owned()])
            .action(LinuxSeccompAction::ScmpActErrno)
            .errno_ret(ENOSYS)
            .build()
            .part("seccomp rule")?;
        rules.push(refuse);
    }
    LinuxSeccompBuilder::default()
        .default_action(LinuxSeccompAction::ScmpActErrno)
        .default_errno_ret(EPERM)
        .syscalls(rules)
        .build()
        .part("seccomp profile")
}

fn allow(names: &[&str]) -> Result<LinuxSyscall, OciError> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    LinuxSyscallBuilder::default().names(names).action(LinuxSeccompAction::ScmpActAllow).build().part("seccomp rule")
}

fn allow_if(name: &str, condition: LinuxSeccompArg) -> Result<LinuxSyscall, OciError> {
    LinuxSyscallBuilder::default()
        .names(vec![name.to_owned()])
        .action(LinuxSeccompAction::ScmpActAllow)
        .args(vec![condition])
        .build()
        .part("seccomp rule")
}

fn argument(index: usize, operator: LinuxSeccompOperator, value: u64, value_two: Option<u64>) -> Result<LinuxSeccompArg, OciError> {
    let builder = LinuxSeccompArgBuilder::default().index(index).op(operator).value(value);
    match value_two {
        Some(value_two) => builder.value_two(value_two),
        None => builder,
    }
    .build()
    .part("seccomp argument")
}

#[cfg(test)]
mod tests;
