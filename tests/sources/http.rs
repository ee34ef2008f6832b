//! Requests to a good server, and its notifications.

use crate::following::Following;
use crate::http_server::{Answer, Server, ok, options, pod};
use podstead::source::SignatureRequirement;
use podstead::source::credentials::{AuthFiles, CredentialFiles, Username};
use podstead::source::http::HttpOptions;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const TAG: &str = "\"v1\"";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unchanged_body_costs_a_conditional_request_and_no_report() {
    let (server, state) = (Server::start(), tempfile::tempdir().unwrap());
    server.serve("/m.yaml", Answer::Tagged(TAG.into(), pod("one")));
    let mut source = Following::start(options(&server.url("/m.yaml"), state.path()));
    assert!(source.body().await.contains("one"));
    server.wait_for(3);
    source.silent();
    let requests = server.requests();
    assert!(!requests[0].contains("if-none-match"), "{}", requests[0]);
    assert!(requests[1..].iter().all(|request| request.contains("if-none-match: \"v1\"")), "{requests:?}");
    server.serve("/m.yaml", Answer::Tagged("\"v2\"".into(), pod("two")));
    assert!(source.body().await.contains("two"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn after_a_restart_the_first_request_is_conditional_and_the_body_is_told_again() {
    let (server, state) = (Server::start(), tempfile::tempdir().unwrap());
    let state = state.path().join("sources/web");
    server.serve("/m.yaml", Answer::Tagged(TAG.into(), pod("one")));
    let first = Following::start(options(&server.url("/m.yaml"), &state)).artifact().await;
    let before = server.requests().len();
    let again = Following::start(options(&server.url("/m.yaml"), &state)).artifact().await;
    assert_eq!(again, first);
    assert!(server.requests()[before].contains("if-none-match: \"v1\""));
    // Another URL has nothing to do with it.
    server.serve("/other.yaml", Answer::Tagged(TAG.into(), pod("two")));
    let other = Following::start(options(&server.url("/other.yaml"), &state)).body().await;
    assert!(other.contains("two"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_within_the_second_of_its_time_stamp_is_not_missed() {
    let (server, state) = (Server::start(), tempfile::tempdir().unwrap());
    let date = "date: Sun, 06 Nov 1994 08:49:37 GMT\r\nlast-modified: Sun, 06 Nov 1994 08:49:37 GMT\r\netag: \"x\"\r\n";
    server.serve("/m.yaml", ok(date, &pod("one")));
    let mut source = Following::start(options(&server.url("/m.yaml"), state.path()));
    source.artifact().await;
    server.wait_for(2);
    assert!(server.requests().iter().all(|request| !request.contains("if-")), "{:?}", server.requests());
    let later = date.replacen("08:49:37", "08:59:37", 1);
    server.serve("/m.yaml", ok(&later, &pod("one")));
    server.wait_for(3);
    assert!(server.requests().last().unwrap().contains("if-modified-since: sun, 06 nov 1994 08:49:37 gmt"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_may_be_gzip_or_without_length_and_have_many_documents() {
    use std::io::Write;
    let (server, state) = (Server::start(), tempfile::tempdir().unwrap());
    let body = [pod("one"), b"---\n".to_vec(), pod("two")].concat();
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(&body).unwrap();
    server.serve("/m.yaml", ok("content-encoding: gzip\r\n", &encoder.finish().unwrap()));
    let mut source = Following::start(options(&server.url("/m.yaml"), state.path()));
    assert_eq!(source.body().await.into_bytes(), body);
    server.serve("/m.yaml", Answer::Bytes([b"HTTP/1.1 200 OK\r\n\r\n".as_slice(), &pod("three")].concat()));
    assert!(source.body().await.contains("three"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_go_to_the_configured_host_only_and_rotated_ones_are_found() {
    let (server, other, files) = (Server::start(), Server::start(), tempfile::tempdir().unwrap());
    let token = files.path().join("token");
    fs::write(&token, "first\n").unwrap();
    let mut options = options(&server.url("/m.yaml"), &files.path().join("state"));
    options.access.credentials = CredentialFiles {
        auth: Some(AuthFiles::Token(token.clone())),
        headers: vec![("X-Site".into(), "seven".into())],
        headers_file: None,
    };
    let redirect =
        |target: String| Answer::Bytes(format!("HTTP/1.1 302 Found\r\nlocation: {target}\r\ncontent-length: 0\r\n\r\n").into());
    server.serve("/m.yaml", redirect(server.url("/here")));
    server.serve("/here", redirect(other.url("/there?signature=geheim")));
    other.serve("/there?signature=geheim", ok("", &pod("one")));
    let mut source = Following::start(options);
    assert!(source.body().await.contains("one"));
    fs::write(&token, "second\n").unwrap();
    server.wait_for(4);
    let (own, foreign) = (server.requests(), other.requests());
    assert!(own.iter().all(|request| request.contains("x-site: seven")), "{own:?}");
    assert!(own[0].contains("authorization: bearer first") && own.last().unwrap().contains("authorization: bearer second"));
    assert!(foreign.iter().all(|request| !request.contains("authorization") && !request.contains("x-site")), "{foreign:?}");
    other.serve("/there?signature=geheim", Answer::Bytes(b"HTTP/1.1 500 No\r\ncontent-length: 0\r\n\r\n".to_vec()));
    let failure = source.failure().await;
    assert!(failure.contains("/there returned 500") && !failure.contains("geheim"), "{failure}");
    fs::remove_file(&token).unwrap();
    assert!(source.failure().await.contains("read secret"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configured_proxy_is_asked_for_what_lies_behind_it() {
    let (proxy, state) = (Server::start(), tempfile::tempdir().unwrap());
    proxy.serve("http://config.invalid/m.yaml", ok("", &pod("one")));
    let mut options = options("http://config.invalid/m.yaml", state.path());
    options.access.proxy = Some(proxy.url("/").parse().unwrap());
    assert!(Following::start(options).body().await.contains("one"));
    assert!(!proxy.requests()[0].contains("proxy-authorization"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_is_told_who_asks_and_nothing_that_is_for_the_server_behind_it() {
    for scheme in ["http", "https"] {
        let (proxy, state) = (Server::start(), tempfile::tempdir().unwrap());
        let file = |name: &str, content: &str| {
            let path = state.path().join(name);
            fs::write(&path, content).unwrap();
            path
        };
        let url = format!("{scheme}://config.invalid/m.yaml");
        proxy.serve(&url, ok("", &pod("one")));
        let mut options = options(&url, state.path());
        options.access.credentials.auth = Some(AuthFiles::Token(file("token", "for-the-server\n")));
        options.access.proxy = Some(proxy.url("/").parse().unwrap());
        let (username, password_file) = (Username::Written("edge".into()), file("password", "s3cret\n"));
        options.access.proxy_auth = Some(AuthFiles::Password { username, password_file: password_file.clone() });
        let mut following = Following::start(options);
        match scheme {
            "http" => assert!(following.body().await.contains("one")),
            // It makes no tunnel.
            _ => drop(following.failure().await),
        }
        // edge:s3cret
        let told = |proxy: &Server| {
            proxy.requests().last().unwrap().to_lowercase().contains("proxy-authorization: basic zwrnztpzm2nyzxq=")
        };
        assert!(told(&proxy), "{:?}", proxy.requests());
        let has_token = proxy.requests()[0].contains("for-the-server");
        assert_eq!(has_token, scheme == "http", "a tunnel is made before the server is spoken to");
    }
}

/// Keys in a directory, and who may sign with them.
struct Keys(tempfile::TempDir);

impl Keys {
    fn new() -> Self {
        let keys = Self(tempfile::tempdir().unwrap());
        for name in ["ann", "eve"] {
            run(Command::new("ssh-keygen").args(["-q", "-N", "", "-C", name, "-t", "ed25519", "-f"]).arg(keys.path(name)));
        }
        let public = fs::read_to_string(keys.path("ann.pub")).unwrap();
        fs::write(keys.path("signers"), format!("ann@example.org {public}")).unwrap();
        keys
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn sign(&self, key: &str, namespace: &str, body: &str) -> Vec<u8> {
        let (file, signature) = (self.path("body"), self.path("body.sig"));
        fs::write(&file, body).unwrap();
        fs::remove_file(&signature).ok();
        run(Command::new("ssh-keygen").args(["-q", "-Y", "sign", "-n", namespace, "-f"]).arg(self.path(key)).arg(&file));
        fs::read(signature).unwrap()
    }

    fn options(&self, server: &Server, state: &Path) -> HttpOptions {
        let required = SignatureRequirement {
            allowed_signers_file: Some(self.path("signers")),
            openpgp_keyring_file: None,
            namespace: "podstead".into(),
        };
        HttpOptions { signature: Some(required), ..options(&server.url("/m.yaml?site=7"), state) }
    }
}

fn run(command: &mut Command) {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn serve(server: &Server, body: &str, signature: &[u8]) {
    server.serve("/m.yaml.sig?site=7", ok("", signature));
    server.serve("/m.yaml?site=7", ok("", body.as_bytes()));
}

fn serial(number: u64, name: &str) -> String {
    format!("# podstead.dev/serial: {number}\n{}", String::from_utf8(pod(name)).unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_what_an_allowed_signer_signed_for_this_purpose_is_reported() {
    let (server, state, keys) = (Server::start(), tempfile::tempdir().unwrap(), Keys::new());
    let body = serial(1, "one");
    serve(&server, &body, &keys.sign("ann", "podstead", &body));
    let mut source = Following::start(keys.options(&server, state.path()));
    assert_eq!(source.body().await, body);
    let next = serial(2, "two");
    for (signature, word) in [
        (keys.sign("eve", "podstead", &next), "refused: signature"),
        (keys.sign("ann", "file", &next), "refused: signature"),
        (b"<html>".to_vec(), "refused: signature"),
        (keys.sign("ann", "podstead", &format!("{next} ")), "refused: signature"),
    ] {
        serve(&server, &next, &signature);
        let failure = source.failure().await;
        assert!(failure.contains(word) && failure.contains("/m.yaml"), "{failure}");
        server.wait_for(8);
        serve(&server, &body, &signature);
        source.recovered().await;
    }
    server.serve("/m.yaml.sig?site=7", Answer::Bytes(b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n".to_vec()));
    server.serve("/m.yaml?site=7", ok("", next.as_bytes()));
    assert!(source.failure().await.contains("refused: no signature"));
    serve(&server, &next, &keys.sign("ann", "podstead", &next));
    assert_eq!(source.body().await, next);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_older_signed_body_does_not_come_back_not_even_after_a_restart() {
    let (server, state, keys) = (Server::start(), tempfile::tempdir().unwrap(), Keys::new());
    let publish = |body: &str| serve(&server, body, &keys.sign("ann", "podstead", body));
    let [one, two, other_two] = [serial(1, "one"), serial(2, "two"), serial(2, "other")];
    publish(&one);
    let mut source = Following::start(keys.options(&server, state.path()));
    source.artifact().await;
    publish(&two);
    source.artifact().await;
    publish(&one);
    assert!(source.failure().await.contains("podstead.dev/serial is 1, lower than the accepted 2"));
    publish(&other_two);
    assert!(source.failure().await.contains("is 2, as in the accepted body"));
    let unordered = String::from_utf8(pod("three")).unwrap();
    publish(&unordered);
    assert!(source.failure().await.contains("podstead.dev/serial is missing"));
    publish(&one);
    drop(source);
    let mut source = Following::start(keys.options(&server, state.path()));
    assert!(source.failure().await.contains("lower than the accepted 2"));
    drop(source);
    let allowed = HttpOptions { allow_rollback: true, ..keys.options(&server, state.path()) };
    assert_eq!(Following::start(allowed).body().await, one);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_that_was_fetched_unsigned_is_not_believed_when_signatures_become_required() {
    let (server, state, keys) = (Server::start(), tempfile::tempdir().unwrap(), Keys::new());
    let body = serial(1, "one");
    server.serve("/m.yaml?site=7", Answer::Tagged(TAG.into(), body.clone().into_bytes()));
    let unsigned = HttpOptions { signature: None, ..keys.options(&server, state.path()) };
    Following::start(unsigned).artifact().await;
    let mut source = Following::start(keys.options(&server, state.path()));
    assert!(source.failure().await.contains("refused: no signature"));
    server.serve("/m.yaml.sig?site=7", ok("", &keys.sign("ann", "podstead", &body)));
    assert_eq!(source.body().await, body);
}
