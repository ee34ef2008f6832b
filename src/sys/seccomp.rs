//! Filters of system calls that were compiled before.
#![expect(unsafe_code, reason = "no crate that is in the tree loads a filter as bytes")]

use std::io;

/// Bytes of an instruction.
const INSTRUCTION: usize = size_of::<libc::sock_filter>();
/// Instructions that the kernel takes at most.
const MAX_INSTRUCTIONS: usize = 4096;

/// A filter, as the kernel takes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program(Vec<u8>);

impl Program {
    /// The most bytes that a program has.
    pub const MAX_BYTES: usize = MAX_INSTRUCTIONS * INSTRUCTION;

    /// A program of whole instructions, as many as the kernel takes. `None` for anything else.
    pub fn new(bytes: Vec<u8>) -> Option<Self> {
        let fits = !bytes.is_empty() && bytes.len() <= Self::MAX_BYTES && bytes.len().is_multiple_of(INSTRUCTION);
        fits.then_some(Self(bytes))
    }

    /// Its instructions, one after the other.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Loads it for this thread and what it executes, for good. `flags` are those of seccomp(2).
    ///
    /// # Errors
    ///
    /// EACCES without CAP_SYS_ADMIN, unless no new privileges can be had; EINVAL for instructions that the kernel does not take.
    pub fn load(&self, flags: u32) -> io::Result<()> {
        let mut instructions: Vec<libc::sock_filter> = self.0.chunks_exact(INSTRUCTION).map(instruction).collect();
        let length = libc::c_ushort::try_from(instructions.len()).map_err(io::Error::other)?;
        let program = libc::sock_fprog { len: length, filter: instructions.as_mut_ptr() };
        // SAFETY: the program and its instructions are live during the call, and the kernel copies them.
        let result =
            unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, std::ptr::from_ref(&program)) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}

/// The fields in the order of memory, in the byte order of this machine.
fn instruction(bytes: &[u8]) -> libc::sock_filter {
    let mut fields = [0; INSTRUCTION];
    fields.copy_from_slice(bytes);
    let [a, b, jt, jf, c, d, e, f] = fields;
    libc::sock_filter { code: u16::from_ne_bytes([a, b]), jt, jf, k: u32::from_ne_bytes([c, d, e, f]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn program_has_whole_instructions_and_not_too_many() {
        for (length, fits) in [(0, false), (7, false), (8, true), (Program::MAX_BYTES, true), (Program::MAX_BYTES + 8, false)] {
            assert_eq!(Program::new(vec![0; length]).is_some(), fits, "{length}");
        }
    }

    #[test]
    fn instruction_is_read_in_the_order_of_memory() {
        let bytes = [0x1234_u16.to_ne_bytes().as_slice(), &[5, 6], &0x789a_bcde_u32.to_ne_bytes()].concat();
        let libc::sock_filter { code, jt, jf, k } = instruction(&bytes);
        assert_eq!((code, jt, jf, k), (0x1234, 5, 6, 0x789a_bcde));
    }

    #[test]
    fn what_is_no_program_is_refused_by_the_kernel() {
        // In a thread of its own, should it be taken after all.
        let loaded = std::thread::spawn(|| Program::new(vec![0xff; 8]).unwrap().load(0)).join().unwrap();
        assert!(loaded.is_err());
    }
}
