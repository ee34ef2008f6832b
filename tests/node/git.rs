//! A commit is how people deploy, and what runs needs no server.

use crate::support::{PodView, TestHost, eventually};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A bare repository with a work tree beside it.
pub(crate) struct Repository(tempfile::TempDir);

impl Repository {
    pub(crate) fn new() -> Self {
        let repository = Self(tempfile::tempdir().unwrap());
        std::fs::create_dir(repository.0.path().join("tree")).unwrap();
        let path = repository.path();
        git(Command::new("git").args(["init", "--quiet", "--bare", "--initial-branch=main"]).arg(&path));
        std::fs::write(path.join("git-daemon-export-ok"), "").unwrap();
        repository
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("fleet.git")
    }

    fn git(&self, arguments: &[&str]) -> String {
        let tree = self.0.path().join("tree");
        git(Command::new("git").arg("--git-dir").arg(self.path()).arg("--work-tree").arg(&tree).args(arguments).current_dir(&tree))
    }

    /// Commits one manifest, and returns the commit.
    pub(crate) fn commit(&self, name: &str, content: &str) -> String {
        let path = self.0.path().join("tree").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", "change"]);
        self.git(&["rev-parse", "HEAD"])
    }
}

fn git(command: &mut Command) -> String {
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    for name in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"] {
        command.env(name, "someone@example.org");
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

/// `git daemon`, one process per connection, for as long as it is wanted.
struct Server {
    port: u16,
    gone: Arc<AtomicBool>,
}

impl Server {
    fn start(root: &Path) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Self { port: listener.local_addr().unwrap().port(), gone: Arc::default() };
        let (gone, base) = (server.gone.clone(), format!("--base-path={}", root.display()));
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let stream = stream.unwrap();
                // Accepted and closed: a server that is there and of no use.
                if gone.load(Ordering::SeqCst) {
                    continue;
                }
                let output: OwnedFd = stream.try_clone().unwrap().into();
                let mut daemon = Command::new("git");
                daemon.args(["daemon", "--inetd", &base]).stdin(OwnedFd::from(stream)).stdout(output).stderr(Stdio::null());
                daemon.status().unwrap();
            }
        });
        server
    }
}

pub(crate) fn pod(word: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: web}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n  - name: web\n    \
         image: localhost/busybox:1\n    command: [/bin/sh, -c, 'echo {word}; exec sleep 1000000']\n"
    )
}

#[test]
fn commits_become_pods_and_outlive_the_server() {
    let repository = Repository::new();
    repository.commit("hosts/shop/web.yaml", &pod("one"));
    let server = Server::start(repository.0.path());
    let url = format!("git://127.0.0.1:{}/fleet.git", server.port);
    let source = format!("  - name: fleet\n    git: {{url: '{url}', branch: main, path: hosts/shop, intervalSeconds: 1}}\n");
    let mut host = TestHost::start_with(&source);
    let first = host.wait_running("web");
    host.wait_log("web", "web", "one");

    let commit = repository.commit("hosts/shop/web.yaml", &pod("two"));
    host.wait_log("web", "web", "two");
    let second = host.wait_for_pod("web", "the changed container to run", |pod| {
        pod.runs("web") && pod.container_id("web") != first.container_id("web")
    });
    assert_eq!(second.uid(), first.uid(), "an edit keeps the pod");
    eventually("the commit to be shown", || {
        let shown = host.cli_ok(&["get", "sources", "-o", "json"]);
        if shown.contains(&commit) { Ok(()) } else { Err(shown) }
    });

    server.gone.store(true, Ordering::SeqCst);
    eventually("the failure to be shown", || {
        let status = host.cli_ok(&["status"]);
        if status.contains("fleet") && status.contains("cannot fetch from ") { Ok(()) } else { Err(status) }
    });
    host.kill_daemon();
    host.start_daemon();
    let after = host.wait_running("web");
    assert_eq!(after.container_id("web"), second.container_id("web"), "the same container, from what was accepted");

    // What was committed meanwhile arrives when the server is back, also after the copy was lost.
    host.kill_daemon();
    std::fs::remove_dir_all(host.path("state/sources/fleet/git/repository")).unwrap();
    repository.commit("hosts/shop/web.yaml", &pod("three"));
    server.gone.store(false, Ordering::SeqCst);
    host.start_daemon();
    host.wait_log("web", "web", "three");

    // The manifest is taken away: first with its directory, which holds, then meant.
    repository.git(&["rm", "--quiet", "-r", "hosts"]);
    repository.commit("README.md", "moved");
    eventually("the missing path to be shown", || {
        let status = host.cli_ok(&["status"]);
        if status.contains(".gitkeep") { Ok(()) } else { Err(status) }
    });
    assert!(host.pod("web").is_some());
    repository.commit("hosts/shop/.gitkeep", "");
    host.wait_gone("web");
}

#[test]
fn hosts_share_layers_and_differ_in_variables() {
    let repository = Repository::new();
    repository.commit("hosts/another/web.yaml", &pod("another"));
    repository.commit("base/web.yaml", &pod("base ${SITE} ${HOSTNAME:-unset}"));
    let source = format!(
        "  - name: fleet\n    git: {{url: '{}', branch: main, intervalSeconds: 1}}\n    \
         layers: [base, 'roles/${{LABEL_ROLE}}', 'hosts/${{NODE_NAME}}']\n    substitute: [SITE]\n\
         labels: {{role: kiosk}}\nvariables: {{SITE: nuernberg}}\n",
        repository.path().display()
    );
    let mut host = TestHost::start_with(&source);
    // A variable that is not listed belongs to the shell.
    host.wait_log("web", "web", "base nuernberg web-edge-1");
    // What a container says can be read before its status is shown.
    let other_than = |before: &PodView| {
        host.wait_for_pod("web", "the container of another layer to run", |pod| {
            pod.runs("web") && pod.container_id("web") != before.container_id("web")
        })
    };
    let pod_of_the_base = host.wait_running("web");
    repository.commit("roles/kiosk/web.yaml", &pod("role"));
    host.wait_log("web", "web", "role");
    let pod_of_the_role = other_than(&pod_of_the_base);
    repository.commit("hosts/edge-1/web.yaml", &pod("host"));
    host.wait_log("web", "web", "host");
    let pod_of_the_host = other_than(&pod_of_the_role);

    host.kill_daemon();
    std::fs::rename(repository.path(), repository.path().with_extension("away")).unwrap();
    host.start_daemon();
    eventually("the repository to be missed", || {
        let status = host.cli_ok(&["status"]);
        if status.contains(" not found: ") { Ok(()) } else { Err(status) }
    });
    let after = host.wait_running("web");
    assert_eq!(after.container_id("web"), pod_of_the_host.container_id("web"), "precedence of layers survives a start");

    std::fs::rename(repository.path().with_extension("away"), repository.path()).unwrap();
    repository.git(&["rm", "--quiet", "hosts/edge-1/web.yaml"]);
    repository.commit("roles/kiosk/web.yaml", &pod("role again"));
    host.wait_log("web", "web", "role again");
}

/// Makes the host another one than `edge-1`.
fn called(host: TestHost, name: &str) -> TestHost {
    let config = host.path("config.yaml");
    let text = std::fs::read_to_string(&config).unwrap().replace("nodeName: edge-1\n", &format!("nodeName: {name}\n"));
    std::fs::write(config, text).unwrap();
    host
}

/// shows: spec.containers[].env[].name, spec.containers[].env[].value
#[test]
fn each_host_runs_its_own_patch() {
    let repository = Repository::new();
    repository.commit("base/web.yaml", &pod("$WORD"));
    let strategic = "strategicMerge:\n  spec:\n    containers:\n    - name: web\n      env: [{name: WORD, value: left}]\n";
    let json = "json:\n- {op: add, path: /spec/containers/0/env, value: [{name: WORD, value: right}]}\n";
    let patch = |how: &str| {
        format!("apiVersion: podstead.dev/v1alpha1\nkind: Patch\nmetadata: {{name: word}}\ntarget: {{kind: Pod, name: web}}\n{how}")
    };
    repository.commit("hosts/left/patch.yaml", &patch(strategic));
    repository.commit("hosts/right/patch.yaml", &patch(json));
    let source = format!(
        "  - name: fleet\n    git: {{url: '{}', branch: main, intervalSeconds: 1}}\n    layers: [base, 'hosts/${{NODE_NAME}}']\n",
        repository.path().display()
    );
    let hosts = ["left", "right", "plain"].map(|name| {
        let mut host = called(TestHost::prepare(&source), name);
        host.start_daemon();
        (host, name)
    });
    let says = |host: &TestHost, word: &str| {
        eventually(&format!("the container to say {word:?}"), || {
            let out = host.cli(&["logs", "web", "-c", "web"]);
            let text = String::from_utf8_lossy(&out.stdout).into_owned();
            let last = text.lines().last().map(str::to_owned);
            if last.as_deref() == Some(word) { Ok(()) } else { Err(format!("{text:?} {}", host.daemon_log())) }
        });
    };
    for ((host, _), word) in hosts.iter().zip(["left", "right", ""]) {
        says(host, word);
    }
    // Another patch of one host concerns that host alone. What a container says can be read before its status is shown.
    let container = |host: &TestHost, name: &str, before: Option<&String>| {
        eventually(&format!("the container of {name} to run"), || {
            let pods = host.pods();
            let pod = pods.first().filter(|pod| pod.runs("web")).ok_or_else(|| format!("{pods:?}"))?;
            let id = pod.container_id("web");
            if before == Some(&id) { Err(format!("{id} still runs")) } else { Ok(id) }
        })
    };
    let before = hosts.each_ref().map(|(host, name)| container(host, name, None));
    repository.commit("hosts/left/patch.yaml", &patch(&strategic.replace("left", "another")));
    says(&hosts[0].0, "another");
    for (host, _) in &hosts {
        assert!(host.cli_ok(&["sync", "fleet", "--wait"]).contains("in force, 1 pod"));
    }
    container(&hosts[0].0, "left", Some(&before[0]));
    let after = hosts.each_ref().map(|(host, name)| container(host, name, None));
    assert_eq!(before[1..], after[1..]);
}

/// Lines of the README between this line and the next end of a block.
fn block_of_the_readme(first: &str) -> String {
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/README.md")).unwrap();
    let blocks = readme.split("```yaml\n").skip(1).map(|block| block.split("```").next().unwrap());
    blocks.filter(|block| block.contains(first)).map(str::to_owned).next().unwrap_or_else(|| panic!("no block with {first:?}"))
}

/// The words of the README, on a repository of this machine and with an image that is here.
#[test]
fn quick_start_of_readme_holds() {
    let repository = Repository::new();
    let config = block_of_the_readme("kind: Config");
    let url = "https://git.example.com/shop/fleet.git";
    assert!(config.contains(url), "{config}");
    let sources = config.split_once("sources:\n").unwrap().1.replace(url, repository.path().to_str().unwrap());
    let pod = block_of_the_readme("kind: Pod");
    let (image, port) = ("image: docker.io/library/nginx:1.27\n", "          hostPort: 8080\n");
    assert!(pod.contains(image) && pod.contains(port), "{pod}");
    // The image would be pulled, and the port may be in use on this machine. As nginx, the program ends when it is told to.
    let program = "command: [sh, -c, 'trap exit TERM; sleep 1000000 & wait']";
    let pod = pod.replace(image, &format!("image: localhost/busybox:1\n      {program}\n")).replace(port, "");

    let first_commit = repository.commit("pods/web.yaml", &pod);
    let mut host = TestHost::start_with(&sources);
    let first = host.wait_running("web");
    assert!(host.cli_ok(&["status"]).contains(&first_commit[..7]), "{}", host.cli_ok(&["status"]));

    let changed = pod.replace("      command:", "      env: [{name: WORD, value: two}]\n      command:");
    repository.commit("pods/web.yaml", &changed);
    assert!(host.cli_ok(&["sync", "fleet", "--wait"]).contains("in force, 1 pod"));
    let second = host.wait_for_pod("web", "the changed container to run", |pod| {
        pod.runs("nginx") && pod.container_id("nginx") != first.container_id("nginx")
    });
    assert_eq!(host.exec("web", "nginx", &["/bin/sh", "-c", "echo $WORD"]), "two\n");

    std::fs::remove_dir_all(repository.path()).unwrap();
    host.kill_daemon();
    host.start_daemon();
    eventually("the repository to be missed", || {
        let status = host.cli_ok(&["status"]);
        if status.contains(" not found: ") { Ok(()) } else { Err(status) }
    });
    assert_eq!(host.wait_running("web").container_id("nginx"), second.container_id("nginx"), "it was never touched");
}

/// `plan`, `render` and `validate` in a clone of what runs: the same set as the source's, from any directory of the clone.
#[test]
fn plan_in_clone_sees_what_source_sees() {
    let repository = Repository::new();
    repository.commit("hosts/shop/web.yaml", &pod("one"));
    repository.commit("hosts/shop/deeper/db.yaml", &pod("two").replace("web", "db"));
    repository.commit("hosts/other/not-ours.yaml", &pod("three").replace("web", "other"));
    let server = Server::start(repository.0.path());
    let url = format!("git://127.0.0.1:{}/fleet.git", server.port);
    let source = format!("  - name: fleet\n    git: {{url: '{url}', branch: main, path: hosts/shop, intervalSeconds: 1}}\n");
    let host = TestHost::start_with(&source);
    host.wait_running("web");
    host.wait_running("db");

    let clones = tempfile::tempdir().unwrap();
    let clone = clones.path().join("clone");
    git(Command::new("git").args(["clone", "--quiet", &url]).arg(&clone));
    let run = |directory: &str, arguments: &[&str]| {
        let mut command = Command::new(crate::support::binary("podstead"));
        command.arg("--config").arg(host.path("config.yaml")).args(arguments).current_dir(clone.join(directory));
        let output = command.stdin(Stdio::null()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout) + &text(&output.stderr))
    };
    for directory in [".", "hosts/shop", "hosts/other"] {
        let (code, planned) = run(directory, &["plan", "."]);
        assert_eq!(code, Some(0), "in {directory}: {planned}");
        assert!(planned.contains("0 to remove, 2 unchanged"), "in {directory}: {planned}");
    }
    let (_, rendered) = run(".", &["render", "--source", "fleet", "."]);
    assert!(rendered.contains("name: db") && rendered.contains("name: web") && !rendered.contains("name: other"), "{rendered}");
    let (code, validated) = run(".", &["validate", "--source", "fleet", "."]);
    assert!(code == Some(0) && validated.contains("2 valid pods"), "{validated}");

    std::fs::write(clone.join("hosts/shop/deeper/db.yaml"), pod("four").replace("web", "db")).unwrap();
    let (code, planned) = run(".", &["plan", "."]);
    assert_eq!(code, Some(1), "{planned}");
    assert!(planned.contains("update pod default/db-edge-1") && planned.contains("0 to remove, 1 unchanged"), "{planned}");
}

/// A commit with a fault, its revert and the way back, at the command line.
#[test]
fn refused_commit_is_told_and_passed_over() {
    let repository = Repository::new();
    let first = repository.commit("web.yaml", &pod("one"));
    let server = Server::start(repository.0.path());
    let url = format!("git://127.0.0.1:{}/fleet.git", server.port);
    let host = TestHost::start_with(&format!("  - name: fleet\n    git: {{url: '{url}', branch: main, intervalSeconds: 1}}\n"));
    host.wait_log("web", "web", "one");
    let wait = |arguments: &[&str], needle: &str| {
        eventually(&format!("{needle:?} in the output of {arguments:?}"), || {
            let out = host.cli(arguments);
            let text = String::from_utf8_lossy(&out.stdout).into_owned();
            if text.contains(needle) { Ok((out.status.code(), text)) } else { Err(text) }
        })
    };

    // Two faults of one object are one refused object.
    let broken = pod("two").replace("    image:", "    imagge: x\n    comand: [x]\n    image:");
    let second = repository.commit("web.yaml", &broken);
    let (_, sources) = wait(&["get", "sources", "fleet"], "1 object rejected");
    assert!(sources.contains(&second[..7]), "{sources}");
    let (code, status) = wait(&["status", "--exit-code"], "imagge");
    assert!(code == Some(1) && status.contains("1 object rejected") && !status.contains("all healthy"), "{status}");
    let described = host.cli_ok(&["describe", "pod", "web"]);
    assert!(described.contains("Rejected Edit:") && described.contains("web.yaml:9:5"), "{described}");

    let third = repository.commit("web.yaml", &pod("three"));
    host.wait_log("web", "web", "three");
    let history = host.cli_ok(&["history", "fleet", "-o", "wide"]);
    for needle in ["SUBJECT", "someone@example.org", "change", "objects rejected in revision 2:", "web.yaml:8:5: Pod default/web"] {
        assert!(history.contains(needle), "{needle}: {history}");
    }
    assert!(host.cli_ok(&["diff", "fleet"]).contains(&format!("--- fleet {}", &first[..12])));
    let said = host.cli_ok(&["rollback", "fleet"]);
    assert!(said.contains(&format!("from {} to {}", &third[..12], &first[..12])), "{said}");
    host.wait_log("web", "web", "one");
    assert!(host.cli_ok(&["history", "fleet"]).contains("restored from 1"));

    repository.commit("web.yaml", &pod("four"));
    eventually("the new commit to be fetched", || {
        let shown: serde_json::Value = serde_json::from_str(&host.cli_ok(&["get", "sources", "fleet", "-o", "json"])).unwrap();
        let status = &shown["status"];
        let is_new = status["fetchedRevision"] != third.as_str() && status["fetchedRevision"] != status["acceptedRevision"];
        if is_new { Ok(()) } else { Err(status.to_string()) }
    });
    let resumed = host.cli_ok(&["resume", "fleet"]);
    assert!(resumed.contains("echo one") && resumed.contains("echo four"), "what was fetched is shown: {resumed}");
    host.wait_log("web", "web", "four");
}

/// Advice and times of a source that fails.
#[test]
fn failing_source_gives_no_destructive_advice() {
    let repository = Repository::new();
    repository.commit("web.yaml", &pod("one"));
    let server = Server::start(repository.0.path());
    let url = format!("git://127.0.0.1:{}/fleet.git", server.port);
    let host = TestHost::start_with(&format!("  - name: fleet\n    git: {{url: '{url}', branch: main, intervalSeconds: 1}}\n"));
    host.wait_log("web", "web", "one");
    let status = || -> serde_json::Value {
        serde_json::from_str::<serde_json::Value>(&host.cli_ok(&["get", "sources", "fleet", "-o", "json"])).unwrap()["status"]
            .clone()
    };
    let time = |value: &serde_json::Value| value.as_str().unwrap_or_default().parse::<jiff::Timestamp>().unwrap_or_default();
    // A poll that finds nothing new is a contact and no change.
    eventually("a contact after the last change", || {
        let status = status();
        if time(&status["lastContactAt"]) > time(&status["fetchedAt"]) { Ok(()) } else { Err(status.to_string()) }
    });
    let table = host.cli_ok(&["get", "sources"]);
    assert!(table.contains("CONTACT") && table.contains("CHANGED"), "{table}");

    server.gone.store(true, Ordering::SeqCst);
    let shown = eventually("the failure", || {
        let shown = host.cli(&["status"]);
        let text = String::from_utf8_lossy(&shown.stdout).into_owned();
        if text.contains("Nothing changed; 1 pod keeps running") { Ok(text) } else { Err(text) }
    });
    assert!(!shown.contains("prune"), "{shown}");
    let asked = host.cli(&["sync", "--prune", "fleet"]);
    assert_eq!(asked.status.code(), Some(1), "{asked:?}");
    assert!(String::from_utf8_lossy(&asked.stdout).contains("default/web-edge-1"), "{asked:?}");
    assert!(String::from_utf8_lossy(&asked.stderr).contains("use --yes"), "{asked:?}");
    assert!(host.pod("web").is_some());
    host.cli_ok(&["sync", "--prune", "fleet", "--yes"]);
    host.wait_gone("web");
}

#[test]
fn overlay_runs_with_base_and_survives_restart() {
    let repository = Repository::new();
    repository.commit("apps/base/kustomization.yaml", "resources: [web.yaml]\n");
    repository.commit("apps/base/web.yaml", &pod("one"));
    repository.commit("apps/overlays/shop/kustomization.yaml", "resources: [../../base]\nnamePrefix: shop-\n");
    let source = format!(
        "  - name: fleet\n    git: {{url: 'file://{}', branch: main, path: apps/overlays/shop, intervalSeconds: 1}}\n",
        repository.path().display()
    );
    let mut host = TestHost::start_with(&source);
    let first = host.wait_running("shop-web");
    host.wait_log("shop-web", "web", "one");
    let described = host.cli_ok(&["describe", "pod", "shop-web"]);
    assert!(described.contains("../../base/web.yaml:1:1"), "{described}");

    host.kill_daemon();
    host.start_daemon();
    assert_eq!(host.wait_running("shop-web").uid(), first.uid(), "nothing changed");
    repository.commit("apps/base/web.yaml", &pod("two"));
    host.wait_log("shop-web", "web", "two");
    // A commit that breaks the base changes nothing.
    repository.commit("apps/base/kustomization.yaml", "resources: [gone.yaml]\n");
    eventually("the refusal to be shown", || {
        let status = host.cli(&["status"]);
        let text = String::from_utf8_lossy(&status.stdout).into_owned();
        if text.contains("../../base/kustomization.yaml") && text.contains("gone.yaml") { Ok(()) } else { Err(text) }
    });
    assert!(host.pod("shop-web").is_some_and(|pod| pod.runs("web")));
}
