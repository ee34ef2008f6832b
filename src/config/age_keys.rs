//! The age identities of this host: of the configured file and of a systemd credential, both of which count.

use crate::Config;
use anyhow::Context as _;
use podstead_manifest::sops::{Identities, Opening, Unopened};
use podstead_sys::machine_key::credentials;
use podstead_telemetry::error_chain;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the credential.
const CREDENTIAL: &str = "podstead.age-key";
/// No file of keys is larger.
const MAX_BYTES: u64 = 64 << 10;

/// Loads all readable keys, and returns the errors of the others.
pub fn load(config: &Config) -> (Identities, Vec<anyhow::Error>) {
    let (mut identities, mut errors) = (Identities::default(), Vec::new());
    let credential = credential();
    for path in credential.iter().chain(&config.age_key_file) {
        match read(path) {
            Ok(more) => identities = identities.with(more),
            Err(error) => errors.push(error),
        }
    }
    (identities, errors)
}

/// The credential, if there is one.
fn credential() -> Option<PathBuf> {
    let path = Path::new(&credentials()?).join(CREDENTIAL);
    path.symlink_metadata().is_ok().then_some(path)
}

/// Checks that the file contains usable keys.
pub fn check(path: &Path) -> anyhow::Result<()> {
    let identities = read(path)?;
    anyhow::ensure!(!identities.recipients().is_empty(), "age key file {} contains no key", path.display());
    Ok(())
}

fn read(path: &Path) -> anyhow::Result<Identities> {
    let size = fs::metadata(path).with_context(|| format!("read age key file {}", path.display()))?.len();
    anyhow::ensure!(size <= MAX_BYTES, "age key file {} is larger than {MAX_BYTES} bytes", path.display());
    let text = fs::read_to_string(path).with_context(|| format!("read age key file {}", path.display()))?;
    Identities::parse(&text).with_context(|| path.display().to_string())
}

/// Describes the mode of the configured file if other users can read it.
pub fn exposure(path: &Path) -> Option<String> {
    let mode = fs::metadata(path).ok()?.permissions().mode() & 0o777;
    (mode & 0o077 != 0).then(|| {
        format!("age key file {} has mode {mode:04o}: its key decrypts every Secret; run chmod 0600 on it", path.display())
    })
}

/// For commands that check manifests: with the keys of this host if it has any that may be read, and else with a note.
pub fn for_checks(config: Option<&Config>) -> Arc<Opening> {
    let identities = config.map(load).map_or_else(Identities::default, |(identities, _)| identities);
    Arc::new(Opening { identities, unopened: Unopened::Noted })
}

/// For commands that say what the daemon would do.
pub fn for_forecasts(config: &Config) -> Arc<Opening> {
    let (identities, errors) = load(config);
    for error in errors {
        tracing::warn!(error = %error_chain(error.as_ref()), "cannot read all age keys: some encrypted manifests may not be decrypted");
    }
    Arc::new(Opening { identities, unopened: Unopened::Refused })
}
