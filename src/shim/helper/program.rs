//! The reason why the kernel does not execute a program, from its first bytes.
//!
//! The kernel says the same of a program for another processor, of a script without its first line and of a damaged file. The first two are not
//! damage, so they have words of their own: nobody has to verify an image for them.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// More than the header of an ELF file and the first line of usual scripts.
const START_MAX: u64 = 256;
/// Bytes of a file that have to be text for it to be a script.
const TEXT_MAX: usize = 64;
/// Processors by their numbers in ELF files, in Go's names, as images have them.
const PROCESSORS: [(u16, &str); 9] = [
    (3, "386"),
    (8, "mips"),
    (21, "ppc64le"),
    (22, "s390x"),
    (40, "arm"),
    (62, "amd64"),
    (183, "arm64"),
    (243, "riscv64"),
    (258, "loong64"),
];

/// Says why the kernel does not execute the program at `path`, if that is no damage: "a program for arm64, ...".
pub(super) fn reason(path: &Path) -> Option<String> {
    let start = start_of(path).ok()?;
    match interpreter(&start) {
        Some(interpreter) => {
            let reason = explain(&start_of(Path::new(interpreter)).ok()?, host())?;
            Some(format!("a script of {interpreter}, which is {reason}"))
        }
        None => explain(&start, host()),
    }
}

fn start_of(path: &Path) -> io::Result<Vec<u8>> {
    let mut start = Vec::new();
    File::open(path)?.take(START_MAX).read_to_end(&mut start)?;
    Ok(start)
}

/// The processor of this host, in Go's names.
fn host() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "x86" => "386",
        "powerpc64" => "ppc64le",
        "loongarch64" => "loong64",
        other => other,
    }
}

/// The interpreter of a script with a first line that names one.
fn interpreter(start: &[u8]) -> Option<&str> {
    let line = start.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    std::str::from_utf8(line).ok()?.split_whitespace().next()
}

fn explain(start: &[u8], host: &str) -> Option<String> {
    let Some(elf) = start.strip_prefix(b"\x7fELF") else {
        return is_text(start).then(|| "a text without a first line such as #!/bin/sh".to_owned());
    };
    let machine: [u8; 2] = elf.get(14..16)?.try_into().ok()?;
    let machine = match elf.get(1)? {
        1 => u16::from_le_bytes(machine),
        2 => u16::from_be_bytes(machine),
        _ => return None,
    };
    let (_, processor) = PROCESSORS.iter().find(|(number, _)| *number == machine)?;
    (*processor != host).then(|| format!("a program for {processor}, and this host is {host}"))
}

/// Returns true for the beginning of a text: a file that a crash left is empty, or zeros.
fn is_text(start: &[u8]) -> bool {
    let start = &start[..start.len().min(TEXT_MAX)];
    !start.is_empty() && start.iter().all(|byte| matches!(byte, b'\t' | b'\n' | b'\r' | b' '..=b'~'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first bytes of a program for a processor.
    fn elf(order: u8, machine: [u8; 2]) -> Vec<u8> {
        let mut start = b"\x7fELF\x02".to_vec();
        start.push(order);
        start.resize(18, 0);
        start.extend(machine);
        start
    }

    #[test]
    fn other_processors_and_texts_are_no_damage() {
        let amd64 = |start: &[u8]| explain(start, "amd64");
        assert_eq!(amd64(&elf(1, [183, 0])).unwrap(), "a program for arm64, and this host is amd64");
        assert_eq!(amd64(&elf(2, [0, 22])).unwrap(), "a program for s390x, and this host is amd64");
        assert_eq!(amd64(b"echo hello\n").unwrap(), "a text without a first line such as #!/bin/sh");
        for damaged in [&elf(1, [62, 0])[..], &elf(3, [183, 0]), &elf(1, [255, 255]), b"\x7fELF", b"", &[0; 100], b"echo \0"] {
            assert_eq!(amd64(damaged), None, "{damaged:?}");
        }
    }

    #[test]
    fn program_of_this_host_has_no_reason() {
        assert_eq!(reason(&std::env::current_exe().unwrap()), None);
    }

    #[test]
    fn interpreter_of_a_script_is_looked_at() {
        let directory = tempfile::tempdir().unwrap();
        let [script, interpreter] = ["script", "interpreter"].map(|name| directory.path().join(name));
        std::fs::write(&interpreter, elf(2, [0, 22])).unwrap();
        std::fs::write(&script, format!("#! {} -e\necho\n", interpreter.display())).unwrap();
        let reason = reason(&script).unwrap();
        assert!(reason.starts_with("a script of /") && reason.contains("which is a program for s390x"), "{reason}");
    }
}
