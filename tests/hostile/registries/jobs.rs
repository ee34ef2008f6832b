//! Servers that have taken the job over that asks them.
//!
//! The header `podstead-attack` tells the job of a test build what to try, as one would that found an error in the client of HTTP or TLS.

use super::server::{Reply, Server};
use crate::events::Recorded;
use crate::slice::Slice;
use podstead::fetch::Requester;
use podstead::job::launch::{JobSettings, Launcher};
use podstead::source::http_client::{HttpAccess, HttpClient, HttpRequest};
use podstead::telemetry::events::EventRecorder;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Body that is longer than any.
const LIMIT: u64 = 4 << 20;

/// Requests of jobs.
pub(super) fn requester(settings: JobSettings, events: Arc<dyn EventRecorder>) -> Requester {
    let settings = JobSettings { program: crate::support::binary("podstead"), ..settings };
    Requester::jobs(Arc::new(Launcher::new(settings)), events)
}

/// A client, and the events of its jobs.
fn client(settings: JobSettings) -> (HttpClient, Arc<Recorded>) {
    let events = Arc::new(Recorded::default());
    (HttpClient::new(HttpAccess::default(), requester(settings, events.clone())), events)
}

fn attacking(word: &str) -> Server {
    let header = format!("podstead-attack: {word}");
    Server::http("127.0.0.2", move |_| Reply::Whole(200, vec![header.clone()], b"body".to_vec()))
}

async fn ask(client: &HttpClient, url: &str, timeout: Duration) -> Result<Vec<u8>, String> {
    let request = HttpRequest::get(url.parse().unwrap(), timeout);
    let answer = client.send(request).await.map_err(|error| error.to_string())?;
    answer.body(LIMIT).await.map(Vec::from).map_err(|error| error.to_string())
}

/// The error that an attack ends in.
async fn refused(client: &HttpClient, word: &str) -> String {
    let server = attacking(word);
    ask(client, &server.url("/"), Duration::from_secs(60)).await.unwrap_err()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forbidden_system_calls_end_the_job() {
    let slice = Slice::new("fetch-calls");
    let (client, events) = client(slice.settings().jobs);
    let words = [
        "execve",
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
        "trusted",
        "disk",
        "setuid-program",
        "bind",
        "listen",
        "socket-raw",
        "socket-option",
    ];
    for word in words {
        let told = refused(&client, word).await;
        assert!(told.contains("made a forbidden system call and was killed"), "{word}: {told}");
    }
    assert_eq!(*events.0.lock().unwrap(), ["JobViolation"].repeat(words.len()));
    drop(client);
    slice.assert_empty();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_ip_and_files_of_the_resolver_are_there() {
    let (client, events) = client(JobSettings::default());
    for (word, expected) in [
        ("socket", "Address family not supported by protocol"),
        ("socket-netlink", "Address family not supported by protocol"),
        ("socket-packet", "Address family not supported by protocol"),
        ("name", "No such file or directory"),
        ("dotdot", "No such file or directory"),
        ("proc", "No such file or directory"),
        ("overwrite", "Permission denied"),
        ("make", "Permission denied"),
    ] {
        let told = refused(&client, word).await;
        assert!(told.contains(&format!("{word}: {expected}")), "{word}: {told}");
    }
    assert!(refused(&client, "socket-inet").await.contains("socket-inet: done with"));
    assert!(events.0.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_mount_of_the_host_is_there() {
    let slice = Arc::new(Slice::new("fetch-mounts"));
    let (seen, asking) = (Arc::new(Mutex::new(Vec::new())), Arc::clone(&slice));
    let record = Arc::clone(&seen);
    let server = Server::http("127.0.0.2", move |_| {
        let mounts = |pid| std::fs::read_to_string(format!("/proc/{pid}/mountinfo")).unwrap();
        record.lock().unwrap().extend(asking.jobs().into_iter().map(mounts));
        Reply::status(200)
    });
    let (client, _events) = client(slice.settings().jobs);
    ask(&client, &server.url("/"), Duration::from_secs(60)).await.unwrap();
    let seen = seen.lock().unwrap().clone();
    assert!(matches!(&*seen, [mounts] if mounts.lines().count() == 1 && mounts.split(' ').nth(4) == Some("/")), "{seen:?}");
    drop(client);
    slice.assert_empty();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_and_time_end_at_their_limits() {
    let slice = Slice::new("fetch-limits");
    for settings in [slice.settings().jobs, JobSettings::default()] {
        let (client, events) = client(settings);
        let told = refused(&client, "memory").await;
        assert!(told.contains("used up its 512 MiB of memory"), "{told}");
        assert_eq!(*events.0.lock().unwrap(), ["LimitExceeded"]);
    }
    let (client, _events) = client(slice.settings().jobs);
    for word in ["spin", "sleep", "silence"] {
        let (server, begin) = (attacking(word), Instant::now());
        let told = ask(&client, &server.url("/"), Duration::from_secs(1)).await.unwrap_err();
        assert!(told.contains("stopped responding") && begin.elapsed() < Duration::from_secs(60), "{word}: {told}");
    }
    drop(client);
    slice.assert_empty();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn job_that_crashes_is_told() {
    let (client, events) = client(JobSettings::default());
    for (word, expected) in [("segfault", "ended by signal 11"), ("panic", "panicked, which is an error of podstead: '")] {
        let told = refused(&client, word).await;
        assert!(told.contains(expected), "{word}: {told}");
    }
    assert!(events.0.lock().unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lies_of_a_job_are_not_believed() {
    let slice = Slice::new("fetch-lies");
    let (client, _events) = client(slice.settings().jobs);
    for (word, expected) in [
        ("long-message", "a message above the limit"),
        ("no-message", "an invalid message"),
        ("other-header", "a header that was not asked for"),
        ("header-line", "an invalid status or header"),
        ("other-status", "an invalid status or header"),
        ("more-bytes", "more bytes than its Content-Length"),
        ("fewer-bytes", "fewer bytes than its Content-Length"),
        ("long-piece", "a piece above the limit"),
        ("own-failure", "a failure that only the daemon reports"),
        ("close", "an answer without an end"),
        ("endless-body", "is larger than 4194304 bytes"),
        ("endless-messages", "is larger than 4194304 bytes"),
    ] {
        let told = refused(&client, word).await;
        assert!(told.contains(expected), "{word}: {told}");
    }
    let told = refused(&client, "words").await;
    assert!(told.len() < 2048 && !told.contains(char::is_control), "{} bytes: {told:?}", told.len());
    drop(client);
    slice.assert_empty();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirect_is_followed_by_another_process() {
    let slice = Arc::new(Slice::new("fetch-led"));
    let (seen, counting) = (Arc::new(Mutex::new(Vec::new())), Arc::clone(&slice));
    let record = Arc::clone(&seen);
    let other = Server::http("127.0.0.2", move |_| {
        record.lock().unwrap().push(counting.jobs().len());
        Reply::status(200)
    });
    let (to, record, counting) = (other.url("/"), Arc::clone(&seen), Arc::clone(&slice));
    let origin = Server::http("127.0.0.2", move |_| {
        record.lock().unwrap().push(counting.jobs().len());
        Reply::redirect(&to)
    });
    let (client, _events) = client(slice.settings().jobs);
    for _ in 0..2 {
        ask(&client, &origin.url("/"), Duration::from_secs(60)).await.unwrap();
    }
    // The second request of this poll goes through both processes that are there.
    assert_eq!(*seen.lock().unwrap(), [1, 2, 2, 2]);
    drop(client);
    slice.assert_empty();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirects_to_many_servers_keep_few_processes() {
    const KEPT: usize = 8;
    let slice = Slice::new("fetch-many");
    let (client, _events) = client(slice.settings().jobs);
    let others: Vec<Server> = (0..KEPT + 4).map(|_| Server::http("127.0.0.2", |_| Reply::status(200))).collect();
    let to: Vec<String> = others.iter().map(|other| other.url("/")).collect();
    let next = Mutex::new(to.into_iter().cycle());
    let origin = Server::http("127.0.0.2", move |_| Reply::redirect(next.lock().unwrap().next().unwrap()));
    for _ in 0..2 * others.len() {
        ask(&client, &origin.url("/"), Duration::from_secs(60)).await.unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(20);
    while slice.jobs().len() > KEPT && Instant::now() < deadline {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(slice.jobs().len(), KEPT);
    drop(client);
    slice.assert_empty();
}
