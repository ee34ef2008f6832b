//! Answers without measure.

use super::image::Image;
use super::server::{Reply, Server};
use super::store::{Store, plain, secure};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_headers_end_the_request() {
    let registry = Server::http("127.0.0.2", |_| Reply::EndlessHeaders);
    let reason = Store::new(vec![plain(registry.host())]).refusal(&registry).await;
    assert!(reason.contains("headers") && reason.contains("64 KiB"), "{reason}");
    assert_eq!(registry.asked().len(), 1, "asking again would not help");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn headers_above_the_limit_are_refused() {
    let image = Image::new("app", 1, 10_000);
    let registry = Server::http("127.0.0.2", move |asked| match image.serve(asked) {
        Reply::Whole(status, mut headers, body) => {
            headers.extend((0..80).map(|number| format!("X-Padding-{number}: {}", "x".repeat(1000))));
            Reply::Whole(status, headers, body)
        }
        other => other,
    });
    let reason = Store::new(vec![plain(registry.host())]).refusal(&registry).await;
    assert!(reason.contains("headers") && reason.contains("64 KiB"), "{reason}");
}

/// A registry with a token server of its own that answers like this.
fn registry_with_token(answer: String) -> Server {
    let image = Image::new("app", 1, 10_000);
    Server::https("127.0.0.2", move |asked| {
        if asked.target.starts_with("/token") {
            return Reply::json(answer.clone());
        }
        match asked.authorization {
            Some(_) => image.serve(asked),
            None => Reply::challenge(format!("Bearer realm=\"https://{}/token\",service=\"s\"", asked.header("host").unwrap())),
        }
    })
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn huge_token_answer_is_refused() {
    let registry = registry_with_token(format!(r#"{{"token":"{}"}}"#, "x".repeat(200_000)));
    let reason = Store::new(vec![secure(registry.host())]).refusal(&registry).await;
    assert!(reason.contains("larger than 65536 bytes"), "{reason}");
    assert_eq!(registry.authorizations(), [""; 0]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn token_without_end_of_life_is_used() {
    let registry = registry_with_token(format!(r#"{{"token":"t","expires_in":{}}}"#, u64::MAX));
    Store::new(vec![secure(registry.host())]).pull(&registry).await.unwrap();
}
