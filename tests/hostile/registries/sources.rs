//! HTTP sources keep the same rules: their server's redirects get no credentials, and reach no service of this host.

use super::jobs::requester;
use super::server::{Reply, Server, authority};
use podstead::job::launch::JobSettings;
use podstead::source::credentials::{AuthFiles, CredentialFiles};
use podstead::source::http_client::{HttpAccess, HttpClient, HttpError, HttpRequest};
use podstead::telemetry::events::NoEvents;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

const TOKEN: &str = "token-of-the-source";

/// A client with a token and a configured header, and a directory with the files that it reads.
fn client() -> (tempfile::TempDir, HttpClient) {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    std::fs::write(at("token"), TOKEN).unwrap();
    std::fs::write(at("ca.pem"), &authority().ca).unwrap();
    let credentials = CredentialFiles {
        auth: Some(AuthFiles::Token(at("token"))),
        headers: vec![("x-site-key".into(), "secret".into())],
        headers_file: None,
    };
    let access = HttpAccess { credentials, ca_file: Some(at("ca.pem")), ..HttpAccess::default() };
    (directory, HttpClient::new(access, requester(JobSettings::default(), Arc::new(NoEvents))))
}

async fn get(client: &HttpClient, url: &str) -> Result<u16, HttpError> {
    let request = HttpRequest::get(url.parse().unwrap(), Duration::from_secs(30));
    client.send(request).await.map(|answer| answer.status().as_u16())
}

#[tokio::test]
async fn credentials_of_source_end_at_redirect() {
    let home = Arc::new(OnceLock::<String>::new());
    let back = Arc::clone(&home);
    let other = Server::https("127.0.0.2", move |_| Reply::redirect(format!("{}/chosen-by-the-other", back.get().unwrap())));
    let to = other.url("/pods.yaml");
    let origin = Server::https("127.0.0.2", move |asked| match asked.target.as_str() {
        "/pods.yaml" => Reply::redirect(&to),
        _ => Reply::status(200),
    });
    home.set(origin.url("")).unwrap();
    let (_directory, client) = client();
    assert_eq!(get(&client, &origin.url("/pods.yaml")).await.unwrap(), 200);
    assert_eq!(origin.asked_for("/pods.yaml")[0].authorization, Some(format!("Bearer {TOKEN}")));
    let elsewhere = [other.asked(), origin.asked_for("/chosen-by-the-other")].concat();
    assert_eq!(elsewhere.len(), 2);
    for asked in elsewhere {
        assert_eq!(asked.authorization, None, "{asked:?}");
        assert_eq!(asked.header("x-site-key"), None, "{asked:?}");
        assert_eq!(asked.header("referer"), None, "{asked:?}");
    }
}

#[tokio::test]
async fn redirect_of_a_source_never_leaves_https() {
    let other = Server::http("127.0.0.2", |_| Reply::status(200));
    let to = other.url("/pods.yaml");
    let origin = Server::https("127.0.0.2", move |_| Reply::redirect(&to));
    let (_directory, client) = client();
    let error = get(&client, &origin.url("/pods.yaml")).await.unwrap_err();
    assert!(error.to_string().contains("from https to http"), "{error}");
    assert_eq!(other.connections(), 0);
}

#[tokio::test]
async fn redirect_of_source_reaches_no_local_service() {
    let service = Server::https("127.0.0.9", |_| Reply::status(200));
    let named = Server::https("127.0.0.1", |_| Reply::status(200));
    let (port, named_port) = (service.address.port(), named.address.port());
    for to in [service.url("/"), format!("https://[::ffff:127.0.0.9]:{port}/"), format!("https://localhost:{named_port}/")] {
        let target = to.clone();
        let origin = Server::https("127.0.0.2", move |_| Reply::redirect(&target));
        let (_directory, client) = client();
        let error = get(&client, &origin.url("/pods.yaml")).await.unwrap_err();
        assert!(error.to_string().contains("has a loopback or link-local address"), "{to}: {error}");
    }
    assert_eq!((service.connections(), named.connections()), (0, 0));
}

#[tokio::test]
async fn endless_headers_of_source_end_request() {
    let origin = Server::https("127.0.0.2", |_| Reply::EndlessHeaders);
    let (_directory, client) = client();
    let error = get(&client, &origin.url("/pods.yaml")).await.unwrap_err();
    assert!(error.to_string().contains("64 KiB"), "{error}");
}

/// As git does, which goes on where its first request was redirected to.
#[tokio::test]
async fn redirected_place_gets_no_credentials() {
    let origin = Server::https("127.0.0.2", |_| Reply::status(200));
    let (_directory, client) = client();
    let url = origin.url("/chosen-by-the-other").parse().unwrap();
    let request = HttpRequest { is_led: true, ..HttpRequest::get(url, Duration::from_secs(30)) };
    let error = client.send(request.clone()).await.unwrap_err();
    assert!(error.to_string().contains("has a loopback or link-local address"), "{error}");
    // Once the origin itself was reached there, it may lead there.
    assert_eq!(get(&client, &origin.url("/pods.yaml")).await.unwrap(), 200);
    assert!(client.send(request).await.unwrap().is_led());
    assert_eq!(origin.asked_for("/chosen-by-the-other")[0].authorization, None);
}
