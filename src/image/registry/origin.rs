//! The rules by which credentials stay with the host that they are for: redirects, and token servers (realms). **Pure**.
//!
//! Their reasons: CVE-2020-15157 (containerd sent credentials to whatever host a manifest named), and registries that redirect layers to a content
//! delivery network, which must not see them.

use super::super::registry_config::RegistryConfig;
use reqwest::Url;

/// Redirects of one request.
pub(super) const MAX_REDIRECTS: usize = 5;

/// Token servers of public registries that are not on the registry's own host, so that nobody has to configure them. Of ghcr.io, quay.io, gcr.io,
/// *.pkg.dev, public.ecr.aws, *.azurecr.io, mcr.microsoft.com, nvcr.io and registry.redhat.io they are.
const TOKEN_SERVERS: [(&str, &str); 9] = [
    ("docker.io", "auth.docker.io"),
    ("registry-1.docker.io", "auth.docker.io"),
    ("index.docker.io", "auth.docker.io"),
    ("registry.gitlab.com", "gitlab.com"),
    ("registry.digitalocean.com", "api.digitalocean.com"),
    ("registry.connect.redhat.com", "sso.redhat.com"),
    ("rg.fr-par.scw.cloud", "api.scaleway.com"),
    ("rg.nl-ams.scw.cloud", "api.scaleway.com"),
    ("rg.pl-waw.scw.cloud", "api.scaleway.com"),
];

/// Reason why a redirect is not followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RedirectRefusal {
    /// More than [`MAX_REDIRECTS`].
    #[error("more than {MAX_REDIRECTS} redirects")]
    TooMany,
    /// Without a usable `Location`.
    #[error("it has no valid Location")]
    NoTarget,
    /// From https to http.
    #[error("it leads from https to http ({0})")]
    Downgrade(String),
    /// To http, at a host that is not configured so.
    #[error("it leads to {0} over http; to allow this, add an entry with host: \"{0}\" and http: true to registries")]
    Plain(String),
    /// To something else.
    #[error("its URL has the unsupported scheme {0:?}")]
    Scheme(String),
    /// With a user name of the redirecting host's choice.
    #[error("its URL contains a user name ({0})")]
    UserName(String),
}

/// Returns the URL that a redirect from `from` leads to. `is_plain` says which hosts may be asked over http.
pub(super) fn redirect(from: &Url, location: Option<&str>, is_plain: impl Fn(&Url) -> bool) -> Result<Url, RedirectRefusal> {
    let mut to = location.and_then(|location| from.join(location).ok()).ok_or(RedirectRefusal::NoTarget)?;
    to.set_fragment(None);
    match (from.scheme(), to.scheme()) {
        (_, "https") => {}
        ("https", "http") => return Err(RedirectRefusal::Downgrade(authority(&to))),
        (_, "http") if is_plain(&to) => {}
        (_, "http") => return Err(RedirectRefusal::Plain(authority(&to))),
        (_, other) => return Err(RedirectRefusal::Scheme(other.to_owned())),
    }
    if !to.username().is_empty() || to.password().is_some() {
        return Err(RedirectRefusal::UserName(authority(&to)));
    }
    Ok(to)
}

/// Reason why a token server is not asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RealmRefusal {
    /// Not a URL of a server.
    #[error("its token server {0:?} is not a valid URL")]
    Url(String),
    /// Over http.
    #[error("its token server {0} uses http, without encryption")]
    ClearText(String),
    /// At a host that the credentials are not for.
    #[error(
        "its token server is {realm}, but the credentials are for {registry} only; to allow this, add an entry for {registry} to registries \
         with tokenServers: [\"{realm}\"]"
    )]
    Elsewhere {
        /// As references name it.
        registry: String,
        /// Host and port.
        realm: String,
    },
}

/// A token server that may be asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Realm {
    pub(super) url: Url,
    /// The configuration names it.
    pub(super) is_named: bool,
}

/// Decides whether the token server at `realm` may be asked. `base` is the registry's own URL; with credentials, only servers that these are for.
pub(super) fn realm(config: &RegistryConfig, base: &Url, realm: &str, with_credentials: bool) -> Result<Realm, RealmRefusal> {
    let bad = || RealmRefusal::Url(realm.chars().take(100).collect());
    let mut url = Url::parse(realm).map_err(|_| bad())?;
    url.set_fragment(None);
    let has_user = !url.username().is_empty() || url.password().is_some();
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none() || has_user {
        return Err(bad());
    }
    let is_named = config.token_servers.iter().any(|host| is_at(&url, host));
    let is_own_origin = url.origin() == base.origin();
    if url.scheme() == "http" && !(config.http && (is_own_origin || is_named)) {
        return Err(RealmRefusal::ClearText(authority(&url)));
    }
    let is_known = TOKEN_SERVERS.iter().any(|(registry, host)| *registry == config.host && is_at(&url, host));
    let is_same_host = url.host_str() == base.host_str();
    if with_credentials && !(is_same_host || is_known || is_named) {
        return Err(RealmRefusal::Elsewhere { registry: config.host.clone(), realm: authority(&url) });
    }
    Ok(Realm { url, is_named })
}

/// Reports whether a URL is at a host as the configuration names it: with the port, unless it is the scheme's own.
pub(super) fn is_at(url: &Url, host: &str) -> bool {
    Url::parse(&format!("{}://{host}/", url.scheme())).is_ok_and(|named| named.origin() == url.origin())
}

/// Host and port, which is all that messages show of a URL: its path and query may have secrets.
pub(super) fn authority(url: &Url) -> String {
    let host = url.host_str().unwrap_or_default();
    url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}"))
}

/// The scope to ask a token for: that of the challenge, but of the rights to a repository no other than `pull`.
pub(super) fn pull_scope(challenge: Option<&str>, repository: &str) -> String {
    let narrowed = |scope: &str| match scope.strip_prefix("repository:").and_then(|rest| rest.rsplit_once(':')) {
        Some((name, _)) => format!("repository:{name}:pull"),
        // Scopes of a registry's own kind, such as `aws`.
        None => scope.to_owned(),
    };
    let scopes: Vec<String> = challenge.unwrap_or_default().split_whitespace().map(narrowed).collect();
    if scopes.is_empty() { format!("repository:{repository}:pull") } else { scopes.join(" ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    fn lead(from: &str, to: &str, plain: &str) -> Result<String, RedirectRefusal> {
        redirect(&url(from), Some(to), |url| is_at(url, plain)).map(|url| url.to_string())
    }

    fn registry(host: &str, http: bool, token_servers: &[&str]) -> (RegistryConfig, Url) {
        let token_servers = token_servers.iter().map(|host| (*host).to_owned()).collect();
        let base = url(&format!("{}://{host}/", if http { "http" } else { "https" }));
        (RegistryConfig { host: host.to_owned(), http, token_servers, ..Default::default() }, base)
    }

    fn asked(host: &str, http: bool, named: &[&str], at: &str, with_credentials: bool) -> Result<(), RealmRefusal> {
        let (config, base) = registry(host, http, named);
        realm(&config, &base, at, with_credentials).map(|_| ())
    }

    #[test]
    fn redirects_stay_in_https() {
        assert_eq!(lead("https://a/x/y", "z#f", ""), Ok("https://a/x/z".into()));
        assert_eq!(lead("https://a/", "https://b:5000/x?sig=1", ""), Ok("https://b:5000/x?sig=1".into()));
        assert_eq!(lead("http://a/", "https://b/", ""), Ok("https://b/".into()));
        assert_eq!(lead("https://a/", "http://a/", "a"), Err(RedirectRefusal::Downgrade("a".into())));
        assert_eq!(lead("http://a/", "http://b:80/", ""), Err(RedirectRefusal::Plain("b".into())));
        assert_eq!(lead("http://a/", "http://b:5000/x", "b:5000"), Ok("http://b:5000/x".into()));
        assert_eq!(lead("http://a/", "http://b/", "b:80"), Ok("http://b/".into()));
        assert_eq!(lead("https://a/", "file:///etc", ""), Err(RedirectRefusal::Scheme("file".into())));
        assert_eq!(lead("https://a/", "https://u:p@b/", ""), Err(RedirectRefusal::UserName("b".into())));
        assert_eq!(lead("https://a/", "https://", ""), Err(RedirectRefusal::NoTarget));
        assert_eq!(redirect(&url("https://a/"), None, |_| true), Err(RedirectRefusal::NoTarget));
    }

    #[test]
    fn without_credentials_any_https_realm_is_asked() {
        assert!(asked("r.lan", false, &[], "https://auth.example/token", false).is_ok());
        assert!(asked("r.lan:5000", true, &[], "http://r.lan:5000/token", false).is_ok());
        for (http, at) in [(false, "http://r.lan:5000/token"), (true, "http://r.lan/token"), (true, "http://other/token")] {
            assert_eq!(
                asked("r.lan:5000", http, &[], at, false).unwrap_err(),
                RealmRefusal::ClearText(authority(&url(at))),
                "{at}"
            );
        }
        for at in ["", "token", "file:///etc/passwd", "https://u:p@r.lan/", "data:,x"] {
            assert!(matches!(asked("r.lan", false, &[], at, false), Err(RealmRefusal::Url(_))), "{at}");
        }
    }

    #[test]
    fn credentials_go_to_the_same_host_and_named_ones() {
        assert!(asked("r.lan", false, &[], "https://r.lan:5001/token", true).is_ok());
        assert!(asked("r.lan", false, &["auth.lan"], "https://auth.lan:443/token", true).is_ok());
        assert!(asked("r.lan", false, &["auth.lan:5001"], "https://AUTH.lan:5001/token", true).is_ok());
        assert!(asked("r.lan", true, &["auth.lan:5001"], "http://auth.lan:5001/token", true).is_ok());
        for at in [
            "https://auth.lan:5001/",
            "https://auth.lan.evil.example/",
            "https://evil.example/?auth.lan",
            "https://r.lan.evil.example/",
        ] {
            let refusal = asked("r.lan", false, &["auth.lan"], at, true).unwrap_err();
            assert!(refusal.to_string().contains("tokenServers"), "{refusal}");
        }
        assert!(matches!(asked("r.lan", false, &["auth.lan"], "http://auth.lan/", true), Err(RealmRefusal::ClearText(_))));
    }

    #[test]
    fn token_servers_of_public_registries_are_known() {
        for (host, base, at) in [
            ("docker.io", "https://registry-1.docker.io/", "https://auth.docker.io/token"),
            ("registry.gitlab.com", "https://registry.gitlab.com/", "https://gitlab.com/jwt/auth"),
            ("ghcr.io", "https://ghcr.io/", "https://ghcr.io/token"),
            ("quay.io", "https://quay.io/", "https://quay.io/v2/auth"),
            ("public.ecr.aws", "https://public.ecr.aws/", "https://public.ecr.aws/token/"),
            ("europe-docker.pkg.dev", "https://europe-docker.pkg.dev/", "https://europe-docker.pkg.dev/v2/token"),
            (
                "registry.redhat.io",
                "https://registry.redhat.io/",
                "https://registry.redhat.io/auth/realms/rhcc/protocol/redhat-docker-v2/auth",
            ),
        ] {
            let config = RegistryConfig { host: host.into(), ..Default::default() };
            assert!(realm(&config, &url(base), at, true).is_ok(), "{host}");
            let other = RegistryConfig { host: "evil.example".into(), ..Default::default() };
            assert!(realm(&other, &url("https://evil.example/"), at, true).is_err(), "{host}");
        }
    }

    #[test]
    fn scope_asks_for_nothing_but_pull() {
        assert_eq!(pull_scope(None, "a/b"), "repository:a/b:pull");
        assert_eq!(pull_scope(Some("repository:a/b:pull,push,delete"), "a/b"), "repository:a/b:pull");
        assert_eq!(pull_scope(Some("repository:r.lan:5000/a:*"), "a"), "repository:r.lan:5000/a:pull");
        assert_eq!(pull_scope(Some("aws"), "a/b"), "aws");
        assert_eq!(pull_scope(Some("  "), "a"), "repository:a:pull");
    }

    fn hosts() -> impl Strategy<Value = String> {
        prop_oneof!["[a-c]\\.(lan|example)(:[1-9][0-9]{0,3})?", Just("docker.io".to_owned()), Just("auth.docker.io".to_owned())]
    }

    proptest! {
        #[test]
        fn redirect_never_leaves_https(from in "https://[a-c]\\.lan(:[1-9][0-9]{0,3})?/[a-z]{0,5}", to in "\\PC{0,40}|(https?|ftp)?:?//[a-z@:.0-9\\[\\]]{0,20}/") {
            if let Ok(to) = redirect(&url(&from), Some(&to), |_| true) {
                prop_assert_eq!(to.scheme(), "https");
                prop_assert!(to.username().is_empty() && to.password().is_none());
            }
        }

        #[test]
        fn credentials_never_go_to_a_host_that_nobody_named(host in hosts(), other in hosts(), named in hosts(), scheme in "https?", http: bool) {
            let (config, base) = registry(&host, http, &[&named]);
            if let Ok(Realm { url, .. }) = realm(&config, &base, &format!("{scheme}://{other}/token"), true) {
                let is_built_in = TOKEN_SERVERS.contains(&(config.host.as_str(), url.host_str().unwrap()));
                prop_assert!(url.host_str() == base.host_str() || is_at(&url, &named) || is_built_in);
                prop_assert!(url.scheme() == "https" || http);
            }
        }

        #[test]
        fn what_is_asked_with_credentials_is_asked_without(host in hosts(), other in hosts(), scheme in "https?", http: bool) {
            let (config, base) = registry(&host, http, &[]);
            let at = format!("{scheme}://{other}/token");
            if realm(&config, &base, &at, true).is_ok() {
                prop_assert!(realm(&config, &base, &at, false).is_ok());
            }
        }
    }
}
