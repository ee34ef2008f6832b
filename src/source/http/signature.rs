//! The detached signature of a body.

use super::error::PollError;
use crate::SignatureRequirement;
use crate::http_client::shown;
use jiff::Timestamp;
use podstead_trust::{Signer, judged_at};
use reqwest::Url;

/// Returns the URLs of the signature of `url`, in the order in which they are tried: the path with `.sig` appended, the query
/// as it is; `.asc`, which gpg makes with `--armor`, where OpenPGP signatures count.
pub(super) fn urls_of(url: &Url, required: &SignatureRequirement) -> Vec<Url> {
    let beside = |suffix: &str| {
        let mut signature = url.clone();
        signature.set_path(&format!("{}{suffix}", url.path()));
        signature
    };
    let openpgp = required.openpgp_keyring_file.as_ref().map(|_| beside(".asc"));
    std::iter::once(beside(".sig")).chain(openpgp).collect()
}

/// Verifies the signature of `body` and returns its signer. Reads the signers' files again. A detached SSH signature has no time, so the
/// host's clock counts; one of OpenPGP has it.
pub(super) fn check(
    required: &SignatureRequirement,
    url: &Url,
    body: &[u8],
    signature: &[u8],
    now: Timestamp,
) -> Result<Signer, PollError> {
    let trusted = required.trusted().map_err(PollError::Signers)?;
    let signer = trusted.verify(body, signature, judged_at(now, None, None));
    signer.map_err(|source| PollError::Signature { url: shown(url), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_lies_beside_the_body() {
        let url: Url = "https://h/a/b.yaml?site=1".parse().unwrap();
        let [ssh, openpgp] = [(true, false), (true, true)].map(|(ssh, openpgp)| SignatureRequirement {
            allowed_signers_file: ssh.then(|| "/signers".into()),
            openpgp_keyring_file: openpgp.then(|| "/keyring".into()),
            namespace: "podstead".into(),
        });
        let urls = |required| urls_of(&url, required).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(urls(&ssh), ["https://h/a/b.yaml.sig?site=1"]);
        assert_eq!(urls(&openpgp), ["https://h/a/b.yaml.sig?site=1", "https://h/a/b.yaml.asc?site=1"]);
    }
}
