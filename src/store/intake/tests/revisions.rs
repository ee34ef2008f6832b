//! Going back, standing still and going on, also through restarts.

use super::*;
use crate::history::{Change, HoldKind, RevisionDiff, RevisionError, RevisionState};

const ROLLBACK: &str = "podstead rollback manifests";

impl Running {
    /// Puts `image` in force.
    async fn accept(&mut self, image: &str) {
        self.artifact("here", &[("p.yaml", &pod("p", image))]).await;
        assert_eq!(self.pods().await, [format!("p={image}")]);
    }

    async fn history(&self) -> Vec<(u64, Option<u64>, bool)> {
        let history = self.handle.history(&id()).await.unwrap();
        assert_eq!(history.unreadable, [""; 0]);
        history.revisions.iter().map(|entry| (entry.number, entry.restored_from, entry.in_force)).collect()
    }
}

async fn with_three(root: &Path) -> Running {
    let mut running = start(root);
    for image in ["one", "two", "three"] {
        running.accept(image).await;
    }
    running
}

#[tokio::test]
async fn what_was_accepted_is_listed_newest_first() {
    let root = tempfile::tempdir().unwrap();
    let running = start(root.path());
    assert_eq!(running.history().await, []);
    assert!(matches!(running.handle.roll_back(&id(), None, "").await, Err(RevisionError::NothingAccepted(of)) if of == id()));
    running.end().await;
    let mut running = with_three(root.path()).await;
    assert_eq!(running.history().await, [(3, None, true), (2, None, false), (1, None, false)]);
    for image in ["four", "five"] {
        running.accept(image).await;
    }
    assert_eq!(running.history().await, [(5, None, true), (4, None, false), (3, None, false), (2, None, false)]);
    let status = running.status().await;
    assert_eq!(status.accepted, status.applied);
    assert!(status.accepted_at.is_some() && status.applied_at >= status.accepted_at);
}

#[tokio::test]
async fn a_source_that_went_back_stays_there_through_restarts_until_it_is_resumed() {
    let root = tempfile::tempdir().unwrap();
    let mut running = with_three(root.path()).await;
    let done = running.handle.roll_back(&id(), None, ROLLBACK).await.unwrap();
    assert_eq!((done.pods, done.hold.kind, done.hold.command.as_str()), (1, HoldKind::RolledBack, ROLLBACK));
    assert_eq!(running.pods().await, ["p=two"]);
    running.artifact("here", &[("p.yaml", &pod("p", "four"))]).await;
    let status = running.status().await;
    assert!(status.fetched.unwrap().0.contains("four") && status.accepted.unwrap().0.contains("two"));
    assert_eq!(status.hold, Some(done.hold.clone()));
    assert_eq!(running.handle.prune(&id()).await, Err(PruneError::Held(id())));
    running.end().await;

    let mut running = start(root.path());
    assert_eq!(running.pods().await, ["p=two"]);
    running.artifact("here", &[("p.yaml", &pod("p", "four"))]).await;
    assert_eq!(running.status().await.hold, Some(done.hold.clone()));
    assert_eq!(running.history().await, [(4, Some(2), true), (3, None, false), (2, None, false), (1, None, false)]);
    let resumed = running.handle.resume(&id()).await.unwrap();
    assert_eq!(resumed.hold, done.hold);
    let RevisionDiff { from, to, objects } = resumed.diff.unwrap();
    assert_eq!((from.number, to.number, to.in_force, objects.len()), (4, 5, true, 1), "{objects:?}");
    assert_eq!(running.pods().await, ["p=four"]);
    assert_eq!(running.status().await.hold, None);
    assert!(matches!(running.handle.resume(&id()).await, Err(RevisionError::NotHeld(of)) if of == id()));
    running.end().await;
    assert_eq!(start(root.path()).pods().await, ["p=four"]);
}

#[tokio::test]
async fn going_back_again_goes_further_and_a_revision_can_be_named() {
    let root = tempfile::tempdir().unwrap();
    let mut running = with_three(root.path()).await;
    for expected in ["p=two", "p=one"] {
        running.handle.roll_back(&id(), None, ROLLBACK).await.unwrap();
        assert_eq!(running.pods().await, [expected]);
    }
    assert!(matches!(running.handle.roll_back(&id(), None, ROLLBACK).await, Err(RevisionError::NothingEarlier(of)) if of == id()));
    assert!(matches!(running.handle.roll_back(&id(), Some("77"), ROLLBACK).await, Err(RevisionError::NoSuchRevision { .. })));
    assert!(matches!(running.handle.roll_back(&id(), Some("5"), ROLLBACK).await, Err(RevisionError::InForce { .. })));
    running.handle.roll_back(&id(), Some("3"), ROLLBACK).await.unwrap();
    assert_eq!(running.pods().await, ["p=three"]);
    running.end().await;
    let state = crate::last_good::LastGood::new(&paths(root.path()), id()).load().unwrap();
    let newest = state.in_force.unwrap().stamp.newest().clone();
    assert!(newest.0.contains("three"), "what came last from the source itself is not forgotten: {newest}");
}

#[tokio::test]
async fn a_suspended_source_takes_nothing_in_and_can_be_suspended_before_it_delivered() {
    let root = tempfile::tempdir().unwrap();
    let mut running = start(root.path());
    let hold = running.handle.suspend(&id(), "podstead suspend manifests").await.unwrap();
    running.artifact("here", &[("p.yaml", &pod("p", "one"))]).await;
    assert_eq!(running.status().await.accepted, None);
    running.end().await;
    let mut running = start(root.path());
    running.artifact("here", &[("p.yaml", &pod("p", "one"))]).await;
    assert_eq!(running.status().await.hold, Some(hold.clone()));
    let again = running.handle.suspend(&id(), "podstead suspend once more").await;
    assert_eq!(again.unwrap(), hold, "the first hold counts");
    running.report(SourceReport::Failed("no network".into())).await;
    running.handle.resume(&id()).await.unwrap();
    assert_eq!(running.pods().await, ["p=one"], "what was read before the failure");
    assert!(running.status().await.last_error.unwrap().contains("no network"), "and it still fails");
}

#[tokio::test]
async fn what_cannot_be_made_durable_is_not_done() {
    let root = tempfile::tempdir().unwrap();
    let mut running = with_three(root.path()).await;
    let directory = record(root.path()).with_file_name("");
    let aside = directory.with_file_name("aside");
    fs::rename(&directory, &aside).unwrap();
    fs::write(directory.as_os_str().to_str().unwrap().trim_end_matches('/'), "in the way").unwrap();
    assert!(matches!(running.handle.suspend(&id(), "x").await, Err(RevisionError::NotWritten { .. })));
    assert!(running.handle.roll_back(&id(), Some("1"), "x").await.is_err());
    let status = running.status().await;
    assert_eq!(status.hold, None);
    assert!(status.accepted.unwrap().0.contains("three"));
}

#[tokio::test]
async fn an_earlier_revision_that_is_damaged_is_told_and_not_stepped_over() {
    let root = tempfile::tempdir().unwrap();
    let mut running = with_three(root.path()).await;
    fs::write(record(root.path()).with_file_name("revisions/2.json"), "x").unwrap();
    let history = running.handle.history(&id()).await.unwrap();
    assert_eq!((history.revisions.len(), history.unreadable.len()), (2, 1));
    assert!(matches!(running.handle.roll_back(&id(), None, "x").await, Err(RevisionError::Unreadable { .. })));
    running.handle.roll_back(&id(), Some("1"), "x").await.unwrap();
    assert_eq!(running.pods().await, ["p=one"]);
}

#[tokio::test]
async fn the_difference_to_an_earlier_revision_is_told_by_field() {
    let root = tempfile::tempdir().unwrap();
    let running = with_three(root.path()).await;
    let diff = running.handle.diff(&id(), None).await.unwrap();
    assert_eq!((diff.from.number, diff.to.number, diff.objects.len()), (2, 3, 1));
    let Change::Changed(fields) = &diff.objects[0].change else { panic!("{diff:?}") };
    assert_eq!(fields[0].field, "spec.containers[c].image");
    assert_eq!((fields[0].before.as_ref().unwrap(), fields[0].after.as_ref().unwrap()), (&"two".into(), &"three".into()));
    assert_eq!(running.handle.diff(&id(), Some("3")).await.unwrap().objects, []);
}

#[tokio::test]
async fn nobody_can_ask_for_a_source_that_is_not_configured() {
    let root = tempfile::tempdir().unwrap();
    let running = start(root.path());
    let nobody = SourceId::new("nobody");
    let errors = [
        running.handle.suspend(&nobody, "").await.unwrap_err(),
        running.handle.resume(&nobody).await.unwrap_err(),
        running.handle.roll_back(&nobody, None, "").await.unwrap_err(),
        running.handle.history(&nobody).await.unwrap_err(),
        running.handle.diff(&nobody, None).await.unwrap_err(),
    ];
    for error in errors {
        assert!(matches!(&error, RevisionError::UnknownSource(id) if *id == nobody), "{error}");
    }
}

#[tokio::test]
async fn nothing_at_all_is_gone_back_to_only_when_it_is_named() {
    let root = tempfile::tempdir().unwrap();
    let mut running = start(root.path());
    running.artifact("here", &[]).await;
    assert_eq!(running.pods().await, [""; 0]);
    running.accept("one").await;
    assert!(matches!(running.handle.roll_back(&id(), None, "x").await, Err(RevisionError::NothingEarlier(of)) if of == id()));
    running.handle.roll_back(&id(), Some("1"), "x").await.unwrap();
    assert_eq!(running.pods().await, [""; 0]);
}

#[tokio::test]
async fn history_records_what_was_refused_and_rollback_passes_over_it() {
    let root = tempfile::tempdir().unwrap();
    let mut running = with_three(root.path()).await;
    // Two faults in one object are one refused object.
    let broken = pod("p", "broken").replace("containers:", "hostNetwrok: true, restartPolcy: Never, containers:");
    running.artifact("here", &[("p.yaml", &broken)]).await;
    assert_eq!(running.pods().await, ["p=three"]);
    assert_eq!(running.handle.history(&id()).await.unwrap().revisions[0].state, RevisionState::Refused);
    running.artifact("here", &[("p.yaml", &broken), ("q.yaml", &pod("q", "new"))]).await;
    assert_eq!(running.pods().await, ["p=three", "q=new"]);
    running.artifact("here", &[("p.yaml", &pod("p", "mended")), ("q.yaml", &pod("q", "new"))]).await;
    assert_eq!(running.pods().await, ["p=mended", "q=new"]);
    let revisions = running.handle.history(&id()).await.unwrap().revisions;
    let states: Vec<_> = revisions.iter().map(|entry| (entry.number, entry.state, entry.refused.len())).collect();
    assert_eq!(
        states[..4],
        [
            (6, RevisionState::Accepted, 0),
            (5, RevisionState::PartlyRefused, 1),
            (4, RevisionState::Refused, 1),
            (3, RevisionState::Accepted, 0)
        ]
    );
    let refused = &revisions[1].refused[0];
    assert_eq!(refused.object.as_deref(), Some("Pod default/p"));
    assert!(refused.place.starts_with("p.yaml:") && refused.message.contains("hostNetwrok"), "{refused:?}");

    running.handle.roll_back(&id(), None, ROLLBACK).await.unwrap();
    assert_eq!(running.pods().await, ["p=three"]);
    let entry = running.handle.history(&id()).await.unwrap().revisions.remove(0);
    assert_eq!((entry.restored_from, entry.state), (Some(3), RevisionState::Restored));
    running.end().await;
}
