//! Commands on revisions that were accepted before.

use super::attempt::{Shelf, put_in_force};
use super::request::Order;
use super::source_state::SourceState;
use crate::Set;
use crate::history::{History, Hold, HoldKind, RecordFault, Resumed, RevisionDiff, RevisionError, RolledBack};
use crate::last_good::{LastGoodError, Record, Stamp, State, Unreadable};
use crate::revisions::{diff, entry, select};
use crate::undelta::KeptFiles;
use jiff::Timestamp;
use podstead_telemetry::error_chain;

impl SourceState {
    /// Carries out a command; returns the set to pass on.
    pub(super) async fn fulfil(&mut self, order: Order) -> Option<Set> {
        // An answer that cannot be sent: nobody waits for it any more. What was done stays done.
        match order {
            Order::Prune(answer) => {
                let (set, result) = self.prune().await;
                answer.send(result).ok();
                set
            }
            Order::Suspend { command, answer } => {
                answer.send(self.suspend(command).await).ok();
                None
            }
            Order::Resume(answer) => {
                let (set, result) = self.resume().await;
                answer.send(result).ok();
                set
            }
            Order::RollBack { revision, command, answer } => {
                let (set, result) = match self.roll_back(revision, command).await {
                    Ok((set, done)) => (Some(set), Ok(done)),
                    Err(error) => (None, Err(error)),
                };
                answer.send(result).ok();
                set
            }
            Order::History(answer) => {
                answer.send(self.history().await).ok();
                None
            }
            Order::Diff { revision, answer } => {
                answer.send(self.difference(revision).await).ok();
                None
            }
        }
    }

    async fn suspend(&mut self, command: String) -> Result<Hold, RevisionError> {
        if let Some(hold) = &self.hold {
            return Ok(hold.clone());
        }
        let hold = Hold { kind: HoldKind::Suspended, since: Timestamp::now(), command };
        self.save_hold(Some(hold.clone())).await?;
        self.told.good("SourceSuspended", &format!("source suspended; run podstead resume {} to accept new revisions", self.id()));
        self.publish();
        Ok(hold)
    }

    async fn resume(&mut self) -> (Option<Set>, Result<Resumed, RevisionError>) {
        let Some(hold) = self.hold.clone() else { return (None, Err(RevisionError::NotHeld(self.id().clone()))) };
        if let Err(error) = self.save_hold(None).await {
            return (None, Err(error));
        }
        self.told.good("SourceResumed", &format!("source resumed; it was {}", hold.kind.word()));
        let before = self.record_in_force();
        self.times.held_back(self.id());
        let set = self.accept_what_was_held_back().await;
        self.publish();
        let diff = before.zip(self.record_in_force()).map(|(before, after)| RevisionDiff {
            from: entry(&before, before.stamp.number == after.stamp.number),
            to: entry(&after, true),
            objects: diff(&before.files, &after.files),
        });
        (set, Ok(Resumed { hold, diff }))
    }

    /// Changes the hold alone, durably.
    async fn save_hold(&mut self, hold: Option<Hold>) -> Result<(), RevisionError> {
        let record = self.record_in_force();
        let state = State { hold: hold.clone(), in_force: record };
        let saved = self.on_disk(move |shelf| shelf.last_good.save(&state)).await;
        saved.map_err(|source| RevisionError::NotWritten { id: self.id().clone(), source })?;
        self.hold = hold;
        Ok(())
    }

    async fn roll_back(&mut self, wanted: Option<String>, command: String) -> Result<(Set, RolledBack), RevisionError> {
        let id = self.id().clone();
        let in_force = self.in_force.clone().ok_or_else(|| RevisionError::NothingAccepted(id.clone()))?;
        let Record { stamp: target, files } = self.find(&in_force, wanted).await?;
        if target.number == in_force.number {
            return Err(RevisionError::InForce { id, revision: target.revision });
        }
        let (store, set) = self.restored(files.clone(), &target);
        let hold = Hold { kind: HoldKind::RolledBack, since: Timestamp::now(), command };
        let (kept_hold, before) = (hold.clone(), in_force.clone());
        let written = self.on_disk(move |shelf| {
            put_in_force(shelf, Some(&before), Some(kept_hold), |number| Record {
                stamp: Stamp {
                    number,
                    accepted_at: Timestamp::now(),
                    restored_from: Some(target.restored_from.unwrap_or(target.number)),
                    newest: Some(before.newest().clone()),
                    ..target
                },
                files,
            })
        });
        let stamp = written.await.map_err(|source| RevisionError::NotWritten { id: id.clone(), source })?;
        let text = format!("rolled back to revision {}; run podstead resume {id} to accept new revisions", stamp.revision);
        self.told.good("SourceRolledBack", &text);
        let done =
            RolledBack { revision: stamp.revision.clone(), pods: set.pods.len(), before: in_force.revision, hold: hold.clone() };
        self.hold = Some(hold);
        self.put_in_force(store, stamp, &set);
        self.publish();
        Ok((set, done))
    }

    async fn history(&self) -> Result<History, RevisionError> {
        let number = self.in_force.as_ref().map(|stamp| stamp.number);
        let (mut revisions, mut unreadable) = (Vec::new(), Vec::new());
        revisions.extend(self.record_in_force().map(|record| entry(&record, true)));
        for record in self.earlier(number).await? {
            match record {
                Ok(record) => revisions.push(entry(&record, false)),
                Err(unread) => unreadable.push(error_chain(&unread).to_string()),
            }
        }
        Ok(History { revisions, unreadable })
    }

    async fn difference(&self, wanted: Option<String>) -> Result<RevisionDiff, RevisionError> {
        let in_force = self.record_in_force().ok_or_else(|| RevisionError::NothingAccepted(self.id().clone()))?;
        let from = self.find(&in_force.stamp, wanted).await?;
        let is_in_force = from.stamp.number == in_force.stamp.number;
        let objects = diff(&from.files, &in_force.files);
        Ok(RevisionDiff { from: entry(&from, is_in_force), to: entry(&in_force, true), objects })
    }

    /// Finds the record that `wanted` names.
    async fn find(&self, in_force: &Stamp, wanted: Option<String>) -> Result<Record, RevisionError> {
        let mut records = self.earlier(Some(in_force.number)).await?;
        // One that cannot be read must not let another one be taken for the one before.
        if wanted.is_none()
            && let Some(position) = records.iter().position(Result::is_err)
            && let Err(unread) = records.swap_remove(position)
        {
            return Err(RevisionError::Unreadable { id: self.id().clone(), source: unread.into() });
        }
        records.extend(self.record_in_force().map(Ok));
        let mut readable: Vec<Record> = records.into_iter().filter_map(Result::ok).collect();
        // Emptying a host is nobody's wish unless it is said: most sources begin with nothing.
        let gives = |record: &Record| record.files.values().any(|file| !file.objects.is_empty());
        readable.retain(|record| wanted.is_some() || gives(record));
        let stamps: Vec<Stamp> = readable.iter().map(|record| record.stamp.clone()).collect();
        let number = select(self.id(), in_force, &stamps, wanted.as_deref())?.number;
        let position = readable.iter().position(|record| record.stamp.number == number);
        let missing = || RevisionError::NoSuchRevision { id: self.id().clone(), wanted: wanted.clone().unwrap_or_default() };
        Ok(readable.swap_remove(position.ok_or_else(missing)?))
    }

    async fn earlier(&self, in_force: Option<u64>) -> Result<Vec<Result<Record, Unreadable>>, RevisionError> {
        let read = self.on_disk(move |shelf| shelf.last_good.earlier(in_force, shelf.history_limit)).await;
        read.map_err(|source| RevisionError::Unreadable { id: self.id().clone(), source })
    }

    /// The record in force, as on disk.
    fn record_in_force(&self) -> Option<Record> {
        let files: KeptFiles = self.store.kept();
        self.in_force.clone().map(|stamp| Record { stamp, files })
    }

    /// Runs blocking I/O.
    async fn on_disk<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Shelf) -> Result<T, LastGoodError> + Send + 'static,
    ) -> Result<T, RecordFault> {
        let shelf = self.shelf.clone();
        Ok(tokio::task::spawn_blocking(move || work(&shelf)).await??)
    }
}
