//! Authentication of webhook requests by a shared secret. **Pure**.
//!
//! GitHub, Gitea, Forgejo and others sign the body with HMAC-SHA256 and the secret; GitLab sends the secret itself. Both are compared in a
//! time that does not depend on where they differ.

use podstead_outbound::Secret;
use ring::hmac;

/// The headers that may prove it, as they came.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignatureHeaders<'a> {
    /// `X-Hub-Signature-256`: GitHub, and Gitea, Forgejo and Bitbucket in its manner. `sha256=` and hexadecimal digits.
    pub hub: Option<&'a [u8]>,
    /// `X-Podstead-Signature`: any other sender; the same form.
    pub generic: Option<&'a [u8]>,
    /// `X-Gitea-Signature` or `X-Forgejo-Signature`: hexadecimal digits.
    pub gitea: Option<&'a [u8]>,
    /// `X-Gitlab-Token`: the secret.
    pub gitlab: Option<&'a [u8]>,
}

/// Reason why a request is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unverified {
    /// None of the headers is there.
    #[error("the request is not signed")]
    Unsigned,
    /// The first of them that is there does not prove it.
    #[error("the signature of the request does not match")]
    Wrong,
}

/// Checks the first header that is there.
pub fn verify(headers: &SignatureHeaders<'_>, body: &[u8], secret: &Secret) -> Result<(), Unverified> {
    let SignatureHeaders { hub, generic, gitea, gitlab } = headers;
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.expose().as_bytes());
    let is_right = match (hub.or(*generic), gitea, gitlab) {
        (Some(signature), _, _) => signature.strip_prefix(b"sha256=").is_some_and(|digits| signs(&key, body, digits)),
        (None, Some(digits), _) => signs(&key, body, digits),
        // Compared by their codes, whose bytes say nothing about those of the secret.
        (None, None, Some(token)) => {
            let expected = hmac::sign(&key, secret.expose().as_bytes());
            hmac::verify(&key, token, expected.as_ref()).is_ok()
        }
        (None, None, None) => return Err(Unverified::Unsigned),
    };
    if is_right { Ok(()) } else { Err(Unverified::Wrong) }
}

fn signs(key: &hmac::Key, body: &[u8], digits: &[u8]) -> bool {
    hex::decode(digits).is_ok_and(|signature| hmac::verify(key, body, &signature).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn secret() -> Secret {
        Secret::new("It's a Secret to Everybody")
    }

    #[test]
    fn the_example_of_githubs_documentation_verifies() {
        let signature = b"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17".as_slice();
        let headers = SignatureHeaders { hub: Some(signature), ..Default::default() };
        assert_eq!(verify(&headers, b"Hello, World!", &secret()), Ok(()));
        assert_eq!(verify(&headers, b"Hello, World?", &secret()), Err(Unverified::Wrong));
        assert_eq!(verify(&headers, b"Hello, World!", &Secret::new("other")), Err(Unverified::Wrong));
        let generic = SignatureHeaders { generic: Some(signature), ..Default::default() };
        assert_eq!(verify(&generic, b"Hello, World!", &secret()), Ok(()));
        let gitea = SignatureHeaders { gitea: Some(&signature[7..]), ..Default::default() };
        assert_eq!(verify(&gitea, b"Hello, World!", &secret()), Ok(()));
    }

    #[test]
    fn gitlabs_token_is_the_secret_and_nothing_shorter_or_longer() {
        let with = |token: &'static [u8]| SignatureHeaders { gitlab: Some(token), ..Default::default() };
        assert_eq!(verify(&with(b"It's a Secret to Everybody"), b"x", &secret()), Ok(()));
        for wrong in [b"".as_slice(), b"It's a Secret to Everybod", b"It's a Secret to Everybody "] {
            assert_eq!(verify(&with(wrong), b"x", &secret()), Err(Unverified::Wrong));
        }
    }

    #[test]
    fn a_wrong_signature_is_not_made_good_by_another_header() {
        let headers =
            SignatureHeaders { hub: Some(b"sha256=00"), gitlab: Some(b"It's a Secret to Everybody"), ..Default::default() };
        assert_eq!(verify(&headers, b"x", &secret()), Err(Unverified::Wrong));
        assert_eq!(verify(&SignatureHeaders::default(), b"x", &secret()), Err(Unverified::Unsigned));
    }

    proptest! {
        #[test]
        fn nobody_guesses_a_signature(signature: Vec<u8>, digits in "[0-9a-f]{0,70}", body: Vec<u8>) {
            for bytes in [signature.clone(), format!("sha256={digits}").into_bytes(), digits.clone().into_bytes()] {
                for headers in [
                    SignatureHeaders { hub: Some(&bytes), ..Default::default() },
                    SignatureHeaders { gitea: Some(&bytes), ..Default::default() },
                    SignatureHeaders { gitlab: Some(&bytes), ..Default::default() },
                ] {
                    prop_assert_eq!(verify(&headers, &body, &secret()), Err(Unverified::Wrong));
                }
            }
        }
    }
}
