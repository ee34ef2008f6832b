//! Jobs that are killed while the daemon polls, pulls and starts pods: what was wanted comes, and nothing is left over.

use crate::git::Repository;
use crate::sources::Server;
use crate::support::registry::Registry;
use crate::support::{TestHost, eventually_within, make_image, process_exists};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Tasks of jobs, as their command lines name them.
const TASKS: [&str; 3] = ["fetch", "objects", "unpack"];
/// Jobs of one task that are killed for one change, at most: more than the daemon starts again at once, so that a later poll or pull has to come.
const KILLS: usize = 3;
/// Time for a change to arrive, with pauses after pulls that failed.
const PATIENCE: Duration = Duration::from_secs(180);

/// Pushes an image that says its version. Its layer is as large as it is random.
fn push(registry: &Registry, version: usize) {
    let made = tempfile::tempdir().unwrap();
    let layer = made.path().join("layer");
    fs::create_dir(&layer).unwrap();
    fs::write(layer.join("version"), format!("image {version}\n")).unwrap();
    copy("/dev/urandom", &layer.join("noise"), 4 << 20);
    let archive = made.path().join("image.tar");
    make_image(&["--layer".as_ref(), layer.as_os_str()], &archive, "localhost/app:1");
    registry.push(&archive, &format!("app:{version}"));
}

fn copy(from: &str, to: &Path, length: u64) {
    let mut from = std::io::Read::take(fs::File::open(from).unwrap(), length);
    std::io::copy(&mut from, &mut fs::File::create(to).unwrap()).unwrap();
}

/// A pod that says a word, and the version of its image if that has one.
fn pod(name: &str, image: &str, word: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 0\n  containers:\n  - name: main\n    \
         image: '{image}'\n    command: [/bin/sh, -c, 'echo {word}; cat /version; exec sleep 1000000']\n"
    )
}

/// Jobs of a daemon at work, with their tasks.
fn jobs(daemon: u32) -> Vec<(u32, &'static str)> {
    let parent = format!("PPid:\t{daemon}\n");
    let job = |entry: fs::DirEntry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read_to_string(entry.path().join("cmdline")).ok()?;
        let task = line.strip_prefix("podstead-job\0")?.trim_end_matches('\0');
        let task = TASKS.into_iter().find(|known| *known == task)?;
        fs::read_to_string(entry.path().join("status")).ok()?.contains(&parent).then_some((pid, task))
    };
    fs::read_dir("/proc").unwrap().flatten().filter_map(job).collect()
}

/// Kills one to [`KILLS`] jobs of each task, until it is told to stop. Later and later by `round`, so that each step is met.
fn kill_jobs(daemon: u32, round: usize, is_over: &AtomicBool) -> BTreeMap<&'static str, usize> {
    let mut killed = BTreeMap::new();
    let (wanted, pause) = (1 + round % KILLS, Duration::from_millis(round as u64 * 7 % 30));
    while !is_over.load(Ordering::Relaxed) && TASKS.iter().any(|task| killed.get(task) != Some(&wanted)) {
        for (pid, task) in jobs(daemon) {
            let count = killed.entry(task).or_default();
            if *count < wanted {
                // Those for objects end within some milliseconds.
                thread::park_timeout(if task == "objects" { pause / 10 } else { pause });
                let is_killed = kill(Pid::from_raw(i32::try_from(pid).unwrap()), Signal::SIGKILL).is_ok();
                *count += usize::from(is_killed);
            }
        }
        thread::park_timeout(Duration::from_millis(1));
    }
    killed
}

#[test]
fn polls_pulls_and_starts_go_on_while_jobs_are_killed() {
    // `make kills` sets it to 200.
    let wanted = std::env::var("PODSTEAD_KILLS").map_or(2 * KILLS, |text| text.parse::<usize>().unwrap());
    let (registry, repository, server) = (Registry::start(), Repository::new(), Server::start());
    push(&registry, 0);
    let app = |version: usize| registry.image(&format!("app:{version}"));
    let commit = |round: usize| drop(repository.commit("web.yaml", &pod("web", &app(round), &format!("git {round}"))));
    let serve = |round: usize| server.serve(Some(pod("till", "localhost/busybox:1", &format!("http {round}"))));
    commit(0);
    serve(0);
    let mut host = TestHost::start_with(&format!(
        "  - name: fleet\n    git: {{url: '{}', branch: main, intervalSeconds: 1}}\n  - name: web\n    http: {{url: '{}', intervalSeconds: 1}}\n\
         registries:\n  - host: {}\n    http: true\n",
        repository.path().display(),
        server.url(),
        registry.host
    ));
    host.write_manifest("beside.yaml", &pod("beside", "localhost/busybox:1", "here"));
    let beside = host.wait_running("beside");
    let mut killed = BTreeMap::<&str, usize>::new();
    let mut round = 0;
    while TASKS.iter().any(|task| killed.get(task).is_none_or(|count| *count < wanted)) {
        round += 1;
        assert!(round <= 20 + wanted, "too few jobs were there to be killed: {killed:?}");
        push(&registry, round);
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let killer = scope.spawn(|| kill_jobs(host.daemon_pid(), round, &is_over));
            commit(round);
            serve(round);
            host.write_manifest("local.yaml", &pod("local", "localhost/busybox:1", &format!("local {round}")));
            let words = [
                ("web", format!("git {round}\nimage {round}")),
                ("till", format!("http {round}")),
                ("local", format!("local {round}")),
            ];
            for (name, words) in words {
                eventually_within(PATIENCE, &format!("pod {name} of round {round}"), || {
                    let log = host.cli(&["logs", name]);
                    let log = String::from_utf8_lossy(&log.stdout).into_owned();
                    if log.contains(&words) { Ok(()) } else { Err(format!("{log}\n{}", host.cli_ok(&["status"]))) }
                });
            }
            is_over.store(true, Ordering::Relaxed);
            for (task, count) in killer.join().unwrap() {
                *killed.entry(task).or_default() += count;
            }
        });
    }
    println!("killed in {round} rounds: {killed:?}");
    let after = host.wait_running("beside");
    assert_eq!((after.container_id("main"), after.restarts("main")), (beside.container_id("main"), 0));
    host.cli_ok(&["image", "verify"]);

    let web = host.wait_running("web").container_id("main");

    // No job outlives its daemon, and none leaves anything behind.
    let left: Vec<u32> = jobs(host.daemon_pid()).into_iter().map(|(pid, _)| pid).collect();
    host.kill_daemon();
    eventually_within(PATIENCE, "the jobs of the killed daemon to end", || {
        let left: Vec<_> = left.iter().filter(|pid| process_exists(**pid)).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
    host.start_daemon();
    eventually_within(PATIENCE, "nothing half done to be left", || {
        let entries = |place: &str| fs::read_dir(host.path(place)).into_iter().flatten().flatten().map(|entry| entry.path());
        let packs = entries("state/sources/fleet/git/repository").filter(|path| path.ends_with("incoming"));
        let left: Vec<_> = entries("state/images/staging").chain(entries("state/images/spool")).chain(packs).collect();
        if left.is_empty() { Ok(()) } else { Err(format!("{left:?}")) }
    });
    assert_eq!(host.wait_running("web").container_id("main"), web);
}
