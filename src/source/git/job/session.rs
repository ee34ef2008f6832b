//! Questions about objects. Each object is hashed here: a job can keep one back, not replace it.

use super::super::format::{Kind, MAX_STRUCTURE, name_of};
use super::super::protocol::ObjectId;
use super::error::JobError;
use super::failure::{Failure, ended};
use super::wire::{Item, MAX_ANSWER, MAX_IDS, MAX_OBJECT, Message, Question};
use podstead_job::conversation::Conversation;
use podstead_job::launch::MessageError;
use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Bytes of an answer to a walk.
const MAX_WALK: u64 = (2 << 20) + MAX_STRUCTURE;

/// An object, whose content has its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::git) enum Found {
    /// It is not here.
    Missing,
    /// Its content.
    Object(Kind, Vec<u8>),
    /// It is said to be larger than what was asked for: so many bytes.
    Large(u64),
}

/// Name, kind and content of an object.
pub(in crate::git) type Named = (ObjectId, Kind, Vec<u8>);

/// A job that reads the objects of one repository. Dropping it ends the job.
#[derive(Debug)]
pub(in crate::git) struct Session {
    /// `None` once the job has failed.
    conversation: Option<Conversation>,
    bytes: UnixStream,
    patience: Duration,
}

impl Session {
    pub(super) fn new(conversation: Conversation, bytes: UnixStream, patience: Duration) -> Self {
        Self { conversation: Some(conversation), bytes, patience }
    }

    /// The sizes of objects as the job says; `None` for those that are not here.
    pub(in crate::git) fn sizes(&mut self, ids: &[ObjectId]) -> Result<Vec<Option<u64>>, Failure> {
        let mut sizes = Vec::with_capacity(ids.len());
        for ids in ids.chunks(MAX_IDS) {
            let items = self.ask(&Question::Headers(ids.to_vec()))?;
            if items.len() != ids.len() {
                return Err(self.broken("a list of another length"));
            }
            sizes.extend(items.iter().map(|item| match item {
                Item::Missing => None,
                Item::Object(_, size) | Item::Large(_, size) => Some(*size),
            }));
        }
        Ok(sizes)
    }

    /// Passes these objects to `take`, with their places in `ids`, in this order; those of more than `each` bytes without their content.
    pub(in crate::git) fn get<E: From<Failure>>(
        &mut self,
        ids: &[ObjectId],
        each: u64,
        mut take: impl FnMut(usize, Found) -> Result<(), E>,
    ) -> Result<(), E> {
        let each = each.min(MAX_OBJECT);
        let mut done = 0;
        while done < ids.len() {
            let asked = &ids[done..ids.len().min(done + MAX_IDS)];
            let items = self.ask(&Question::Get { ids: asked.to_vec(), each })?;
            if items.is_empty() || items.len() > asked.len() {
                return Err(self.broken("a list of another length").into());
            }
            self.check_sizes(&items, each, MAX_ANSWER.max(each))?;
            for (id, item) in asked.iter().zip(items) {
                let found = match item {
                    Item::Missing => Found::Missing,
                    Item::Large(_, size) if size <= each => return Err(self.broken("an object that is large and small").into()),
                    Item::Large(_, size) => Found::Large(size),
                    Item::Object(kind, size) => {
                        let content = self.content(size)?;
                        if name_of(kind, &content).map_err(|_| Failure::Collision(*id))? != *id {
                            return Err(self.failed(JobError::AnotherObject(*id)).into());
                        }
                        Found::Object(kind, content)
                    }
                };
                take(done, found)?;
                done += 1;
            }
        }
        Ok(())
    }

    /// Objects of the history of `from`, at most as many as fit into an answer, by the names that they have. The first one is that of the first id;
    /// `None` if that one is not here, and nothing if it is too large.
    pub(in crate::git) fn walk(&mut self, from: &[ObjectId], anew: bool) -> Result<Option<Vec<Named>>, Failure> {
        let first = from.first().copied();
        let items = self.ask(&Question::Walk { from: from.iter().take(MAX_IDS).copied().collect(), anew })?;
        if items == [Item::Missing] {
            return Ok(None);
        }
        if matches!(items[..], [Item::Large(..)]) {
            return Ok(Some(Vec::new()));
        }
        if items.is_empty() || items.len() > MAX_IDS {
            return Err(self.broken("a list of another length"));
        }
        self.check_sizes(&items, MAX_STRUCTURE, MAX_WALK)?;
        let mut found = Vec::with_capacity(items.len());
        for item in items {
            let Item::Object(kind, size) = item else { return Err(self.broken("a history without content")) };
            let content = self.content(size)?;
            let name = name_of(kind, &content).map_err(|_| Failure::Collision(first.unwrap_or(ObjectId::from_bytes([0; 20]))))?;
            found.push((name, kind, content));
        }
        match first {
            Some(first) if found.first().is_some_and(|(name, ..)| *name != first) => {
                Err(self.failed(JobError::AnotherObject(first)))
            }
            _ => Ok(Some(found)),
        }
    }

    fn check_sizes(&mut self, items: &[Item], each: u64, all: u64) -> Result<(), Failure> {
        let sizes = items.iter().map(|item| if let Item::Object(_, size) = item { *size } else { 0 });
        let (largest, sum) = sizes.fold((0, 0_u64), |(largest, sum), size| (size.max(largest), sum.saturating_add(size)));
        if largest > each || sum > all {
            return Err(self.broken("more than was asked for"));
        }
        Ok(())
    }

    fn ask(&mut self, question: &Question) -> Result<Vec<Item>, Failure> {
        let patience = self.patience;
        let Some(conversation) = &mut self.conversation else { return Err(JobError::NoAnswer(0).into()) };
        // A job that has ended tells by its end why.
        let _ended = conversation.ask(question, patience);
        let error = match conversation.hear::<Message>(patience) {
            Ok(Some(Message::Objects(items))) => return Ok(items),
            Ok(Some(Message::Failed(failed))) => Failure::of_failure(&failed),
            Ok(Some(_)) => JobError::BadAnswer("an answer to another question".to_owned()).into(),
            Ok(None) => JobError::NoAnswer(0).into(),
            Err(MessageError::Late) => JobError::Hangs(patience).into(),
            Err(error) => JobError::BadAnswer(error.to_string()).into(),
        };
        Err(self.stopped(error))
    }

    /// The next bytes of the stream.
    fn content(&mut self, size: u64) -> Result<Vec<u8>, Failure> {
        let mut content = Vec::new();
        // It grows with what comes: a size is only said.
        match (&self.bytes).take(size).read_to_end(&mut content) {
            Ok(count) if count as u64 == size => Ok(content),
            Ok(_) => Err(self.failed(JobError::NoAnswer(0))),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(self.failed(JobError::Hangs(self.patience))),
            // Its end tells why.
            Err(_) => Err(self.failed(JobError::NoAnswer(0))),
        }
    }

    fn broken(&mut self, rule: &str) -> Failure {
        self.failed(JobError::BadAnswer(rule.to_owned()))
    }

    fn failed(&mut self, error: JobError) -> Failure {
        self.stopped(error.into())
    }

    /// Ends the job, for the reason `failure` or, where it gave none, for that of its end.
    fn stopped(&mut self, failure: Failure) -> Failure {
        match self.conversation.take() {
            Some(conversation) => ended(conversation, failure),
            None => failure,
        }
    }
}
