//! Redirects lead to other hosts without credentials, never out of https, and not to services of this host.

use super::image::{Image, REPOSITORY};
use super::server::{Asked, Reply, Server};
use super::store::{Store, basic, plain, secure};
use std::sync::Arc;

/// A registry that wants user name and password, and answers requests for layers with a redirect to `to` and the path.
fn redirecting(tls: bool, image: Image, to: String) -> Server {
    let answer = move |asked: &Asked| {
        if asked.authorization.as_deref() != Some(basic().as_str()) {
            return Reply::challenge("Basic realm=\"registry\"");
        }
        match image.layer(asked) {
            Some(_) => Reply::redirect(format!("{to}{}", asked.target)),
            None => image.serve(asked),
        }
    };
    if tls { Server::https("127.0.0.2", answer) } else { Server::http("127.0.0.2", answer) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn authorization_and_referer_end_at_a_redirect() {
    let image = Image::new("app", 2, 10_000);
    let served = image.clone();
    // Another port of the same address is another host.
    let cdn = Server::https("127.0.0.2", move |asked| served.serve(asked));
    let registry = redirecting(true, image, cdn.url(""));
    let store = Store::new(vec![secure(registry.host()).login()]);
    assert_eq!(store.pull(&registry).await.unwrap().layers.len(), 2);
    assert_eq!(cdn.asked().len(), 2);
    assert_eq!(cdn.authorizations(), [""; 0]);
    assert!(cdn.asked().iter().all(|asked| asked.header("referer").is_none()), "{:?}", cdn.asked());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn authorization_is_not_sent_after_returning() {
    let image = Image::new("app", 1, 10_000);
    let here = Arc::new(std::sync::OnceLock::<String>::new());
    let back = Arc::clone(&here);
    // Leads the password to a place of the registry that it chose itself.
    let between = Server::https("127.0.0.2", move |_| Reply::redirect(format!("{}/v2/secrets/all", back.get().unwrap())));
    let registry = redirecting(true, image, between.url(""));
    here.set(registry.url("")).unwrap();
    let store = Store::new(vec![secure(registry.host()).login()]);
    store.refusal(&registry).await;
    let asked = registry.asked_for("/v2/secrets/all");
    assert!(!asked.is_empty());
    assert!(asked.iter().all(|asked| asked.authorization.is_none()), "{asked:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirect_from_https_to_http_is_refused() {
    let image = Image::new("app", 1, 10_000);
    let served = image.clone();
    let cdn = Server::http("127.0.0.2", move |asked| served.serve(asked));
    let registry = redirecting(true, image, cdn.url(""));
    // Not even where the other host may be asked over http.
    let store = Store::new(vec![secure(registry.host()).login(), plain(cdn.host())]);
    let reason = store.refusal(&registry).await;
    assert!(reason.contains("from https to http"), "{reason}");
    assert_eq!(cdn.connections(), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirect_over_http_needs_a_configured_host() {
    let image = Image::new("app", 1, 10_000);
    let served = image.clone();
    let cdn = Server::http("127.0.0.2", move |asked| served.serve(asked));
    let registry = redirecting(false, image, cdn.url(""));
    let store = Store::new(vec![plain(registry.host()).login()]);
    let reason = store.refusal(&registry).await;
    assert!(reason.contains("http: true") && reason.contains(&cdn.host()), "{reason}");
    assert_eq!(cdn.connections(), 0);
    let store = Store::new(vec![plain(registry.host()).login(), plain(cdn.host())]);
    store.pull(&registry).await.unwrap();
    assert_eq!(cdn.authorizations(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirect_to_this_host_is_refused() {
    let image = Image::new("app", 1, 10_000);
    let (served, named) = (image.clone(), image.clone());
    let service = Server::https("127.0.0.9", move |asked| served.serve(asked));
    let by_name = Server::https("127.0.0.1", move |asked| named.serve(asked));
    let (port, named_port) = (service.address.port(), by_name.address.port());
    for to in [
        service.url(""),
        format!("https://[::ffff:127.0.0.9]:{port}"),
        format!("https://[::ffff:7f00:9]:{port}"),
        format!("https://localhost:{named_port}"),
        "https://169.254.169.254".to_owned(),
    ] {
        let registry = redirecting(true, image.clone(), to.clone());
        let store = Store::new(vec![secure(registry.host()).login()]);
        let reason = store.refusal(&registry).await;
        assert!(reason.contains("has a loopback or link-local address"), "{to}: {reason}");
    }
    assert_eq!((service.connections(), by_name.connections()), (0, 0));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirects_in_a_circle_end() {
    let registry = Server::https("127.0.0.2", |asked| Reply::redirect(asked.target.clone()));
    let store = Store::new(vec![secure(registry.host()).login()]);
    let reason = store.refusal(&registry).await;
    assert!(reason.contains("more than 5 redirects"), "{reason}");
    assert_eq!(registry.asked().len(), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn redirect_to_another_scheme_is_refused() {
    for to in ["file:///etc/shadow", "gopher://127.0.0.2/", "https://user:password@127.0.0.2/", "https://", "%"] {
        let registry = Server::https("127.0.0.2", move |asked| match asked.target.contains("redirected") {
            true => Reply::status(404),
            false => Reply::redirect(to),
        });
        let store = Store::new(vec![secure(registry.host()).login()]);
        let reason = store.refusal(&registry).await;
        assert!(reason.contains("redirect") || reason.contains("404"), "{to}: {reason}");
        assert_eq!(registry.authorizations(), [""; 0], "{to}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn range_is_kept_at_a_redirect() {
    let image = Image::new("app", 1, 50_000);
    let served = image.clone();
    let cdn = Server::https("127.0.0.2", move |asked| match (served.layer(asked), asked.offset()) {
        // Cut off: the rest is asked for.
        (Some(layer), 0) => {
            Reply::Drip { body: layer.to_vec(), offset: 0, first: 20_000, pause: std::time::Duration::from_secs(3600) }
        }
        _ => served.serve(asked),
    });
    let registry = redirecting(true, image, cdn.url(""));
    let config = podstead::image::ImageStoreConfig { stall_timeout: std::time::Duration::from_secs(2), ..Default::default() };
    let store = Store::with(vec![secure(registry.host()).login()], config);
    store.pull(&registry).await.unwrap();
    let offsets: Vec<usize> = cdn.asked_for(REPOSITORY).iter().map(Asked::offset).collect();
    assert_eq!(offsets, [0, 20_000]);
    assert_eq!(
        registry.asked_for("/blobs/").iter().filter(|asked| asked.offset() == 20_000).count(),
        1,
        "asked at the registry again"
    );
}
