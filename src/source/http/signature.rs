//! The detached signature of a body.

use super::RequiredSignature;
use super::error::PollError;
use crate::source::http_client::shown;
use crate::trust::{AllowedSigners, Signer, judged_at, verify};
use jiff::Timestamp;
use reqwest::Url;

/// Where the signature of what lies at `url` lies: the path with `.sig` behind it, the query as it is.
pub(super) fn url_of(url: &Url) -> Url {
    let mut signature = url.clone();
    signature.set_path(&format!("{}.sig", url.path()));
    signature
}

/// Who signed `body`. Reads the file of allowed signers anew. There is no time in a detached signature, so the host's clock counts.
pub(super) fn check(
    required: &RequiredSignature,
    url: &Url,
    body: &[u8],
    signature: &[u8],
    now: Timestamp,
) -> Result<Signer, PollError> {
    let RequiredSignature { allowed_signers_file: path, namespace } = required;
    let unusable = |reason: String| PollError::Signers { path: path.clone(), reason };
    let bytes = std::fs::read(path).map_err(|error| unusable(error.to_string()))?;
    let signers = AllowedSigners::parse(&bytes)
        .map_err(|problems| unusable(problems.first().map_or_else(|| "is not usable".to_owned(), ToString::to_string)))?;
    verify(&signers, namespace, body, signature, judged_at(now, None, None))
        .map_err(|source| PollError::Signature { url: shown(url), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_lies_beside_the_body() {
        let url: Url = "https://h/a/b.yaml?site=1".parse().unwrap();
        assert_eq!(url_of(&url).as_str(), "https://h/a/b.yaml.sig?site=1");
    }
}
