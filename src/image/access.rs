//! Access of pods to an image that is present: KEP-2535 with its default, `NeverVerifyPreloadedImages`. **Pure**.
//!
//! An image that was imported, or pulled without a pod's Secret, is every pod's. One that was pulled with Secrets belongs to pods that have
//! one of these: the Secret of that name, whatever it holds now (so that a rotated password stops no pod when there is no network), or
//! one with the same credentials. One that was pulled with credentials of this host is every pod's that may use these. For any other pod the registry is asked, with what that pod has.

use super::ask::Served;
use podstead_pod::objects::{FingerprintKey, Fingerprinting};
use podstead_runtime::credentials::Credentials;
use podstead_runtime::pull_secrets::Login;
use serde::{Deserialize, Serialize};

/// Secrets remembered of one reference; of more, those that pulled last.
const SECRETS_MAX: usize = 32;

/// A Secret that an image was pulled with. Says nothing of what it holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SecretUse {
    namespace: String,
    name: String,
    /// Of the credentials, with this host's key.
    fingerprint: String,
}

impl SecretUse {
    pub(super) fn of(login: &Login, key: &FingerprintKey) -> Self {
        let mut fingerprinting = Fingerprinting::new(key);
        let texts: &[&str] = match &login.credentials {
            Credentials::Anonymous => &[],
            Credentials::Password(user, password) => &["password", user, password],
            Credentials::Identity(token) => &["identity", token],
            Credentials::Token(token) => &["token", token],
        };
        texts.iter().for_each(|text| fingerprinting.add(text));
        let (namespace, name) = login.secret.clone();
        // No namespace has this sign in its name: a Secret of a restricted source is never taken for another source's.
        let namespace = match &login.restricted_to {
            Some(source) => format!("{namespace}@{source}"),
            None => namespace,
        };
        Self { namespace, name, fingerprint: fingerprinting.finish(true).value }
    }

    fn is_as_good_as(&self, other: &Self) -> bool {
        (&self.namespace, &self.name) == (&other.namespace, &other.name) || self.fingerprint == other.fingerprint
    }
}

/// The Secrets that give access to a reference.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Access {
    /// Secrets that pulled it; none means that it is every pod's, unless credentials of this host pulled it.
    #[serde(default, rename = "access", skip_serializing_if = "Vec::is_empty")]
    secrets: Vec<SecretUse>,
    /// Credentials of this host pulled it: it is every pod's that may use them.
    #[serde(default, rename = "host_credentials", skip_serializing_if = "std::ops::Not::not")]
    of_host: bool,
}

/// Secrets that a pod may pull with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Means {
    /// Its Secrets for an image.
    pub(super) secrets: Vec<SecretUse>,
    /// It may use the credentials of this host.
    pub(super) of_host: bool,
}

impl Access {
    /// Every pod's.
    pub(super) const fn open() -> Self {
        Self { secrets: Vec::new(), of_host: false }
    }

    /// Of pods that may use the credentials of this host.
    pub(super) const fn with_host_credentials() -> Self {
        Self { secrets: Vec::new(), of_host: true }
    }

    /// Of pods with this Secret.
    pub(super) fn with(secret: SecretUse) -> Self {
        Self { secrets: vec![secret], of_host: false }
    }

    /// Access to an image, given whom hosts gave it to: what a mirror gave to this host is not of all pods, nor of those with a Secret that nobody checked.
    pub(super) fn given(self, served: Served) -> Self {
        match served {
            Served::AsAsked => self,
            Served::WithHostCredentials => Self::with_host_credentials(),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.secrets.is_empty() && !self.of_host
    }

    /// Returns true if a pod with these means may use it.
    pub(super) fn allows(&self, means: &Means) -> bool {
        let has_secret = || self.secrets.iter().any(|known| means.secrets.iter().any(|secret| known.is_as_good_as(secret)));
        self.is_open() || (self.of_host && means.of_host) || has_secret()
    }

    /// Allows also what `other` allows; whether that is more.
    pub(super) fn widen(&mut self, other: &Access) -> bool {
        let before = self.clone();
        if self.is_open() || other.is_open() {
            *self = Self::open();
        } else {
            self.of_host |= other.of_host;
            let is_new =
                |known: &SecretUse| !other.secrets.iter().any(|new| (&new.namespace, &new.name) == (&known.namespace, &known.name));
            if other.secrets.iter().any(|new| !self.secrets.contains(new)) {
                self.secrets.retain(is_new);
                self.secrets.extend(other.secrets.iter().cloned());
                let surplus = self.secrets.len().saturating_sub(SECRETS_MAX);
                self.secrets.drain(..surplus);
            }
        }
        *self != before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secret(name: &str, password: &str) -> SecretUse {
        let credentials = Credentials::Password("me".into(), password.into());
        SecretUse::of(
            &Login { secret: ("shop".into(), name.into()), restricted_to: None, credentials },
            &FingerprintKey::new([1; 32]),
        )
    }

    fn having(secrets: &[SecretUse]) -> Means {
        Means { secrets: secrets.to_vec(), of_host: false }
    }

    #[test]
    fn image_of_host_credentials_needs_them() {
        let host = Means { of_host: true, ..Means::default() };
        let mut access = Access::with_host_credentials();
        assert!(access.allows(&host) && !access.allows(&having(&[])) && !access.is_open());
        assert!(access.widen(&Access::with(secret("a", "one"))));
        assert!(access.allows(&host) && access.allows(&having(&[secret("a", "one")])) && !access.allows(&having(&[])));
        let text = serde_json::to_string(&access).unwrap();
        assert_eq!(serde_json::from_str::<Access>(&text).unwrap(), access);
        assert!(access.widen(&Access::open()) && access.allows(&having(&[])));
        assert!(serde_json::from_str::<Access>(r#"{"access":[]}"#).unwrap().is_open(), "of an older version");
    }

    #[test]
    fn secret_of_a_restricted_source_is_not_anothers_of_that_name() {
        let credentials = |password: &str| Credentials::Password("me".into(), password.into());
        let of = |restricted_to: Option<&str>, password: &str| {
            let restricted_to = restricted_to.map(podstead_pod::SourceId::new);
            let login = Login { secret: ("shop".into(), "a".into()), restricted_to, credentials: credentials(password) };
            SecretUse::of(&login, &FingerprintKey::new([1; 32]))
        };
        let access = Access::with(of(None, "one"));
        assert!(access.allows(&having(&[of(None, "rotated")])));
        assert!(!access.allows(&having(&[of(Some("apps"), "forged")])));
        assert!(!Access::with(of(Some("apps"), "one")).allows(&having(&[of(Some("other"), "forged")])));
        assert!(access.allows(&having(&[of(Some("apps"), "one")])), "the same credentials");
    }

    #[test]
    fn an_image_pulled_with_a_secret_is_of_pods_with_that_secret_or_its_credentials() {
        let access = Access::with(secret("a", "one"));
        assert!(access.allows(&having(&[secret("b", "x"), secret("a", "one")])));
        assert!(access.allows(&having(&[secret("a", "rotated")])), "the same Secret");
        assert!(access.allows(&having(&[secret("b", "one")])), "the same credentials");
        assert!(!access.allows(&having(&[secret("b", "other")])));
        assert!(!access.allows(&having(&[])));
        assert!(Access::open().allows(&having(&[])));
    }

    #[test]
    fn access_only_grows_and_says_whether_it_did() {
        let mut access = Access::with(secret("a", "one"));
        assert!(!access.widen(&Access::with(secret("a", "one"))));
        assert!(access.widen(&Access::with(secret("b", "two"))));
        assert!(access.allows(&having(&[secret("a", "one")])) && access.allows(&having(&[secret("c", "two")])));
        assert!(access.widen(&Access::with(secret("a", "rotated"))), "the newer credentials count");
        assert!(access.allows(&having(&[secret("c", "rotated")])) && !access.allows(&having(&[secret("c", "one")])));
        for number in 0..100 {
            access.widen(&Access::with(secret(&format!("s{number}"), &number.to_string())));
        }
        assert_eq!(access.secrets.len(), SECRETS_MAX);
        assert!(access.widen(&Access::open()) && access.allows(&having(&[])));
        assert!(!access.widen(&Access::with(secret("a", "one"))) && access.is_open());
    }

    #[test]
    fn what_is_remembered_says_nothing_of_the_credentials() {
        let text = serde_json::to_string(&Access::with(secret("a", "hunter2"))).unwrap();
        assert!(text.starts_with("{\"access\":[{") && !text.contains("hunter2"), "{text}");
        assert_eq!(serde_json::from_str::<Access>(&text).unwrap(), Access::with(secret("a", "hunter2")));
    }
}
