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
        let Self { directory, removable, mount_label, name, interval_seconds } = self;
        let field = format!("{source}.bundle");
        let directory = directory.clone().unwrap_or_else(|| DEFAULT_DIRECTORY.into());
        let removable = removable.unwrap_or(false);
        for (is_set, written) in [(removable, "removable"), (mount_label.is_some(), "mountLabel")] {
            if is_set && signature.is_none() {
                let message = "needs requireSignature: anybody may plug in a medium".to_owned();
                return Err(check.invalid(&format!("{field}.{written}"), message));
            }
        }
        if let Some(label) = mount_label.as_ref().filter(|label| !is_label(label)) {
            let message =
                format!("{label:?} is not a label: must be 1 to 16 letters, digits, '-', '_' and '.', and not begin with '.'");
            return Err(check.invalid(&format!("{field}.mountLabel"), message));
        }
        if let Some(name) = name.as_ref().filter(|name| !is_name(name)) {
            let message = format!("{name:?} is not a name of bundles: must be at most 63 lower-case letters, digits and '-'");
            return Err(check.invalid(&format!("{field}.name"), message));
        }
        let interval = interval_seconds.unwrap_or(DEFAULT_INTERVAL);
        Ok(BundlePlace {
            directory: check.file(&format!("{field}.directory"), &directory)?,
            removable,
            mount_label: mount_label.clone(),
            name: name.clone(),
            host: host.to_owned(),
            interval: seconds(check, &format!("{field}.intervalSeconds"), interval, DAY)?,
        })
    }

    /// Every field of `place` written out.
    pub(super) fn of(place: &BundlePlace) -> Self {
        let BundlePlace { directory, removable, mount_label, name, host: _, interval } = place;
        Self {
            directory: Some(directory.clone()),
            removable: Some(*removable),
            mount_label: mount_label.clone(),
            name: name.clone(),
            interval_seconds: Some(interval.as_secs()),
        }
    }
}

/// Returns true for a label that udev writes as it is. No file system of media has longer ones.
fn is_label(label: &str) -> bool {
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    (1..=16).contains(&label.len()) && !label.starts_with('.') && label.bytes().all(is_fit)
}

#[cfg(test)]
mod tests {
    use super::is_label;

    #[test]
    fn labels_are_names_of_one_device() {
        assert!(["FLEET", "shop-1", "a.b_c", "0123456789abcdef"].into_iter().all(is_label));
        assert!(!["", "..", ".a", "a/b", "a b", "0123456789abcdefg", "\u{fc}"].into_iter().any(is_label));
    }
}
