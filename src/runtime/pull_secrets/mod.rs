//! Secrets that a pod's images are pulled with, as input of the registry client. **Pure**.
//!
//! In: what a pod's `imagePullSecrets` name. Out: for an image, the credentials to try, in the order of the kubelet's `credentialprovider`:
//! entries with the longer, or greater, name first, those of one name in the order of the Secrets. See [`matching`] for what is for an
//! image, and `access` of `podstead-image` for what is remembered of a pull with one.

mod matching;

use super::credentials::{Credentials, parse_config, parse_legacy};
use podstead_container::reference::Reference;
use podstead_pod::SourceId;
use podstead_pod::pull_secrets::PullSecret;
use std::fmt;

/// Of both types, the key that holds the credentials.
const TYPES: [(&str, &str); 2] =
    [("kubernetes.io/dockerconfigjson", ".dockerconfigjson"), ("kubernetes.io/dockercfg", ".dockercfg")];

/// One entry of a Secret.
#[derive(Clone)]
struct Entry {
    key: String,
    login: Login,
}

/// Credentials of a Secret. `Debug` shows the Secret's name.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Login {
    /// The Secret's namespace and name.
    pub secret: (String, String),
    /// The source that it is of, where another source may have one of the same name.
    pub restricted_to: Option<SourceId>,
    /// The credentials.
    pub credentials: Credentials,
}

impl Login {
    /// `namespace/name` of the Secret.
    pub fn name(&self) -> String {
        let (namespace, name) = &self.secret;
        format!("{namespace}/{name}")
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Login").field(&self.name()).finish()
    }
}

/// Secrets of one pod. `Debug` shows how many entries they have.
#[derive(Clone, Default)]
pub struct PullSecrets {
    entries: Vec<Entry>,
    /// All of them, for a person.
    names: Vec<String>,
    /// Problem of one of them: a pull fails with it, as the kubelet's does.
    problem: Option<String>,
    /// Those that hold no credentials.
    others: Vec<String>,
    /// The credentials of this host are not for this pod.
    without_host: bool,
}

impl fmt::Debug for PullSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PullSecrets").field("secrets", &self.names).field("entries", &self.entries.len()).finish_non_exhaustive()
    }
}

impl PullSecrets {
    /// No Secret: images are pulled with what the configuration says of their registries.
    pub const fn none() -> Self {
        Self { entries: Vec::new(), names: Vec::new(), problem: None, others: Vec::new(), without_host: false }
    }

    /// Reads the Secrets of a pod.
    pub fn new(secrets: &[PullSecret]) -> Self {
        let mut read = Self::none();
        for secret in secrets {
            let name = format!("{}/{}", secret.name.namespace, secret.name.name);
            read.names.push(name.clone());
            if let Err(problem) = read.add(secret) {
                read.problem.get_or_insert(format!("Secret {name}: {problem}"));
            }
        }
        // Stable: of one name, those of the Secret that is written first come first.
        read.entries.sort_by(|one, other| other.key.cmp(&one.key));
        read
    }

    /// The same for a pod that may, or may not, use the credentials that this host has for registries.
    pub fn with_host_credentials(self, allowed: bool) -> Self {
        Self { without_host: !allowed, ..self }
    }

    /// Returns true if the pod may use the credentials that this host has for registries.
    pub fn may_use_host_credentials(&self) -> bool {
        !self.without_host
    }

    fn add(&mut self, secret: &PullSecret) -> Result<(), String> {
        let found = TYPES.iter().find(|(kind, _)| secret.kind() == *kind);
        let Some((key, content)) = found.and_then(|(_, key)| Some((*key, secret.content(key)?))) else {
            self.others.extend(self.names.last().cloned());
            return Ok(());
        };
        let entries = if key == TYPES[0].1 { parse_config(content) } else { parse_legacy(content) };
        for (written, entry) in entries.map_err(|problem| format!("{key} {problem}"))? {
            let credentials = entry.credentials().map_err(|problem| format!("the auth of its entry for {written} {problem}"))?;
            if credentials != Credentials::Anonymous {
                let restricted_to = secret.restricted_to.clone();
                let secret = (secret.name.namespace.to_string(), secret.name.name.to_string());
                self.entries.push(Entry { key: matching::key(&written), login: Login { secret, restricted_to, credentials } });
            }
        }
        Ok(())
    }

    /// Reason why a pull with these Secrets cannot be tried.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// The credentials for an image, in the order in which they are tried.
    pub fn logins(&self, image: &Reference) -> Vec<Login> {
        let all = |is_wanted: &dyn Fn(&Entry) -> bool| {
            let wanted = self.entries.iter().filter(|entry| is_wanted(entry)).map(|entry| entry.login.clone());
            wanted.collect::<Vec<_>>()
        };
        let mut found = all(&|entry| matching::is_for(&entry.key, image));
        if found.is_empty() && matching::is_of_hub(image) {
            found = all(&|entry| entry.key == matching::HUB);
        }
        found
    }

    /// For a person whose pull failed though there are Secrets.
    pub fn explain_no_login(&self, image: &Reference) -> Option<String> {
        if self.names.is_empty() {
            return None;
        }
        let of = |names: &[String]| names.join(", ");
        let place = format!("{}/{}", image.host(), image.repository());
        let mut told = format!("none of imagePullSecrets ({}) has credentials for {place}", of(&self.names));
        if !self.others.is_empty() {
            let types = TYPES.map(|(kind, _)| kind).join(" nor ");
            told += &format!("; {} is of neither type {types}", of(&self.others));
        }
        Some(told)
    }

    /// Fingerprints of the Secrets that are for an image, to be compared with those that it was pulled with.
    pub fn uses<Use>(&self, image: &Reference, of: impl Fn(&Login) -> Use) -> Vec<Use> {
        self.logins(image).iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_pod::objects::{ObjectKind, ObjectName};
    use std::sync::Arc;

    fn secret(name: &str, kind: &str, key: &str, content: &str) -> PullSecret {
        let secret = serde_json::json!({"type": kind, "stringData": null, "data": {}});
        let mut secret: k8s_openapi::api::core::v1::Secret = serde_json::from_value(secret).unwrap();
        secret.data = Some([(key.to_owned(), k8s_openapi::ByteString(content.as_bytes().to_vec()))].into());
        let name = ObjectName { kind: ObjectKind::Secret, namespace: "shop".into(), name: name.into() };
        PullSecret { name, secret: Arc::new(secret), restricted_to: None }
    }

    fn json(name: &str, entries: &[(&str, &str)]) -> PullSecret {
        let entries: Vec<String> =
            entries.iter().map(|(at, user)| format!(r#""{at}":{{"username":"{user}","password":"hunter2"}}"#)).collect();
        let content = format!(r#"{{"auths":{{{}}}}}"#, entries.join(","));
        secret(name, TYPES[0].0, TYPES[0].1, &content)
    }

    fn users(secrets: &[PullSecret], image: &str) -> Vec<String> {
        let logins = PullSecrets::new(secrets).logins(&image.parse().unwrap());
        let user = |login: Login| match login.credentials {
            Credentials::Password(user, _) => format!("{}:{user}", login.secret.1),
            Credentials::Anonymous | Credentials::Identity(_) | Credentials::Token(_) => "?".to_owned(),
        };
        logins.into_iter().map(user).collect()
    }

    #[test]
    fn the_more_exact_entry_is_tried_first_and_then_the_secret_that_is_written_first() {
        let secrets = [json("one", &[("r.lan", "a"), ("*.lan", "b")]), json("two", &[("r.lan/team", "c"), ("r.lan", "d")])];
        assert_eq!(users(&secrets, "r.lan/team/x"), ["two:c", "one:a", "two:d", "one:b"]);
        assert_eq!(users(&secrets, "r.lan/x"), ["one:a", "two:d", "one:b"]);
        assert_eq!(users(&secrets, "nginx"), [""; 0]);
    }

    #[test]
    fn the_hub_s_entry_is_for_what_no_other_is_for() {
        let hub = json("hub", &[("https://index.docker.io/v1/", "a")]);
        assert_eq!(users(std::slice::from_ref(&hub), "nginx"), ["hub:a"]);
        assert_eq!(users(&[hub.clone(), json("own", &[("docker.io/me", "b")])], "me/app"), ["own:b"]);
        assert_eq!(users(&[hub], "r.lan/a"), [""; 0]);
    }

    #[test]
    fn the_older_type_has_its_entries_without_a_heading() {
        let legacy = secret("old", TYPES[1].0, TYPES[1].1, r#"{"r.lan":{"auth":"bWU6aHVudGVyMg=="}}"#);
        assert_eq!(users(&[legacy], "r.lan/a"), ["old:me"]);
    }

    #[test]
    fn what_is_wrong_names_the_secret_and_not_what_it_holds() {
        let image = "r.lan/a".parse().unwrap();
        let damaged = PullSecrets::new(&[secret("bad", TYPES[0].0, TYPES[0].1, r#"{"auths":{"r.lan":"hunter2"}}"#)]);
        assert_eq!(
            damaged.problem(),
            Some("Secret shop/bad: .dockerconfigjson is JSON of an unexpected structure (line 1, column 27)")
        );
        let opaque = PullSecrets::new(&[secret("key", "Opaque", ".dockerconfigjson", "{}")]);
        assert_eq!(opaque.problem(), None);
        let told = opaque.explain_no_login(&image).unwrap();
        assert!(
            told.starts_with("none of imagePullSecrets (shop/key) has credentials for r.lan/a; shop/key is of neither type"),
            "{told}"
        );
        let shown = format!("{:?} {:?}", PullSecrets::new(&[json("s", &[("r.lan", "u")])]), json("s", &[("r.lan", "u")]));
        assert!(shown.contains("shop/s") && !shown.contains("hunter2"), "{shown}");
        assert_eq!(PullSecrets::none().explain_no_login(&image), None);
    }
}
