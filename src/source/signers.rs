//! Files with the signers that a source requires.

use podstead_trust::{AllowedSigners, Keyring, KeyringProblem, NOT_BUILT_IN, Trusted};
use std::io;
use std::path::{Path, PathBuf};

/// Required signers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignatureRequirement {
    /// SSH keys and whose they are, in the form of ssh's `allowed_signers`. At least one of the files is set.
    pub allowed_signers_file: Option<PathBuf>,
    /// OpenPGP keys, as `gpg --export` writes them.
    pub openpgp_keyring_file: Option<PathBuf>,
    /// Namespace of SSH signatures: `git` for commits and tags, `podstead` for documents unless configured otherwise.
    pub namespace: String,
}

/// Errors of reading a file of signers.
#[derive(Debug, thiserror::Error)]
#[error("{what} {}", path.display())]
pub struct SignersError {
    what: &'static str,
    path: PathBuf,
    source: SignersFault,
}

/// Reason why a file of signers cannot be used.
#[derive(Debug, thiserror::Error)]
enum SignersFault {
    #[error(transparent)]
    Read(#[from] io::Error),
    /// Each problem with its line.
    #[error("{0}")]
    Lines(String),
    #[error(transparent)]
    Keyring(#[from] KeyringProblem),
}

impl SignatureRequirement {
    /// Reason why this build cannot verify OpenPGP signatures, and what to do; `None` for one that can.
    pub const fn openpgp_is_missing() -> Option<&'static str> {
        if cfg!(feature = "openpgp") { None } else { Some(NOT_BUILT_IN) }
    }

    /// Reads the files, again for each revision, so that a changed file counts at once. Blocks.
    pub fn trusted(&self) -> Result<Trusted, SignersError> {
        let Self { allowed_signers_file, openpgp_keyring_file, namespace } = self;
        let ssh = allowed_signers_file.as_deref().map(|path| {
            let what = "allowed signers";
            AllowedSigners::parse(&read(what, path)?).map_err(|problems| {
                let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
                SignersError { what, path: path.to_owned(), source: SignersFault::Lines(problems.join("; ")) }
            })
        });
        let openpgp = openpgp_keyring_file.as_deref().map(|path| {
            let what = "OpenPGP keyring";
            let unusable = |problem: KeyringProblem| SignersError { what, path: path.to_owned(), source: problem.into() };
            Keyring::parse(&read(what, path)?).map_err(unusable)
        });
        Ok(Trusted { ssh: ssh.transpose()?, openpgp: openpgp.transpose()?, namespace: namespace.clone() })
    }
}

fn read(what: &'static str, path: &Path) -> Result<Vec<u8>, SignersError> {
    std::fs::read(path).map_err(|error| SignersError { what, path: path.to_owned(), source: error.into() })
}
