//! The control about kernel parameters.

use super::Findings;
use super::subject::Subject;
use crate::containers::list;

/// Sysctls that a pod may set, with the minor release that allowed them. The names have to be spelled so.
const ALLOWED: [(u32, &str); 14] = [
    (0, "kernel.shm_rmid_forced"),
    (0, "net.ipv4.ip_local_port_range"),
    (0, "net.ipv4.ip_unprivileged_port_start"),
    (0, "net.ipv4.ping_group_range"),
    (0, "net.ipv4.tcp_syncookies"),
    (27, "net.ipv4.ip_local_reserved_ports"),
    (29, "net.ipv4.tcp_fin_timeout"),
    (29, "net.ipv4.tcp_keepalive_intvl"),
    (29, "net.ipv4.tcp_keepalive_probes"),
    (29, "net.ipv4.tcp_keepalive_time"),
    (32, "net.ipv4.tcp_rmem"),
    (32, "net.ipv4.tcp_wmem"),
    (37, "net.ipv4.tcp_notsent_lowat"),
    (37, "net.ipv4.tcp_slow_start_after_idle"),
];

pub(super) fn sysctls(subject: &Subject<'_>, findings: &mut Findings) {
    let written = subject.context.map(|context| list(&context.sysctls)).unwrap_or_default();
    for (index, sysctl) in written.iter().enumerate() {
        let since = ALLOWED.iter().find(|(_, name)| *name == sysctl.name).map(|(since, _)| *since);
        let field = format!("spec.securityContext.sysctls[{index}].name");
        match since {
            Some(since) if subject.version.includes(since) => {}
            Some(since) => {
                findings.push(field, format!("sysctl {:?} is allowed only since v1.{since}", sysctl.name), "leave it out");
            }
            None => findings.push(field, format!("sysctl {:?} is not allowed", sysctl.name), "leave it out"),
        }
    }
}
