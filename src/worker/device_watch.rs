//! Watch of the devices that come and go, for the pods that name some. Without such a pod nothing is listened to.

use podstead_pod::PodUid;
use podstead_sys_async::uevents::Uevents;
use std::collections::BTreeSet;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, watch};

/// The pods that name devices, and the number of changes so far.
#[derive(Debug)]
pub struct DeviceWatch {
    pods: Mutex<BTreeSet<PodUid>>,
    changes: AtomicU64,
    /// There are pods to watch for.
    is_wanted: watch::Sender<bool>,
}

impl Default for DeviceWatch {
    fn default() -> Self {
        Self { pods: Mutex::default(), changes: AtomicU64::new(0), is_wanted: watch::Sender::new(false) }
    }
}

impl DeviceWatch {
    /// Number of changes that were seen: where it is another than before, devices have to be looked up again.
    pub(crate) fn changes(&self) -> u64 {
        self.changes.load(Ordering::Acquire)
    }

    /// The pod names devices.
    pub(crate) fn add(&self, uid: &PodUid) {
        if self.pods().insert(uid.clone()) {
            self.tell();
        }
    }

    /// The pod names none, or is gone.
    pub(crate) fn remove(&self, uid: &PodUid) {
        if self.pods().remove(uid) {
            self.tell();
        }
    }

    fn pods(&self) -> MutexGuard<'_, BTreeSet<PodUid>> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self) {
        let wanted = !self.pods().is_empty();
        self.is_wanted.send_if_modified(|is_wanted| std::mem::replace(is_wanted, wanted) != wanted);
    }

    /// Listens while a pod names devices, and gives these pods a turn when something came or went. Never ends.
    pub async fn run(&self, pokes: mpsc::UnboundedSender<PodUid>) -> Infallible {
        let mut is_wanted = self.is_wanted.subscribe();
        loop {
            // The sender is as old as the receiver.
            is_wanted.wait_for(|is_wanted| *is_wanted).await.ok();
            let mut uevents = match Uevents::open() {
                Ok(uevents) => uevents,
                Err(error) => {
                    tracing::error!(%error, "cannot listen for devices: containers get theirs back when they restart");
                    is_wanted.wait_for(|is_wanted| !is_wanted).await.ok();
                    continue;
                }
            };
            // What happened before the socket was there.
            self.changed(&pokes);
            loop {
                tokio::select! {
                    seen = uevents.changed() => match seen {
                        Ok(()) => self.changed(&pokes),
                        Err(error) => {
                            tracing::warn!(%error, "cannot read notifications about devices: listening anew");
                            break;
                        }
                    },
                    _ = is_wanted.wait_for(|is_wanted| !is_wanted) => break,
                }
            }
        }
    }

    fn changed(&self, pokes: &mpsc::UnboundedSender<PodUid>) {
        self.changes.fetch_add(1, Ordering::AcqRel);
        for uid in self.pods().iter() {
            // The receiver is gone: the daemon exits.
            pokes.send(uid.clone()).ok();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::time::Duration;

    #[tokio::test]
    async fn pods_that_name_devices_are_woken_and_no_others() {
        let watch = Arc::new(DeviceWatch::default());
        let (pokes, mut poked) = mpsc::unbounded_channel();
        let task = tokio::spawn({
            let watch = Arc::clone(&watch);
            async move { watch.run(pokes).await }
        });
        let (radio, meter) = (PodUid::new("radio"), PodUid::new("meter"));
        watch.add(&meter);
        watch.add(&radio);
        let limit = Duration::from_secs(60);
        while tokio::time::timeout(limit, poked.recv()).await.unwrap().unwrap() != radio {}
        watch.remove(&meter);
        let before = watch.changes();
        std::fs::write("/sys/class/mem/full/uevent", "change").unwrap();
        while watch.changes() == before || poked.try_recv() != Ok(radio.clone()) {
            tokio::time::timeout(limit, tokio::task::yield_now()).await.unwrap();
        }
        watch.remove(&radio);
        task.abort();
    }
}
