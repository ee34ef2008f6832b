//! Sources that are added, changed, removed and asked while pods run.

use crate::support::{TestHost, eventually};
use jiff::Timestamp;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::{Arc, Mutex, PoisonError};

/// A web server for one body; without one it answers 503.
pub(crate) struct Server {
    address: std::net::SocketAddr,
    body: Arc<Mutex<Option<String>>>,
    stopped: Arc<std::sync::atomic::AtomicBool>,
}

impl Server {
    pub(crate) fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let body = Arc::<Mutex<Option<String>>>::default();
        let stopped = Arc::<std::sync::atomic::AtomicBool>::default();
        let (shared, stop) = (Arc::clone(&body), Arc::clone(&stopped));
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                if stop.load(std::sync::atomic::Ordering::SeqCst) {
                    return;
                }
                // A client that leaves is no concern of the server.
                connection.and_then(|connection| answer(connection, &shared)).ok();
            }
        });
        Self { address, body, stopped }
    }

    pub(crate) fn serve(&self, body: Option<String>) {
        *self.body.lock().unwrap_or_else(PoisonError::into_inner) = body;
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}/edge.yaml", self.address)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopped.store(true, std::sync::atomic::Ordering::SeqCst);
        TcpStream::connect(self.address).ok();
    }
}

fn answer(mut connection: TcpStream, body: &Mutex<Option<String>>) -> std::io::Result<()> {
    let mut reader = BufReader::new(connection.try_clone()?);
    let mut line = String::new();
    while reader.read_line(&mut line)? > 2 {
        line.clear();
    }
    let (status, body) = match body.lock().unwrap_or_else(PoisonError::into_inner).clone() {
        Some(body) => ("200 OK", body),
        None => ("503 Service Unavailable", String::new()),
    };
    write!(connection, "HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

fn pod(name: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n  \
         - {{name: main, image: 'localhost/busybox:1', command: [sleep, '1000000']}}\n"
    )
}

/// Appends sources to the configuration, by rename as an editor does.
fn configure(host: &TestHost, base: &str, more: &str) {
    let new = host.path("config.yaml.new");
    fs::write(&new, format!("{base}{more}")).unwrap();
    fs::rename(new, host.path("config.yaml")).unwrap();
}

fn http_source(name: &str, server: &Server) -> String {
    format!("  - name: {name}\n    http: {{url: '{}', intervalSeconds: 3600}}\n", server.url())
}

fn status_has(host: &TestHost, word: &str) {
    eventually(&format!("status to tell of {word:?}"), || {
        let out = host.cli(&["status"]);
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        if text.contains(word) { Ok(()) } else { Err(text) }
    });
}

#[test]
fn changed_configuration_touches_only_its_sources() {
    let (host, server) = (TestHost::start(), Server::start());
    let base = fs::read_to_string(host.path("config.yaml")).unwrap();
    host.write_manifest("one.yaml", &pod("one"));
    let one = host.wait_running("one");
    server.serve(Some(pod("two")));

    configure(&host, &base, &http_source("web", &server));
    let two = host.wait_running("two");

    // What is not valid, not there or half there changes nothing.
    configure(&host, &base, "  - name: web\n    http: {url: 'ftp://x/'}\n");
    status_has(&host, "has scheme \"ftp\"");
    configure(&host, "", "");
    status_has(&host, "is empty");
    fs::remove_file(host.path("config.yaml")).unwrap();
    status_has(&host, "does not exist");
    configure(&host, &base, &format!("{}podPidsLimit: 100\n", http_source("web", &server)));
    status_has(&host, "takes effect after a restart of the daemon: podPidsLimit");
    // All of them in one place, beside one that takes effect at once.
    let several =
        "ageKeyFile: /etc/key\nallowedUnsafeSysctls: [net.core.somaxconn]\nlogging: {format: json}\nlabels: {site: lab}\n";
    configure(&host, &base, &format!("{}podPidsLimit: 100\n{several}", http_source("web", &server)));
    status_has(
        &host,
        "takes effect after a restart of the daemon: podPidsLimit, ageKeyFile, allowedUnsafeSysctls, logging.format\n",
    );
    for pod in [&one, &two] {
        let now = host.pods().into_iter().find(|now| now.uid() == pod.uid()).unwrap();
        assert_eq!(now.container_id("main"), pod.container_id("main"));
    }

    configure(&host, &base, "");
    host.wait_gone("two");
    let now = host.wait_running("one");
    assert_eq!(now.container_id("main"), one.container_id("main"), "it was never touched");
    assert_eq!(host.cli_ok(&["get", "sources", "-o", "name"]).trim(), "source/manifests");
    assert!(host.daemon_log().contains("sources removed from the configuration"), "{}", host.daemon_log());
    assert!(!host.path("state/sources/web/last-good.json").try_exists().unwrap(), "else it would come back with the source");
}

#[test]
fn sync_waits_until_content_is_in_force() {
    let server = Server::start();
    server.serve(Some(pod("one")));
    let host = TestHost::start_with(&http_source("web", &server));
    let first = host.wait_running("one");
    server.serve(Some(format!("{}---\n{}", pod("one"), pod("two"))));
    let told = host.cli_ok(&["sync", "web", "--wait"]);
    assert!(told.contains("is in force, 2 pods"), "{told}");
    host.wait_running("two");
    host.write_manifest("three.yaml", &pod("three"));
    let told = host.cli_ok(&["sync", "--wait"]);
    assert!(told.contains("source web: ") && told.contains("source manifests: ") && told.contains("in force, 1 pod\n"), "{told}");

    server.serve(None);
    let out = host.cli(&["sync", "web", "--wait"]);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert_eq!(out.status.code(), Some(1), "{text}");
    assert!(text.contains("returned 503"), "{text}");
    assert_eq!(host.cli(&["sync", "nowhere"]).status.code(), Some(1));
    server.serve(Some(pod("one").replace("kind: Pod", "kind: Pot")));
    let out = host.cli(&["sync", "web", "--wait"]);
    assert!(String::from_utf8_lossy(&out.stdout).contains("1 object is rejected"), "{out:?}");
    assert_eq!(host.wait_running("one").container_id("main"), first.container_id("main"));
}

#[test]
fn status_of_source_is_told_together() {
    let server = Server::start();
    server.serve(Some(pod("one")));
    let host = TestHost::start_with(&http_source("web", &server));
    host.wait_running("one");
    let status = || -> Value {
        let shown: Value = serde_json::from_str(&host.cli_ok(&["get", "sources", "web", "-o", "json"])).unwrap();
        assert_eq!((shown["kind"].as_str(), shown["metadata"]["name"].as_str()), (Some("Source"), Some("web")), "{shown}");
        assert_eq!(
            (shown["spec"]["kind"].as_str(), shown["spec"]["location"].as_str()),
            (Some("http"), Some(server.url().as_str()))
        );
        shown["status"].clone()
    };
    let time = |status: &Value, field: &str| -> Timestamp {
        status[field]
            .as_str()
            .unwrap_or_else(|| panic!("{field}: {status}"))
            .parse()
            .unwrap_or_else(|error| panic!("{field}: {error}"))
    };
    let told = |what: &str, is_so: &dyn Fn(&Value) -> bool| {
        eventually(what, || {
            let status = status();
            if is_so(&status) { Ok(status) } else { Err(status.to_string()) }
        })
    };

    // All well: one revision, fetched, accepted and applied in this order, and the next look within the interval.
    let good =
        told("the first revision to be applied", &|status| status["nextLookAt"].is_string() && status["appliedAt"].is_string());
    let revision = good["fetchedRevision"].as_str().unwrap();
    assert!(revision.starts_with("sha256:"), "{good}");
    assert_eq!((&good["acceptedRevision"], &good["appliedRevision"]), (&good["fetchedRevision"], &good["fetchedRevision"]));
    let (fetched, accepted, applied) = (time(&good, "fetchedAt"), time(&good, "acceptedAt"), time(&good, "appliedAt"));
    assert!(fetched <= accepted && accepted <= applied && applied <= Timestamp::now(), "{good}");
    let next = time(&good, "nextLookAt");
    assert!(next > fetched && next <= fetched + jiff::SignedDuration::from_secs(3960), "an hour and a tenth at most: {good}");
    assert_eq!(
        (&good["lastError"], &good["problems"], &good["hold"], &good["pods"]),
        (&Value::Null, &json!([]), &Value::Null, &json!(1))
    );

    // The place fails: the error is told, the next try comes sooner, and nothing else changes.
    server.serve(None);
    host.cli(&["sync", "web", "--wait"]);
    let failing = told("the failure to be told", &|status| status["lastError"].is_string() && status["nextLookAt"].is_string());
    let error = failing["lastError"].as_str().unwrap();
    assert!(
        error.contains("returned 503") && error.contains(&format!("Nothing changed; 1 pod keeps running (revision {revision})")),
        "{error}"
    );
    assert!(time(&failing, "nextLookAt") < Timestamp::now() + jiff::SignedDuration::from_secs(60), "{failing}");
    for field in ["fetchedRevision", "acceptedRevision", "acceptedAt", "appliedRevision", "appliedAt", "pods"] {
        assert_eq!(failing[field], good[field], "{field}");
    }

    // While it is held, what is fetched and what is in force differ.
    host.cli_ok(&["suspend", "web"]);
    server.serve(Some(format!("{}---\n{}", pod("one"), pod("two"))));
    host.cli(&["sync", "web", "--wait"]);
    let held = told("another revision to be fetched", &|status| status["fetchedRevision"] != good["fetchedRevision"]);
    assert_eq!((&held["acceptedRevision"], &held["appliedRevision"]), (&good["acceptedRevision"], &good["appliedRevision"]));
    assert_eq!(
        (held["hold"]["kind"].as_str(), held["hold"]["command"].as_str()),
        (Some("suspended"), Some("podstead suspend web"))
    );
    assert_eq!(held["lastError"], Value::Null, "{held}");

    // And once it is resumed, everything moves on together.
    host.cli_ok(&["resume", "web"]);
    host.wait_running("two");
    let moved = told("the other revision to be applied", &|status| status["appliedRevision"] == held["fetchedRevision"]);
    assert_eq!((&moved["acceptedRevision"], &moved["pods"], &moved["hold"]), (&held["fetchedRevision"], &json!(2), &Value::Null));
    assert!(time(&moved, "appliedAt") >= time(&moved, "acceptedAt") && time(&moved, "acceptedAt") > accepted, "{moved}");
}

#[test]
fn host_starts_with_last_valid_configuration() {
    let mut host = TestHost::start();
    host.write_manifest("one.yaml", &pod("one"));
    let one = host.wait_running("one");
    let base = fs::read_to_string(host.path("config.yaml")).unwrap();
    host.kill_daemon();
    configure(&host, &base, "podPidsLimt: 5\n");
    host.start_daemon();
    // Its socket is known from the broken file.
    status_has(&host, "did you mean \"podPidsLimit\"");
    assert_eq!(host.wait_running("one").container_id("main"), one.container_id("main"));
    let checked = host.cli(&["--config", host.path("config.yaml").to_str().unwrap(), "config", "check"]);
    assert!(!checked.status.success(), "it is broken all the same");

    // Without a daemon, all pods can be stopped.
    host.stop_daemon();
    let stopped = host.cli(&["--config", host.path("config.yaml").to_str().unwrap(), "stop", "--all"]);
    assert!(stopped.status.success(), "{stopped:?}");
    assert!(String::from_utf8_lossy(&stopped.stderr).contains("podPidsLimt"), "{stopped:?}");
    assert_eq!(String::from_utf8_lossy(&stopped.stdout), "stopped one-edge-1_default\n");

    configure(&host, &base, "podPidsLimit: 500\n");
    host.start_daemon();
    host.wait_running("one");
    assert!(!host.cli_ok(&["status"]).contains("podPidsLim"), "all is well");
}

#[test]
fn hangup_reads_configuration_and_ends_nothing() {
    let host = TestHost::start();
    host.write_manifest("one.yaml", &pod("one"));
    let one = host.wait_running("one");
    kill(Pid::from_raw(host.daemon_pid() as i32), Signal::SIGHUP).unwrap();
    eventually("the signal to be heard", || {
        let log = host.daemon_log();
        if log.contains("received SIGHUP: reloading the configuration") { Ok(()) } else { Err(log) }
    });
    assert_eq!(host.wait_running("one").container_id("main"), one.container_id("main"));
}

#[test]
fn log_level_changes_at_once() {
    let host = TestHost::start();
    let base = fs::read_to_string(host.path("config.yaml")).unwrap();
    assert!(!host.daemon_log().contains(" DEBUG "), "{}", host.daemon_log());
    configure(&host, &base, "logging: {level: 'debug,hyper=off'}\n");
    eventually("the log to tell of its level", || {
        let log = host.daemon_log();
        if log.contains("log level changed level=\"debug,hyper=off\"") { Ok(()) } else { Err(log) }
    });
    host.write_manifest("one.yaml", &pod("one"));
    host.wait_running("one");
    let log = host.daemon_log();
    assert!(log.contains(" DEBUG "), "{log}");
    let started = log.lines().find(|line| line.contains("reason=\"Started\"")).unwrap_or_else(|| panic!("{log}"));
    assert!(started.contains("pod=one-edge-1_default container=\"main\""), "{started}");
    assert_eq!(host.cli_ok(&["status"]).matches("takes effect after a restart").count(), 0);
}

#[test]
fn log_is_json_when_configured() {
    let host = TestHost::start_with("logging: {format: json}\n");
    host.write_manifest("one.yaml", &pod("one"));
    host.wait_running("one");
    let log = host.daemon_log();
    let lines: Vec<Value> =
        log.lines().map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))).collect();
    let started = lines.iter().find(|line| line["reason"] == "Started").unwrap_or_else(|| panic!("{log}"));
    assert_eq!((&started["pod"], &started["container"]), (&json!("one-edge-1_default"), &json!("main")), "{started}");
    assert_eq!((&started["level"], &started["message"]), (&json!("INFO"), &json!("Started container main")), "{started}");
    started["timestamp"].as_str().unwrap().parse::<Timestamp>().unwrap();
}

/// The times of the last contact with the source `web` and of its last change, from all places that tell of them.
fn two_times(host: &TestHost) -> [Timestamp; 2] {
    let shown: Value = serde_json::from_str(&host.cli_ok(&["get", "sources", "web", "-o", "json"])).unwrap();
    let [contact, change] = ["lastContactAt", "fetchedAt"].map(|field| {
        let time = shown["status"][field].as_str().unwrap_or_else(|| panic!("no {field} in {shown:#}"));
        time.parse::<Timestamp>().unwrap()
    });
    let mut curl = Command::new("curl");
    let curl = curl.args(["-sS", "--fail", "--unix-socket"]).arg(host.path("run/podstead.sock")).arg("http://localhost/metrics");
    let metrics = String::from_utf8(curl.output().unwrap().stdout).unwrap();
    for (name, time) in [("fetched", contact), ("changed", change)] {
        let sample = format!("podstead_source_{name}_timestamp_seconds{{source=\"web\"}} ");
        let value =
            metrics.lines().find_map(|line| line.strip_prefix(&sample)).unwrap_or_else(|| panic!("no {sample} in {metrics}"));
        let difference = value.parse::<f64>().unwrap() - time.as_millisecond() as f64 / 1000.0;
        assert!(difference.abs() < 0.01, "{name}: {value} and {time}");
    }
    let described = host.cli_ok(&["describe", "source", "web"]);
    let line = described.lines().find(|line| line.starts_with("Last Contact:")).unwrap_or_else(|| panic!("{described}"));
    assert!(line.contains(&contact.strftime(" %Y-%m-%dT%H:%M:%SZ (").to_string()), "to the second: {line}");
    [contact, change]
}

/// A source that is healthy and does not change must not look stale, nor one that cannot be reached look fresh.
#[test]
fn contact_and_change_are_two_times() {
    let server = Server::start();
    server.serve(Some(pod("one")));
    let host = TestHost::start_with(&http_source("web", &server));
    host.wait_running("one");
    let heading = host.cli_ok(&["get", "sources"]).lines().next().unwrap_or_default().to_owned();
    assert!(heading.contains(" CONTACT") && heading.contains(" CHANGED"), "{heading}");
    let first = two_times(&host);

    host.cli_ok(&["sync", "--wait", "web"]);
    let same = two_times(&host);
    assert!(same[0] > first[0] && same[1] == first[1], "{first:?} {same:?}");

    server.serve(Some(pod("two")));
    host.cli_ok(&["sync", "--wait", "web"]);
    let changed = two_times(&host);
    assert!(changed[0] > same[0] && changed[1] > same[1], "{same:?} {changed:?}");

    server.serve(None);
    assert!(!host.cli(&["sync", "--wait", "web"]).status.success());
    assert_eq!(two_times(&host), changed, "a failed look is no contact");
}

#[test]
fn after_restart_without_server_same_pods_run() {
    let server = Server::start();
    server.serve(Some(pod("one")));
    let mut host = TestHost::start_with(&http_source("web", &server));
    let first = host.wait_running("one");
    host.kill_daemon();
    server.serve(None);
    host.start_daemon();
    status_has(&host, "returned 503");
    assert_eq!(host.wait_running("one").container_id("main"), first.container_id("main"));
}

#[test]
fn webhook_lets_source_look_at_once() {
    use ring::hmac;
    let server = Server::start();
    server.serve(Some(pod("one")));
    // The daemon cannot tell which port the kernel chose, so one is chosen for it. Should somebody else take it, it is tried again.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut host = TestHost::prepare(&http_source("web", &server));
    fs::write(host.path("secret"), "open sesame\n").unwrap();
    let base = fs::read_to_string(host.path("config.yaml")).unwrap();
    configure(&host, &base, &format!("webhook: {{port: {port}, secretFile: {}}}\n", host.path("secret").display()));
    host.start_daemon();
    host.wait_running("one");
    server.serve(Some(format!("{}---\n{}", pod("one"), pod("two"))));
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, b"open sesame"), b"");
    let request = format!(
        "POST /sources/web HTTP/1.1\r\nhost: h\r\nx-podstead-signature: sha256={}\r\ncontent-length: 0\r\n\r\n",
        hex::encode(tag.as_ref())
    );
    eventually("the webhook to answer", || {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(|error| error.to_string())?;
        stream.write_all(request.as_bytes()).map_err(|error| error.to_string())?;
        let mut status = String::new();
        BufReader::new(stream).read_line(&mut status).map_err(|error| error.to_string())?;
        if status.contains("202") { Ok(()) } else { Err(status) }
    });
    host.wait_running("two");
}

#[test]
fn listeners_follow_the_configuration() {
    let host = TestHost::start();
    let file = host.path("config.yaml");
    let before = fs::read_to_string(&file).unwrap();
    let free_port = || std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let listens = |port: u16| std::net::TcpStream::connect(("127.0.0.1", port)).is_ok();
    let (first, second) = (free_port(), free_port());
    for (new, old) in [(first, second), (second, first)] {
        fs::write(
            &file,
            format!("{before}monitoring: {{port: {new}}}\ncrashLoopBackOff: {{maxContainerRestartPeriodSeconds: 10}}\n"),
        )
        .unwrap();
        eventually("the new port to be open and the old one closed", || {
            (listens(new) && !listens(old)).then_some(()).ok_or_else(|| "not so".to_owned())
        });
    }
    fs::write(&file, &before).unwrap();
    eventually("the port to be closed", || (!listens(second)).then_some(()).ok_or_else(|| "open".to_owned()));
    assert!(!host.cli_ok(&["status"]).contains("takes effect after a restart"));
}
