//! Bundles as written to bundles that count. Pure.

use super::BundlePlace;
use super::resolve::{DAY, seconds};
use super::written::{WrittenBundle, WrittenSignature};
use podstead_settings::ConfigError;
use podstead_settings::check::Check;
use podstead_source::bundle::document::is_name;

const DEFAULT_DIRECTORY: &str = "/var/lib/podstead/bundles";
const DEFAULT_INTERVAL: u64 = 60;

impl WrittenBundle {
    /// `host` is the name of this host.
    pub(super) fn resolve(
        &self,
        check: &Check<'_>,
        source: &str,
        host: &str,
        signature: Option<&WrittenSignature>,
    ) -> Result<BundlePlace, ConfigError> {
        let Self { directory, removable, name, interval_seconds } = self;
        let field = format!("{source}.bundle");
        let directory = directory.clone().unwrap_or_else(|| DEFAULT_DIRECTORY.into());
        let removable = removable.unwrap_or(false);
        if removable && signature.is_none() {
            let message = "needs requireSignature: anybody may plug in a medium".to_owned();
            return Err(check.invalid(&format!("{field}.removable"), message));
        }
        if let Some(name) = name.as_ref().filter(|name| !is_name(name)) {
            let message = format!("{name:?} is not a name of bundles: must be at most 63 lower-case letters, digits and '-'");
            return Err(check.invalid(&format!("{field}.name"), message));
        }
        let interval = interval_seconds.unwrap_or(DEFAULT_INTERVAL);
        Ok(BundlePlace {
            directory: check.file(&format!("{field}.directory"), &directory)?,
            removable,
            name: name.clone(),
            host: host.to_owned(),
            interval: seconds(check, &format!("{field}.intervalSeconds"), interval, DAY)?,
        })
    }

    /// Every field of `place` written out.
    pub(super) fn of(place: &BundlePlace) -> Self {
        let BundlePlace { directory, removable, name, host: _, interval } = place;
        Self {
            directory: Some(directory.clone()),
            removable: Some(*removable),
            name: name.clone(),
            interval_seconds: Some(interval.as_secs()),
        }
    }
}
