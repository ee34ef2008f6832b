//! Answering questions about objects, in the job.

use super::super::format::{Commit, Kind, MAX_STRUCTURE};
use super::super::protocol::ObjectId;
use super::wire::{FailedKind, Item, MAX_ANSWER, MAX_IDS, Message, Question, failed};
use git2::{ErrorCode, ObjectType, Odb, Oid};
use podstead_job::channel::{Channel, ChannelError};
use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io::Write;

/// Bytes of commits in one answer.
const WALK: u64 = 1 << 20;

/// The objects of one repository.
pub(super) struct Serving {
    objects: Odb<'static>,
    /// Commits of the present walk that were answered.
    answered: HashSet<ObjectId>,
}

/// Items of an answer and their content.
type Answer = (Vec<Item>, Vec<u8>);

impl Serving {
    /// The objects in the root directory.
    pub(super) fn open() -> Result<Self, git2::Error> {
        let objects = Odb::new()?;
        objects.add_disk_alternate("/")?;
        Ok(Self { objects, answered: HashSet::new() })
    }

    pub(super) fn into_objects(self) -> Odb<'static> {
        self.objects
    }

    fn answer(&mut self, question: &Question) -> Result<Answer, git2::Error> {
        match question {
            Question::Headers(ids) => {
                let items: Result<_, _> = ids.iter().map(|id| self.header(*id)).collect();
                Ok((items?, Vec::new()))
            }
            Question::Get { ids, each } => self.get(ids, *each),
            Question::Walk { from, anew } => {
                if *anew {
                    self.answered.clear();
                }
                self.walk(from)
            }
        }
    }

    fn header(&self, id: ObjectId) -> Result<Item, git2::Error> {
        match self.objects.read_header(oid(id)) {
            Ok((size, kind)) => Ok(kind_of(kind).map_or(Item::Missing, |kind| Item::Object(kind, size as u64))),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(Item::Missing),
            Err(error) => Err(error),
        }
    }

    fn get(&self, ids: &[ObjectId], each: u64) -> Result<Answer, git2::Error> {
        let (mut items, mut content) = (Vec::new(), Vec::new());
        for id in ids {
            let item = match self.header(*id)? {
                Item::Object(kind, size) if size > each => Item::Large(kind, size),
                item => item,
            };
            if let Item::Object(_, size) = item {
                if content.len() as u64 + size > MAX_ANSWER && !items.is_empty() {
                    break;
                }
                content.extend_from_slice(self.objects.read(oid(*id))?.data());
            }
            items.push(item);
        }
        Ok((items, content))
    }

    /// Walks the commits from `from` on. One that cannot be read behind the first is left out: whoever needs it asks for it, and is told.
    fn walk(&mut self, from: &[ObjectId]) -> Result<Answer, git2::Error> {
        let (mut items, mut content) = (Vec::new(), Vec::new());
        let mut next: VecDeque<ObjectId> = from.iter().copied().collect();
        while let Some(id) = next.pop_front() {
            if items.len() >= MAX_IDS || content.len() as u64 > WALK {
                break;
            }
            if !self.answered.insert(id) && !items.is_empty() {
                continue;
            }
            match self.header(id) {
                Ok(Item::Object(_, size)) if size <= MAX_STRUCTURE => {}
                Ok(Item::Missing) if items.is_empty() => return Ok((vec![Item::Missing], content)),
                Ok(Item::Object(kind, size) | Item::Large(kind, size)) if items.is_empty() => {
                    return Ok((vec![Item::Large(kind, size)], content));
                }
                Err(error) if items.is_empty() => return Err(error),
                Ok(_) | Err(_) => continue,
            }
            let object = match self.objects.read(oid(id)) {
                Ok(object) => object,
                Err(error) if items.is_empty() => return Err(error),
                Err(_) => continue,
            };
            let Some(kind) = kind_of(object.kind()).filter(|kind| *kind == Kind::Commit || items.is_empty()) else { continue };
            items.push(Item::Object(kind, object.len() as u64));
            content.extend_from_slice(object.data());
            next.extend(Commit::parse(object.data()).map(|commit| commit.parents).unwrap_or_default());
        }
        Ok((items, content))
    }
}

/// Answers questions until there are no more.
pub(super) fn serve(mut channel: Channel, mut serving: Serving, mut bytes: File) -> Result<(), ChannelError> {
    while let Some(question) = channel.receive::<Question>()? {
        match serving.answer(&question) {
            Ok((items, content)) => {
                #[cfg(feature = "testing")]
                let (items, content) = super::attack::in_content(items, content, &channel);
                channel.send(&Message::Objects(items))?;
                bytes.write_all(&content)?;
            }
            Err(error) => return channel.send(&failed(FailedKind::Damaged, &error)),
        }
    }
    Ok(())
}

fn kind_of(kind: ObjectType) -> Option<Kind> {
    match kind {
        ObjectType::Commit => Some(Kind::Commit),
        ObjectType::Tree => Some(Kind::Tree),
        ObjectType::Blob => Some(Kind::Blob),
        ObjectType::Tag => Some(Kind::Tag),
        ObjectType::Any => None,
    }
}

pub(super) fn oid(id: ObjectId) -> Oid {
    // Twenty bytes are always an id.
    Oid::from_bytes(id.as_bytes()).unwrap_or(Oid::ZERO_SHA1)
}
