//! Listens for changes to packet rules, so that a flush of all rules (`nft flush ruleset`, a restart of a firewall) does not cut pods off, nor a
//! firewall that is installed later.

use super::Shared;
use podstead_sys::netlink::accepting::concerns_pods;
use podstead_sys::netlink::nftables::{CHANGES, is_removal};
use podstead_sys::netlink::{NetlinkError, Protocol};
use podstead_sys_async::notifications::Notifications;
use podstead_telemetry::error_chain;
use std::sync::Arc;
use std::time::Duration;

/// Pause before listening again when it does not work; housekeeping looks in the meantime.
const PAUSE: Duration = Duration::from_secs(60);
/// A firewall that is being restarted makes many changes at once, and one that quarrels with podstead must not keep it busy.
const CALM: Duration = Duration::from_millis(10);

/// Never ends.
pub(super) async fn watch(shared: &Arc<Shared>) {
    loop {
        if let Err(error) = listen(shared).await {
            tracing::warn!(error = %error_chain(&error), "cannot watch the packet rules for changes");
        }
        tokio::time::sleep(PAUSE).await;
    }
}

async fn listen(shared: &Arc<Shared>) -> Result<(), NetlinkError> {
    let mut notifications = Notifications::of(Protocol::Netfilter, CHANGES)?;
    loop {
        let mut removals = Vec::new();
        let mut has_other_firewall = false;
        let is_whole = notifications
            .next(|change| {
                if is_removal(&change, &shared.names.table) {
                    removals.push(change.port);
                }
                has_other_firewall |= concerns_pods(&change);
            })
            .await?;
        let own = shared.rules().port();
        let is_intact = is_whole && removals.iter().all(|port| *port == own);
        if is_intact && !has_other_firewall {
            continue;
        }
        tokio::time::sleep(CALM).await;
        let shared = Arc::clone(shared);
        // A panic in there is one of talking to the kernel: housekeeping tries again.
        tokio::task::spawn_blocking(move || if is_intact { shared.look_at_firewalls() } else { shared.mend() }).await.ok();
    }
}
