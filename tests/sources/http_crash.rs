//! SIGKILL at every step of a change that comes from a URL, then another start: with the server gone, and with the server back.

use crate::follower::DEADLINE;
use crate::following::Following;
use crate::http_server::{Answer, Server, ok, options, pod};
use podstead::mux::{self, Merge, MuxTask, PodUpdate};
use podstead::pod::{AdmitContext, NodeName, SourceId};
use podstead::source::http::HttpSource;
use podstead::store::CheckContext;
use podstead::store::intake::{self, Intake, IntakeSource};
use podstead::store::{SourceStatus, SourceStatusSink};
use podstead::sys::layout::Paths;
use podstead::telemetry::events::NoEvents;
use podstead::{artifact::Wishes, source::PodSource};
use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// System calls after which the state on disk is another one, or is known to be.
const STEPS: &str = "fsync,fdatasync,syncfs,rename,renameat,renameat2,link,linkat,unlink,unlinkat,mkdir,mkdirat";

const VICTIM: &str = "http_crash::the_change_that_is_interrupted";

#[derive(Debug)]
struct Nobody;

impl SourceStatusSink for Nobody {
    fn publish_source(&self, _: SourceStatus) {}
}

pub(crate) fn paths(state: &Path) -> Paths {
    Paths { state: state.to_owned(), run: state.join("run"), logs: state.join("logs") }
}

/// From the source to operations on pods, as the daemon connects the stages.
pub(crate) struct Pipeline {
    updates: mpsc::Receiver<PodUpdate>,
    /// The images that pods have by now.
    pub(crate) pods: std::collections::BTreeMap<String, String>,
    _stages: JoinSet<()>,
}

impl Pipeline {
    fn start(url: &str, state: &Path) -> Self {
        let options = options(url, &paths(state).source(&SourceId::new("web")));
        Self::of(Box::new(HttpSource::new(SourceId::new("web"), options)), "http", state)
    }

    /// Of any source.
    pub(crate) fn of(source: Box<dyn PodSource>, kind: &str, state: &Path) -> Self {
        let id = source.id();
        let paths = paths(state);
        let described = IntakeSource {
            id: id.clone(),
            kind: kind.into(),
            location: "somewhere".into(),
            history_limit: 3,
            allow: None,
            requirements: Arc::default(),
            substitute: None,
            layers: Arc::default(),
            keeps_names: false,
        };
        let check = CheckContext::new(AdmitContext::new(NodeName::new("edge")));
        let (intake, _) = Intake::new(vec![described], &paths, check, Arc::new(Nobody), Arc::new(NoEvents));
        let (task, _) = MuxTask::new(Merge::new([id.clone()], Vec::new()), Arc::default(), Arc::new(NoEvents));
        let (report, reports) = mpsc::channel(1);
        let (set, sets) = mpsc::channel(4);
        let (update, updates) = mpsc::channel(8);
        let mut stages = JoinSet::new();
        stages.spawn(intake::run(intake, reports, set));
        stages.spawn(mux::run(task, sets, update));
        stages.spawn(source.run(report, Wishes::none()));
        Self { updates, pods: Default::default(), _stages: stages }
    }

    /// Takes operations until all pods have an image, one and the same; returns it.
    pub(crate) async fn settled(&mut self, count: usize) -> String {
        let deadline = Instant::now() + DEADLINE;
        loop {
            let images: BTreeSet<&String> = self.pods.values().collect();
            if let (true, Some(image)) = (self.pods.len() == count && images.len() == 1, images.first()) {
                return (*image).clone();
            }
            let update = tokio::time::timeout_at(deadline.into(), self.updates.recv()).await;
            let update = update.unwrap_or_else(|_| panic!("never settled: {:?}", self.pods)).unwrap();
            for pod in &update.pods {
                let name = pod.pod.metadata.name.clone().unwrap();
                let image = pod.pod.spec.as_ref().unwrap().containers[0].image.clone().unwrap();
                self.pods.insert(name, image);
            }
        }
    }
}

/// Two pods with an image of this tag.
fn body(tag: &str) -> Answer {
    let one = |name: &str| String::from_utf8(pod(name)).unwrap().replace("image: i", &format!("image: 'i:{tag}'"));
    Answer::Tagged(format!("\"{tag}\""), format!("{}---\n{}", one("web"), one("db")).into_bytes())
}

/// The new revision, from the first request to operations on pods, in a process that is killed after so many steps of one thread. `victim` is the test
/// that it runs.
pub(crate) fn killed_after(step: usize, victim: &str, url: &str, state: &Path) -> ExitStatus {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "-e", &format!("trace={STEPS}")]);
    command.args(["-e", &format!("inject={STEPS}:signal=KILL:when={step}"), "--"]).arg(std::env::current_exe().unwrap());
    command.args(["--exact", "--ignored", victim, "--test-threads=1"]);
    command.env("VICTIM_URL", url).env("VICTIM_STATE", state).stdout(Stdio::null()).stderr(Stdio::null());
    let mut victim = command.spawn().unwrap();
    let deadline = Instant::now() + 2 * DEADLINE;
    loop {
        if let Some(status) = victim.try_wait().unwrap() {
            return status;
        }
        if Instant::now() > deadline {
            victim.kill().unwrap();
            victim.wait().unwrap();
            panic!("the change neither ended nor was killed after {step} steps");
        }
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

#[test]
#[ignore = "run and killed by the test below"]
fn the_change_that_is_interrupted() {
    let (url, state) = (std::env::var("VICTIM_URL").unwrap(), std::env::var("VICTIM_STATE").unwrap());
    // Steps are counted for each thread: all that write are one, so that each step is met.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().max_blocking_threads(1).build().unwrap();
    runtime.block_on(async {
        let mut pipeline = Pipeline::start(&url, Path::new(&state));
        while pipeline.settled(2).await != "i:2" {
            pipeline.pods.clear();
        }
    });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_is_killed_after_any_step_of_a_change_goes_on_with_one_revision_or_the_other() {
    let mut seen = BTreeSet::new();
    for step in 1.. {
        assert!(step < 60, "the change never came to its end");
        let (server, state) = (Server::start(), tempfile::tempdir().unwrap());
        server.serve("/m.yaml", body("1"));
        let url = server.url("/m.yaml");
        assert_eq!(Pipeline::start(&url, state.path()).settled(2).await, "i:1");
        server.serve("/m.yaml", body("2"));
        let (victim_url, victim_state) = (url.clone(), state.path().to_owned());
        let status = tokio::task::spawn_blocking(move || killed_after(step, VICTIM, &victim_url, &victim_state)).await.unwrap();
        // Without a server: what is on disk.
        let offline = Pipeline::start("http://127.0.0.1:9/m.yaml", state.path()).settled(2).await;
        assert!(["i:1", "i:2"].contains(&offline.as_str()), "after step {step}: {offline}");
        let mut online = Pipeline::start(&url, state.path());
        while online.settled(2).await != "i:2" {
            online.pods.clear();
        }
        if status.success() {
            assert_eq!(offline, "i:2");
            break;
        }
        assert_eq!(status.signal(), Some(9), "after step {step}");
        seen.insert(offline);
    }
    assert_eq!(seen.len(), 2, "it was killed before the change and behind it: {seen:?}");
}

#[test]
fn a_network_that_goes_away_in_the_middle_of_an_answer_changes_nothing_and_comes_back() {
    let link = |state: &str| {
        let done = Command::new("ip").args(["link", "set", "lo", state]).status().unwrap();
        assert!(done.success());
    };
    let thread = std::thread::spawn(move || {
        nix::sched::unshare(nix::sched::CloneFlags::CLONE_NEWNET).unwrap();
        link("up");
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
            let (server, state) = (Server::start(), tempfile::tempdir().unwrap());
            server.serve("/m.yaml", ok("", &pod("one")));
            let short = Duration::from_secs(2);
            let options = podstead::source::http::HttpOptions { timeout: short, ..options(&server.url("/m.yaml"), state.path()) };
            let mut source = Following::start(options);
            assert!(source.body().await.contains("one"));
            let half = [b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n".as_slice(), &pod("two")[..20]].concat();
            server.serve("/m.yaml", Answer::Stall(half));
            // Waiting blocks this thread, and the source needs it.
            let asked = server.requests().len();
            while server.requests().len() == asked {
                tokio::task::yield_now().await;
            }
            link("down");
            let text = source.failure().await;
            assert!(!text.is_empty());
            server.serve("/m.yaml", ok("", &pod("three")));
            link("up");
            assert!(source.body().await.contains("three"));
        });
    });
    thread.join().unwrap();
}
