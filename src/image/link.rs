//! The way to other hosts comes back: who waits after a failure of the network tries again, rather than to wait out five minutes (I14).

use super::disk::Disk;
use super::transfer::chance;
use podstead_sys::netlink::link_news::{LinkNews, NEWS_OF_LINKS};
use podstead_sys::netlink::{NetlinkError, Protocol};
use podstead_sys_async::notifications::Notifications;
use podstead_telemetry::error_chain;
use std::convert::Infallible;
use std::time::Duration;

/// Hosts that lost the same link do not all come back at once.
const SPREAD: Duration = Duration::from_secs(3);
/// Between two occasions: a link that comes and goes, or an address that is renewed, does not end every wait.
const CALM: Duration = Duration::from_secs(10);
/// Before listening again when that does not work.
const PAUSE: Duration = Duration::from_secs(60);

/// Tells those who wait; never ends.
pub(super) async fn watch(disk: &Disk) -> Infallible {
    loop {
        let Err(error) = listen(disk).await;
        tracing::warn!(error = %error_chain(&error), "cannot watch the links of this host: pulls are tried again when their time has come");
        tokio::time::sleep(PAUSE).await;
    }
}

async fn listen(disk: &Disk) -> Result<Infallible, NetlinkError> {
    let mut notifications = Notifications::of(Protocol::Route, NEWS_OF_LINKS)?;
    let mut news = LinkNews::default();
    loop {
        let mut is_news = false;
        let is_whole = notifications.next(|message| is_news |= news.is_a_way(&message)).await?;
        if is_news || !is_whole {
            tokio::time::sleep(SPREAD * chance() / 1000).await;
            disk.tell_again();
            tokio::time::sleep(CALM).await;
        }
    }
}
