//! A server that answers everything with one code: it is asked seldom, and all is settled soon after it is well.

use crate::host::{Host, NODE};
use crate::server::Server;
use crate::unreliable::{Unreliable, Weather};
use podstead::status::NodeStanding;
use std::time::Duration;

/// Six of these are 600 s.
const WINDOW: Duration = Duration::from_secs(100);

/// A host with pods, the code for ten minutes while pods change; gives the requests of each window.
async fn refused(code: u16, retry_after: Option<u64>) -> Vec<u64> {
    let server = Server::new(NODE);
    let transport = Unreliable::new(server.clone(), code.into());
    let mut host = Host::new(&transport, "a");
    (0..6).for_each(|number| host.set_content(&format!("default/pod-{number}")));
    host.start();
    host.settle(&server, Duration::from_secs(30)).await;
    transport.set(Weather::Refusing { code, retry_after });
    host.set_content("default/pod-0");
    host.set_status("default/pod-1", "Running");
    host.remove("default/pod-2");
    host.set_content("default/new");
    let mut windows = Vec::new();
    for _ in 0..6 {
        let before = transport.attempts();
        tokio::time::sleep(WINDOW).await;
        windows.push(transport.attempts() - before);
        let status = host.status.borrow().clone();
        let said = status.watch_error.clone().unwrap_or_default() + &status.node_error.clone().unwrap_or_default();
        assert!(!status.connected && said.contains(&code.to_string()), "{code}: {status:?}");
        assert_ne!(status.node, NodeStanding::StandBy, "{code}");
    }
    transport.set(Weather::Fair);
    let longest = 90 + retry_after.unwrap_or(0) * 2;
    let took = host.settle(&server, Duration::from_secs(longest)).await;
    eprintln!("{code}, {retry_after:?}: {windows:?} requests in {WINDOW:?} each, settled {took:?} after it");
    host.kill().await;
    windows
}

#[tokio::test(start_paused = true)]
async fn refusing_server_is_asked_seldom() {
    for code in [400, 401, 403, 404, 409, 410, 422, 429, 500, 502, 503, 504] {
        let windows = refused(code, None).await;
        // The Node and the watch every five to ten seconds, a pod that is refused every half a minute or more.
        assert!(windows.iter().all(|requests| *requests > 5), "{code}: {windows:?}");
        assert!(windows[1..].iter().all(|requests| *requests <= 100), "{code}: {windows:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn server_delay_before_retry_is_kept() {
    for code in [429, 503] {
        let windows = refused(code, Some(95)).await;
        // Node, watch, mirrors and events: each once in 95 s or more.
        assert!(windows.iter().all(|requests| *requests <= 10), "{code}: {windows:?}");
        assert!(windows.iter().sum::<u64>() > 6, "{code}: {windows:?}");
    }
}
