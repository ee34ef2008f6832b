//! `network`: how pods that are not on the host's network are connected.

use super::check::Check;
use super::{AddressRange, ConfigError};
use serde::{Deserialize, Serialize};

/// Fewer addresses are a mistake rather than a network.
const LEAST_CAPACITY: u32 = 2;

/// Who connects pods.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkKind {
    /// podstead itself: an address of each family, routed.
    #[default]
    Builtin,
    /// Nobody: pods have `lo` and nothing else.
    None,
}

/// The network of pods, resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NetworkConfig {
    /// Who connects pods.
    pub kind: NetworkKind,
    /// Where IPv4 addresses are taken from; `None` for a default range that is free on this host.
    pub ipv4: Option<AddressRange>,
    /// Where IPv6 addresses are taken from; `None` as above.
    pub ipv6: Option<AddressRange>,
}

/// `network` as written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenNetwork {
    /// `builtin` or `none`. Default: builtin.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<NetworkKind>,
    /// Range of IPv4 addresses for pods. Default: the first of podstead's ranges that nothing else on this host uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv4_range: Option<String>,
    /// Range of IPv6 addresses for pods. Default: as for IPv4.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ipv6_range: Option<String>,
}

impl WrittenNetwork {
    pub(super) fn resolve(&self, check: &Check<'_>) -> Result<NetworkConfig, ConfigError> {
        let kind = self.kind.unwrap_or_default();
        let range = |field: &str, written: &Option<String>, is_ipv4: bool| -> Result<Option<AddressRange>, ConfigError> {
            let Some(text) = written else { return Ok(None) };
            let invalid = |message: String| Err(check.invalid(&format!("network.{field}"), message));
            if kind == NetworkKind::None {
                return invalid("has no effect with type none".to_owned());
            }
            match text.parse::<AddressRange>() {
                Err(error) => invalid(format!("{text:?} {error}")),
                Ok(range) if range.is_ipv4() != is_ipv4 => {
                    invalid(format!("{text:?} is not of IPv{}", if is_ipv4 { 4 } else { 6 }))
                }
                Ok(range) if range.capacity() < LEAST_CAPACITY => {
                    invalid(format!("{text:?} has room for {} pods, at least {LEAST_CAPACITY} are wanted", range.capacity()))
                }
                Ok(range) => Ok(Some(range)),
            }
        };
        Ok(NetworkConfig {
            kind,
            ipv4: range("ipv4Range", &self.ipv4_range, true)?,
            ipv6: range("ipv6Range", &self.ipv6_range, false)?,
        })
    }

    pub(super) fn of(config: &NetworkConfig) -> Self {
        let text = |range: &Option<AddressRange>| range.as_ref().map(ToString::to_string);
        Self { kind: Some(config.kind), ipv4_range: text(&config.ipv4), ipv6_range: text(&config.ipv6) }
    }
}
