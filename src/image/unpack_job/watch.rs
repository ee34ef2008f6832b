//! Messages of a job to the daemon, checked. **Pure**, but for [`Feed`].

use super::super::limits::{Bound, Exceeded, Limits, Used, check};
use super::super::unpack::{SUMS_MAX, Unpacked};
use super::wire::{Done, Failed, Message, name_of};
use podstead_container::digest::Digest;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Longest path that a name may be.
const PATH_MAX: usize = 4095;

/// The bytes on their way to the job, for those who watch it.
#[derive(Debug, Default)]
pub(super) struct Feed {
    passed: AtomicU64,
    waits_for_job: AtomicBool,
}

impl Feed {
    /// The job has so many bytes more to read, and the daemon waits for it.
    pub(super) fn offer(&self) {
        self.waits_for_job.store(true, Ordering::Relaxed);
    }

    /// The job has taken so many.
    pub(super) fn taken(&self, count: u64) {
        self.passed.fetch_add(count, Ordering::Relaxed);
        self.waits_for_job.store(false, Ordering::Relaxed);
    }

    /// All bytes were taken, or the job takes no more: the rest is up to it.
    pub(super) fn ended(&self) {
        self.offer();
    }

    /// Amount that the job has taken so far; `None` while it is not the job that is waited for.
    pub(super) fn awaited(&self) -> Option<u64> {
        self.waits_for_job.load(Ordering::Relaxed).then(|| self.passed.load(Ordering::Relaxed))
    }
}

/// The last message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The layer is unpacked.
    Done(Digest, Unpacked),
    /// It is not.
    Failed(Failed),
}

/// Messages of one job so far.
#[derive(Debug)]
pub(super) struct Heard<'a> {
    limits: &'a Limits,
    used: Used,
    implicit: Vec<Vec<u8>>,
    opaque: Vec<Vec<u8>>,
    sums: BTreeMap<u64, u32>,
    name_memory: u64,
    pub(super) answer: Option<Answer>,
}

/// Reason why a message is not accepted.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unacceptable {
    /// No job says this.
    Rule(&'static str),
    /// The lists are longer than an image's limits.
    Limit(Exceeded),
}

impl From<Exceeded> for Unacceptable {
    fn from(exceeded: Exceeded) -> Self {
        Self::Limit(exceeded)
    }
}

impl<'a> Heard<'a> {
    pub(super) fn new(limits: &'a Limits) -> Self {
        let (used, implicit, opaque, sums) = Default::default();
        Self { limits, used, implicit, opaque, sums, name_memory: 0, answer: None }
    }

    /// Takes a message; returns what the job took since the one before.
    pub(super) fn take(&mut self, message: Message) -> Result<Used, Unacceptable> {
        if self.answer.is_some() {
            return Err(Unacceptable::Rule("a message after the answer"));
        }
        match message {
            Message::Progress(used) => {
                let more = self.more(used)?;
                // Without this, it could keep the daemon busy for ever.
                if more == Used::default() {
                    return Err(Unacceptable::Rule("progress without any"));
                }
                Ok(more)
            }
            Message::Implicit(names) => {
                self.names(&names, |heard| &mut heard.implicit)?;
                check(Bound::ImplicitDirectories, self.implicit.len() as u64, self.limits.implicit_directories)?;
                Ok(Used::default())
            }
            Message::Opaque(names) => {
                self.names(&names, |heard| &mut heard.opaque)?;
                Ok(Used::default())
            }
            Message::Sums(sums) => {
                // Each brings something new, so that there is an end of them.
                if sums.is_empty() || sums.into_iter().any(|(inode, sum)| self.sums.insert(inode, sum).is_some()) {
                    return Err(Unacceptable::Rule("a checksum twice, or none"));
                }
                match self.sums.len() > SUMS_MAX {
                    true => Err(Unacceptable::Rule("more checksums than a job keeps")),
                    false => Ok(Used::default()),
                }
            }
            Message::Done(Done { used, diff_id, entries, bytes, opaque_root, lost_xattrs }) => {
                let more = self.more(used)?;
                if entries > used.entries || bytes > used.bytes.max(self.limits.unpacked_bytes) {
                    return Err(Unacceptable::Rule("an answer that contradicts itself"));
                }
                let (implicit, opaque) = (std::mem::take(&mut self.implicit), std::mem::take(&mut self.opaque));
                let sums = std::mem::take(&mut self.sums);
                let unpacked = Unpacked { entries, bytes, implicit, opaque, opaque_root, lost_xattrs, sums };
                self.answer = Some(Answer::Done(diff_id, unpacked));
                Ok(more)
            }
            Message::Failed(failed) => {
                self.answer = Some(Answer::Failed(failed));
                Ok(Used::default())
            }
        }
    }

    fn more(&mut self, used: Used) -> Result<Used, Unacceptable> {
        let more = used.since(&self.used).ok_or(Unacceptable::Rule("progress backwards"))?;
        self.used = used;
        Ok(more)
    }

    fn names(&mut self, names: &[String], list: fn(&mut Self) -> &mut Vec<Vec<u8>>) -> Result<(), Unacceptable> {
        if names.is_empty() {
            return Err(Unacceptable::Rule("an empty list"));
        }
        for text in names {
            let name = name_of(text).filter(|name| is_path(name)).ok_or(Unacceptable::Rule("a name that is no path"))?;
            self.name_memory += name.len() as u64 + 64;
            // Both lists together: the job bounds each.
            check(Bound::PathMemory, self.name_memory, self.limits.path_memory.saturating_mul(2))?;
            list(self).push(name);
        }
        Ok(())
    }
}

/// Returns true if bytes of a job, cut into pieces of this size, are an answer. For fuzzing.
#[cfg(feature = "testing")]
pub fn is_answer(bytes: &[u8], piece: usize) -> bool {
    let limits = Limits::default();
    let (mut decoder, mut heard) = (podstead_job::frame::Decoder::new(podstead_job::frame::FROM_JOB), Heard::new(&limits));
    for piece in bytes.chunks(piece) {
        decoder.push(piece);
        loop {
            match decoder.next_message() {
                Ok(Some(message)) => match heard.take(message) {
                    Ok(_) => {}
                    Err(_) => return false,
                },
                Ok(None) => break,
                Err(_) => return false,
            }
        }
    }
    !decoder.has_rest() && heard.answer.is_some()
}

/// Returns true for a path relative to the tree's root that leads downwards.
fn is_path(name: &[u8]) -> bool {
    let is_component = |component: &[u8]| !matches!(component, b"" | b"." | b"..") && !component.contains(&0);
    name.len() <= PATH_MAX && name.split(|byte| *byte == b'/').all(is_component)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits() -> Limits {
        Limits { implicit_directories: 3, path_memory: 400, ..Limits::default() }
    }

    fn done() -> Message {
        let used = Used { entries: 4, ..Used::default() };
        Message::Done(Done { used, diff_id: Digest::of(b"x"), entries: 2, bytes: 0, opaque_root: false, lost_xattrs: 0 })
    }

    #[test]
    fn answer_has_the_lists_that_came_before() {
        let limits = limits();
        let mut heard = Heard::new(&limits);
        heard.take(Message::Implicit(vec!["a".into()])).unwrap();
        heard.take(Message::Implicit(vec!["a/ÿ".into()])).unwrap();
        heard.take(Message::Opaque(vec!["b".into()])).unwrap();
        heard.take(Message::Sums(vec![(7, 1)])).unwrap();
        assert_eq!(heard.take(done()).unwrap().entries, 4);
        let Some(Answer::Done(_, unpacked)) = heard.answer else { panic!("no answer") };
        assert_eq!(unpacked.implicit, [b"a".to_vec(), b"a/\xff".to_vec()]);
        assert_eq!(unpacked.opaque, [b"b".to_vec()]);
        assert_eq!(unpacked.sums, BTreeMap::from([(7, 1)]));
    }

    #[test]
    fn what_no_job_says_is_refused() {
        let limits = limits();
        let refused = |messages: Vec<Message>| {
            let mut heard = Heard::new(&limits);
            messages.into_iter().find_map(|message| heard.take(message).err()).expect("refused")
        };
        let progress = |entries| Message::Progress(Used { entries, ..Used::default() });
        assert_eq!(refused(vec![done(), done()]), Unacceptable::Rule("a message after the answer"));
        assert_eq!(refused(vec![progress(2), progress(2)]), Unacceptable::Rule("progress without any"));
        assert_eq!(refused(vec![progress(2), progress(1)]), Unacceptable::Rule("progress backwards"));
        assert_eq!(refused(vec![progress(5), done()]), Unacceptable::Rule("progress backwards"));
        assert_eq!(refused(vec![Message::Opaque(vec![])]), Unacceptable::Rule("an empty list"));
        for name in ["", "/etc", "a/../b", "..", "a//b", "a\0", "\u{100}"] {
            let refused = refused(vec![Message::Opaque(vec![name.into()])]);
            assert_eq!(refused, Unacceptable::Rule("a name that is no path"), "{name:?}");
        }
        for sums in [vec![], vec![(7, 1), (7, 2)]] {
            assert_eq!(refused(vec![Message::Sums(sums)]), Unacceptable::Rule("a checksum twice, or none"));
        }
        let sums = (0..=SUMS_MAX as u64).map(|inode| (inode, 0)).collect();
        assert_eq!(refused(vec![Message::Sums(sums)]), Unacceptable::Rule("more checksums than a job keeps"));
        let many = vec!["a".to_owned(); 4];
        assert!(matches!(refused(vec![Message::Implicit(many)]), Unacceptable::Limit(e) if e.bound == Bound::ImplicitDirectories));
        let long = vec!["a".repeat(900)];
        assert!(matches!(refused(vec![Message::Opaque(long)]), Unacceptable::Limit(e) if e.bound == Bound::PathMemory));
    }
}
