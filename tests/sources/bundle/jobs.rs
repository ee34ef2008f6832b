//! Bundles that have taken the job over that lists their files.
//!
//! A file that begins with `podstead-attack:` tells the job of a test build what to try, as one would that found an error in the reader of archives.

use super::made::Made;
use super::{Bench, Following, pod};
use crate::support::Recorded;
use podstead::job::launch::{JobSettings, Launcher};
use podstead::source::bundle::BundleOptions;
use podstead::source::tree_job::ArtifactJobs;
use rustix::fs::inotify;
use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_gained_by_a_job_that_lists() {
    let (bench, events) = (Bench::new(), Arc::new(Recorded::default()));
    let jobs = Arc::new(ArtifactJobs::new(Arc::clone(bench.images.launcher()), events.clone()));
    let mut source = Following::start(BundleOptions { jobs, ..bench.options() });
    assert_eq!(source.artifact().await.revision.0, "none");
    let attacks = [
        ("execve", "made a forbidden system call and was killed", true),
        ("socket", "made a forbidden system call and was killed", true),
        ("name", "made a forbidden system call and was killed", true),
        ("unshare", "made a forbidden system call and was killed", true),
        ("long-name", "a longer path than any", true),
        ("no-entry", "an entry that is none", true),
        ("cut-entry", "less than it tells of", true),
        ("outside", "archive ends in the middle of an entry", false),
        ("dots", "its first file is not podstead-bundle.json", false),
        ("twice", "its first file is not podstead-bundle.json", false),
        ("early", "its first file is not podstead-bundle.json", false),
        ("panic", "panicked, which is an error of podstead", false),
        ("segfault", "ended by signal 11", false),
    ];
    for (word, expected, is_violation) in attacks {
        events.0.lock().unwrap().clear();
        let file = format!("{word}.bundle");
        bench.put(&file, &[format!("podstead-attack: {word}\n").into_bytes(), vec![b' '; 512]].concat());
        let told = source.failure().await;
        assert!(told.contains(&file) && told.contains(expected), "{word}: {told}");
        // At least once: it is read at each look.
        assert_eq!(events.0.lock().unwrap().first().map(String::as_str), is_violation.then_some("JobViolation"), "{word}");
        bench.remove(&file);
    }
    let image = "localhost/app:1";
    let good = Made::new(1, &[("web.yaml", &pod("web", image))]).image(image, &["base", "app"]);
    bench.put("good.bundle", &good.bytes());
    assert_eq!(source.artifact().await.revision.0, good.revision());
}

/// While nothing changes, no job starts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bundle_that_is_in_force_is_not_read_again() {
    let bench = Bench::new();
    // A program that notes each start.
    let (program, starts) = (bench.path("program"), bench.path("starts"));
    let script =
        format!("#!/bin/bash\necho >>{}\nexec -a podstead-job {} \"$@\"\n", starts.display(), crate::support::program().display());
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let launcher = Arc::new(Launcher::new(JobSettings { program, ..JobSettings::default() }));
    let jobs = Arc::new(ArtifactJobs::new(launcher, Arc::new(Recorded::default())));
    let good = Made::new(1, &[("web.yaml", "x")]);
    bench.put("good.bundle", &good.bytes());
    let mut source = Following::start(BundleOptions { jobs, ..bench.options() });
    assert_eq!(source.artifact().await.revision.0, good.revision());
    let looks = Looks::at(&bench.path("in"));
    // The first look after it reads the file.
    looks.wait(3);
    let before = std::fs::read_to_string(&starts).unwrap().len();
    looks.wait(10);
    assert_eq!(std::fs::read_to_string(&starts).unwrap().len(), before);
    bench.put("next.bundle", b"podstead-attack: early");
    assert!(source.failure().await.contains("its first file is not podstead-bundle.json"), "a file that came is read");
}

/// Looks into a directory.
struct Looks(OwnedFd);

impl Looks {
    fn at(directory: &Path) -> Self {
        let watch = inotify::init(inotify::CreateFlags::CLOEXEC).unwrap();
        inotify::add_watch(&watch, directory, inotify::WatchFlags::OPEN | inotify::WatchFlags::ONLYDIR).unwrap();
        Self(watch)
    }

    /// Waits for so many more. Those of files in it do not count.
    fn wait(&self, count: usize) {
        let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.0, &mut buffer);
        let mut seen = 0;
        while seen < count {
            seen += usize::from(events.next().unwrap().file_name().is_none());
        }
    }
}
