//! One conversation: what the server can do, its references, a pack.

use super::MAX_LISTING;
use super::http::HttpRemote;
use super::lines::{Lines, NoLine};
use super::open::Open;
use crate::git::error::GitError;
use crate::git::protocol::{
    Advertisement, AdvertisementReader, AnswerReader, Fetch, LsRefsReader, ObjectId, OldCapabilities, Part, Pkt, ProtocolError,
    Reference, ls_refs_request,
};
use bytes::Bytes;
use tokio::sync::mpsc;

/// A conversation with the server.
pub(in crate::git) struct Session {
    location: String,
    line: Line,
    speaks: Speaks,
}

enum Line {
    /// Every question is a request of its own.
    Http { http: HttpRemote, answer: Option<Lines> },
    /// One connection for all.
    Open(Box<Open>),
}

enum Speaks {
    Current { shallow: bool },
    Old { references: Vec<Reference>, capabilities: OldCapabilities },
}

/// Shallow boundaries that came with a pack.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::git) struct Boundaries {
    /// Commits that came without their parents.
    pub(in crate::git) shallow: Vec<ObjectId>,
    /// Commits whose parents came now.
    pub(in crate::git) unshallow: Vec<ObjectId>,
}

impl Session {
    /// With a server that is known to speak version 2.
    pub(super) fn known(location: String, http: HttpRemote, shallow: bool) -> Self {
        Self { location, line: Line::Http { http, answer: None }, speaks: Speaks::Current { shallow } }
    }

    pub(super) async fn greet_http(mut http: HttpRemote, location: String) -> Result<Self, GitError> {
        let mut lines = http.advertisement(MAX_LISTING).await?;
        let speaks = read(&mut lines, greeting()).await.map_err(|no_line| no_line.into_error(&location))?;
        Ok(Self { location, line: Line::Http { http, answer: None }, speaks: speaks.into() })
    }

    pub(super) async fn greet_open(mut open: Open, location: String) -> Result<Self, GitError> {
        match read(&mut open.lines, greeting()).await {
            Ok(speaks) => Ok(Self { location, line: Line::Open(Box::new(open)), speaks: speaks.into() }),
            Err(no_line) => Err(open.explain(&location, no_line).await),
        }
    }

    /// State that saves the next session its first request.
    pub(super) fn http(&self) -> Option<(HttpRemote, bool)> {
        match (&self.line, &self.speaks) {
            (Line::Http { http, .. }, Speaks::Current { shallow }) => Some((http.clone(), *shallow)),
            (Line::Http { .. } | Line::Open(_), Speaks::Current { .. } | Speaks::Old { .. }) => None,
        }
    }

    /// The references whose names begin with one of `prefixes`, or all.
    pub(super) async fn references(&mut self, prefixes: &[String]) -> Result<Vec<Reference>, GitError> {
        if let Speaks::Old { references, .. } = &mut self.speaks {
            return Ok(std::mem::take(references));
        }
        let request = ls_refs_request(prefixes);
        let mut reader = LsRefsReader::default();
        let lines = self.line.ask(request, true, MAX_LISTING).await?;
        match read(lines, |pkt| reader.take(&pkt)).await {
            Ok(references) => Ok(references),
            Err(no_line) => Err(self.line.explain(&self.location, no_line).await),
        }
    }

    /// Fetches; the pack goes to `pack` as it comes, at most `limit` bytes. When nobody receives it any more, it returns early: whoever
    /// ended the receiver knows why.
    pub(in crate::git) async fn fetch(
        &mut self,
        fetch: &Fetch,
        limit: u64,
        pack: mpsc::Sender<Bytes>,
    ) -> Result<Boundaries, GitError> {
        let told = |error| GitError::of_protocol(&self.location, error);
        let (request, mut reader, current) = match &self.speaks {
            Speaks::Current { shallow } => (fetch.request(*shallow), AnswerReader::current(), true),
            Speaks::Old { capabilities, .. } => {
                (fetch.old_request(*capabilities).map_err(told)?, AnswerReader::old(*capabilities), false)
            }
        };
        let lines = self.line.ask(request, current, limit).await?;
        let mut boundaries = Boundaries::default();
        loop {
            let part = match lines.next().await {
                Ok(pkt) => reader.take(pkt).map_err(NoLine::Protocol),
                Err(no_line) => Err(no_line),
            };
            match part {
                Ok(Part::Nothing) => {}
                Ok(Part::Shallow(id)) => boundaries.shallow.push(id),
                Ok(Part::Unshallow(id)) => boundaries.unshallow.push(id),
                Ok(Part::Pack(bytes)) => {
                    if pack.send(bytes).await.is_err() {
                        return Ok(boundaries);
                    }
                }
                Ok(Part::End) => return Ok(boundaries),
                Err(no_line) => return Err(self.line.explain(&self.location, no_line).await),
            }
        }
    }
}

impl Line {
    async fn ask(&mut self, request: Vec<u8>, current: bool, limit: u64) -> Result<&mut Lines, GitError> {
        match self {
            Self::Http { http, answer } => Ok(answer.insert(http.question(request, current, limit).await?)),
            Self::Open(open) => {
                open.lines.allow(limit);
                open.send(&request).await;
                Ok(&mut open.lines)
            }
        }
    }

    async fn explain(&mut self, location: &str, no_line: NoLine) -> GitError {
        match self {
            Self::Http { .. } => no_line.into_error(location),
            Self::Open(open) => open.explain(location, no_line).await,
        }
    }
}

impl From<Advertisement> for Speaks {
    fn from(advertisement: Advertisement) -> Self {
        match advertisement {
            Advertisement::Current { shallow } => Self::Current { shallow },
            Advertisement::Old { references, capabilities } => Self::Old { references, capabilities },
        }
    }
}

fn greeting() -> impl FnMut(Pkt) -> Result<Option<Advertisement>, ProtocolError> {
    let mut reader = AdvertisementReader::default();
    move |pkt| reader.take(&pkt)
}

/// Hands lines to `take` until it has what it wants.
async fn read<T>(lines: &mut Lines, mut take: impl FnMut(Pkt) -> Result<Option<T>, ProtocolError>) -> Result<T, NoLine> {
    loop {
        if let Some(whole) = take(lines.next().await?).map_err(NoLine::Protocol)? {
            return Ok(whole);
        }
    }
}
