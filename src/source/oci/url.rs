//! URLs of repositories in registries: `oci://registry.lan:5000/team/fleet`. **Pure**.

use podstead_container::digest::Digest;
use podstead_container::reference::Reference;
use std::fmt;
use std::str::FromStr;

const SCHEME: &str = "oci://";

/// URL of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OciUrl(Reference);

impl OciUrl {
    /// The repository, with a tag that does not matter.
    pub(super) fn repository(&self) -> &Reference {
        &self.0
    }

    /// A tag of it, if that can be one.
    pub(super) fn tagged(&self, tag: &str) -> Option<Reference> {
        format!("{}/{}:{tag}", self.0.host(), self.0.repository()).parse().ok()
    }

    /// Reports whether a text can be a tag.
    pub fn has_tag(&self, tag: &str) -> bool {
        self.tagged(tag).is_some_and(|reference| reference.tag() == Some(tag))
    }

    /// A digest in it.
    pub(super) fn at(&self, digest: Digest) -> Reference {
        self.0.at(digest)
    }
}

impl fmt::Display for OciUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.0.host(), self.0.repository())
    }
}

impl FromStr for OciUrl {
    /// The reason, for a person, as it follows the name of the field.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(name) = text.strip_prefix(SCHEME) else {
            return Err(format!("is {text:?}, must begin with {SCHEME} and the registry, such as oci://ghcr.io/org/fleet"));
        };
        let name = name.trim_end_matches('/');
        let Some((host, repository)) = name.split_once('/') else {
            return Err("has no repository after the registry, such as oci://ghcr.io/org/fleet".to_owned());
        };
        if host.contains('@') || repository.contains([':', '@']) {
            return Err("must not contain credentials, a tag or a digest: credentials belong to registries, a tag or digest to the fields tag, semver and digest".to_owned());
        }
        let reference: Reference = name.parse().map_err(|reason| format!("is not the name of a repository: {reason}"))?;
        if reference.host() != host && host != "index.docker.io" {
            return Err(format!(
                "has the registry {host:?}, which looks like a part of a repository: write its port, such as {host}:443"
            ));
        }
        Ok(Self(reference))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories_are_named_with_their_registry() {
        for (text, shown) in [
            ("oci://ghcr.io/org/fleet", "oci://ghcr.io/org/fleet"),
            ("oci://127.0.0.1:5000/fleet/", "oci://127.0.0.1:5000/fleet"),
            ("oci://localhost/a/b", "oci://localhost/a/b"),
            ("oci://index.docker.io/user/fleet", "oci://docker.io/user/fleet"),
        ] {
            assert_eq!(text.parse::<OciUrl>().unwrap().to_string(), shown, "{text}");
        }
        let url: OciUrl = "oci://r.lan/a".parse().unwrap();
        assert_eq!(url.tagged("v1").unwrap().to_string(), "r.lan/a:v1");
        assert_eq!(url.tagged("v 1"), None);
    }

    #[test]
    fn mistakes_in_urls_are_named() {
        for (text, reason) in [
            ("https://ghcr.io/org/fleet", "must begin with oci://"),
            ("oci://ghcr.io", "no repository"),
            ("oci://ghcr.io/", "no repository"),
            ("oci://ghcr.io/org/fleet:v1", "must not contain credentials, a tag or a digest"),
            ("oci://u:p@ghcr.io/org/fleet", "must not contain credentials"),
            ("oci://registry/fleet", "write its port, such as registry:443"),
            ("oci://ghcr.io/Org/fleet", "must be lower case"),
            ("oci://ghcr.io/a b", "contains the character ' '"),
        ] {
            let error = text.parse::<OciUrl>().unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
