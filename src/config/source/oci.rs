//! Artifacts of registries as written to artifacts that count. Pure.

use super::OciPlace;
use super::resolve::{DAY, seconds};
use super::written::{WrittenOci, WrittenSignature};
use podstead_settings::ConfigError;
use podstead_settings::check::Check;
use podstead_source::oci::{OciFollow, OciUrl};
use std::path::PathBuf;

const DEFAULT_TAG: &str = "latest";
const DEFAULT_INTERVAL: u64 = 60;
const DEFAULT_TIMEOUT: u64 = 60;
/// Most key files: each signature is tried with each key.
const KEYS_MAX: usize = 16;

impl WrittenOci {
    pub(super) fn resolve(
        &self,
        check: &Check<'_>,
        source: &str,
        signature: Option<&WrittenSignature>,
    ) -> Result<OciPlace, ConfigError> {
        let Self { url, tag: _, semver: _, digest: _, path, interval_seconds, timeout_seconds } = self;
        let field = format!("{source}.oci");
        let interval = interval_seconds.unwrap_or(DEFAULT_INTERVAL);
        let timeout = timeout_seconds.unwrap_or(DEFAULT_TIMEOUT);
        let url: OciUrl = url.parse().map_err(|reason| check.invalid(&format!("{field}.url"), reason))?;
        let keys = signature.map(|written| keys(check, &format!("{source}.requireSignature"), written)).transpose()?;
        Ok(OciPlace {
            follow: self.follow(check, &field, &url)?,
            url,
            path: tree_path(check, &format!("{field}.path"), path.as_deref().unwrap_or_default())?,
            interval: seconds(check, &format!("{field}.intervalSeconds"), interval, DAY)?,
            timeout: seconds(check, &format!("{field}.timeoutSeconds"), timeout, 3600)?,
            keys: keys.unwrap_or_default(),
        })
    }

    fn follow(&self, check: &Check<'_>, field: &str, url: &OciUrl) -> Result<OciFollow, ConfigError> {
        let written = [("tag", &self.tag), ("semver", &self.semver), ("digest", &self.digest)];
        let mut written = written.into_iter().filter_map(|(name, value)| value.as_ref().map(|value| (name, value)));
        let Some((name, value)) = written.next() else { return Ok(OciFollow::Tag(DEFAULT_TAG.to_owned())) };
        let bad = |message: String| check.invalid(&format!("{field}.{name}"), message);
        if let Some((other, _)) = written.next() {
            return Err(check.invalid(&format!("{field}.{other}"), format!("cannot be set together with {name}")));
        }
        match name {
            "semver" => match value.parse() {
                Ok(range) => Ok(OciFollow::Semver(range)),
                Err(error) => Err(bad(format!("{value:?} is not a version range such as \">=1.2, <2\": {error}"))),
            },
            "digest" => value.parse().map(OciFollow::Digest).map_err(|error| bad(format!("{error}"))),
            _ if url.has_tag(value) => Ok(OciFollow::Tag(value.clone())),
            _ => Err(bad(format!("{value:?} is not a tag: must be at most 128 letters, digits, _ . and -"))),
        }
    }
}

/// The keys of which one must have signed.
fn keys(check: &Check<'_>, field: &str, written: &WrittenSignature) -> Result<Vec<PathBuf>, ConfigError> {
    let WrittenSignature { allowed_signers_file, openpgp_keyring_file, namespace, keys } = written;
    let unfit = [
        ("allowedSignersFile", allowed_signers_file.is_some()),
        ("openpgpKeyringFile", openpgp_keyring_file.is_some()),
        ("namespace", namespace.is_some()),
    ];
    if let Some((name, _)) = unfit.iter().find(|(_, written)| *written) {
        let message = "is only for http, git and bundle; artifacts are signed by cosign: set keys".to_owned();
        return Err(check.invalid(&format!("{field}.{name}"), message));
    }
    if keys.is_empty() {
        return Err(check.invalid(field, "must have keys".to_owned()));
    }
    if keys.len() > KEYS_MAX {
        return Err(check.invalid(&format!("{field}.keys"), format!("has more than {KEYS_MAX} entries")));
    }
    keys.iter().enumerate().map(|(index, path)| check.file(&format!("{field}.keys[{index}]"), path)).collect()
}

fn tree_path(check: &Check<'_>, field: &str, path: &str) -> Result<String, ConfigError> {
    let path = path.strip_prefix("./").unwrap_or(path).trim_end_matches('/');
    let clean = |part: &str| !matches!(part, "" | "." | "..") && !part.contains(char::is_control);
    match path.is_empty() || path == "." || path.split('/').all(clean) {
        true => Ok(if path == "." { String::new() } else { path.to_owned() }),
        false => Err(check.invalid(field, format!("{path:?} is not a path below the artifact's root"))),
    }
}
