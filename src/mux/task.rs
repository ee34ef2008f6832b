//! The task around the merge.

use super::merge::{Applied, Conflict, Merge, ObjectConflict};
use super::{ObjectView, PodUpdate};
use jiff::Timestamp;
use podstead_pod::PodUid;
use podstead_pod::sharing::Sharing;
use podstead_store::Set;
use podstead_telemetry::events::{EventRecorder, EventType, Subject};
use std::collections::{HashSet, VecDeque};
use std::sync::Arc;
use tokio::sync::{mpsc, oneshot};

/// Requests of the sync loop that may wait. One pod has at most one open request, and the task receives them at any time: the bound only
/// smooths a burst.
const REQUESTS: usize = 64;

/// Request to the mux.
#[derive(Debug)]
enum Request {
    /// Another incarnation of a pod.
    Recreate(PodUid),
    /// Other sources; the answer is that they count.
    Configure(Sharing, oneshot::Sender<()>),
}

/// Handle of the mux for the sync loop and the daemon.
#[derive(Clone, Debug)]
pub struct MuxHandle {
    requests: mpsc::Sender<Request>,
}

impl MuxHandle {
    /// Asks for another incarnation of a pod that is finished for good while its definition changed: REMOVE of `uid`, ADD with a new
    /// one (the same one where the manifest fixes it). May be called from the loop that reads the operations: it never waits for that
    /// loop. A UID that is not wanted any more is ignored, as is a call after the task has ended.
    pub async fn recreate(&self, uid: PodUid) {
        // An error means that the task has ended, and with it everything that could be made anew.
        self.requests.send(Request::Recreate(uid)).await.ok();
    }

    /// Replaces the configured sources. When it returns they count: a SET of a new one will be taken in, and what
    /// the removed ones wanted goes. Returns also when the task has ended.
    pub async fn configure(&self, sources: Sharing) {
        let (done, is_done) = oneshot::channel();
        if self.requests.send(Request::Configure(sources, done)).await.is_ok() {
            // An error means that the task has ended.
            is_done.await.ok();
        }
    }
}

/// The task before it runs.
#[derive(Debug)]
pub struct MuxTask {
    merge: Merge,
    requests: mpsc::Receiver<Request>,
    view: Arc<ObjectView>,
    events: Arc<dyn EventRecorder>,
    told: HashSet<Conflict>,
    told_objects: HashSet<ObjectConflict>,
    outgoing: VecDeque<PodUpdate>,
}

impl MuxTask {
    /// The task and the handle to it. What the sources say of ConfigMaps and Secrets goes to `view`.
    pub fn new(merge: Merge, view: Arc<ObjectView>, events: Arc<dyn EventRecorder>) -> (Self, MuxHandle) {
        let (sender, requests) = mpsc::channel(REQUESTS);
        let (told, told_objects, outgoing) = (HashSet::new(), HashSet::new(), VecDeque::new());
        (Self { merge, requests, view, events, told, told_objects, outgoing }, MuxHandle { requests: sender })
    }

    fn take_up(&mut self, applied: Applied) {
        if let Some(objects) = applied.objects {
            self.view.replace(objects);
        }
        for update in &applied.updates {
            tracing::debug!(source = %update.source, op = ?update.op, pods = update.pods.len(), "pod update");
        }
        self.outgoing.extend(applied.updates);
        for conflict in &applied.conflicts {
            if !self.told.contains(conflict) {
                tracing::warn!(source = %conflict.loser.source, pod = %conflict.full_name, "{conflict}");
                let subject = Subject::Source(conflict.loser.source.clone());
                self.events.record(&subject, EventType::Warning, "FailedValidation", &conflict.to_string());
            }
        }
        self.told = applied.conflicts.into_iter().collect();
        for conflict in &applied.object_conflicts {
            if !self.told_objects.contains(conflict) {
                tracing::warn!(source = %conflict.loser, object = %conflict.name, "{conflict}");
                let subject = Subject::Source(conflict.loser.clone());
                self.events.record(&subject, EventType::Warning, "FailedValidation", &conflict.to_string());
            }
        }
        self.told_objects = applied.object_conflicts.into_iter().collect();
    }
}

/// Runs until `sets` is closed and everything is handed on, or `updates` is closed.
///
/// A SET is taken in only when all operations of the one before were handed on, so `sets` (bound 1 is enough) holds the store back while
/// the sync loop is busy. `updates` needs no more than 8: it is refilled as fast as it is read.
pub async fn run(mut task: MuxTask, mut sets: mpsc::Receiver<Set>, updates: mpsc::Sender<PodUpdate>) {
    let mut random = PodUid::random;
    loop {
        // All arms are cancel-safe: `reserve` gives its place back, `recv` takes nothing out when it is dropped.
        tokio::select! {
            permit = updates.reserve(), if !task.outgoing.is_empty() => match (permit, task.outgoing.pop_front()) {
                (Ok(permit), Some(update)) => permit.send(update),
                (Ok(_), None) => {}
                (Err(_), _) => return,
            },
            set = sets.recv(), if task.outgoing.is_empty() => match set {
                Some(set) => {
                    let applied = task.merge.apply(set, Timestamp::now(), &mut random);
                    task.take_up(applied);
                }
                None => return,
            },
            // Taken in also while operations wait: the sync loop may be the one that asks, and it is the one that they wait for.
            Some(request) = task.requests.recv() => {
                let applied = match request {
                    Request::Recreate(uid) => task.merge.recreate(&uid, Timestamp::now(), &mut random),
                    Request::Configure(sources, done) => {
                        let applied = task.merge.configure(sources, Timestamp::now(), &mut random);
                        // Nobody may be waiting any more.
                        done.send(()).ok();
                        applied
                    }
                };
                task.take_up(applied);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PodOp;
    use crate::merge::tests::{set, source};

    #[derive(Debug, Default)]
    struct Recorder(std::sync::Mutex<Vec<String>>);

    impl EventRecorder for Recorder {
        fn record(&self, _: &Subject, _: EventType, _: &str, message: &str) {
            self.0.lock().unwrap().push(message.to_owned());
        }
    }

    #[tokio::test]
    async fn a_wish_is_taken_in_while_the_sync_loop_reads_nothing() {
        let (task, handle) = MuxTask::new(Merge::new([source("a")], Vec::new()), Arc::default(), Arc::new(Recorder::default()));
        let (set_sender, sets) = mpsc::channel(1);
        let (sender, mut updates) = mpsc::channel(1);
        let running = tokio::spawn(run(task, sets, sender));
        set_sender.send(set("a", &[("web", "1")])).await.unwrap();
        let added = updates.recv().await.unwrap();
        let uid = added.pods[0].uid.clone();
        for _ in 0..3 * REQUESTS {
            handle.recreate(uid.clone()).await;
        }
        let removed = updates.recv().await.unwrap();
        let again = updates.recv().await.unwrap();
        assert_eq!((removed.op, &removed.pods[0].uid), (PodOp::Remove, &uid));
        assert_eq!(again.op, PodOp::Add);
        assert_ne!(again.pods[0].uid, uid);
        drop(set_sender);
        running.await.unwrap();
        assert!(updates.recv().await.is_none(), "the other wishes named a UID that was gone");
    }

    #[tokio::test]
    async fn a_conflict_is_told_once() {
        let recorder = Arc::new(Recorder::default());
        let (task, _handle) = MuxTask::new(Merge::new([source("a"), source("b")], Vec::new()), Arc::default(), recorder.clone());
        let (set_sender, sets) = mpsc::channel(1);
        let (sender, mut updates) = mpsc::channel(64);
        let running = tokio::spawn(run(task, sets, sender));
        for text in [("a", "1"), ("b", "2"), ("b", "2"), ("a", "3")] {
            set_sender.send(set(text.0, &[("web", text.1)])).await.unwrap();
        }
        drop(set_sender);
        while updates.recv().await.is_some() {}
        running.await.unwrap();
        let told = recorder.0.lock().unwrap();
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("source b (web.yaml:1:1)"), "{told:?}");
    }
}
