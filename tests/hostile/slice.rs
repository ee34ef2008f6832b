//! Groups of jobs of one test.

use podstead::container::cgroup::Cgroups;
use podstead::image::{ImageStoreConfig, JobSettings};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A top cgroup of this test's own.
pub(crate) struct Slice(String);

impl Slice {
    pub(crate) fn new(name: &str) -> Self {
        Self(format!("podstead-{name}-{}.slice", std::process::id()))
    }

    pub(crate) fn settings(&self) -> ImageStoreConfig {
        let jobs = JobSettings { slice: Some(self.0.clone()), ..JobSettings::default() };
        ImageStoreConfig { jobs, ..ImageStoreConfig::default() }
    }

    /// Groups of jobs, in all hierarchies.
    pub(crate) fn groups(&self) -> Vec<PathBuf> {
        let mounted = Path::new("/sys/fs/cgroup").read_dir().unwrap().map(|entry| entry.unwrap().path());
        let jobs = mounted.chain(["/sys/fs/cgroup".into()]).map(|root| root.join(&self.0).join("jobs"));
        let entries = jobs.flat_map(|jobs| jobs.read_dir().into_iter().flatten().flatten());
        entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect()
    }

    /// Jobs at work. Other tests have others.
    pub(crate) fn jobs(&self) -> BTreeSet<i32> {
        let listed = self.groups().into_iter().filter_map(|group| fs::read_to_string(group.join("cgroup.procs")).ok());
        listed.flat_map(|text| text.lines().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect()
    }

    /// Asserts that no job keeps its group. Jobs that ask servers end after their last answer, beside the work that goes on.
    #[track_caller]
    pub(crate) fn assert_empty(&self) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !self.groups().is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(self.groups(), Vec::<PathBuf>::new());
    }
}

impl Drop for Slice {
    fn drop(&mut self) {
        let path = Path::new("/").join(&self.0);
        Cgroups::detect(&self.0).and_then(|groups| groups.remove(&path, Duration::from_secs(10))).ok();
    }
}
