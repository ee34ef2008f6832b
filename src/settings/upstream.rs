//! `upstream`: the cluster that this host reports its pods to. Pure.

use super::ConfigError;
use super::check::Check;
use super::pressure::{PressureThresholds, WrittenPressure};
use crate::check::label;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// As the kubelet's.
const DEFAULT_MAX_PODS: u32 = 110;
/// The key of the taint that keeps the scheduler away from a host that runs static pods only.
const DEFAULT_TAINT: &str = "podstead.dev/static-pods";

/// Effect of a taint on pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum TaintEffect {
    /// Nothing is scheduled.
    NoSchedule,
    /// Nothing is scheduled if there is another place.
    PreferNoSchedule,
    /// Running pods are evicted.
    NoExecute,
}

/// A taint, as Kubernetes writes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub value: String,
    /// Its effect.
    pub effect: TaintEffect,
}

/// The cluster, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UpstreamConfig {
    /// Kubeconfig with server, certificate authorities and credentials.
    pub kubeconfig: PathBuf,
    /// The context in it; `None` for its current one.
    pub context: Option<String>,
    /// True if a missing Node is created.
    pub register_node: bool,
    /// Labels of the Node, beside those of this host.
    pub labels: BTreeMap<String, String>,
    /// Taints of the Node, when it is created.
    pub taints: Vec<Taint>,
    /// Pods that the Node says to have room for.
    pub max_pods: u32,
    /// Thresholds for the pressure conditions of the Node.
    pub pressure: PressureThresholds,
}

/// `upstream` as written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenUpstream {
    /// Absolute path of a kubeconfig.
    pub kubeconfig: PathBuf,
    /// Context in the kubeconfig. Default: its current one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context: Option<String>,
    /// Create the Node if it does not exist. Default: true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub register_node: Option<bool>,
    /// Labels of the Node, in addition to those of this host. Default: none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Taints of the Node when it is created. Default: `podstead.dev/static-pods` with effect NoSchedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taints: Option<Vec<Taint>>,
    /// Number of pods that the Node reports as its capacity, 1 to 10000. Default: 110.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_pods: Option<u32>,
    /// Thresholds for the pressure conditions of the Node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pressure: Option<WrittenPressure>,
}

impl WrittenUpstream {
    /// Checks what is written and fills in the defaults.
    pub fn resolve(&self, check: &Check<'_>) -> Result<UpstreamConfig, ConfigError> {
        for (key, value) in &self.labels {
            label(check, &format!("upstream.labels.{key}"), key, value)?;
        }
        for (index, taint) in self.taints.iter().flatten().enumerate() {
            let at = format!("upstream.taints[{index}]");
            label(check, &format!("{at}.key"), &taint.key, "")?;
            label(check, &format!("{at}.value"), &taint.key, &taint.value)?;
        }
        let static_pods_only =
            || vec![Taint { key: DEFAULT_TAINT.to_owned(), value: String::new(), effect: TaintEffect::NoSchedule }];
        Ok(UpstreamConfig {
            kubeconfig: check.file("upstream.kubeconfig", &self.kubeconfig)?,
            context: self.context.clone(),
            register_node: self.register_node.unwrap_or(true),
            labels: self.labels.clone(),
            taints: self.taints.clone().unwrap_or_else(static_pods_only),
            max_pods: check.range("upstream.maxPods", self.max_pods.unwrap_or(DEFAULT_MAX_PODS), 1, 10_000)?,
            pressure: self.pressure.clone().unwrap_or_default().resolve(check)?,
        })
    }

    /// As it is written.
    pub fn of(config: &UpstreamConfig) -> Self {
        let UpstreamConfig { kubeconfig, context, register_node, labels, taints, max_pods, pressure } = config.clone();
        Self {
            kubeconfig,
            context,
            register_node: Some(register_node),
            labels,
            taints: Some(taints),
            max_pods: Some(max_pods),
            pressure: Some(WrittenPressure::of(pressure)),
        }
    }
}
