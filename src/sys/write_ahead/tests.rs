//! Power cuts: the files of an earlier moment, with the log of a later one.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Four blocks.
const SMALL: u64 = 16 << 10;
const NEVER: Duration = Duration::from_secs(3600);

fn open(root: &Path, half: u64) -> WriteAheadLog {
    open_after_power_cut(root, half, NEVER, true)
}

fn open_after_power_cut(root: &Path, half: u64, rest: Duration, keeps_order: bool) -> WriteAheadLog {
    let run = tempfile::tempdir().unwrap();
    WriteAheadLog::open_with(root, &run.path().join("boot"), half, rest, keeps_order).unwrap()
}

fn write(path: &Path, content: &str) -> Change {
    Change::Write { path: path.to_owned(), content: content.as_bytes().to_vec(), mode: 0o600 }
}

/// All files but the log.
fn files(root: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let is_shown = !path.file_name().unwrap().to_str().unwrap().starts_with('.') && !path.ends_with(FILE);
            if path.is_dir() {
                directories.push(path);
            } else if is_shown {
                found.insert(path.strip_prefix(root).unwrap().to_owned(), fs::read_to_string(&path).unwrap());
            }
        }
    }
    found
}

/// A disk with the files of one moment and the log of another.
fn disk(files: &BTreeMap<PathBuf, String>, log: &[u8]) -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    for (path, content) in files {
        fs::create_dir_all(root.path().join(path).parent().unwrap()).unwrap();
        fs::write(root.path().join(path), content).unwrap();
    }
    fs::write(root.path().join(FILE), log).unwrap();
    root
}

#[test]
fn file_that_did_not_reach_the_disk_is_written_again_with_its_directories() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path(), SMALL);
    let (pod, record) = (root.path().join("pods/1"), root.path().join("pods/1/pod.json"));
    let changes = [
        Change::Directory { path: pod.clone(), mode: 0o755 },
        Change::Directory { path: pod.join("containers"), mode: 0o750 },
        write(&record, "one"),
    ];
    log.write(&changes).unwrap();
    log.write(&[write(&record, "two")]).unwrap();
    assert_eq!(fs::read_to_string(&record).unwrap(), "two");
    let logged = fs::read(root.path().join(FILE)).unwrap();
    for before in [BTreeMap::new(), BTreeMap::from([("pods/1/pod.json".into(), "one".to_owned())])] {
        let after = disk(&before, &logged);
        open(after.path(), SMALL);
        assert_eq!(files(after.path()), files(root.path()));
        assert!(after.path().join("pods/1/containers").is_dir());
        assert_eq!(fs::read(after.path().join(FILE)).unwrap()[..4096], [0; 4096], "nothing is replayed twice");
    }
}

#[test]
fn file_keeps_its_other_name() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path(), SMALL);
    let (file, revision) = (root.path().join("last-good.json"), |number: u32| root.path().join(format!("revisions/{number}.json")));
    log.write(&[write(&file, "1")]).unwrap();
    log.write(&[Change::Directory { path: root.path().join("revisions"), mode: 0o700 }]).unwrap();
    let at_first = files(root.path());
    for number in 2..=3 {
        let link = Change::Link { from: file.clone(), to: revision(number - 1) };
        log.write(&[link, write(&file, &number.to_string())]).unwrap();
    }
    let now = files(root.path());
    assert_eq!(now.len(), 3);
    let logged = fs::read(root.path().join(FILE)).unwrap();
    for before in [&BTreeMap::new(), &at_first, &now] {
        let after = disk(before, &logged);
        open(after.path(), SMALL);
        assert_eq!(files(after.path()), now);
    }
    // A file that had its place on the disk before.
    let root = disk(&at_first, &[]);
    let log = open(root.path(), SMALL);
    let (file, to) = (root.path().join("last-good.json"), root.path().join("revisions/1.json"));
    log.write(&[Change::Directory { path: root.path().join("revisions"), mode: 0o700 }]).unwrap();
    log.write(&[Change::Link { from: file.clone(), to }, write(&file, "2")]).unwrap();
    let after = disk(&at_first, &fs::read(root.path().join(FILE)).unwrap());
    open(after.path(), SMALL);
    assert_eq!(files(after.path()), files(root.path()));
    // It is another file by now: its earlier revision was removed, and stays so.
    let other = BTreeMap::from([("last-good.json".into(), "7".to_owned())]);
    let after = disk(&other, &fs::read(root.path().join(FILE)).unwrap());
    open(after.path(), SMALL);
    assert_eq!(files(after.path()), BTreeMap::from([("last-good.json".into(), "2".to_owned())]));
}

#[test]
fn nothing_is_replayed_in_the_same_boot() {
    let (root, run) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mark = run.path().join("boot");
    let (file, other) = (root.path().join("a"), root.path().join("b"));
    let log = WriteAheadLog::open_with(root.path(), &mark, SMALL, NEVER, true).unwrap();
    log.write(&[write(&file, "1")]).unwrap();
    log.write(&[write(&other, "1")]).unwrap();
    // Changes that need not outlive a power cut.
    fs::write(&file, "2").unwrap();
    fs::remove_file(&other).unwrap();
    let logged = fs::read(root.path().join(FILE)).unwrap();
    WriteAheadLog::open_with(root.path(), &mark, SMALL, NEVER, true).unwrap();
    assert_eq!(files(root.path()), BTreeMap::from([("a".into(), "2".to_owned())]));
    assert_eq!(fs::read(root.path().join(FILE)).unwrap()[..4096], [0; 4096], "and nothing later");
    // The mark of another boot.
    fs::write(root.path().join(FILE), logged).unwrap();
    fs::write(&mark, "00000000-0000-0000-0000-000000000000").unwrap();
    WriteAheadLog::open_with(root.path(), &mark, SMALL, NEVER, true).unwrap();
    assert_eq!(files(root.path()), BTreeMap::from([("a".into(), "1".to_owned()), ("b".into(), "1".to_owned())]));
}

#[test]
fn log_is_emptied_on_demand() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path(), SMALL);
    log.empty();
    log.write(&[write(&root.path().join("a"), "1")]).unwrap();
    assert_ne!(fs::read(root.path().join(FILE)).unwrap()[..4096], [0; 4096]);
    log.empty();
    assert_eq!(fs::read(root.path().join(FILE)).unwrap()[..4096], [0; 4096]);
    log.write(&[write(&root.path().join("a"), "2")]).unwrap();
    WriteAheadLog::none().empty();
}

#[test]
fn file_that_is_there_is_secured() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path(), SMALL);
    let file = root.path().join("a");
    log.secure(&file).unwrap();
    fs::write(&file, "1").unwrap();
    log.secure(&file).unwrap();
    let logged = fs::read(root.path().join(FILE)).unwrap();
    let after = disk(&BTreeMap::new(), &logged);
    open(after.path(), SMALL);
    assert_eq!(files(after.path()), files(root.path()));
    // Larger than a batch may be.
    fs::write(&file, "2".repeat(SMALL as usize)).unwrap();
    log.secure(&file).unwrap();
    let after = disk(&files(root.path()), &fs::read(root.path().join(FILE)).unwrap());
    open(after.path(), SMALL);
    assert_eq!(files(after.path()), files(root.path()));
    WriteAheadLog::none().secure(&file).unwrap();
    WriteAheadLog::none().secure(&root.path().join("missing")).unwrap();
}

#[test]
fn removed_directories_go_after_what_was_in_them() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path(), SMALL);
    let (pod, record) = (root.path().join("pods/1"), root.path().join("pods/1/pod.json"));
    let changes = [Change::Directory { path: pod.clone(), mode: 0o755 }, write(&record, "1")];
    log.write(&changes).unwrap();
    let before = files(root.path());
    for path in [&record, &pod] {
        log.removes(path);
    }
    fs::remove_dir_all(&pod).unwrap();
    log.write(&[write(&root.path().join("set"), "2")]).unwrap();
    let logged = fs::read(root.path().join(FILE)).unwrap();
    let after = disk(&before, &logged);
    open(after.path(), SMALL);
    assert_eq!(files(after.path()), files(root.path()));
    assert!(!after.path().join("pods/1").try_exists().unwrap());
    // Something of another kind is there as well.
    let after = disk(&before, &logged);
    fs::write(after.path().join("pods/1/sandbox.json"), "1").unwrap();
    open(after.path(), SMALL);
    assert!(
        after.path().join("pods/1/sandbox.json").try_exists().unwrap()
            && !after.path().join("pods/1/pod.json").try_exists().unwrap()
    );
}

#[test]
fn what_cannot_be_brought_back_keeps_nothing_else_away() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path(), SMALL);
    log.write(&[write(&root.path().join("a"), "1")]).unwrap();
    log.write(&[write(&root.path().join("b"), "1")]).unwrap();
    let after = disk(&BTreeMap::new(), &fs::read(root.path().join(FILE)).unwrap());
    fs::create_dir_all(after.path().join("a/below")).unwrap();
    open(after.path(), SMALL).write(&[write(&after.path().join("c"), "1")]).unwrap();
    assert_eq!(files(after.path()).into_keys().collect::<Vec<_>>(), [Path::new("b"), Path::new("c")]);
}

#[test]
fn removed_file_stays_removed_once_another_batch_tells() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path(), SMALL);
    let [a, b] = ["a", "b"].map(|name| root.path().join(name));
    log.write(&[write(&a, "1")]).unwrap();
    log.removes(&a);
    fs::remove_file(&a).unwrap();
    log.write(&[write(&b, "1")]).unwrap();
    let after = disk(&BTreeMap::from([("a".into(), "1".to_owned())]), &fs::read(root.path().join(FILE)).unwrap());
    open(after.path(), SMALL);
    assert_eq!(files(after.path()), files(root.path()));
    log.write(&[Change::Remove { path: b.clone() }, Change::Remove { path: a.clone() }]).unwrap();
    assert!(!b.try_exists().unwrap());
    let after = disk(&BTreeMap::from([("b".into(), "1".to_owned())]), &fs::read(root.path().join(FILE)).unwrap());
    open(after.path(), SMALL);
    assert!(files(after.path()).is_empty());
    // Written anew after it was removed.
    log.write(&[write(&a, "2")]).unwrap();
    log.removes(&a);
    fs::remove_file(&a).unwrap();
    log.write(&[write(&a, "3")]).unwrap();
    let after = disk(&BTreeMap::new(), &fs::read(root.path().join(FILE)).unwrap());
    open(after.path(), SMALL);
    assert_eq!(files(after.path()), files(root.path()));
}

#[test]
fn log_is_emptied_after_its_rest_and_before_what_is_written_past_it() {
    let root = tempfile::tempdir().unwrap();
    let log = open_after_power_cut(root.path(), SMALL, Duration::from_millis(1), true);
    let file = root.path().join("a");
    log.write(&[write(&file, "1")]).unwrap();
    let shared = log.0.as_ref().unwrap();
    let mut state = shared.state();
    while state.has_checkpoint {
        state = shared.wait(state);
    }
    drop(state);
    assert_eq!(fs::read(root.path().join(FILE)).unwrap()[..4096], [0; 4096]);

    let root = tempfile::tempdir().unwrap();
    let log = open(root.path(), SMALL);
    let file = root.path().join("a");
    log.write(&[write(&file, "1")]).unwrap();
    // Larger than a batch may be.
    let large = "x".repeat(SMALL as usize);
    log.write(&[write(&file, &large)]).unwrap();
    let after = disk(&files(root.path()), &fs::read(root.path().join(FILE)).unwrap());
    open(after.path(), SMALL);
    assert_eq!(fs::read_to_string(after.path().join("a")).unwrap(), large);
}

#[test]
fn many_threads_write_at_once() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path(), SMALL);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let (log, path) = (log.clone(), root.path().join(format!("f{thread}")));
            scope.spawn(move || (0..20).for_each(|number| log.write(&[write(&path, &format!("{number}"))]).unwrap()));
        }
    });
    let written = files(root.path());
    assert_eq!(written.len(), 8);
    assert!(written.values().all(|content| content == "19"));
    let again = open(root.path(), SMALL);
    assert_eq!(files(root.path()), written);
    again.write(&[write(&root.path().join("f0"), "20")]).unwrap();
}

#[test]
fn log_that_fails_is_removed_and_nothing_is_lost() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path(), SMALL);
    let file = root.path().join("a");
    log.write(&[write(&file, "1")]).unwrap();
    // A directory in its place: the name cannot be given.
    let taken = root.path().join("taken");
    fs::create_dir_all(taken.join("below")).unwrap();
    log.write(&[write(&taken, "1")]).unwrap_err();
    log.write(&[write(&file, "2")]).unwrap();
    assert!(!root.path().join(FILE).try_exists().unwrap(), "a log that says what the files do not is not replayed");
    log.write(&[write(&file, "3")]).unwrap();
    open(root.path(), SMALL).write(&[write(&file, "4")]).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "4");
}

#[test]
fn other_file_systems_have_no_log() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path(), SMALL);
    let (pod, record) = (root.path().join("pods/1"), root.path().join("pods/1/pod.json"));
    let link = Change::Link { from: record.clone(), to: root.path().join("pods/old.json") };
    let changes = |content: &str| [Change::Directory { path: pod.clone(), mode: 0o755 }, link.clone(), write(&record, content)];
    log.write(&changes("1")).unwrap();
    fs::remove_file(&record).unwrap();
    // A copy of the state on another file system: what its log has is in the files, and the log goes.
    let log = open_after_power_cut(root.path(), SMALL, NEVER, false);
    assert_eq!(fs::read_to_string(&record).unwrap(), "1");
    assert!(!root.path().join(FILE).try_exists().unwrap());
    log.write(&changes("2")).unwrap();
    log.write(&[Change::Remove { path: record.clone() }]).unwrap();
    assert_eq!(files(root.path()), BTreeMap::from([("pods/old.json".into(), "1".to_owned())]));
    assert!(log.0.is_none());
}

#[test]
fn files_of_other_file_systems_are_synced() {
    let root = tempfile::tempdir().unwrap();
    let log = open(root.path(), SMALL);
    let outside = tempfile::tempdir_in("/dev/shm").unwrap();
    std::os::unix::fs::symlink(outside.path(), root.path().join("pods")).unwrap();
    let file = root.path().join("pods/a");
    log.write(&[write(&file, "1")]).unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), "1");
    assert_eq!(fs::read(root.path().join(FILE)).unwrap()[..4096], [0; 4096]);
    log.write(&[write(&outside.path().join("a"), "1")]).unwrap_err();
}

/// Changes that a daemon makes.
#[derive(Clone, Copy, Debug)]
enum Step {
    Accept,
    Prune,
    Record(u8),
    Forget(u8),
    Large(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Accept),
        1 => Just(Step::Prune),
        4 => (0..3u8).prop_map(Step::Record),
        2 => (0..3u8).prop_map(Step::Forget),
        1 => (0..3u8).prop_map(Step::Large),
    ]
}

/// Takes a step, whose number is in the content that it writes. Returns true if everything before is durable afterwards.
fn take(root: &Path, log: &WriteAheadLog, number: usize, step: Step) {
    let (set, revisions) = (root.join("set"), root.join("revisions"));
    let pod = |pod: u8| root.join(format!("pod{pod}"));
    match step {
        Step::Accept => {
            fs::create_dir_all(&revisions).unwrap();
            let superseded = fs::read_to_string(&set).unwrap_or_default();
            let link = Change::Link { from: set.clone(), to: revisions.join(superseded.trim()) };
            log.write(&[link, write(&set, &number.to_string())]).unwrap();
        }
        Step::Prune => {
            let oldest = fs::read_dir(&revisions).into_iter().flatten().map(|entry| entry.unwrap().path()).min();
            if let Some(oldest) = oldest {
                log.removes(&oldest);
                fs::remove_file(oldest).unwrap();
            }
        }
        Step::Record(name) => log.write(&[write(&pod(name), &number.to_string())]).unwrap(),
        Step::Forget(name) => {
            log.removes(&pod(name));
            fs::remove_file(pod(name)).ok();
        }
        Step::Large(name) => log.write(&[write(&pod(name), &format!("{number}{}", " ".repeat(SMALL as usize)))]).unwrap(),
    }
}

/// The first step that the log has, if any: those before are on the disk.
fn first_step(log: &[u8]) -> Option<usize> {
    let halves = log.split_at(SMALL as usize);
    let changes = [halves.0, halves.1].into_iter().flat_map(batch::read_half).flat_map(|batch| batch.changes);
    let written = changes.filter_map(|change| match change {
        Logged::Write { content, .. } => str::from_utf8(content).unwrap().trim().parse().ok(),
        _ => None,
    });
    written.min()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn power_cut_at_any_moment_loses_nothing_that_was_written(steps in proptest::collection::vec(step(), 1..24), cut in any::<prop::sample::Index>(), lag in any::<prop::sample::Index>()) {
        let root = tempfile::tempdir().unwrap();
        let log = open(root.path(), SMALL);
        let mut moments = vec![(files(root.path()), fs::read(root.path().join(FILE)).unwrap())];
        for (number, step) in steps.iter().enumerate() {
            take(root.path(), &log, number + 1, *step);
            moments.push((files(root.path()), fs::read(root.path().join(FILE)).unwrap()));
        }
        let cut = cut.index(moments.len());
        let (expected, logged) = &moments[cut];
        // What is written past the log is durable at once, with all before.
        let large = (0..cut).rev().find(|step| matches!(steps[*step], Step::Large(_))).map_or(0, |step| step + 1);
        let durable = first_step(logged).map_or(cut, |step| step - 1).max(large);
        let lagging = durable + lag.index(cut - durable + 1);
        let after = disk(&moments[lagging].0, logged);
        open(after.path(), SMALL);
        let found = files(after.path());
        for (path, content) in expected {
            prop_assert_eq!(found.get(path), Some(content), "{:?}", path);
        }
        // A file whose removal no later batch told may be there, as it was.
        for (path, content) in found.iter().filter(|(path, _)| !expected.contains_key(*path)) {
            let last = moments[..cut].iter().rev().find_map(|(files, _)| files.get(path));
            prop_assert_eq!(last, Some(content), "{:?}", path);
        }
    }
}
