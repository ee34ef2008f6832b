//! The near ends of a process's standard streams: pipes, or one terminal.

use super::log::StreamName;
use super::poller::{Poller, Source, StreamOwner, Token};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::epoll::EpollFlags;
use nix::unistd;
use std::os::fd::{AsFd, OwnedFd};

/// Both ends of what a process's stdio is made of, before it is started.
#[derive(Debug)]
pub(super) struct FarEnds {
    /// For descriptor 0, if it is not `/dev/null`.
    pub(super) stdin: Option<OwnedFd>,
    /// For descriptor 1.
    pub(super) stdout: OwnedFd,
    /// For descriptor 2.
    pub(super) stderr: OwnedFd,
}

/// Near ends that are not polled yet.
#[derive(Debug)]
pub(super) enum NearEnds {
    /// Of pipes.
    Pipes { stdin: Option<OwnedFd>, stdout: OwnedFd, stderr: OwnedFd },
    /// The master of a terminal, and whether something will be typed.
    Terminal { master: OwnedFd, with_stdin: bool },
}

/// The near ends in use.
#[derive(Debug, Default)]
pub(super) struct Streams {
    stdin: Option<Input>,
    stdout: Option<Output>,
    stderr: Option<Output>,
}

#[derive(Debug)]
struct Output {
    descriptor: OwnedFd,
    token: Token,
    paused: bool,
}

#[derive(Debug)]
struct Input {
    descriptor: OwnedFd,
    token: Token,
    pending: Vec<u8>,
    close_when_written: bool,
}

/// Pipes for a process without terminal. The far ends go to `user`, who may open them again by `/dev/stdout`.
pub(super) fn pipes(with_stdin: bool, user: u32) -> nix::Result<(NearEnds, FarEnds)> {
    let (near_stdout, stdout) = unistd::pipe2(OFlag::O_CLOEXEC)?;
    let (near_stderr, stderr) = unistd::pipe2(OFlag::O_CLOEXEC)?;
    let (stdin, near_stdin) = match with_stdin {
        true => unistd::pipe2(OFlag::O_CLOEXEC).map(|(stdin, near)| (Some(stdin), Some(near)))?,
        false => (None, None),
    };
    for far in [Some(&stdout), Some(&stderr), stdin.as_ref()].into_iter().flatten() {
        unistd::fchown(far, Some(user.into()), None)?;
    }
    Ok((NearEnds::Pipes { stdin: near_stdin, stdout: near_stdout, stderr: near_stderr }, FarEnds { stdin, stdout, stderr }))
}

/// Result of reading an output.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reading {
    /// That many bytes.
    Bytes(usize),
    /// Nothing now.
    Nothing,
    /// The far end is closed; so is ours now.
    Ended,
}

impl Streams {
    /// Waits for them.
    pub(super) fn open(owner: StreamOwner, near: NearEnds, poller: &mut Poller) -> nix::Result<Self> {
        let (stdin, stdout, stderr) = match near {
            NearEnds::Pipes { stdin, stdout, stderr } => (stdin, stdout, Some(stderr)),
            NearEnds::Terminal { master, with_stdin } => {
                let copied = if with_stdin { master.try_clone().map(Some) } else { Ok(None) };
                let typed = copied.map_err(|error| Errno::from_raw(error.raw_os_error().unwrap_or(libc::EBADF)))?;
                (typed, master, None)
            }
        };
        let mut streams = Self::default();
        if let Some(stdin) = stdin {
            streams.stdin = Some(Input::register(stdin, owner, poller)?);
        }
        streams.stdout = Some(Output::register(stdout, owner, StreamName::Stdout, poller)?);
        if let Some(stderr) = stderr {
            streams.stderr = Some(Output::register(stderr, owner, StreamName::Stderr, poller)?);
        }
        Ok(streams)
    }

    /// Reads once.
    pub(super) fn read(&mut self, stream: StreamName, scratch: &mut [u8], poller: &mut Poller) -> Reading {
        let output = self.output(stream);
        let Some(open) = output else { return Reading::Nothing };
        match unistd::read(&open.descriptor, scratch) {
            Ok(count) if count > 0 => Reading::Bytes(count),
            Err(Errno::EAGAIN | Errno::EINTR) => Reading::Nothing,
            // A terminal whose far end is closed says EIO.
            Ok(_) | Err(_) => {
                if let Some(closed) = output.take() {
                    poller.remove(closed.token, &closed.descriptor);
                }
                Reading::Ended
            }
        }
    }

    /// Returns true if that output can still produce something.
    pub(super) fn is_open(&self, stream: StreamName) -> bool {
        match stream {
            StreamName::Stdout => self.stdout.is_some(),
            StreamName::Stderr => self.stderr.is_some(),
        }
    }

    /// Stops or resumes reading: the process waits once its pipe is full.
    pub(super) fn pause(&mut self, paused: bool, poller: &Poller) {
        for output in [&mut self.stdout, &mut self.stderr].into_iter().flatten() {
            if output.paused != paused {
                output.paused = paused;
                let interest = if paused { EpollFlags::empty() } else { EpollFlags::EPOLLIN };
                poller.change(output.token, &output.descriptor, interest);
            }
        }
    }

    /// Takes bytes for stdin and writes what fits. True when all is written, so that more may come.
    pub(super) fn write_stdin(&mut self, bytes: &[u8], poller: &mut Poller) -> bool {
        if let Some(input) = &mut self.stdin {
            input.pending.extend_from_slice(bytes);
        }
        self.flush_stdin(poller)
    }

    /// Writes what fits of what waits for stdin. True when nothing waits.
    pub(super) fn flush_stdin(&mut self, poller: &mut Poller) -> bool {
        let Some(input) = &mut self.stdin else { return true };
        let mut written = 0;
        let gone = loop {
            if written == input.pending.len() {
                break false;
            }
            match unistd::write(&input.descriptor, &input.pending[written..]) {
                Ok(count) => written += count,
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => break false,
                Err(_) => break true,
            }
        };
        input.pending.drain(..written);
        if gone || (input.pending.is_empty() && input.close_when_written) {
            self.drop_stdin(poller);
            return true;
        }
        let drained = input.pending.is_empty();
        if drained {
            input.pending = Vec::new();
        }
        let interest = if drained { EpollFlags::empty() } else { EpollFlags::EPOLLOUT };
        poller.change(input.token, &input.descriptor, interest);
        drained
    }

    /// Stdin has room, or is closed by its reader (`broken`). True when nothing waits.
    pub(super) fn feed_stdin(&mut self, broken: bool, poller: &mut Poller) -> bool {
        if broken {
            self.drop_stdin(poller);
        }
        self.flush_stdin(poller)
    }

    /// Closes stdin once what waits is written. True when nothing waits.
    pub(super) fn close_stdin(&mut self, poller: &mut Poller) -> bool {
        if let Some(input) = &mut self.stdin {
            input.close_when_written = true;
        }
        self.flush_stdin(poller)
    }

    /// Sets the terminal's size. Not a terminal, or gone: no effect.
    pub(super) fn resize(&self, columns: u16, rows: u16) {
        if let Some(output) = &self.stdout {
            let size = nix::pty::Winsize { ws_col: columns, ws_row: rows, ws_xpixel: 0, ws_ypixel: 0 };
            podstead_sys::terminal::set_size(&output.descriptor, &size);
        }
    }

    /// Closes everything.
    pub(super) fn close(&mut self, poller: &mut Poller) {
        self.drop_stdin(poller);
        for closed in [self.stdout.take(), self.stderr.take()].into_iter().flatten() {
            poller.remove(closed.token, &closed.descriptor);
        }
    }

    /// Closes stdin at once.
    pub(super) fn drop_stdin(&mut self, poller: &mut Poller) {
        if let Some(closed) = self.stdin.take() {
            poller.remove(closed.token, &closed.descriptor);
        }
    }

    fn output(&mut self, stream: StreamName) -> &mut Option<Output> {
        match stream {
            StreamName::Stdout => &mut self.stdout,
            StreamName::Stderr => &mut self.stderr,
        }
    }
}

impl Output {
    fn register(descriptor: OwnedFd, owner: StreamOwner, stream: StreamName, poller: &mut Poller) -> nix::Result<Self> {
        make_nonblocking(&descriptor)?;
        let token = poller.add(&descriptor, Source::Output(owner, stream), EpollFlags::EPOLLIN)?;
        Ok(Self { descriptor, token, paused: false })
    }
}

impl Input {
    /// With no interest at first: epoll still tells when the far end is closed.
    fn register(descriptor: OwnedFd, owner: StreamOwner, poller: &mut Poller) -> nix::Result<Self> {
        make_nonblocking(&descriptor)?;
        let token = poller.add(&descriptor, Source::Input(owner), EpollFlags::empty())?;
        Ok(Self { descriptor, token, pending: Vec::new(), close_when_written: false })
    }
}

fn make_nonblocking(descriptor: impl AsFd) -> nix::Result<()> {
    let flags = OFlag::from_bits_truncate(fcntl(&descriptor, FcntlArg::F_GETFL)?);
    fcntl(&descriptor, FcntlArg::F_SETFL(flags | OFlag::O_NONBLOCK)).map(drop)
}
