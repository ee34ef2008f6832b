//! Files of a layer go to the disk in small steps while it is unpacked. So a sync of others, such as that of a container's record, waits for one step and
//! not for a whole layer: it waits for all that is being written on its file system. And the sync of the whole layer finds little left.

use podstead_sys::ordered_journal::write_back_next;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Bytes of a step.
const STEP: u64 = 8 << 20;
/// Files of a step: they stay open until the next one.
const FILES: usize = 96;

/// Files and bytes that are on their way to the disk.
#[derive(Debug, Default)]
pub(super) struct WriteBack {
    /// Bytes since the step before.
    bytes: u64,
    /// Complete files since then.
    complete: Vec<OwnedFd>,
    /// Files of the step before.
    begun: Vec<OwnedFd>,
    /// The file system writes when it likes.
    is_off: bool,
}

impl WriteBack {
    /// One that does nothing.
    pub(super) fn off() -> Self {
        Self { is_off: true, ..Self::default() }
    }

    /// `file` got so many bytes more, and is to get others.
    pub(super) fn grown(&mut self, file: BorrowedFd<'_>, bytes: u64) -> io::Result<()> {
        self.bytes += bytes;
        if self.bytes < STEP {
            return Ok(());
        }
        self.step()?;
        self.next(file)
    }

    /// `file` has all its bytes.
    pub(super) fn complete(&mut self, file: OwnedFd) -> io::Result<()> {
        if self.is_off {
            return Ok(());
        }
        self.complete.push(file);
        if self.complete.len() < FILES { Ok(()) } else { self.step() }
    }

    /// Waits for the last steps.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.step()?;
        self.step()
    }

    /// Waits for the step before, and begins the next one.
    fn step(&mut self) -> io::Result<()> {
        self.bytes = 0;
        for file in std::mem::take(&mut self.begun) {
            self.next(file.as_fd())?;
        }
        let complete = std::mem::take(&mut self.complete);
        for file in &complete {
            self.next(file.as_fd())?;
        }
        self.begun = complete;
        Ok(())
    }

    fn next(&mut self, file: BorrowedFd<'_>) -> io::Result<()> {
        if self.is_off {
            return Ok(());
        }
        match write_back_next(file) {
            Err(error) if matches!(error.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput) => {
                *self = Self::off();
                Ok(())
            }
            done => done,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::fd::AsRawFd;

    #[test]
    fn files_stay_open_for_two_steps() {
        let mut back = WriteBack::default();
        let mut first = -1;
        for number in 0..2 * FILES {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(b"content").unwrap();
            if number == 0 {
                first = file.as_raw_fd();
            }
            back.complete(file.into()).unwrap();
            assert!(back.complete.len() < FILES && back.begun.len() <= FILES);
        }
        assert!(back.begun.iter().all(|file| file.as_raw_fd() != first));
        back.finish().unwrap();
        assert!(back.begun.is_empty() && back.complete.is_empty());
    }

    #[test]
    fn large_file_goes_step_by_step() {
        let mut back = WriteBack::default();
        let mut file = tempfile::tempfile().unwrap();
        for _ in 0..5 {
            file.write_all(&vec![1; STEP as usize / 2]).unwrap();
            back.grown(file.as_fd(), STEP / 2).unwrap();
            assert!(back.bytes < STEP);
        }
        back.complete(file.into()).unwrap();
        assert_eq!(back.bytes, STEP / 2);
    }

    #[test]
    fn off_keeps_nothing() {
        let mut back = WriteBack::off();
        let file = tempfile::tempfile().unwrap();
        back.grown(file.as_fd(), 2 * STEP).unwrap();
        back.complete(file.into()).unwrap();
        assert!(back.complete.is_empty());
    }
}
