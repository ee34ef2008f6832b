//! Archives that have taken the job over that reads them.
//!
//! An archive that begins with `podstead-attack:` tells the job of a test build what to try, as one would that found an error in a decompressor.

use super::artifact::{flux, of};
use super::hostile::Fake;
use super::{Following, OciOptions, files, jobs, pairs, tag};
use crate::support::{Recorded, Slice, without};
use podstead::artifact::SourceReport;
use podstead::job::launch::{JobSettings, Launcher};
use podstead::source::tree_job::ArtifactJobs;
use podstead::telemetry::events::NoEvents;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A source, and the events of its jobs.
fn follow(fake: &Fake, settings: JobSettings) -> (Following, Arc<Recorded>) {
    let events = Arc::new(Recorded::default());
    let options = OciOptions { jobs: jobs(settings, events.clone()), ..fake.bench.options(&fake.url(), tag("latest")) };
    (Following::start(options), events)
}

fn push(fake: &Fake, word: &str) {
    fake.serve("latest", &flux(format!("podstead-attack: {word}").into_bytes(), &json!({})));
}

/// The failure that an attack ends in, and the events of it.
async fn attacked(fake: &Fake, word: &str, settings: JobSettings) -> (String, Vec<String>) {
    push(fake, word);
    let (mut source, events) = follow(fake, settings);
    let text = source.failure().await;
    let events = events.0.lock().unwrap().clone();
    (text, events)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forbidden_system_calls_end_the_job() {
    let fake = Fake::start();
    for word in [
        "execve",
        "socket",
        "socket-inet",
        "kill",
        "kill-own",
        "mount",
        "ptrace",
        "unshare",
        "setns",
        "chroot",
        "setuid",
        "fork",
        "keyctl",
        "bpf",
        "io_uring",
        "tty",
        // No file can be opened.
        "name",
        "dotdot",
        "proc",
        "setuid-program",
    ] {
        let (text, events) = attacked(&fake, word, JobSettings::default()).await;
        assert!(text.contains("made a forbidden system call and was killed"), "{word}: {text}");
        assert_eq!(events, ["JobViolation"], "{word}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_mount_of_the_host_is_there() {
    let (fake, slice) = (Fake::start(), Slice::new("artifact-mounts"));
    push(&fake, "sleep");
    let (mut source, _events) = follow(&fake, JobSettings { slice: Some(slice.name()), ..JobSettings::default() });
    slice.wait_for_one_mount().await;
    slice.kill();
    assert!(source.failure().await.contains("ended by signal 9"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_and_time_end_at_their_limits() {
    let fake = Fake::start();
    let (text, events) = attacked(&fake, "memory", JobSettings::default()).await;
    assert!(text.contains("used up its 512 MiB of memory"), "{text}");
    assert_eq!(events, ["LimitExceeded"]);
    let (text, events) = attacked(&fake, "fill", JobSettings::default()).await;
    assert!(text.contains("wrote a file of more than"), "{text}");
    assert_eq!(events, ["LimitExceeded"]);
    for word in ["spin", "sleep"] {
        let impatient = JobSettings { patience: Duration::from_secs(1), ..JobSettings::default() };
        let (text, events) = attacked(&fake, word, impatient).await;
        assert!(text.contains("did nothing for 1 seconds and was killed"), "{word}: {text}");
        assert_eq!(events, ["LimitExceeded"], "{word}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_without_capabilities_to_give_up_rights_refuse_to_work() {
    let (fake, programs) = (Fake::start(), tempfile::tempdir().unwrap());
    fake.serve("latest", &of(&[("web.yaml", "1")]));
    for (capability, step) in [("sys_admin", "leave the host"), ("setuid", "become another user")] {
        let events = Arc::new(Recorded::default());
        let launcher = Launcher::new(without(programs.path(), "artifact", capability));
        let jobs = Arc::new(ArtifactJobs::new(Arc::new(launcher), events.clone()));
        let text = Following::start(OciOptions { jobs, ..fake.bench.options(&fake.url(), tag("latest")) }).failure().await;
        assert!(text.contains(&format!("cannot give up its rights on this host: '{step}")), "{capability}: {text}");
        assert_eq!(*events.0.lock().unwrap(), ["JobNotConfined"], "{capability}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lies_of_a_job_are_not_believed() {
    let fake = Fake::start();
    for (word, expected) in [
        ("dots", "a name that is no path"),
        ("giant", "more bytes than a source has"),
        ("fewer", "less than it tells of"),
        ("nothing", "less than it tells of"),
        ("many", "more files than a source has"),
        ("names", "more names than any source has"),
        ("long", "a longer name than any"),
    ] {
        let (text, events) = attacked(&fake, word, JobSettings::default()).await;
        assert!(text.contains("broke the rules of its messages") && text.contains(expected), "{word}: {text}");
        assert_eq!(events, ["JobViolation"], "{word}");
    }
    for word in ["huge", "words"] {
        let (text, _) = attacked(&fake, word, JobSettings::default()).await;
        assert!(text.len() < 4096 && !text.contains(char::is_control), "{} bytes: {text:?}", text.len());
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crash_is_told_and_the_next_artifact_is_read() {
    let fake = Fake::start();
    push(&fake, "segfault");
    let (mut source, events) = follow(&fake, JobSettings::default());
    let text = source.failure().await;
    assert!(text.contains("ended by signal 11"), "{text}");
    push(&fake, "panic");
    let text = source.failure().await;
    assert!(text.contains("panicked, which is an error of podstead: '"), "{text}");
    fake.serve("latest", &of(&[("web.yaml", "1")]));
    assert_eq!(files(&source.artifact().await), pairs(&[("web.yaml", "1")]));
    assert_eq!(*events.0.lock().unwrap(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn artifacts_are_whole_or_not_there_while_jobs_are_killed() {
    // `make kills` sets it to 200.
    let wanted = std::env::var("PODSTEAD_KILLS").map_or(10, |text| text.parse::<usize>().unwrap());
    let (fake, slice) = (Fake::start(), Arc::new(Slice::new("artifact")));
    let settings = JobSettings { slice: Some(slice.name()), ..JobSettings::default() };
    let options = OciOptions { jobs: jobs(settings, Arc::new(NoEvents)), ..fake.bench.options(&fake.url(), tag("latest")) };
    let mut source = Following::start(options);
    let (mut killed, mut round) = (0, 0);
    while killed < wanted {
        round += 1;
        assert!(round <= 20 * wanted, "too few jobs were there to be killed: {killed}");
        let done = Arc::new(AtomicBool::new(false));
        let killer = std::thread::spawn({
            let (slice, done) = (slice.clone(), done.clone());
            move || {
                let mut count = 0;
                // Later and later, so that each step is met.
                while !done.load(Ordering::Relaxed) && count < 2 {
                    std::thread::park_timeout(Duration::from_millis(round as u64 % 7));
                    count += slice.kill();
                }
                count
            }
        });
        let text = round.to_string();
        fake.serve("latest", &of(&[("web.yaml", &text), ("noise.yaml", &"# noise\n".repeat(100_000))]));
        loop {
            match source.next().await {
                SourceReport::Artifact(artifact) => {
                    // Half of it is never reported.
                    let found = files(&artifact);
                    assert_eq!((found.len(), found[0].1.len()), (2, 800_000), "round {round}");
                    if found[1].1 == text {
                        break;
                    }
                }
                SourceReport::Failed(_) | SourceReport::Recovered => {}
                other => panic!("{other:?}"),
            }
        }
        done.store(true, Ordering::Relaxed);
        killed += killer.join().unwrap();
    }
    drop(source);
    crate::support::eventually("the groups of all jobs to be gone", || slice.groups() == Vec::<PathBuf>::new()).await;
}
