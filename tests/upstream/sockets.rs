//! The client on real sockets: who it is in every way that a kubeconfig can say, through proxies, over connections that are slow, stuck and cut.

use crate::host::{Host, NODE};
use crate::malice::Malice;
use crate::relay::{Line, Relay};
use crate::server::Server;
use crate::unreliable::{Dice, Unreliable};
use crate::wire::{NAME, Refuses, Wire};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use podstead::upstream::client::{HttpCluster, Patience};
use podstead::upstream::cluster::{ApiError, ApiRequest, Cluster, Verb};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

struct Site {
    server: Server,
    wire: Wire,
    directory: TempDir,
}

impl Site {
    fn new() -> Self {
        let server = Server::new(NODE);
        let wire = Wire::start(server.clone());
        server.store().put("nodes", json!({"metadata": {"name": NODE}}));
        Self { server, wire, directory: tempfile::tempdir().unwrap() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A client of the server at `address`, with more fields for cluster and user.
    fn client(&self, address: &str, cluster: &Value, user: &Value) -> HttpCluster {
        let mut fields = json!({"server": format!("https://{address}"), "certificate-authority": "ca.pem"});
        cluster.as_object().unwrap().iter().for_each(|(key, value)| fields[key] = value.clone());
        fs::write(self.path("ca.pem"), &self.wire.authority).unwrap();
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": fields}],
            "users": [{"name": "u", "user": user}],
        });
        fs::write(self.path("kubeconfig"), kubeconfig.to_string()).unwrap();
        HttpCluster::new(&self.path("kubeconfig"), None)
    }

    /// One that the server knows by its token.
    fn known_client(&self, port: u16) -> HttpCluster {
        self.wire.known.lock().unwrap().token = Some("t".into());
        self.client(&format!("127.0.0.1:{port}"), &json!({}), &json!({"token": "t"}))
    }
}

async fn node(client: &HttpCluster) -> Result<String, ApiError> {
    let node = client.send(ApiRequest::new(Verb::Get, format!("/api/v1/nodes/{NODE}"))).await?;
    Ok(node["metadata"]["name"].as_str().unwrap_or_default().to_owned())
}

fn watch_of(version: u64) -> ApiRequest {
    ApiRequest::new(Verb::Get, "/api/v1/pods")
        .with_query("fieldSelector", format!("spec.nodeName={NODE}"))
        .with_query("watch", "true")
        .with_query("resourceVersion", version.to_string())
}

/// A plugin that prints what is in a file, and notes each call in another.
fn plugin(site: &Site) -> Value {
    let path = site.path("plugin");
    let script = "#!/bin/sh\necho called >>\"$(dirname \"$0\")/calls\"\ncat \"$(dirname \"$0\")/credential\"\n";
    fs::write(&path, script).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    json!({"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "./plugin", "interactiveMode": "Never"}})
}

fn write_credential(site: &Site, status: &Value) {
    let credential = json!({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status});
    fs::write(site.path("credential"), credential.to_string()).unwrap();
}

fn calls(site: &Site) -> usize {
    fs::read_to_string(site.path("calls")).unwrap_or_default().lines().count()
}

#[tokio::test]
async fn exec_plugin_is_asked_after_unknown_token() {
    let site = Site::new();
    let client = site.client(&format!("127.0.0.1:{}", site.wire.port), &json!({}), &plugin(&site));
    site.wire.known.lock().unwrap().token = Some("first".into());
    write_credential(&site, &json!({"token": "first"}));
    for _ in 0..3 {
        assert_eq!(node(&client).await.unwrap(), NODE);
    }
    assert_eq!(calls(&site), 1);
    site.wire.known.lock().unwrap().token = Some("second".into());
    write_credential(&site, &json!({"token": "second"}));
    let refused = node(&client).await.unwrap_err();
    assert!(refused.to_string().contains("401"), "{refused}");
    assert_eq!(node(&client).await.unwrap(), NODE);
    assert_eq!(calls(&site), 2);
}

#[tokio::test]
async fn expiring_exec_credential_is_renewed_early() {
    let site = Site::new();
    let client = site.client(&format!("127.0.0.1:{}", site.wire.port), &json!({}), &plugin(&site));
    let pair = site.wire.client_pair();
    site.wire.known.lock().unwrap().certificate = Some(pair.der.clone());
    let soon = jiff::Timestamp::now() + jiff::SignedDuration::from_secs(30);
    let status = json!({
        "clientCertificateData": pair.certificate, "clientKeyData": pair.key, "expirationTimestamp": soon.to_string(),
    });
    write_credential(&site, &status);
    assert_eq!(node(&client).await.unwrap(), NODE);
    assert_eq!(node(&client).await.unwrap(), NODE);
    assert_eq!(calls(&site), 2, "less than a minute before its end it is old");
    fs::remove_file(site.path("credential")).unwrap();
    assert_eq!(node(&client).await.unwrap(), NODE, "a plugin that fails leaves what counts still");
}

#[tokio::test]
async fn kubeconfig_may_embed_its_certificates() {
    let site = Site::new();
    let pair = site.wire.client_pair();
    site.wire.known.lock().unwrap().certificate = Some(pair.der.clone());
    let encoded = |text: &str| BASE64_STANDARD.encode(text);
    let user = json!({"client-certificate-data": encoded(&pair.certificate), "client-key-data": encoded(&pair.key)});
    let cluster = json!({"certificate-authority": null, "certificate-authority-data": encoded(&site.wire.authority)});
    let client = site.client(&format!("127.0.0.1:{}", site.wire.port), &cluster, &user);
    assert_eq!(node(&client).await.unwrap(), NODE);
    // A file for one half, text for the other.
    fs::write(site.path("node.key"), &pair.key).unwrap();
    let user = json!({"client-certificate-data": encoded(&pair.certificate), "client-key": "node.key"});
    let client = site.client(&format!("127.0.0.1:{}", site.wire.port), &cluster, &user);
    assert_eq!(node(&client).await.unwrap(), NODE);
    // Another authority is not trusted.
    let other = Wire::start(site.server.clone());
    let cluster = json!({"certificate-authority": null, "certificate-authority-data": encoded(&other.authority)});
    let client = site.client(&format!("127.0.0.1:{}", site.wire.port), &cluster, &user);
    let refused = node(&client).await.unwrap_err().to_string();
    assert!(refused.contains("TLS connection to "), "{refused}");
}

#[tokio::test]
async fn authority_that_is_replaced_is_read_again() {
    let site = Site::new();
    let client = site.known_client(site.wire.port);
    assert_eq!(node(&client).await.unwrap(), NODE);
    fs::write(site.path("ca.pem"), &Wire::start(site.server.clone()).authority).unwrap();
    let refused = node(&client).await.unwrap_err().to_string();
    assert!(refused.contains("TLS connection to "), "{refused}");
    fs::write(site.path("ca.pem"), &site.wire.authority).unwrap();
    assert_eq!(node(&client).await.unwrap(), NODE);
}

#[tokio::test]
async fn refusals_of_any_gateway_are_understood() {
    let site = Site::new();
    let client = site.known_client(site.wire.port);
    let status = r#"{"kind": "Status", "message": "not now", "reason": "TooManyRequests", "details": {"retryAfterSeconds": 3}}"#;
    for (code, retry_after, body, words, seconds) in [
        (302, "", "", "returned 302", None),
        (401, "", "Unauthorized", "returned 401", None),
        (403, "", "{}", "returned 403", None),
        (409, "", "[]", "returned 409", None),
        (410, "", "", "returned 410", None),
        (429, "7", status, "returned 429: not now", Some(7)),
        (429, "", status, "returned 429: not now", Some(3)),
        (500, "soon", "<html>", "returned 500", None),
        (502, "", "{\"message\": 5}", "returned 502", None),
        (503, "Wed, 21 Oct 2026 07:28:00 GMT", "", "returned 503", None),
        (504, "120", "\u{0}", "returned 504", Some(120)),
    ] {
        site.wire.known.lock().unwrap().refuses = Some(Refuses { code, retry_after, body });
        let error = node(&client).await.unwrap_err();
        assert!(error.to_string().contains(words), "{code}: {error}");
        assert_eq!(error.retry_after(), seconds.map(Duration::from_secs), "{code} {retry_after:?} {body}");
        assert_eq!(error.is_about_the_server(), matches!(code, 401 | 429 | 500..), "{code}");
        let error = client.watch(watch_of(1)).await.map(drop).unwrap_err();
        assert!(error.to_string().contains(words), "{code}: {error}");
    }
    site.wire.known.lock().unwrap().refuses = None;
    site.wire.mood.set(Some(Malice::Refusal));
    let endless = node(&client).await.unwrap_err();
    assert!(endless.is_forbidden(), "the code is known before the body: {endless}");
    site.wire.mood.set(None);
    assert_eq!(node(&client).await.unwrap(), NODE);
}

#[tokio::test]
async fn proxy_resolves_the_name_of_server() {
    let site = Site::new();
    let proxy = Relay::start(site.wire.port, true);
    site.wire.known.lock().unwrap().token = Some("t".into());
    let address = format!("{NAME}:6443");
    let through = json!({"proxy-url": format!("http://127.0.0.1:{}", proxy.port)});
    let client = site.client(&address, &through, &json!({"token": "t"}));
    assert_eq!(node(&client).await.unwrap(), NODE);
    assert_eq!(proxy.tunnels(), 1);
    proxy.set(Line::Cut);
    assert!(matches!(node(&client).await, Err(ApiError::Unreachable(_))));
}

#[tokio::test]
async fn slow_connection_waits_and_stuck_one_ends() {
    let site = Site::new();
    let relay = Relay::start(site.wire.port, false);
    let client = site.known_client(relay.port);
    relay.set(Line::Slow);
    assert_eq!(node(&client).await.unwrap(), NODE);
    relay.set(Line::Free);
    let patience =
        Patience { request: Duration::from_secs(2), watch_start: Duration::from_secs(2), watch_silence: Duration::from_secs(2) };
    let client = site.known_client(relay.port).with_patience(patience);
    let version = site.server.store().version();
    let mut watch = loop {
        // A machine that is busy may not answer in two seconds.
        if let Ok(watch) = client.watch(watch_of(version)).await {
            break watch;
        }
    };
    relay.set(Line::Stuck);
    let silent = watch.next().await.unwrap().unwrap_err().to_string();
    assert!(silent.contains("timed out"), "{silent}");
    let stuck = node(&client).await.unwrap_err().to_string();
    assert!(stuck.contains("stopped responding") || stuck.contains("timed out"), "{stuck}");
    relay.set(Line::Free);
    let client = site.known_client(relay.port);
    assert_eq!(node(&client).await.unwrap(), NODE);
}

#[tokio::test]
async fn cut_connection_is_followed_by_another() {
    let site = Site::new();
    let relay = Relay::start(site.wire.port, false);
    // In the handshake, in the head of the answer, in its body, between two answers.
    for bytes in [1, 100, 700, 1000, 1200, 1500, 2000] {
        let client = site.known_client(relay.port);
        relay.set(Line::CutAfter(bytes));
        let first = tokio::time::timeout(Duration::from_secs(60), node(&client)).await.expect("no answer is an answer, too");
        if let Err(error) = first {
            assert!(matches!(error, ApiError::Unreachable(_)), "{error:?}");
        }
        relay.set(Line::Free);
        assert_eq!(node(&client).await.unwrap(), NODE, "after a cut at {bytes}");
    }
}

#[tokio::test]
async fn cut_watch_goes_on_from_its_version() {
    let site = Site::new();
    let relay = Relay::start(site.wire.port, false);
    let client = site.known_client(relay.port);
    let version = site.server.store().version();
    let mut watch = client.watch(watch_of(version)).await.unwrap();
    let pod = |name: &str| json!({"metadata": {"name": name, "namespace": "default"}, "spec": {"nodeName": NODE}});
    site.server.store().put("pods", pod("a"));
    let first = watch.next().await.unwrap().unwrap();
    assert_eq!(first.object["metadata"]["name"], "a");
    relay.set(Line::Cut);
    let error = watch.next().await.unwrap().unwrap_err();
    assert!(matches!(error, ApiError::Unreachable(_)), "{error:?}");
    site.server.store().put("pods", pod("b"));
    relay.set(Line::Free);
    let from = first.object["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    let mut watch = client.watch(watch_of(from)).await.unwrap();
    assert_eq!(watch.next().await.unwrap().unwrap().object["metadata"]["name"], "b");
}

#[tokio::test]
async fn many_cuts_end_with_equal_mirrors() {
    let site = Site::new();
    let relay = Relay::start(site.wire.port, false);
    let unused = Unreliable::new(site.server.clone(), 1);
    let mut host = Host::new(&unused, "a").with_cluster(Arc::new(site.known_client(relay.port)));
    host.start();
    let mut dice = Dice::new(11);
    for round in 0..40 {
        let name = format!("default/pod-{}", dice.roll(6));
        match dice.roll(4) {
            0 => host.remove(&name),
            1 => host.set_status(&name, "Running"),
            _ => host.set_content(&name),
        }
        relay.set(match dice.roll(5) {
            0 => Line::Cut,
            1 => Line::Slow,
            2 => Line::CutAfter(dice.roll(4000) as usize),
            3 => Line::Stuck,
            _ => Line::Free,
        });
        tokio::time::sleep(Duration::from_millis(50 + dice.roll(200))).await;
        if round == 20 {
            host.kill().await;
            host.start();
        }
    }
    relay.set(Line::Free);
    host.settle(&site.server, Duration::from_secs(120)).await;
}
