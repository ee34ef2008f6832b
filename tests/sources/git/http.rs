//! `git http-backend` behind nginx with TLS.

use super::repository::Repository;
use super::servers::{Authority, Counter, Door, WebServer};
use super::{options, revision, shown, start};
use podstead::source::credentials::{AuthFiles, CredentialFiles, Username};
use podstead::source::git::{Follow, GitOptions};
use podstead::source::http_client::HttpAccess;
use std::path::Path;
use std::time::{Duration, Instant};

fn trusting(authority: &Authority) -> HttpAccess {
    HttpAccess { ca_file: Some(authority.ca.clone()), ..HttpAccess::default() }
}

fn with_password(access: HttpAccess, directory: &Path, password: &str) -> HttpAccess {
    let password_file = directory.join("password");
    std::fs::write(&password_file, password).unwrap();
    let auth = Some(AuthFiles::Password { username: Username::Written("me".into()), password_file });
    HttpAccess { credentials: CredentialFiles { auth, ..CredentialFiles::default() }, ..access }
}

#[tokio::test]
async fn a_private_authority_is_trusted_and_strangers_are_not() {
    let repository = Repository::with(&[("web.yaml", "one")]);
    let authority = Authority::new();
    let server = WebServer::start(repository.root(), &authority, Door::Open);
    let state = tempfile::tempdir().unwrap();
    let at = |http| GitOptions { http, ..options(&server.url(), state.path()) };
    for stranger in [trusting(&Authority::new()), HttpAccess::default()] {
        let text = start(at(stranger)).failure().await;
        assert!(text.contains("TLS connection to ") && text.contains("caFile"), "{text}");
    }
    let mut source = start(at(trusting(&authority)));
    assert_eq!(shown(&source.artifact().await), "web.yaml=one");
    for text in ["two", "three"] {
        repository.commit(&[("web.yaml", text)]);
        assert_eq!(shown(&source.polled_artifact().await), format!("web.yaml={text}"));
    }
}

#[tokio::test]
async fn a_server_without_version_two_is_spoken_to_in_version_zero() {
    let repository = Repository::with(&[("web.yaml", "one")]);
    repository.commit(&[("web.yaml", "two")]);
    repository.git(&["tag", "--annotate", "--message", "m", "v1.0.0"]);
    let authority = Authority::new();
    let server = WebServer::start(repository.root(), &authority, Door::OldProtocol);
    for follow in [Follow::Branch("main".into()), Follow::DefaultBranch, Follow::Semver("1".parse().unwrap())] {
        let state = tempfile::tempdir().unwrap();
        let mut source = start(GitOptions { http: trusting(&authority), follow, ..options(&server.url(), state.path()) });
        assert_eq!(shown(&source.artifact().await), "web.yaml=two");
        assert!(source.poll().await.is_empty());
    }
    let state = tempfile::tempdir().unwrap();
    let mut source = start(GitOptions { http: trusting(&authority), ..options(&server.url(), state.path()) });
    source.artifact().await;
    let commit = repository.commit(&[("web.yaml", "three")]);
    assert_eq!(source.polled_artifact().await.revision, revision(&commit));
}

#[tokio::test]
async fn passwords_are_asked_for_and_read_anew_and_never_shown() {
    let repository = Repository::with(&[("web.yaml", "one")]);
    let authority = Authority::new();
    let server = WebServer::start(repository.root(), &authority, Door::Password);
    let (state, secrets) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let text = start(GitOptions { http: trusting(&authority), ..options(&server.url(), state.path()) }).failure().await;
    assert!(text.contains("denied access") && text.contains("401"), "{text}");
    let http = with_password(trusting(&authority), secrets.path(), "hidden\n");
    let mut source = start(GitOptions { http, ..options(&server.url(), state.path()) });
    let text = source.failure().await;
    assert!(text.contains("401") && !text.contains("hidden"), "{text}");
    std::fs::write(secrets.path().join("password"), "open sesame\n").unwrap();
    assert_eq!(shown(&source.polled_artifact().await), "web.yaml=one");
    std::fs::remove_file(secrets.path().join("password")).unwrap();
    let text = source.polled_failure().await;
    assert!(text.contains("password"), "{text}");
}

#[tokio::test]
async fn a_client_certificate_opens_the_door() {
    let repository = Repository::with(&[("web.yaml", "one")]);
    let authority = Authority::new();
    let server = WebServer::start(repository.root(), &authority, Door::Certificate);
    let state = tempfile::tempdir().unwrap();
    let text = start(GitOptions { http: trusting(&authority), ..options(&server.url(), state.path()) }).failure().await;
    assert!(text.contains("403") && text.contains("clientCertFile"), "{text}");
    let client_certificate = Some((authority.client_certificate.clone(), authority.client_key.clone()));
    let http = HttpAccess { client_certificate, ..trusting(&authority) };
    let mut source = start(GitOptions { http, ..options(&server.url(), state.path()) });
    assert_eq!(shown(&source.artifact().await), "web.yaml=one");
}

#[tokio::test]
async fn a_repository_that_is_not_there_is_told_so_and_a_moved_one_is_followed() {
    let repository = Repository::with(&[("web.yaml", "one")]);
    let authority = Authority::new();
    let server = WebServer::start(repository.root(), &authority, Door::Open);
    let state = tempfile::tempdir().unwrap();
    let at = |path: &str| {
        let url = format!("https://127.0.0.1:{}/{path}", server.port);
        GitOptions { http: trusting(&authority), ..options(&url, state.path()) }
    };
    let text = start(at("nothing.git")).failure().await;
    assert!(text.contains(" not found: ") && text.contains("404"), "{text}");
    let mut source = start(at("moved/fleet.git"));
    assert_eq!(shown(&source.artifact().await), "web.yaml=one");
    repository.commit(&[("web.yaml", "two")]);
    assert_eq!(shown(&source.polled_artifact().await), "web.yaml=two");
}

#[tokio::test]
async fn an_unchanged_poll_costs_one_small_request_however_many_references_there_are() {
    let repository = Repository::with(&[("web.yaml", "one")]);
    for number in 0..200 {
        repository.git(&["update-ref", &format!("refs/heads/feature/{number}"), "HEAD"]);
    }
    let authority = Authority::new();
    // With a connection that is kept, and with a new one for each request, as when the interval is longer than the server's patience.
    for (door, new_connections, limit) in [(Door::Open, 0, 1024), (Door::Closing, 1, 2048)] {
        let server = WebServer::start(repository.root(), &authority, door);
        let counter = Counter::before(server.port);
        let state = tempfile::tempdir().unwrap();
        let url = format!("https://127.0.0.1:{}/fleet.git", counter.port);
        let mut source = start(GitOptions { http: trusting(&authority), ..options(&url, state.path()) });
        source.artifact().await;
        let (first, _) = counter.count();
        let mut costs = Vec::new();
        for _ in 0..3 {
            let (before, connections) = counter.count();
            assert!(source.poll().await.is_empty());
            let (after, now) = counter.count();
            costs.push((after - before, now - connections));
        }
        println!("first fetch: {first} bytes with TLS; unchanged polls (bytes with TLS, new connections): {costs:?}");
        assert!(costs.iter().all(|(bytes, connections)| *bytes < limit && *connections == new_connections), "{costs:?}");
    }
}

#[tokio::test]
async fn a_commit_is_delivered_within_a_moment() {
    let repository = Repository::with(&[("web.yaml", "0")]);
    let authority = Authority::new();
    let server = WebServer::start(repository.root(), &authority, Door::Open);
    for (way, url) in [("https", server.url()), ("this host", repository.url())] {
        let state = tempfile::tempdir().unwrap();
        let mut source = start(GitOptions { http: trusting(&authority), ..options(&url, state.path()) });
        source.artifact().await;
        // Up to half a second is the pause between two polls that are wished for. On a busy machine it is measured again.
        for attempt in 0.. {
            let mut times = Vec::new();
            for round in 0..9 {
                let commit = repository.commit(&[("web.yaml", &format!("{way} {attempt} {round}"))]);
                let began = Instant::now();
                assert_eq!(source.polled_artifact().await.revision, revision(&commit));
                times.push(began.elapsed());
            }
            times.sort();
            println!("wish to artifact over {way}: median {:?}, worst {:?}", times[4], times[8]);
            if times[4] < Duration::from_secs(3) {
                break;
            }
            assert!(attempt < 4, "{times:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configured_proxy_is_asked_for_the_repository_behind_it() {
    let (proxy, state) = (crate::http_server::Server::start(), tempfile::tempdir().unwrap());
    let mut options = options("http://git.invalid/fleet.git", state.path());
    options.http.proxy = Some(proxy.url("/").parse().unwrap());
    let text = start(options).failure().await;
    let requests = proxy.requests();
    assert!(requests.iter().any(|request| request.contains("git.invalid/fleet.git/info/refs")), "{text}: {requests:?}");
}
