//! Time until something runs, and until it is gone.

use crate::figures::{Series, row};
use crate::peers::{Podman, Runtime};
use crate::steps::Steps;
use crate::support::{TestHost, eventually};
use std::path::Path;
use std::time::{Duration, Instant};

const RUNS: usize = 20;

/// Time between what is measured in turn.
const REST: Duration = Duration::from_millis(200);

/// Waits for a file, looking every 0.2 ms.
pub(crate) fn wait_for_file(path: &Path) {
    let end = Instant::now() + Duration::from_secs(60);
    while !path.try_exists().unwrap() {
        assert!(Instant::now() < end, "no {} after 60 s", path.display());
        std::thread::park_timeout(Duration::from_micros(200));
    }
}

/// A pod whose process makes `<directory>/<name>` and writes a line.
pub(crate) fn manifest(name: &str, directory: &Path, script: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: {name}\nspec:\n  hostNetwork: true\n  terminationGracePeriodSeconds: 1\n  \
         restartPolicy: Never\n  containers:\n    - name: main\n      image: localhost/busybox:1\n      imagePullPolicy: IfNotPresent\n      \
         command: [\"/bin/sh\", \"-c\", \": > /out/{name}; echo started; {script}\"]\n      volumeMounts:\n        - {{name: out, mountPath: /out}}\n  \
         volumes:\n    - name: out\n      hostPath: {{path: {}, type: Directory}}\n",
        directory.display()
    )
}

/// Rename of a manifest until its process runs, and until its first log line; against `podman kube play` of the same manifest, and beside a container
/// that bare runtimes run to its end, which have nothing to notice, record or prepare.
pub(crate) fn rename_to_running() {
    let host = TestHost::start();
    eventually("the image to be listed", || {
        let list = host.cli_ok(&["image", "ls"]);
        if list.contains("localhost/busybox") { Ok(()) } else { Err(list) }
    });
    let out = host.path("out");
    std::fs::create_dir(&out).unwrap();
    let podman = Podman::prepare(&host.path("podman"));
    let runtimes = Runtime::all(&host.path("bundle"));
    let mut bare: Vec<Series> = runtimes.iter().map(|_| Series::default()).collect();
    let mut steps = Steps::default();
    let (mut running, mut logged, mut peer) = (Series::default(), Series::default(), Series::default());
    for number in 0..RUNS {
        let name = format!("own{number}");
        let staged = host.path("staged.yaml");
        std::fs::write(&staged, manifest(&name, &out, "exec sleep 1000000")).unwrap();
        let target = host.path("manifests").join(format!("{name}.yaml"));
        let start = Instant::now();
        std::fs::rename(&staged, &target).unwrap();
        wait_for_file(&out.join(&name));
        running.push(start.elapsed());
        let logs = host.path("log/pods");
        let has_line = || {
            let folders = std::fs::read_dir(&logs).into_iter().flatten().flatten();
            folders
                .filter(|folder| folder.file_name().to_string_lossy().starts_with(&format!("default_{name}-")))
                .any(|folder| std::fs::read_to_string(folder.path().join("main/0.log")).is_ok_and(|log| log.contains("started")))
        };
        while !has_line() {
            assert!(start.elapsed() < Duration::from_secs(60), "no log line of {name}");
            std::thread::park_timeout(Duration::from_micros(200));
        }
        logged.push(start.elapsed());
        steps.push(&host, &name);
        std::fs::remove_file(&target).unwrap();
        host.wait_gone(&name);

        if let Some(podman) = &podman {
            let name = format!("peer{number}");
            let staged = host.path("peer.yaml");
            std::fs::write(&staged, manifest(&name, &out, "exec sleep 1000000")).unwrap();
            let start = Instant::now();
            let mut child = podman.play(&staged);
            wait_for_file(&out.join(&name));
            peer.push(start.elapsed());
            child.wait().unwrap();
            podman.remove(&name);
        }
        // None begins in what another has left to the kernel to remove.
        for (runtime, series) in runtimes.iter().zip(&mut bare) {
            std::thread::park_timeout(REST);
            series.push(runtime.run_once(number));
        }
        std::thread::park_timeout(REST);
    }
    row("manifest renamed -> process running (podman: `kube play`)", &running.text(), &peer.text(), &running.ratio_to(&peer));
    for (runtime, series) in runtimes.iter().zip(&bare) {
        let what = format!("manifest renamed -> process running; a container of `{} run` from create to exit", runtime.name());
        row(&what, &running.text(), &series.text(), &running.ratio_to(series));
    }
    row("manifest renamed -> first line in the log file", &logged.text(), "-", "-");
    steps.print();
}

/// A pod that does nothing, from its manifest until nothing of it is left; against `run` of bare runtimes, which have no image,
/// no log, no record and no durability to care for.
pub(crate) fn create_start_delete() {
    let host = TestHost::start();
    let out = host.path("out");
    std::fs::create_dir(&out).unwrap();
    let runtimes = Runtime::all(&host.path("bundle"));
    let mut own = Series::default();
    let mut peers: Vec<Series> = runtimes.iter().map(|_| Series::default()).collect();
    for number in 0..RUNS {
        let name = format!("nil{number}");
        let staged = host.path("staged.yaml");
        std::fs::write(&staged, manifest(&name, &out, "exit 0")).unwrap();
        let target = host.path("manifests").join(format!("{name}.yaml"));
        let start = Instant::now();
        std::fs::rename(&staged, &target).unwrap();
        wait_for_file(&out.join(&name));
        std::fs::remove_file(&target).unwrap();
        let pods = host.path("state/pods");
        while std::fs::read_dir(&pods).unwrap().next().is_some() {
            assert!(start.elapsed() < Duration::from_secs(60), "{name} does not go away");
            std::thread::park_timeout(Duration::from_micros(200));
        }
        own.push(start.elapsed());
        for (runtime, series) in runtimes.iter().zip(&mut peers) {
            series.push(runtime.run_once(number));
        }
    }
    for (runtime, series) in runtimes.iter().zip(&peers) {
        row(
            &format!("pod: manifest -> ran -> removed, nothing left (bare `{} run`)", runtime.name()),
            &own.text(),
            &series.text(),
            &own.ratio_to(series),
        );
    }
    if runtimes.is_empty() {
        row("pod: manifest -> ran -> removed, nothing left", &own.text(), "-", "-");
    }
}
