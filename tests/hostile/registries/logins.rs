//! Credentials go to the host that they are for, and to the token servers that its administrator trusts.

use super::image::Image;
use super::server::{Reply, Server};
use super::store::{Store, basic, plain, secure};
use std::sync::Arc;

const TOKEN: &str = "a-token";

/// A token server that gives a token to everybody.
fn token_server(ip: &str) -> Server {
    Server::https(ip, |_| Reply::json(format!(r#"{{"token":"{TOKEN}"}}"#)))
}

/// A registry that wants a token of this realm. `{here}` in it is the registry itself, whose `/token` gives one.
fn registry_with(tls: bool, realm: &str, scope: &str) -> Server {
    let (image, realm, scope) = (Image::new("app", 1, 10_000), realm.to_owned(), scope.to_owned());
    let answer = move |asked: &super::server::Asked| {
        if asked.target.starts_with("/token") {
            return Reply::json(format!(r#"{{"token":"{TOKEN}"}}"#));
        }
        if asked.authorization.as_deref() == Some(&format!("Bearer {TOKEN}")) {
            return image.serve(asked);
        }
        let here = format!("{}://{}", if tls { "https" } else { "http" }, asked.header("host").unwrap());
        Reply::challenge(format!("Bearer realm=\"{}\",service=\"s\",scope=\"{scope}\"", realm.replace("{here}", &here)))
    };
    if tls { Server::https("127.0.0.2", answer) } else { Server::http("127.0.0.2", answer) }
}

fn registry(realm: &str) -> Server {
    registry_with(true, realm, "repository:app:pull")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn realm_of_registry_itself_gets_password() {
    let registry = registry("{here}/token");
    let store = Store::new(vec![secure(registry.host()).login()]);
    store.pull(&registry).await.unwrap();
    assert_eq!(registry.asked_for("/token")[0].authorization.as_deref(), Some(basic().as_str()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn realm_elsewhere_gets_no_password() {
    let registry = registry("https://localhost:1/token");
    let third = Server::https("127.0.0.1", |_| Reply::json(r#"{"token":"x"}"#));
    let elsewhere = registry_at(&third);
    let store = Store::new(vec![secure(registry.host()).login(), secure(elsewhere.host()).login()]);
    let reason = store.refusal(&registry).await;
    assert!(reason.contains("tokenServers") && reason.contains("localhost:"), "{reason}");
    let reason = store.refusal(&elsewhere).await;
    assert!(reason.contains(&format!("tokenServers: [\"{}\"]", third.host())), "{reason}");
    assert_eq!(third.connections(), 0);
}

fn registry_at(third: &Server) -> Server {
    registry(&third.url("/token"))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn named_token_server_gets_the_password() {
    let third = token_server("127.0.0.3");
    let registry = registry_at(&third);
    let store = Store::new(vec![secure(registry.host()).login().token_server(third.host())]);
    store.pull(&registry).await.unwrap();
    assert_eq!(third.authorizations(), [basic()]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn realm_over_http_gets_no_password() {
    let third = Server::http("127.0.0.2", |_| Reply::json(format!(r#"{{"token":"{TOKEN}"}}"#)));
    for tls in [true, false] {
        let registry = registry_with(tls, &third.url("/token"), "repository:app:pull");
        let entry = if tls { secure(registry.host()) } else { plain(registry.host()) };
        let store = Store::new(vec![entry.login()]);
        let reason = store.refusal(&registry).await;
        assert!(reason.contains("uses http, without encryption"), "{reason}");
    }
    assert_eq!(third.connections(), 0);
    // The registry's own, which the administrator wants to be asked in clear text.
    let registry = registry_with(false, "{here}/token", "repository:app:pull");
    Store::new(vec![plain(registry.host()).login()]).pull(&registry).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn challenge_behind_a_redirect_is_not_met() {
    // x4: what a redirect leads to wants a token of a third host.
    let third = token_server("127.0.0.2");
    let realm = third.url("/token");
    for tls in [false, true] {
        let realm = realm.clone();
        let answer = move |_: &super::server::Asked| Reply::challenge(format!("Bearer realm=\"{realm}\",service=\"s\""));
        let behind = if tls { Server::https("127.0.0.2", answer) } else { Server::http("127.0.0.2", answer) };
        let to = behind.url("/v2/app/manifests/1");
        let registry = Server::https("127.0.0.2", move |_| Reply::redirect(&to));
        let store = Store::new(vec![secure(registry.host()).login()]);
        let reason = store.refusal(&registry).await;
        assert_eq!((third.connections(), behind.authorizations().len()), (0, 0), "{reason}");
        match tls {
            true => assert!(reason.contains("the target of its redirect requires a login"), "{reason}"),
            false => assert_eq!(behind.connections(), 0, "{reason}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn basic_challenge_behind_redirect_is_not_met() {
    let behind = Server::https("127.0.0.2", |_| Reply::challenge("Basic realm=\"give it to me\""));
    let to = behind.url("/v2/app/manifests/1");
    let registry = Server::https("127.0.0.2", move |_| Reply::redirect(&to));
    let store = Store::new(vec![secure(registry.host()).login()]);
    store.refusal(&registry).await;
    let sent = [registry.authorizations(), behind.authorizations()].concat();
    assert_eq!(sent, [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn realm_on_this_host_is_not_asked() {
    let local = Server::https("127.0.0.9", |_| Reply::json(format!(r#"{{"token":"{TOKEN}"}}"#)));
    let named = Server::https("127.0.0.1", |_| Reply::json(format!(r#"{{"token":"{TOKEN}"}}"#)));
    let (local_port, named_port) = (local.address.port(), named.address.port());
    for realm in [
        format!("https://127.0.0.9:{local_port}/token"),
        format!("https://[::ffff:127.0.0.9]:{local_port}/token"),
        // Of this number the URL's parser makes 127.0.0.9.
        format!("https://2130706441:{local_port}/token"),
        format!("https://localhost:{named_port}/token"),
        "https://169.254.169.254/latest/meta-data".to_owned(),
        "https://[fe80::1]/token".to_owned(),
        "https://0.0.0.0/token".to_owned(),
        "https://[::]/token".to_owned(),
        "https://224.0.0.1/token".to_owned(),
    ] {
        let registry = registry(&realm);
        let reason = Store::new(vec![secure(registry.host())]).refusal(&registry).await;
        assert!(reason.contains("has a loopback or link-local address"), "{realm}: {reason}");
    }
    assert_eq!((local.connections(), named.connections()), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_request_follows_no_redirect() {
    let third = token_server("127.0.0.2");
    let to = third.url("/token");
    let registry = Server::https("127.0.0.2", move |asked| match asked.target.starts_with("/token") {
        true => Reply::redirect(&to),
        false => Reply::challenge(format!("Bearer realm=\"https://{}/token\",service=\"s\"", asked.header("host").unwrap())),
    });
    let store = Store::new(vec![secure(registry.host()).login()]);
    let reason = store.refusal(&registry).await;
    assert!(reason.contains("returned 307"), "{reason}");
    assert_eq!(third.connections(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn challenge_for_more_than_pull_gets_pull() {
    let registry = registry_with(true, "{here}/token", "repository:app:pull,push,delete");
    Store::new(vec![secure(registry.host()).login()]).pull(&registry).await.unwrap();
    let asked = registry.asked_for("/token")[0].target.to_lowercase();
    assert!(asked.contains("scope=repository%3aapp%3apull&") && !asked.contains("push"), "{asked}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_of_another_scope_is_tried_once() {
    // The registry takes none of the tokens that its own token server gives.
    let registry = Server::https("127.0.0.2", |asked| match asked.target.starts_with("/token") {
        true => Reply::json(r#"{"token":"for-something-else"}"#),
        false => {
            let realm = format!("https://{}/token", asked.header("host").unwrap());
            Reply::challenge(format!(
                "Bearer realm=\"{realm}\",service=\"s\",scope=\"repository:app:pull\",error=\"insufficient_scope\""
            ))
        }
    });
    let store = Store::new(vec![secure(registry.host()).login()]);
    let reason = store.refusal(&registry).await;
    assert!(reason.contains("401 Unauthorized"), "{reason}");
    // Once with the password and once without.
    assert_eq!((registry.asked_for("/token").len(), registry.asked_for("/v2/").len()), (2, 4));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repository_token_goes_to_no_other() {
    let registry = registry("{here}/token");
    let store = Store::new(vec![secure(registry.host()).login()]);
    store.pull(&registry).await.unwrap();
    let other = store.begin_repository(&registry, "other").await.unwrap().unwrap_err();
    assert!(other.contains("404"), "{other}");
    let asked = registry.asked_for("/v2/other/");
    assert_eq!(asked[0].authorization, None, "a token of its own is fetched first");
}

/// Debian's docker-registry with htpasswd, behind a proxy that redirects its layers and would like the password to go along.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn password_of_a_real_registry_stays_there() {
    use super::upstream::Upstream;
    let upstream = Arc::new(Upstream::start());
    let (behind, forward) = (Arc::clone(&upstream), Arc::clone(&upstream));
    // Delivers the layers, as a content delivery network does, and asks for a password on the way.
    let cdn = Server::https("127.0.0.2", move |asked| match asked.target.contains("challenge") {
        true => Reply::challenge("Basic realm=\"mine\""),
        false => behind.forward("GET", &asked.target, Some(&basic())),
    });
    let to = cdn.url("");
    let registry =
        Server::https("127.0.0.2", move |asked| match asked.target.contains("/blobs/") && asked.authorization.is_some() {
            true => Reply::redirect(format!("{to}{}", asked.target)),
            false => forward.forward(&asked.method, &asked.target, asked.authorization.as_deref()),
        });
    let store = Store::new(vec![secure(registry.host()).login()]);
    upstream.push();
    let image = store.pull(&registry).await.unwrap();
    assert!(image.layers[0].join("bin/busybox").is_file());
    assert!(registry.authorizations().contains(&basic()), "docker-registry wants it");
    assert!(!cdn.asked().is_empty(), "the layers came from there");
    assert_eq!(cdn.authorizations(), [""; 0]);
    assert!(cdn.asked().iter().all(|asked| asked.header("referer").is_none()));
}
