//! Tests of the profile file and of the default profile.

use super::*;
use oci_spec::runtime::Arch;
use podstead_pod::security::DEFAULT_CAPABILITIES;
use std::str::FromStr;

fn capabilities(names: &[&str]) -> Capabilities {
    names.iter().map(|name| Capability::from_str(name.trim_start_matches("CAP_")).unwrap()).collect()
}

fn default_of(names: &[&str]) -> LinuxSeccomp {
    default_profile(&capabilities(names), Machine::X86_64).unwrap()
}

/// Action of a profile for a call with the first argument `first`, as libcontainer would load it.
fn verdict(profile: &LinuxSeccomp, call: &str, first: u64) -> (LinuxSeccompAction, Option<u32>) {
    let rules = profile.syscalls().as_ref().unwrap();
    let matching = rules.iter().filter(|rule| rule.names().iter().any(|name| name == call)).find(|rule| {
        rule.args().iter().flatten().all(|arg| match arg.op() {
            LinuxSeccompOperator::ScmpCmpEq => first == arg.value(),
            LinuxSeccompOperator::ScmpCmpLt => first < arg.value(),
            LinuxSeccompOperator::ScmpCmpMaskedEq => first & arg.value() == arg.value_two().unwrap(),
            other => panic!("{other:?} is not used"),
        })
    });
    matching.map_or((profile.default_action(), profile.default_errno_ret()), |rule| (rule.action(), rule.errno_ret()))
}

const ALLOW: (LinuxSeccompAction, Option<u32>) = (LinuxSeccompAction::ScmpActAllow, None);
const REFUSE: (LinuxSeccompAction, Option<u32>) = (LinuxSeccompAction::ScmpActErrno, Some(EPERM));

#[test]
fn the_default_profile_lets_ordinary_calls_through_and_refuses_dangerous_ones() {
    let profile = default_of(&DEFAULT_CAPABILITIES);
    for call in ["read", "execve", "openat2", "futex_waitv", "statx", "chroot", "arch_prctl", "ptrace"] {
        assert_eq!(verdict(&profile, call, 0), ALLOW, "{call}");
    }
    for call in
        ["mount", "setns", "unshare", "bpf", "kexec_load", "init_module", "add_key", "keyctl", "io_uring_setup", "userfaultfd"]
    {
        assert_eq!(verdict(&profile, call, 0), REFUSE, "{call}");
    }
}

#[test]
fn clone_may_not_make_namespaces_without_sys_admin() {
    let profile = default_of(&DEFAULT_CAPABILITIES);
    let thread = 0x3d_0f00;
    assert_eq!(verdict(&profile, "clone", thread), ALLOW);
    for flag in [libc::CLONE_NEWNS, libc::CLONE_NEWUSER, libc::CLONE_NEWNET, libc::CLONE_NEWCGROUP, libc::CLONE_NEWPID] {
        assert_eq!(verdict(&profile, "clone", thread | u64::try_from(flag).unwrap()), REFUSE, "{flag:x}");
    }
    assert_eq!(verdict(&profile, "clone3", 0), (LinuxSeccompAction::ScmpActErrno, Some(ENOSYS)));
    let admin = default_of(&["SYS_ADMIN"]);
    assert_eq!(verdict(&admin, "clone", u64::try_from(libc::CLONE_NEWNS).unwrap()), ALLOW);
    assert_eq!(verdict(&admin, "clone3", 0), ALLOW);
}

#[test]
fn the_namespace_mask_is_that_of_the_kernels_flags() {
    let flags = libc::CLONE_NEWNS
        | libc::CLONE_NEWCGROUP
        | libc::CLONE_NEWUTS
        | libc::CLONE_NEWIPC
        | libc::CLONE_NEWUSER
        | libc::CLONE_NEWPID
        | libc::CLONE_NEWNET;
    assert_eq!(CLONE_NAMESPACES, u64::try_from(flags).unwrap());
}

#[test]
fn sockets_of_the_hypervisor_and_of_kernel_cryptography_are_refused_also_with_high_bits_set() {
    let profile = default_of(&DEFAULT_CAPABILITIES);
    for family in [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK, libc::AF_PACKET, libc::AF_XDP] {
        assert_eq!(verdict(&profile, "socket", u64::try_from(family).unwrap()), ALLOW, "{family}");
    }
    for family in [libc::AF_ALG, libc::AF_VSOCK] {
        let family = u64::try_from(family).unwrap();
        assert_eq!(verdict(&profile, "socket", family), REFUSE, "{family}");
        assert_eq!(verdict(&profile, "socket", family | 1 << 32), REFUSE, "{family} with high bits");
    }
}

#[test]
fn each_capability_brings_its_calls() {
    for (capability, calls) in allowed::WITH_CAPABILITY {
        let name = capability.to_string();
        let profile = default_of(&[&name]);
        for call in calls {
            assert_eq!(verdict(&profile, call, 0), ALLOW, "{name} {call}");
        }
    }
}

#[test]
fn rules_of_the_machine_are_those_of_no_other() {
    let granted = capabilities(&DEFAULT_CAPABILITIES);
    let arm = default_profile(&granted, Machine::Aarch64).unwrap();
    assert_eq!(verdict(&arm, "sync_file_range2", 0), ALLOW);
    assert_eq!(verdict(&arm, "arch_prctl", 0), REFUSE);
    assert_eq!(arm.architectures(), &None, "the native one alone");
}

#[test]
fn tables_are_free_of_duplicates() {
    let mut names = allowed::ALWAYS.to_vec();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), allowed::ALWAYS.len());
}

#[test]
fn an_oci_profile_is_taken_as_it_is() {
    let file = parse_profile(
        br#"{ "defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 38, "architectures": ["SCMP_ARCH_X86_64", "SCMP_ARCH_X86"],
              "flags": ["SECCOMP_FILTER_FLAG_LOG"],
              "syscalls": [{ "names": ["read", "write"], "action": "SCMP_ACT_ALLOW", "args": [] },
                           { "name": "personality", "action": "SCMP_ACT_ALLOW", "args": [{ "index": 0, "value": 8, "op": "SCMP_CMP_EQ" }] }] }"#,
    )
    .unwrap();
    let profile = file.resolve(&Capabilities::new(), Machine::X86_64, (6, 1)).unwrap();
    assert_eq!(profile.architectures(), &Some(vec![Arch::ScmpArchX86_64, Arch::ScmpArchX86]));
    assert_eq!(verdict(&profile, "read", 0), ALLOW);
    assert_eq!(verdict(&profile, "personality", 8), ALLOW);
    assert_eq!(verdict(&profile, "personality", 9), (LinuxSeccompAction::ScmpActErrno, Some(38)));
    assert_eq!(profile.flags().as_ref().unwrap().len(), 1);
}

#[test]
fn conditions_of_dockers_format_are_honoured() {
    let file = parse_profile(
        br#"{ "defaultAction": "SCMP_ACT_ERRNO",
              "archMap": [{ "architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86"] }],
              "syscalls": [
                { "names": ["bpf"], "action": "SCMP_ACT_ALLOW", "includes": { "caps": ["CAP_BPF"] }, "comment": "x" },
                { "names": ["clone"], "action": "SCMP_ACT_ALLOW", "excludes": { "caps": ["CAP_SYS_ADMIN"], "arches": ["s390x"] } },
                { "names": ["set_tls"], "action": "SCMP_ACT_ALLOW", "includes": { "arches": ["arm", "arm64"] } },
                { "names": ["ptrace"], "action": "SCMP_ACT_ALLOW", "includes": { "minKernel": "4.8" } }] }"#,
    )
    .unwrap();
    let refuse = (LinuxSeccompAction::ScmpActErrno, None);
    let plain = file.resolve(&Capabilities::new(), Machine::X86_64, (6, 1)).unwrap();
    assert_eq!(plain.architectures(), &Some(vec![Arch::ScmpArchX86_64, Arch::ScmpArchX86]));
    assert_eq!(verdict(&plain, "bpf", 0), refuse);
    assert_eq!(verdict(&plain, "clone", 0), ALLOW);
    assert_eq!(verdict(&plain, "set_tls", 0), refuse);
    assert_eq!(verdict(&plain, "ptrace", 0), ALLOW);
    let strong = file.resolve(&capabilities(&["BPF", "SYS_ADMIN"]), Machine::Aarch64, (4, 4)).unwrap();
    assert_eq!(strong.architectures(), &None);
    assert_eq!(verdict(&strong, "bpf", 0), ALLOW);
    assert_eq!(verdict(&strong, "clone", 0), refuse);
    assert_eq!(verdict(&strong, "set_tls", 0), ALLOW);
    assert_eq!(verdict(&strong, "ptrace", 0), refuse);
}

#[test]
fn bad_profiles_are_refused_with_a_reason() {
    let rule = |rule: &str| format!(r#"{{ "defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{rule}] }}"#);
    let cases = [
        ("{".to_owned(), "parse seccomp profile"),
        (r#"{ "defaultAction": "SCMP_ACT_ERRNO", "sycalls": [] }"#.to_owned(), "parse seccomp profile"),
        (r#"{ "defaultAction": "SCMP_ACT_NOTIFY" }"#.to_owned(), "seccomp profile uses SCMP_ACT_NOTIFY, which is not supported"),
        (
            r#"{ "defaultAction": "SCMP_ACT_ERRNO", "listenerPath": "/x" }"#.to_owned(),
            "seccomp profile uses listenerPath, which is not supported",
        ),
        (rule(r#"{ "names": [], "action": "SCMP_ACT_ALLOW" }"#), "rule 0 of the seccomp profile has no system call names"),
        (
            rule(r#"{ "names": ["read"], "action": "SCMP_ACT_ALLOW", "args": [{ "index": 6, "value": 0, "op": "SCMP_CMP_EQ" }] }"#),
            "seccomp profile has an argument number 6, the limit is 5",
        ),
        (" ".repeat(MAX_PROFILE + 1), "seccomp profile has bytes 1048577, the limit is 1048576"),
    ];
    for (content, expected) in cases {
        assert_eq!(parse_profile(content.as_bytes()).unwrap_err().to_string(), expected);
    }
}

const MAX_PROFILE: usize = 1 << 20;

#[test]
fn kernel_releases_are_read_as_uname_writes_them() {
    assert_eq!(file::release("6.1.0-9-amd64"), Some((6, 1)));
    assert_eq!(file::release("4.8"), Some((4, 8)));
    assert_eq!(file::release("six"), None);
}
