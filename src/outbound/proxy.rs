//! Proxies that the environment names, as HTTP clients read it.

use reqwest::{NoProxy, Proxy, Url};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Values of the variables that name proxies. They may hold passwords.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnvironmentProxies {
    http: String,
    https: String,
    all: String,
    no: String,
}

impl fmt::Debug for EnvironmentProxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvironmentProxies").field("hosts", &self.hosts()).finish_non_exhaustive()
    }
}

impl EnvironmentProxies {
    /// Those that this process was started with.
    pub fn of_this_process() -> Self {
        // A CGI program has headers of requests in its environment.
        if std::env::var_os("REQUEST_METHOD").is_some() {
            return Self::default();
        }
        Self::of(|name| std::env::var(name).ok())
    }

    fn of(value: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: [&str; 2]| names.into_iter().find_map(&value).unwrap_or_default();
        Self {
            http: first(["HTTP_PROXY", "http_proxy"]),
            https: first(["HTTPS_PROXY", "https_proxy"]),
            all: first(["ALL_PROXY", "all_proxy"]),
            no: first(["NO_PROXY", "no_proxy"]),
        }
    }

    fn urls(&self) -> impl Iterator<Item = Url> {
        let written = [&self.http, &self.https, &self.all].into_iter().filter(|value| !value.is_empty());
        // `proxy.lan:3128` is a URL, too, of a scheme with dots and without a host.
        let parse = |value: &String| Url::parse(value).ok().filter(Url::has_host);
        written.filter_map(move |value| parse(value).or_else(|| Url::parse(&format!("http://{value}")).ok()))
    }

    /// Names of the proxies.
    pub fn hosts(&self) -> Vec<String> {
        self.urls().filter_map(|url| url.host_str().map(str::to_owned)).collect()
    }

    /// Returns true if a proxy is reached over TLS.
    pub fn is_secure(&self) -> bool {
        self.urls().any(|url| url.scheme() == "https")
    }

    /// As the client takes them, those for one scheme before the one for all. What is no proxy is left out.
    pub fn proxies(&self) -> Vec<Proxy> {
        let no = NoProxy::from_string(&self.no);
        let given = |value: &String| Some(value.clone()).filter(|value| !value.is_empty());
        let made = [given(&self.http).map(Proxy::http), given(&self.https).map(Proxy::https), given(&self.all).map(Proxy::all)];
        made.into_iter().flatten().flatten().map(|proxy| proxy.no_proxy(no.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_read_as_clients_read_them() {
        let of = |variables: &[(&str, &str)]| {
            EnvironmentProxies::of(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
        };
        let proxies = of(&[("http_proxy", "proxy.lan:3128"), ("HTTPS_PROXY", "http://u:secret@other.lan"), ("NO_PROXY", "lan")]);
        assert_eq!(proxies.hosts(), ["proxy.lan", "other.lan"]);
        assert!(!proxies.is_secure() && of(&[("ALL_PROXY", "https://proxy.lan")]).is_secure());
        assert_eq!((proxies.proxies().len(), of(&[]).proxies().len()), (2, 0));
        assert!(!format!("{proxies:?}").contains("secret"));
        // The first name that is there counts, be it empty.
        assert_eq!(of(&[("HTTP_PROXY", ""), ("http_proxy", "proxy.lan")]), EnvironmentProxies::default());
    }
}
