//! Hosts that are asked for the images of a registry: its mirrors in their order, then the registry itself.
//!
//! The configuration (`registries`) or containerd's directory of hosts (`registriesDirectory`) says which; the configuration wins. Credentials belong to
//! a host: a mirror gets those of its own name, and never what is for the registry.

mod directory;
mod health;
mod hosts_file;

pub(super) use health::Health;

use super::super::mirror_config::MirrorConfig;
use super::super::registry_config::RegistryConfig;
use super::origin::authority;
use hosts_file::{HostTable, HostsFile};
use podstead_container::reference::{DEFAULT_HOST, Reference};
use reqwest::Url;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Name under which the hub answers, which is not the one that references have.
const HUB: &str = "registry-1.docker.io";

/// Relation of a host to the registry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The registry itself: the credentials of whoever pulls are for it.
    Registry,
    /// Another host.
    Mirror,
}

/// Identity of a file at the time when it was looked at: changed certificates make another endpoint.
type Stamp = Option<(u64, i64, i64, u64)>;

/// A host with the way to ask it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Endpoint {
    /// Access to it. The host in it is its name in messages, and that of its credentials.
    pub(super) access: RegistryConfig,
    /// Beginning of its URLs.
    pub(super) base: Url,
    pub(super) role: Role,
    /// It may be asked for content.
    pub(super) pulls: bool,
    /// It may be asked which content a tag names.
    pub(super) resolves: bool,
    /// The registry, for `?ns=`.
    pub(super) namespace: Option<String>,
    /// PEM files with certificate authorities, beside `access.ca_file`.
    pub(super) authorities: Vec<PathBuf>,
    /// PEM files of the client certificate and its key.
    pub(super) client: Option<(PathBuf, PathBuf)>,
    /// Further headers of requests.
    pub(super) headers: Vec<(String, String)>,
    pub(super) connect_timeout: Option<Duration>,
    stamps: Vec<Stamp>,
}

impl Endpoint {
    fn new(access: RegistryConfig, base: Url, role: Role) -> Self {
        let http = base.scheme() == "http";
        Self {
            access: RegistryConfig { http, mirrors: Vec::new(), upstream: None, ..access },
            base,
            role,
            pulls: true,
            resolves: true,
            namespace: None,
            authorities: Vec::new(),
            client: None,
            headers: Vec::new(),
            connect_timeout: None,
            stamps: Vec::new(),
        }
    }

    /// The repository of a reference as this host names it.
    pub(super) fn repository(&self, reference: &Reference) -> String {
        let prefix = self.base.path().split_once("/v2/").map_or("", |(_, prefix)| prefix);
        format!("{prefix}{}", reference.repository())
    }

    /// Returns true if the host knows this one by a certificate or a header.
    pub(super) fn has_identity(&self) -> bool {
        self.client.is_some() || !self.headers.is_empty()
    }

    /// The same host, to which nothing says who asks.
    pub(super) fn without_identity(self) -> Self {
        Self { client: None, headers: Vec::new(), ..self }
    }

    /// Looks at the files with certificates.
    fn stamped(self) -> Self {
        let client = self.client.iter().flat_map(|(certificate, key)| [certificate, key]);
        let paths = self.access.ca_file.iter().chain(&self.authorities).chain(client);
        let stamp = |path: &PathBuf| {
            let about = std::fs::metadata(path).ok()?;
            Some((about.ino(), about.mtime(), about.mtime_nsec(), about.len()))
        };
        let stamps = paths.map(stamp).collect();
        Self { stamps, ..self }
    }
}

/// Finds the hosts for the images of a registry. `directory` is containerd's.
///
/// # Errors
///
/// A file in the directory that cannot be used, with its line and field.
pub(super) fn endpoints(
    registry: &str,
    configs: &HashMap<String, RegistryConfig>,
    directory: Option<&Path>,
) -> Result<Vec<Endpoint>, String> {
    let own = access_of(registry, configs);
    let is_written = !own.mirrors.is_empty() || own.upstream.is_some();
    let file = match directory.filter(|_| !is_written) {
        Some(directory) => directory::find(directory, registry)?,
        None => None,
    };
    let endpoints = match file {
        Some(file) => of_file(registry, configs, file),
        None => of_configuration(registry, configs, &own),
    };
    Ok(endpoints.into_iter().flatten().map(Endpoint::stamped).collect())
}

fn access_of(host: &str, configs: &HashMap<String, RegistryConfig>) -> RegistryConfig {
    configs.get(host).cloned().unwrap_or_else(|| RegistryConfig { host: host.to_owned(), ..RegistryConfig::default() })
}

/// The registry itself. `None` for a name that is no host.
fn origin(own: RegistryConfig) -> Option<Endpoint> {
    let scheme = if own.http { "http" } else { "https" };
    let base = Url::parse(&format!("{scheme}://{}/v2/", real_name(&own.host))).ok()?;
    Some(Endpoint::new(own, base, Role::Registry))
}

fn real_name(host: &str) -> &str {
    if matches!(host, DEFAULT_HOST | "index.docker.io") { HUB } else { host }
}

fn of_configuration(registry: &str, configs: &HashMap<String, RegistryConfig>, own: &RegistryConfig) -> Vec<Option<Endpoint>> {
    let mirrors = own.mirrors.iter().map(|mirror| {
        let url = mirror.parsed()?;
        let MirrorConfig { url: _, resolve, ca_file, client_cert_file, client_key_file, auth_file, proxy_namespace } =
            mirror.clone();
        let mut access = access_of(&authority(&url), configs);
        if auth_file.is_some() {
            access = RegistryConfig { auth_file, username: None, password_file: None, credential_helper: None, ..access };
        }
        access.ca_file = ca_file.or(access.ca_file);
        let prefix = url.path().trim_matches('/');
        let mut base = url.clone();
        base.set_path(&if prefix.is_empty() { "/v2/".to_owned() } else { format!("/v2/{prefix}/") });
        Some(Endpoint {
            resolves: resolve,
            namespace: proxy_namespace.then(|| registry.to_owned()),
            client: client_cert_file.zip(client_key_file),
            ..Endpoint::new(access, base, Role::Mirror)
        })
    });
    let origin = (own.upstream != Some(false)).then(|| origin(own.clone())).flatten();
    mirrors.chain([origin]).collect()
}

fn of_file(registry: &str, configs: &HashMap<String, RegistryConfig>, file: HostsFile) -> Vec<Option<Endpoint>> {
    let is_own = |url: &Url| authority(url) == real_name(registry) || authority(url) == registry;
    let endpoint = |table: HostTable| {
        let HostTable { base, pulls, resolves, authorities, client, headers, dial_timeout } = table;
        let endpoint = match base {
            Some(mut base) if is_own(&base) => {
                let name = real_name(base.host_str()?).to_owned();
                base.set_host(Some(&name)).ok()?;
                Endpoint::new(access_of(registry, configs), base, Role::Registry)
            }
            Some(base) => {
                let access = access_of(&authority(&base), configs);
                // As containerd: whoever stands in for a registry learns for which.
                Endpoint { namespace: Some(registry.to_owned()), ..Endpoint::new(access, base, Role::Mirror) }
            }
            None => origin(access_of(registry, configs))?,
        };
        Some(Endpoint { pulls, resolves, authorities, client, headers, connect_timeout: dial_timeout, ..endpoint })
    };
    file.hosts.into_iter().chain([file.server]).map(endpoint).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configs(text: &str) -> HashMap<String, RegistryConfig> {
        let configs: Vec<RegistryConfig> = serde_json::from_str(text).unwrap();
        configs.into_iter().map(|config| (config.host.clone(), config)).collect()
    }

    fn names(endpoints: &[Endpoint]) -> Vec<(&str, &str, Role)> {
        endpoints.iter().map(|endpoint| (endpoint.access.host.as_str(), endpoint.base.as_str(), endpoint.role)).collect()
    }

    #[test]
    fn mirrors_come_before_the_registry() {
        let configs = configs(
            r#"[{"host":"docker.io","username":"u","passwordFile":"/p","mirrors":[
                {"url":"https://one.lan:5000/hub/","authFile":"/a","proxyNamespace":true},{"url":"http://two.lan","resolve":true}]},
               {"host":"two.lan","username":"two","passwordFile":"/two"},
               {"host":"quay.io","mirrors":[{"url":"https://one.lan"}],"upstream":false}]"#,
        );
        let found = endpoints("docker.io", &configs, None).unwrap();
        let [one, two, origin] = &found[..] else { panic!("{found:?}") };
        assert_eq!(
            names(&found),
            [
                ("one.lan:5000", "https://one.lan:5000/v2/hub/", Role::Mirror),
                ("two.lan", "http://two.lan/v2/", Role::Mirror),
                ("docker.io", "https://registry-1.docker.io/v2/", Role::Registry)
            ]
        );
        assert_eq!((one.resolves, two.resolves, origin.resolves), (false, true, true));
        assert_eq!(one.access.auth_file, Some("/a".into()));
        assert_eq!(one.namespace.as_deref(), Some("docker.io"));
        assert_eq!((two.access.username.as_deref(), two.access.http), (Some("two"), true));
        assert_eq!(one.repository(&"nginx".parse().unwrap()), "hub/library/nginx");
        assert_eq!(two.repository(&"nginx".parse().unwrap()), "library/nginx");
        assert_eq!(names(&endpoints("quay.io", &configs, None).unwrap()), [("one.lan", "https://one.lan/v2/", Role::Mirror)]);
        assert_eq!(names(&endpoints("x.lan", &configs, None).unwrap()), [("x.lan", "https://x.lan/v2/", Role::Registry)]);
    }

    #[test]
    fn file_names_hosts_and_server() {
        let root = tempfile::tempdir().unwrap();
        let write = |registry: &str, text: &str| {
            let directory = root.path().join(registry);
            std::fs::create_dir_all(&directory).unwrap();
            std::fs::write(directory.join("hosts.toml"), text).unwrap();
        };
        write(
            "docker.io",
            "server = \"https://docker.io\"\n[host.\"https://m.lan\"]\ncapabilities=[\"pull\"]\n[host.\"https://m.lan\".header]\na=\"b\"\n",
        );
        write("r.lan:5000", "server = \"https://elsewhere.lan\"\n");
        write("quay.io", "[host.\"https://m.lan/quay\"]\n");
        let configs = configs(
            r#"[{"host":"docker.io","username":"u","passwordFile":"/p"},{"host":"r.lan:5000","username":"u","passwordFile":"/p"},
                {"host":"quay.io","mirrors":[{"url":"https://one.lan"}]}]"#,
        );
        let at = |registry: &str| endpoints(registry, &configs, Some(root.path())).unwrap();
        let hub = at("docker.io");
        assert_eq!(
            names(&hub),
            [("m.lan", "https://m.lan/v2/", Role::Mirror), ("docker.io", "https://registry-1.docker.io/v2/", Role::Registry)]
        );
        assert!(hub[0].has_identity() && !hub[0].resolves && !hub[0].clone().without_identity().has_identity());
        assert_eq!(hub[1].access.username.as_deref(), Some("u"));
        let elsewhere = at("r.lan:5000");
        assert_eq!(names(&elsewhere), [("elsewhere.lan", "https://elsewhere.lan/v2/", Role::Mirror)]);
        assert!(!elsewhere[0].access.has_credentials(), "what is for the registry is not for another host");
        assert_eq!(names(&at("quay.io"))[0].0, "one.lan", "the configuration wins");
    }

    #[test]
    fn changed_certificates_make_another_endpoint() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ca.pem");
        let configs = configs(&format!(r#"[{{"host":"r.lan","caFile":"{}"}}]"#, path.display()));
        let at = || endpoints("r.lan", &configs, None).unwrap();
        let none = at();
        assert_eq!(none, at());
        std::fs::write(&path, "one").unwrap();
        let one = at();
        assert!(none != one && one == at());
        std::fs::write(&path, "other").unwrap();
        assert!(one != at());
    }
}
