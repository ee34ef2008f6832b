//! The state of each commit, told to the server of its repository.

use crate::git::Repository;
use crate::notify::{Receiver, Reply, pod};
use crate::support::{TestHost, eventually};
use serde_json::Value;
use std::fs;

/// A host that follows the repository and reports to the receiver.
fn host_with(repository: &Repository, receiver: &Receiver) -> TestHost {
    let host = TestHost::prepare("");
    let file = host.path("config.yaml");
    let config = fs::read_to_string(&file).unwrap();
    fs::write(host.path("token"), "s3cret\n").unwrap();
    let ca = host.path("ca.pem");
    fs::write(&ca, receiver.certificate()).unwrap();
    let source = format!(
        "  - name: fleet\n    git:\n      url: {}\n      intervalSeconds: 1\n      commitStatus:\n        provider: gitea\n        url: \
         https://localhost:{}/api/v1\n        repository: shop/fleet\n        tokenFile: {}\n        caFile: {}\n",
        repository.path().display(),
        receiver.port,
        host.path("token").display(),
        ca.display()
    );
    fs::write(&file, config.replace("sources:\n", &format!("sources:\n{source}"))).unwrap();
    host
}

/// Accepted reports of a commit: states and descriptions.
fn reports(receiver: &Receiver, commit: &str) -> Vec<(String, String)> {
    let path = format!(" /api/v1/repos/shop/fleet/statuses/{commit} ");
    let accepted = receiver.got().into_iter().filter(|(head, _)| head.starts_with("201 ") && head.contains(&path));
    let read = |(_, body): (String, String)| {
        let body: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(body["context"], "podstead/edge-1");
        (body["state"].as_str().unwrap().to_owned(), body["description"].as_str().unwrap().to_owned())
    };
    accepted.map(read).collect()
}

/// Waits for the state of a commit. Returns its description.
fn wait_state(host: &TestHost, receiver: &Receiver, commit: &str, state: &str) -> String {
    eventually(&format!("{commit} is {state}"), || {
        let reports = reports(receiver, commit);
        match reports.last() {
            Some((last, description)) if last == state => Ok(description.clone()),
            _ => Err(format!("{reports:?}\n{:?}\n{}", receiver.got(), host.daemon_log())),
        }
    })
}

#[test]
fn commits_get_a_status_each() {
    let repository = Repository::new();
    let first = repository.commit("web.yaml", &pod("exec sleep 1000000"));
    // The server is away at first.
    let receiver = Receiver::new(Box::new(|count| Reply::Status(if count == 0 { 503 } else { 201 })));
    let mut host = host_with(&repository, &receiver);
    host.start_daemon();
    wait_state(&host, &receiver, &first, "success");
    assert!(receiver.got().iter().all(|(head, _)| head.contains("\r\nauthorization: bearer s3cret\r\n")));
    assert!(host.cli_ok(&["get", "events"]).contains("CommitStatusFailed"), "the first attempt is told of");
    host.kill_daemon();
    host.start_daemon();
    let refused =
        repository.commit("web.yaml", &pod("exec sleep 1000000").replace("containers:", "hostNetwrok: true\n  containers:"));
    let description = wait_state(&host, &receiver, &refused, "failure");
    assert!(description.starts_with("refused: web.yaml") && description.contains("hostNetwrok"), "{description}");
    let crashing = repository.commit("web.yaml", &pod("exit 3"));
    let description = wait_state(&host, &receiver, &crashing, "failure");
    assert!(description.contains("pod default/web"), "{description}");
    let repaired = repository.commit("web.yaml", &pod("exec sleep 100000"));
    wait_state(&host, &receiver, &repaired, "success");
    let mut of_first: Vec<String> = reports(&receiver, &first).into_iter().map(|(state, _)| state).collect();
    // The first attempt may be over before there is a better state to report.
    of_first.retain(|state| state != "pending");
    assert_eq!(of_first, ["success"], "nothing is repeated after a kill");
    // Another repository on the server has not been told.
    let config = fs::read_to_string(host.path("config.yaml")).unwrap();
    fs::write(host.path("config.yaml"), config.replace("repository: shop/fleet", "repository: shop/moved")).unwrap();
    eventually("the status in the other repository", || {
        let path = format!(" /api/v1/repos/shop/moved/statuses/{repaired} ");
        let got = receiver.got();
        let told = got.iter().any(|(head, body)| head.starts_with("201 ") && head.contains(&path) && body.contains("success"));
        if told { Ok(()) } else { Err(format!("{got:?}\n{}", host.daemon_log())) }
    });
}
