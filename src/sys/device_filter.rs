//! Device filters of cgroup v2: BPF programs that say which devices the processes of a group may open.
#![expect(unsafe_code, reason = "bpf(2) has no safe wrapper")]

use nix::errno::Errno;
use nix::sys::resource::{Resource, setrlimit};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

// enum bpf_cmd.
const PROG_LOAD: u32 = 5;
const PROG_ATTACH: u32 = 8;
const PROG_DETACH: u32 = 9;
const PROG_GET_FD_BY_ID: u32 = 13;
const PROG_QUERY: u32 = 16;
/// `BPF_PROG_TYPE_CGROUP_DEVICE`.
const PROGRAM: u32 = 15;
/// `BPF_CGROUP_DEVICE`.
const ATTACH_TYPE: u32 = 6;
const ALLOW_MULTI: u32 = 2;
const REPLACE: u32 = 4;
/// Programs of one group that are looked at.
const MAX_PROGRAMS: usize = 64;
/// Before Linux 5.11 programs count as locked memory.
const LOCKED_MEMORY: u64 = 128 << 20;

/// A rule that allows something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Block devices; else character devices.
    pub block: bool,
    /// Major number; `None` for all.
    pub major: Option<u32>,
    /// Minor number; `None` for all.
    pub minor: Option<u32>,
    /// Operations: of `r`, `w` and `m` (make nodes).
    pub permissions: String,
}

/// Puts a filter with these rules in the place of those that the group at `path` has. What no rule allows is refused.
pub fn replace(path: &Path, rules: &[Rule]) -> io::Result<()> {
    let group = File::open(path)?;
    let old = attached(&group)?;
    let program = load(&program(rules))?;
    match old.as_slice() {
        // In one step: at no moment is a device refused that both allow, or another one allowed.
        [only] => attach(&group, &program, ALLOW_MULTI | REPLACE, Some(only)),
        _ => {
            attach(&group, &program, ALLOW_MULTI, None)?;
            old.iter().try_for_each(|program| detach(&group, program))
        }
    }
}

/// An instruction of `struct bpf_insn`, as eight bytes.
fn instruction(code: u8, registers: u8, offset: i16, immediate: u32) -> [u8; 8] {
    let mut bytes = [code, registers, 0, 0, 0, 0, 0, 0];
    bytes[2..4].copy_from_slice(&offset.to_ne_bytes());
    bytes[4..].copy_from_slice(&immediate.to_ne_bytes());
    bytes
}

/// Registers: the destination in the lower half on little-endian machines, in the upper half on others.
const fn registers(destination: u8, source: u8) -> u8 {
    if cfg!(target_endian = "little") { destination | source << 4 } else { destination << 4 | source }
}

/// The program. On entry r1 points to `struct bpf_cgroup_dev_ctx`; r0 is the answer.
fn program(rules: &[Rule]) -> Vec<[u8; 8]> {
    const LOAD: u8 = 0x61;
    const AND: u8 = 0x54;
    const SHIFT_RIGHT: u8 = 0x74;
    const MOVE: u8 = 0xb4;
    const MOVE_REGISTER: u8 = 0xbc;
    const UNLESS_EQUAL: u8 = 0x55;
    const UNLESS_EQUAL_REGISTER: u8 = 0x5d;
    const EXIT: u8 = 0x95;
    // r2: type, r3: access, r4: major, r5: minor.
    let mut code = vec![
        instruction(LOAD, registers(2, 1), 0, 0),
        instruction(AND, registers(2, 0), 0, 0xffff),
        instruction(LOAD, registers(3, 1), 0, 0),
        instruction(SHIFT_RIGHT, registers(3, 0), 0, 16),
        instruction(LOAD, registers(4, 1), 4, 0),
        instruction(LOAD, registers(5, 1), 8, 0),
    ];
    for rule in rules {
        let access = rule.permissions.bytes().fold(0, |access, operation| {
            access
                | match operation {
                    b'm' => 1,
                    b'r' => 2,
                    b'w' => 4,
                    _ => 0,
                }
        });
        let numbers = [(4, rule.major), (5, rule.minor)].into_iter().filter_map(|(register, number)| Some((register, number?)));
        let numbers: Vec<(u8, u32)> = numbers.collect();
        // Instructions of this rule that follow the one at hand.
        let mut rest = i16::try_from(numbers.len()).unwrap_or_default() + 3 + 2;
        let kind = if rule.block { 1 } else { 2 };
        code.push(instruction(UNLESS_EQUAL, registers(2, 0), rest, kind));
        code.push(instruction(MOVE_REGISTER, registers(1, 3), 0, 0));
        code.push(instruction(AND, registers(1, 0), 0, access));
        rest -= 3;
        code.push(instruction(UNLESS_EQUAL_REGISTER, registers(1, 3), rest, 0));
        for (register, number) in numbers {
            rest -= 1;
            code.push(instruction(UNLESS_EQUAL, registers(register, 0), rest, number));
        }
        code.extend([instruction(MOVE, registers(0, 0), 0, 1), instruction(EXIT, 0, 0, 0)]);
    }
    code.extend([instruction(MOVE, registers(0, 0), 0, 0), instruction(EXIT, 0, 0, 0)]);
    code
}

fn load(code: &[[u8; 8]]) -> io::Result<OwnedFd> {
    const LICENSE: &[u8] = b"Apache-2.0\0";
    let count = u32::try_from(code.len()).map_err(|_| Errno::E2BIG)?;
    // prog_type, insn_cnt, insns, license, log_level, log_size, log_buf, kern_version, prog_flags.
    let mut attributes = Attributes::default();
    attributes.words([PROGRAM, count]);
    attributes.long(code.as_ptr() as u64);
    attributes.long(LICENSE.as_ptr() as u64);
    attributes.words([0, 0, 0, 0, 0, 0]);
    let descriptor = |attributes: &Attributes| {
        // SAFETY: `code` and `LICENSE`, to which the attributes point, live until the call returns; the kernel only reads them.
        unsafe { attributes.call(PROG_LOAD) }
    };
    let loaded = match descriptor(&attributes) {
        Err(Errno::EPERM) => {
            setrlimit(Resource::RLIMIT_MEMLOCK, LOCKED_MEMORY, LOCKED_MEMORY)?;
            descriptor(&attributes)
        }
        other => other,
    };
    own(loaded?)
}

fn attached(group: &File) -> io::Result<Vec<OwnedFd>> {
    let mut ids = [0_u32; MAX_PROGRAMS];
    // target_fd, attach_type, query_flags, attach_flags, prog_ids, prog_cnt.
    let mut attributes = Attributes::default();
    attributes.words([number(group.as_raw_fd())?, ATTACH_TYPE, 0, 0]);
    attributes.long(ids.as_mut_ptr() as u64);
    attributes.words([MAX_PROGRAMS as u32, 0]);
    // SAFETY: `ids` lives until the call returns and has room for as many numbers as the attributes say.
    unsafe { attributes.call(PROG_QUERY) }?;
    let mut found = Vec::new();
    for id in ids.into_iter().take_while(|id| *id != 0) {
        let mut attributes = Attributes::default();
        attributes.words([id, 0, 0, 0]);
        // SAFETY: the attributes have no pointers.
        found.push(own(unsafe { attributes.call(PROG_GET_FD_BY_ID) }?)?);
    }
    Ok(found)
}

fn attach(group: &File, program: &OwnedFd, flags: u32, replaced: Option<&OwnedFd>) -> io::Result<()> {
    let replaced = replaced.map_or(Ok(0), |program| number(program.as_raw_fd()))?;
    let mut attributes = Attributes::default();
    attributes.words([number(group.as_raw_fd())?, number(program.as_raw_fd())?, ATTACH_TYPE, flags, replaced, 0]);
    // SAFETY: the attributes have no pointers.
    unsafe { attributes.call(PROG_ATTACH) }?;
    Ok(())
}

fn detach(group: &File, program: &OwnedFd) -> io::Result<()> {
    let mut attributes = Attributes::default();
    attributes.words([number(group.as_raw_fd())?, number(program.as_raw_fd())?, ATTACH_TYPE, 0]);
    // SAFETY: the attributes have no pointers.
    unsafe { attributes.call(PROG_DETACH) }?;
    Ok(())
}

fn number(descriptor: i32) -> io::Result<u32> {
    Ok(u32::try_from(descriptor).map_err(|_| Errno::EBADF)?)
}

fn own(result: i64) -> io::Result<OwnedFd> {
    let descriptor = i32::try_from(result).map_err(|_| Errno::EBADF)?;
    // SAFETY: the kernel has just made the descriptor, and nothing else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(descriptor) })
}

/// `union bpf_attr`: what is not written is zero.
#[derive(Debug, Default)]
#[repr(C, align(8))]
struct Attributes {
    words: [u32; 24],
    written: usize,
}

impl Attributes {
    fn words<const N: usize>(&mut self, words: [u32; N]) {
        for word in words {
            self.words[self.written] = word;
            self.written += 1;
        }
    }

    fn long(&mut self, value: u64) {
        let bytes = value.to_ne_bytes();
        let half = |at: usize| u32::from_ne_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        self.words([half(0), half(4)]);
    }

    /// # Safety
    ///
    /// Every address among the attributes is valid for what `command` does with it.
    unsafe fn call(&self, command: u32) -> nix::Result<i64> {
        // SAFETY: the kernel reads `written` words at most, all of which are there; the rest is the caller's.
        let result = unsafe { libc::syscall(libc::SYS_bpf, command, self.words.as_ptr(), self.written * 4) };
        Errno::result(result)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::PathBuf;
    use std::process::Command;

    fn rule(major: Option<u32>, minor: Option<u32>, permissions: &str) -> Rule {
        Rule { block: false, major, minor, permissions: permissions.to_owned() }
    }

    /// Tries operations in a group with these filters, put there one after the other.
    fn tried(name: &str, filters: &[Vec<Rule>]) -> String {
        let mounts = crate::mounts::mounts().unwrap();
        let root: PathBuf = mounts.into_iter().find(|mount| mount.kind == "cgroup2").unwrap().point;
        let group = root.join(format!("podstead-filter-{name}-{}", std::process::id()));
        fs::create_dir(&group).unwrap();
        for rules in filters {
            replace(&group, rules).unwrap();
        }
        assert_eq!(attached(&File::open(&group).unwrap()).unwrap().len(), usize::from(!filters.is_empty()));
        let script = format!(
            "echo $$ > {}/cgroup.procs; \
             for op in 'head -c 1 /dev/zero' 'head -c 1 /dev/full' 'dd if=/dev/zero of=/dev/null count=1' 'tee -a /dev/full'; do \
             if $op < /etc/hostname > /dev/fd/3 2>&1; then echo yes; else echo no; fi; done",
            group.display()
        );
        let output = Command::new("sh").args(["-c", &format!("exec 3>/dev/null; {script}")]).output().unwrap();
        fs::remove_dir(&group).unwrap();
        String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn filter_allows_what_its_rules_say_and_is_replaced_as_a_whole() {
        let null = rule(Some(1), Some(3), "rw");
        let zero = rule(Some(1), Some(5), "r");
        assert_eq!(tried("none", &[]), "yes yes yes no", "writing to /dev/full never works");
        assert_eq!(tried("zero", &[vec![null.clone(), zero.clone()]]), "yes no yes no");
        assert_eq!(tried("write", &[vec![null.clone(), rule(Some(1), Some(5), "w")]]), "no no no no");
        assert_eq!(tried("major", &[vec![rule(Some(1), None, "rw")]]), "yes yes yes no");
        assert_eq!(tried("block", &[vec![null.clone(), Rule { block: true, ..zero.clone() }]]), "no no no no");
        assert_eq!(tried("again", &[vec![null.clone()], vec![null.clone(), zero], vec![null]]), "no no no no");
    }
}
