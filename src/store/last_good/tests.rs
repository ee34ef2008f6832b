//! The files on a real disk, through crashes.

use super::revisions::{Step, steps};
use super::*;
use crate::history::HoldKind;
use crate::undelta::KeptFile;
use crate::{CheckContext, check};
use podstead_pod::{AdmitContext, NodeName};
use std::os::unix::fs::PermissionsExt;

const TEXT: &str = "apiVersion: v1
kind: Pod
metadata: {name: web, labels: {}, annotations: {a: b}}
spec:
  activeDeadlineSeconds: 5
  containers:
  - name: web
    image: nginx
    command: []
    resources: {limits: {cpu: 500m, memory: 1Gi}}
    ports: [{containerPort: 80}]
    env: [{name: A, value: \"\"}, {name: B, valueFrom: {fieldRef: {fieldPath: metadata.name}}}]
    volumeMounts: [{name: data, mountPath: /data}]
  volumes: [{name: data, emptyDir: {}}]
---
apiVersion: v1
kind: Secret
metadata: {name: s}
data: {k: AAEC/w==}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: c}
binaryData: {k: AAEC/w==}
";

fn record() -> Record {
    let context = CheckContext::new(AdmitContext::new(NodeName::new("edge")));
    let checked = check("web.yaml", TEXT.as_bytes(), &context, &podstead_manifest::PatchesByObject::new());
    assert_eq!(checked.accepted.len(), 3, "{:?}", checked.problems);
    Record {
        stamp: stamp(1),
        files: KeptFiles::from([
            ("web.yaml".into(), KeptFile { objects: checked.accepted, ..KeptFile::default() }),
            ("x.yaml".into(), KeptFile { unclear: true, ..KeptFile::default() }),
        ]),
    }
}

fn stamp(number: u64) -> Stamp {
    Stamp {
        number,
        revision: Revision(format!("sha256:{number}")),
        place: Some(Place("device 1:2 inode 3".into())),
        accepted_at: "2025-01-01T00:00:00.123456789Z".parse().unwrap(),
        restored_from: Some(7),
        newest: Some(Revision("sha256:0".into())),
        policy: Some(CheckContext::new(AdmitContext::new(NodeName::new("edge"))).policy()),
        state: RevisionState::Accepted,
        refused: Vec::new(),
        commit: None,
    }
}

fn state() -> State {
    let hold = Hold { kind: HoldKind::Suspended, since: Timestamp::UNIX_EPOCH, command: "podstead suspend manifests".into() };
    State { hold: Some(hold), in_force: Some(record()) }
}

/// A set that is told apart by its number.
fn numbered(number: u64) -> State {
    let objects = KeptFiles::from([(format!("{number}.yaml"), KeptFile { unclear: true, ..KeptFile::default() })]);
    State { hold: None, in_force: Some(Record { stamp: stamp(number), files: objects }) }
}

fn last_good(root: &Path) -> LastGood {
    let paths = Paths { state: root.join("deep/state"), run: root.into(), logs: root.into() };
    LastGood::new(&paths, SourceId::new("manifests"))
}

#[test]
fn what_was_saved_is_loaded_to_the_last_field() {
    let root = tempfile::tempdir().unwrap();
    let last_good = last_good(root.path());
    assert_eq!(last_good.load().unwrap(), State::default());
    last_good.save(&state()).unwrap();
    assert_eq!(last_good.load().unwrap(), state());
}

#[test]
fn nobody_else_can_read_it() {
    let root = tempfile::tempdir().unwrap();
    let last_good = last_good(root.path());
    last_good.save(&state()).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&last_good.path()), mode(&last_good.directory)), (0o600, 0o700));
}

#[test]
fn a_record_that_cannot_be_used_says_why_and_can_be_set_aside() {
    let root = tempfile::tempdir().unwrap();
    let last_good = last_good(root.path());
    last_good.save(&state()).unwrap();
    let whole = fs::read_to_string(last_good.path()).unwrap();
    let replaced = |from: &str, to: &str| whole.replacen(from, to, 1).into_bytes();
    let bad = [
        (Vec::new(), "not a valid record"),
        (vec![0; 4096], "not a valid record"),
        (whole.as_bytes()[..whole.len() / 2].to_vec(), "is damaged"),
        (replaced("\"version\":2", "\"version\":4"), "version 4"),
        (replaced("\"version\":2", "\"version\":3"), "not a valid record"),
        (replaced("\"source\":\"manifests\"", "\"source\":\"other\""), "source other"),
        (replaced("\"Pod\"", "\"Pot\""), "is damaged"),
    ];
    for (index, (bytes, word)) in bad.into_iter().enumerate() {
        fs::write(last_good.path(), bytes).unwrap();
        let error = last_good.load().unwrap_err().to_string();
        assert!(error.contains(word) && error.contains("last-good.json"), "{error}");
        let aside = last_good.set_aside().unwrap();
        assert!(aside.ends_with(format!("last-good.json.corrupt-{}", index + 1)), "{aside:?}");
        assert_eq!(last_good.load().unwrap(), State::default());
    }
}

#[test]
fn records_set_aside_do_not_pile_up() {
    let root = tempfile::tempdir().unwrap();
    let last_good = last_good(root.path());
    for _ in 0..20 {
        last_good.save(&state()).unwrap();
        last_good.set_aside().unwrap();
    }
    assert_eq!(fs::read_dir(&last_good.directory).unwrap().count(), 9);
}

#[test]
fn records_of_other_sources_are_forgotten() {
    let root = tempfile::tempdir().unwrap();
    let paths = Paths { state: root.path().into(), run: root.path().into(), logs: root.path().into() };
    let log = WriteAheadLog::none();
    assert_eq!(forget_others(&paths, &[], &log).unwrap(), []);
    let [kept, gone] = ["kept", "gone"].map(|name| LastGood::new(&paths, SourceId::new(name)));
    kept.save(&state()).unwrap();
    gone.save(&state()).unwrap();
    gone.advance(Some(1), &numbered(2), 5).unwrap();
    fs::write(gone.directory.join("objects"), "x").unwrap();
    assert_eq!(forget_others(&paths, &[SourceId::new("kept")], &log).unwrap(), [SourceId::new("gone")]);
    assert_eq!((kept.load().unwrap(), gone.load().unwrap()), (state(), State::default()));
    assert_eq!(fs::read_dir(&gone.directory).unwrap().count(), 1, "what else a source keeps is not touched");
    assert_eq!(forget_others(&paths, &[SourceId::new("kept")], &log).unwrap(), []);
}

fn numbers(last_good: &LastGood, in_force: u64) -> Vec<u64> {
    last_good.earlier(Some(in_force), usize::MAX).unwrap().into_iter().map(|record| record.unwrap().stamp.number).collect()
}

#[test]
fn what_goes_out_of_force_is_kept_up_to_the_limit_and_costs_no_second_writing() {
    use std::os::unix::fs::MetadataExt;
    let root = tempfile::tempdir().unwrap();
    let last_good = last_good(root.path());
    assert_eq!(last_good.next_number(None).unwrap(), 1);
    last_good.advance(None, &numbered(1), 2).unwrap();
    for number in 2..6 {
        let inode = fs::metadata(last_good.path()).unwrap().ino();
        assert_eq!(last_good.next_number(Some(number - 1)).unwrap(), number);
        last_good.advance(Some(number - 1), &numbered(number), 2).unwrap();
        let archived = last_good.directory.join(format!("revisions/{}.json", number - 1));
        assert_eq!(fs::metadata(archived).unwrap().ino(), inode, "the same file under another name");
    }
    assert_eq!(last_good.load().unwrap(), numbered(5));
    assert_eq!(numbers(&last_good, 5), [4, 3]);
    assert_eq!(last_good.next_number(None).unwrap(), 5, "without the file in force, what is archived counts");
    last_good.advance(Some(5), &numbered(6), 0).unwrap();
    assert_eq!(numbers(&last_good, 6), [0; 0]);
}

#[test]
fn a_crash_after_any_step_leaves_the_state_before_or_after_and_no_revision_twice() {
    let archived = std::collections::BTreeSet::from([1, 2]);
    let all = steps(Some(3), &archived, 2, None, |_| None);
    assert_eq!(all, [Step::Archive(3), Step::Replace, Step::Prune(1)]);
    for done in 0..=all.len() {
        for half_written in [false, true] {
            let root = tempfile::tempdir().unwrap();
            let last_good = last_good(root.path());
            for number in 1..=3 {
                last_good.advance((number > 1).then(|| number - 1), &numbered(number), 2).unwrap();
            }
            let (bytes, _) = last_good.encode(&numbered(4), None).unwrap();
            for step in &all[..done] {
                last_good.take_step(*step, &bytes, Some(3)).unwrap();
            }
            if half_written {
                fs::write(last_good.directory.join(".last-good.json.tmp"), &bytes[..bytes.len() / 2]).unwrap();
            }
            // A start.
            let now = if done < 2 { 3 } else { 4 };
            assert_eq!(last_good.load().unwrap(), numbered(now), "after {done} steps");
            let kept: Vec<u64> = (1..now).rev().take(if done == 2 { 3 } else { 2 }).collect();
            assert_eq!(numbers(&last_good, now), kept, "after {done} steps");
            // And it goes on as if nothing had been.
            assert_eq!(last_good.next_number(Some(now)).unwrap(), now + 1);
            last_good.advance(Some(now), &numbered(now + 1), 2).unwrap();
            assert_eq!(last_good.load().unwrap(), numbered(now + 1));
            assert_eq!(numbers(&last_good, now + 1), [now, now - 1]);
        }
    }
}

#[test]
fn an_earlier_revision_that_cannot_be_read_is_told() {
    let root = tempfile::tempdir().unwrap();
    let last_good = last_good(root.path());
    for number in 1..=3 {
        last_good.advance((number > 1).then(|| number - 1), &numbered(number), 5).unwrap();
    }
    fs::write(last_good.directory.join("revisions/2.json"), "").unwrap();
    fs::copy(last_good.path(), last_good.directory.join("revisions/9.json")).unwrap();
    fs::write(last_good.directory.join("revisions/notes.txt"), "x").unwrap();
    let found = last_good.earlier(Some(3), usize::MAX).unwrap();
    let told: Vec<_> =
        found.iter().map(|record| record.as_ref().map(|record| record.stamp.number).map_err(|error| error.number)).collect();
    assert_eq!(told, [Err(9), Err(2), Ok(1)], "9 holds the set of 3");
}

#[test]
fn a_secret_is_on_disk_only_as_something_that_the_machine_key_opens() {
    let root = tempfile::tempdir().unwrap();
    let last_good = last_good(root.path());
    let state = State { hold: None, in_force: Some(record()) };
    last_good.save(&state).unwrap();
    let text = fs::read_to_string(last_good.path()).unwrap();
    assert_eq!(text.matches("AAEC/w==").count(), 1, "that of the ConfigMap: {text}");
    assert_eq!(last_good.load().unwrap(), state);
    // The key is lost: all but the Secret is there.
    fs::remove_file(&last_good.machine_key).unwrap();
    let left = last_good.load().unwrap().in_force.unwrap().files["web.yaml"].objects.len();
    assert_eq!(left, 2);
    fs::write(&last_good.machine_key, b"damaged").unwrap();
    assert_eq!(last_good.load().unwrap().in_force.unwrap().files["web.yaml"].objects.len(), 2);
    let error = podstead_telemetry::error_chain(&last_good.save(&state).unwrap_err()).to_string();
    assert!(error.contains("machine key") && error.contains("has 7 bytes"), "{error}");
}
