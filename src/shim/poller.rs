//! epoll, with a name for everything that is waited for. A name is never reused, so that an event for what was closed a moment ago in
//! the same turn cannot reach its successor.

use super::log::StreamName;
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags, EpollTimeout};
use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::time::Duration;

/// A client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClientKey(pub(super) u64);

/// A container of this pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ContainerKey(pub(super) u64);

/// A process started by exec.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ExecKey(pub(super) u64);

/// A running helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct JobKey(pub(super) u64);

/// Owner of standard streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamOwner {
    /// A container's first process.
    Container(ContainerKey),
    /// A process started by exec.
    Exec(ExecKey),
}

/// Source of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A new connection.
    Listener,
    /// SIGCHLD.
    Signals,
    /// A connection has bytes, room, or ended.
    Client(ClientKey),
    /// A process wrote, or closed its end.
    Output(StreamOwner, StreamName),
    /// A process reads, or closed its end.
    Input(StreamOwner),
    /// A record is written.
    Record,
    /// A helper reported.
    Helper(JobKey),
}

/// Names one registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Token(u64);

/// Events taken from the kernel at once.
const EVENTS: usize = 32;

/// The set of what is waited for.
#[derive(Debug)]
pub(super) struct Poller {
    epoll: Epoll,
    sources: BTreeMap<Token, Source>,
    next: u64,
}

impl Poller {
    pub(super) fn new() -> nix::Result<Self> {
        Ok(Self { epoll: Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?, sources: BTreeMap::new(), next: 0 })
    }

    /// Waits for `interest` on `descriptor` from now on.
    pub(super) fn add(&mut self, descriptor: impl AsFd, source: Source, interest: EpollFlags) -> nix::Result<Token> {
        let token = Token(self.next);
        self.epoll.add(descriptor, EpollEvent::new(interest, token.0))?;
        self.next += 1;
        self.sources.insert(token, source);
        Ok(token)
    }

    /// Changes the interest. Must not fail for a registered descriptor; if it does, the old interest stays.
    pub(super) fn change(&self, token: Token, descriptor: impl AsFd, interest: EpollFlags) {
        let _unchanged = self.epoll.modify(descriptor, &mut EpollEvent::new(interest, token.0));
    }

    /// Forgets a registration; to be called before its descriptor is closed.
    pub(super) fn remove(&mut self, token: Token, descriptor: impl AsFd) {
        self.sources.remove(&token);
        let _gone = self.epoll.delete(descriptor);
    }

    /// Waits for events, at most for `timeout`. Sources are looked up one by one by [`Poller::source`], since one event may end another's
    /// source.
    pub(super) fn wait(&self, timeout: Option<Duration>) -> nix::Result<Vec<(Token, EpollFlags)>> {
        let mut events = [EpollEvent::empty(); EVENTS];
        let timeout = match timeout {
            // One more, since a wait that ends just before the deadline would be followed by another.
            Some(timeout) => EpollTimeout::try_from(timeout.saturating_add(Duration::from_millis(1))).unwrap_or(EpollTimeout::MAX),
            None => EpollTimeout::NONE,
        };
        let count = match self.epoll.wait(&mut events, timeout) {
            Ok(count) => count,
            Err(nix::Error::EINTR) => 0,
            Err(error) => return Err(error),
        };
        Ok(events[..count].iter().map(|event| (Token(event.data()), event.events())).collect())
    }

    /// The source of `token`, if it is still registered.
    pub(super) fn source(&self, token: Token) -> Option<Source> {
        self.sources.get(&token).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn an_event_for_a_closed_source_names_nothing() {
        let mut poller = Poller::new().unwrap();
        let (mut far, near) = UnixStream::pair().unwrap();
        let old = poller.add(&near, Source::Client(ClientKey(1)), EpollFlags::EPOLLIN).unwrap();
        far.write_all(b"x").unwrap();
        let events = poller.wait(Some(Duration::from_secs(5))).unwrap();
        assert_eq!(events, [(old, EpollFlags::EPOLLIN)]);
        poller.remove(old, &near);
        let new = poller.add(&near, Source::Client(ClientKey(2)), EpollFlags::EPOLLIN).unwrap();
        assert_ne!(old, new);
        assert_eq!(poller.source(old), None);
        assert_eq!(poller.source(new), Some(Source::Client(ClientKey(2))));
    }
}
