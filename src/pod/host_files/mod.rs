//! Content of the files that every container gets from its node: host name, `/etc/hosts`, `/etc/resolv.conf` (kubelet rules
//! D21 to D23). The node's own files come in as text; nothing is read here.

mod hostname;
mod hosts;
mod resolv_conf;

pub use hostname::{DEFAULT_CLUSTER_DOMAIN, FqdnTooLong, Hostname, hostname, kernel_hostname};
pub use hosts::hosts_file;
pub use resolv_conf::{ClusterDns, NetworkDns, ResolvConf, resolv_conf};
