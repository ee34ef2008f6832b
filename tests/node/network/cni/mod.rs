//! Networks by CNI plugins: Debian's, between namespaces that stand for machines, and scripts that behave badly.

mod additional;
mod crash;
mod kills;
mod names;
mod power;
mod primary;
mod protocol;
mod services;
mod trouble;

use super::lan::Site;
use crate::support::{PodView, eventually_within};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;
use tempfile::TempDir;

/// Time for what needs a turn of the housekeeping.
const HOUSEKEEPING: Duration = Duration::from_secs(180);

/// A site whose host has network configurations and plugins of its own.
#[derive(Debug)]
pub(super) struct CniSite {
    pub(super) site: Site,
    root: TempDir,
}

impl CniSite {
    /// `kind` is `network.type`; nothing is configured yet, and the daemon does not run.
    pub(super) fn prepare(kind: &str) -> Self {
        let root = tempfile::tempdir().unwrap();
        for folder in ["net.d", "bin", "ipam"] {
            fs::create_dir(root.path().join(folder)).unwrap();
        }
        let at = root.path().display();
        let site = Site::prepare(&format!(
            "network: {{type: {kind}, cni: {{configDir: {at}/net.d, binDirs: [{at}/bin, /usr/lib/cni], timeoutSeconds: 20}}}}\n"
        ));
        Self { site, root }
    }

    /// With a bridge, addresses by host-local and ports by portmap; the daemon runs.
    pub(super) fn bridged() -> Self {
        let mut cni = Self::prepare("cni");
        cni.write("10-lan.conflist", &cni.bridge(""));
        cni.site.host.start_daemon();
        cni
    }

    pub(super) fn path(&self, below: &str) -> PathBuf {
        self.root.path().join(below)
    }

    /// Puts a configuration in place by rename.
    pub(super) fn write(&self, name: &str, content: &str) {
        let hidden = self.path("new");
        fs::write(&hidden, content).unwrap();
        fs::rename(hidden, self.path("net.d").join(name)).unwrap();
    }

    pub(super) fn remove(&self, name: &str) {
        fs::remove_file(self.path("net.d").join(name)).unwrap();
    }

    /// A plugin that is a shell script.
    pub(super) fn plugin(&self, name: &str, script: &str) {
        let path = self.path("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// The network `lan`: a chain of bridge, portmap and `more`.
    pub(super) fn bridge(&self, more: &str) -> String {
        let ipam = self.path("ipam").display().to_string();
        format!(
            r#"{{"cniVersion": "1.0.0", "name": "lan", "plugins": [
                {{"type": "bridge", "bridge": "lan0", "isGateway": true, "ipMasq": true, "hairpinMode": true,
                  "ipam": {{"type": "host-local", "dataDir": "{ipam}", "ranges": [[{{"subnet": "10.77.0.0/24"}}]], "routes": [{{"dst": "0.0.0.0/0"}}]}}}},
                {{"type": "portmap", "capabilities": {{"portMappings": true}}}}{more}]}}"#
        )
    }

    /// Addresses that host-local has given out in a network.
    pub(super) fn leases(&self, network: &str) -> Vec<String> {
        let entries = fs::read_dir(self.path("ipam").join(network)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
        names.retain(|name| name.parse::<std::net::IpAddr>().is_ok());
        names.sort_unstable();
        names
    }

    /// The pod's one address.
    pub(super) fn address(&self, name: &str) -> String {
        self.site.addresses(name)[0].clone()
    }

    /// Interfaces of pods on the bridge.
    pub(super) fn bridge_ports(&self) -> Vec<String> {
        let links = self.site.machine.run("ip -o link show");
        links.lines().filter(|line| line.contains("master lan0")).map(str::to_owned).collect()
    }

    /// Waits until nothing of any pod is left in the network `lan`.
    pub(super) fn wait_clean(&self) {
        eventually_within(HOUSEKEEPING, "nothing to be left", || {
            let rules = self.site.machine.run("iptables -t nat -S");
            let left = (self.leases("lan"), self.bridge_ports(), rules.contains("CNI-DN-"));
            if left == (Vec::new(), Vec::new(), false) { Ok(()) } else { Err(format!("{left:?}\n{}", self.site.host.daemon_log())) }
        });
    }

    /// Waits for an event that says all of this.
    pub(super) fn tells(&self, patience: Duration, words: &[&str]) {
        eventually_within(patience, &format!("an event with {words:?}"), || {
            let events = self.site.host.cli_ok(&["get", "events"]);
            let says = events.lines().any(|line| words.iter().all(|word| line.contains(word)));
            says.then_some(()).ok_or_else(|| format!("{events}\n{}", self.site.host.daemon_log()))
        });
    }
}

/// The annotation with the state of a pod's interfaces.
fn network_status(pod: &PodView) -> serde_json::Value {
    let text = pod.0["metadata"]["annotations"]["k8s.v1.cni.cncf.io/network-status"].as_str().unwrap_or("null");
    serde_json::from_str(text).unwrap()
}
