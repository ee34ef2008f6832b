//! Bodies with a detached signature of OpenPGP beside them.

use crate::following::Following;
use crate::gnupg::Gnupg;
use crate::http_server::{Answer, Server, ok, options, pod};
use podstead::source::SignatureRequirement;
use podstead::source::http::HttpOptions;
use std::path::Path;

fn serial(number: u64, name: &str) -> String {
    format!("# podstead.dev/serial: {number}\n{}", String::from_utf8(pod(name)).unwrap())
}

fn required(gnupg: &Gnupg, server: &Server, state: &Path) -> HttpOptions {
    std::fs::write(gnupg.path("keyring"), gnupg.exported(&["ann@example.org"])).unwrap();
    let signature = SignatureRequirement {
        allowed_signers_file: None,
        openpgp_keyring_file: Some(gnupg.path("keyring")),
        namespace: "podstead".into(),
    };
    HttpOptions { signature: Some(signature), ..options(&server.url("/m.yaml"), state) }
}

fn nothing() -> Answer {
    Answer::Bytes(b"HTTP/1.1 404 No\r\ncontent-length: 0\r\n\r\n".to_vec())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_binary_signature_beside_the_body_or_else_one_in_armour_is_asked_for() {
    let (server, state, gnupg) = (Server::start(), tempfile::tempdir().unwrap(), Gnupg::new());
    gnupg.key("Ann <ann@example.org>", "ed25519", &[]);
    gnupg.key("Eve <eve@example.org>", "ed25519", &[]);
    let body = serial(1, "one");
    server.serve("/m.yaml.sig", ok("", &gnupg.sign("ann@example.org", body.as_bytes(), &[])));
    server.serve("/m.yaml", Answer::Tagged("\"1\"".into(), body.clone().into_bytes()));
    let mut source = Following::start(required(&gnupg, &server, state.path()));
    assert_eq!(source.body().await, body);
    drop(source);
    // What was verified outlives the daemon with its binary signature: the first request is conditional.
    let before = server.requests().len();
    let mut source = Following::start(required(&gnupg, &server, state.path()));
    assert_eq!(source.body().await, body);
    assert!(server.requests()[before].contains("if-none-match: \"1\""), "{:?}", server.requests());
    let next = serial(2, "two");
    server.serve("/m.yaml.sig", nothing());
    server.serve("/m.yaml.asc", ok("", &gnupg.sign("eve@example.org", next.as_bytes(), &["--armor"])));
    server.serve("/m.yaml", Answer::Tagged("\"2\"".into(), next.clone().into_bytes()));
    let failure = source.failure().await;
    assert!(failure.contains("refused: signature") && failure.contains("is not in the keyring"), "{failure}");
    server.serve("/m.yaml.asc", ok("", &gnupg.sign("ann@example.org", next.as_bytes(), &["--armor"])));
    assert_eq!(source.body().await, next);
    server.serve("/m.yaml.asc", nothing());
    server.serve("/m.yaml", Answer::Tagged("\"3\"".into(), serial(3, "three").into_bytes()));
    assert!(source.failure().await.contains("refused: no signature"));
}
