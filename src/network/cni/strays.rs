//! Processes that plugins left: children of one that was killed, plugins of a daemon that died while they ran.
//!
//! They are known by the variable that every plugin and whatever it starts has in its environment: the container's identity, which is the
//! pod's UID.

use podstead_sys::pidfd;
use std::fs;
use std::time::Duration;

/// Time for a killed process to exit.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time for the plugin of a daemon that died to go on: cancelled in the middle of DEL, some leave objects that another DEL does not find
/// (the masquerading of `bridge`, once the interface is gone).
pub(super) const GRACE: Duration = Duration::from_secs(5);

/// Ends all that works on a container, if it does not end by itself within `grace`.
pub(super) async fn end(container: String, grace: Duration) {
    // A panic in there is one of reading /proc.
    tokio::task::spawn_blocking(move || end_now(&container, grace)).await.ok();
}

fn end_now(container: &str, grace: Duration) {
    let variable = format!("CNI_CONTAINERID={container}");
    let is_stray = |pid: u32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|one| one == variable.as_bytes())
    };
    // A process may start another one while this looks.
    for _ in 0..8 {
        let mut found = false;
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
            if pid == std::process::id() || !is_stray(pid) {
                continue;
            }
            // Looked at again once it is held: the number may have become another's.
            let Ok(process) = pidfd::open(pid) else { continue };
            if is_stray(pid) {
                found = true;
                if !grace.is_zero() && pidfd::wait_for_end(&process, grace).unwrap_or(false) {
                    continue;
                }
                tracing::info!(pid, container, "killing a process that a CNI plugin left behind");
                if pidfd::send_signal(&process, libc::SIGKILL).is_ok() {
                    pidfd::wait_for_end(&process, PATIENCE).ok();
                }
            }
        }
        if !found {
            return;
        }
    }
}
