//! The secret key of this host: it seals Secrets on disk, and keys the fingerprints of values.
//!
//! 32 random bytes, made at the first start, in a file that only root reads; or a systemd credential called `podstead.machine-key`, which
//! the unit may load from a file that is encrypted with the TPM. A lost key costs no pod: what is sealed with it is unknown until its
//! source delivers again, and containers whose environment comes from objects are restarted once.

use crate::atomic_file;
use ring::hmac;
use ring::rand::{SecureRandom, SystemRandom};
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Name of the credential.
pub const CREDENTIAL: &str = "podstead.machine-key";

/// Purpose of the key of fingerprints, see [`MachineKey::derive`].
pub const FINGERPRINTS: &str = "podstead fingerprints 1";

/// Purpose of the key of what images were pulled with, see [`MachineKey::derive`].
pub const PULL_SECRETS: &str = "podstead pull secrets 1";

const BYTES: usize = 32;

/// The directory of this process's systemd credentials, if it has any.
pub fn credentials() -> Option<OsString> {
    std::env::var_os("CREDENTIALS_DIRECTORY")
}

/// Reason why there is no key.
#[derive(Debug, thiserror::Error)]
pub enum MachineKeyError {
    /// It cannot be read.
    #[error("read machine key {}", path.display())]
    Read {
        /// File or credential.
        path: PathBuf,
        /// The error of the disk.
        #[source]
        source: io::Error,
    },
    /// It is not what was written.
    #[error("machine key {} has {found} bytes, not {BYTES}", path.display())]
    Length {
        /// File or credential.
        path: PathBuf,
        /// Its length.
        found: usize,
    },
    /// It cannot be made.
    #[error("create machine key {}", path.display())]
    Make {
        /// The file.
        path: PathBuf,
        /// The error of the disk or of the random number generator.
        #[source]
        source: io::Error,
    },
}

/// The secret of this host.
#[derive(Clone, PartialEq, Eq)]
pub struct MachineKey([u8; BYTES]);

impl MachineKey {
    /// A key from bytes that are known.
    pub const fn new(bytes: [u8; BYTES]) -> Self {
        Self(bytes)
    }

    /// The key of the credential directory if it has one, else that of `file`; `None` when neither is there.
    pub fn load(file: &Path, credentials: Option<&OsStr>) -> Result<Option<Self>, MachineKeyError> {
        if let Some(directory) = credentials
            && let Some(key) = read(&Path::new(directory).join(CREDENTIAL))?
        {
            return Ok(Some(key));
        }
        read(file)
    }

    /// As [`MachineKey::load`]; a key is made in `file`, durably, when there is none. The directory exists.
    pub fn load_or_make(file: &Path, credentials: Option<&OsStr>) -> Result<Self, MachineKeyError> {
        if let Some(key) = Self::load(file, credentials)? {
            return Ok(key);
        }
        let failed = |source| MachineKeyError::Make { path: file.to_owned(), source };
        let mut bytes = [0; BYTES];
        SystemRandom::new()
            .fill(&mut bytes)
            .map_err(|_| failed(io::Error::other("the system's random number generator failed")))?;
        atomic_file::write_durable(file, &bytes, 0o600).map_err(failed)?;
        Ok(Self(bytes))
    }

    /// As [`MachineKey::load_or_make`], for the start of the daemon: a file that is not what was written is set aside. Without a key no
    /// pod of this host would start after a reboot, which costs more than the key.
    pub fn recover(file: &Path, credentials: Option<&OsStr>) -> Result<Self, MachineKeyError> {
        if let Err(error @ MachineKeyError::Length { .. }) = read(file) {
            let aside = file.with_extension("damaged");
            fs::rename(file, &aside).map_err(|source| MachineKeyError::Make { path: file.to_owned(), source })?;
            tracing::error!(%error, aside = %aside.display(), "damaged machine key set aside, creating a new one: sealed Secrets cannot be read until their sources deliver them again");
        }
        Self::load_or_make(file, credentials)
    }

    /// Derives a key for one purpose, which reveals nothing about those for others.
    pub fn derive(&self, purpose: &str) -> [u8; BYTES] {
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &self.0), purpose.as_bytes());
        let mut derived = [0; BYTES];
        derived.copy_from_slice(tag.as_ref());
        derived
    }
}

impl fmt::Debug for MachineKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MachineKey")
    }
}

fn read(path: &Path) -> Result<Option<MachineKey>, MachineKeyError> {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => return Err(MachineKeyError::Read { path: path.to_owned(), source }),
    };
    match <[u8; BYTES]>::try_from(bytes.as_slice()) {
        Ok(bytes) => Ok(Some(MachineKey(bytes))),
        Err(_) => Err(MachineKeyError::Length { path: path.to_owned(), found: bytes.len() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_key_is_made_once_and_only_root_can_read_it() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("machine.key");
        assert_eq!(MachineKey::load(&file, None).unwrap(), None);
        let made = MachineKey::load_or_make(&file, None).unwrap();
        assert_eq!(MachineKey::load_or_make(&file, None).unwrap(), made);
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_ne!(made.derive("a"), made.derive("b"));
        assert_eq!(format!("{made:?}"), "MachineKey");
    }

    #[test]
    fn a_credential_goes_before_the_file() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("machine.key");
        let directory = root.path().as_os_str();
        let made = MachineKey::load_or_make(&file, Some(directory)).unwrap();
        fs::write(root.path().join(CREDENTIAL), [7; BYTES]).unwrap();
        let loaded = MachineKey::load_or_make(&file, Some(directory)).unwrap();
        assert_eq!(loaded, MachineKey::new([7; BYTES]));
        assert_ne!(loaded, made);
    }

    #[test]
    fn a_key_that_is_cut_short_is_an_error_and_not_made_anew() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("machine.key");
        fs::write(&file, b"short").unwrap();
        let error = MachineKey::load_or_make(&file, None).unwrap_err().to_string();
        assert!(error.ends_with("has 5 bytes, not 32"), "{error}");
    }

    #[test]
    fn a_start_sets_a_key_that_is_cut_short_aside() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("machine.key");
        fs::write(&file, b"short").unwrap();
        let made = MachineKey::recover(&file, None).unwrap();
        assert_eq!(MachineKey::recover(&file, None).unwrap(), made);
        assert_eq!(fs::read(root.path().join("machine.damaged")).unwrap(), b"short");
    }

    #[test]
    fn a_credential_of_another_length_is_the_admins_mistake_and_touches_no_file() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("machine.key");
        let made = MachineKey::load_or_make(&file, None).unwrap();
        fs::write(root.path().join(CREDENTIAL), b"short").unwrap();
        let error = MachineKey::recover(&file, Some(root.path().as_os_str())).unwrap_err().to_string();
        assert!(error.contains(CREDENTIAL), "{error}");
        assert_eq!(MachineKey::load(&file, None).unwrap(), Some(made));
    }
}
