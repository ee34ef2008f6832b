//! `hosts.toml` of containerd: hosts that serve the images of a registry. **Pure**.
//!
//! Fields that containerd does not have are errors, so that a misspelt `capabilities` does not let a mirror resolve tags.

use reqwest::Url;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

/// Hosts of one file.
const MAX_HOSTS: usize = 16;
/// Headers of one host.
const MAX_HEADERS: usize = 32;
/// Longest time to connect.
const MAX_TIMEOUT: Duration = Duration::from_secs(600);

/// Hosts for the images of a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostsFile {
    /// Mirrors, in their order.
    pub(super) hosts: Vec<HostTable>,
    /// `server`: the host that is asked last. Without a URL, the registry itself.
    pub(super) server: HostTable,
}

/// One host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostTable {
    /// Root of its API, with a final `/`.
    pub(super) base: Option<Url>,
    /// It may be asked for content.
    pub(super) pulls: bool,
    /// It may be asked which content a tag names.
    pub(super) resolves: bool,
    /// PEM files with certificate authorities.
    pub(super) authorities: Vec<PathBuf>,
    /// PEM files of the client certificate and of its private key, which may be one.
    pub(super) client: Option<(PathBuf, PathBuf)>,
    /// Further headers of requests.
    pub(super) headers: Vec<(String, String)>,
    /// Longest time to connect.
    pub(super) dial_timeout: Option<Duration>,
}

/// Fault of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct HostsProblem {
    /// Line, from 1 on.
    pub(super) line: usize,
    /// Path of the field; empty where the file is not TOML.
    pub(super) field: String,
    /// The reason.
    pub(super) reason: String,
}

impl fmt::Display for HostsProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, field, reason } = self;
        if field.is_empty() { write!(f, "{line}: {reason}") } else { write!(f, "{line}: {field}: {reason}") }
    }
}

/// Reads a file. Relative paths in it begin at `directory`.
pub(super) fn parse(text: &str, directory: &Path) -> Result<HostsFile, HostsProblem> {
    let file = File { text, directory };
    let root = DeTable::parse(text).map_err(|error| {
        let at = error.span().unwrap_or(0..0);
        file.problem(&at, "", format!("it is not valid TOML: {}", error.message()))
    })?;
    let mut hosts = Vec::new();
    let mut server_url = None;
    let mut own = Vec::new();
    for (key, value) in root.get_ref().iter() {
        match key.get_ref().as_ref() {
            "host" => hosts = file.hosts(value)?,
            "server" => server_url = Some((value, file.text_of(value, "server")?)),
            name => own.push((name.to_owned(), value)),
        }
    }
    let mut server = file.table("", own)?;
    if let Some((value, url)) = server_url.filter(|(_, url)| !url.is_empty()) {
        let is_root = own_override(&root);
        server.base = Some(base(&url, is_root).map_err(|reason| file.problem(&value.span(), "server", reason))?);
    }
    Ok(HostsFile { hosts, server })
}

/// The text of a file, and where its paths begin.
struct File<'a> {
    text: &'a str,
    directory: &'a Path,
}

type Entry<'t, 'i> = (String, &'t Spanned<DeValue<'i>>);

fn own_override(table: &Spanned<DeTable<'_>>) -> bool {
    table.get_ref().get("override_path").is_some_and(|value| value.get_ref().as_bool() == Some(true))
}

impl File<'_> {
    fn problem(&self, at: &Range<usize>, field: &str, reason: impl Into<String>) -> HostsProblem {
        let before = self.text.as_bytes().iter().take(at.start);
        let line = 1 + before.filter(|byte| **byte == b'\n').count();
        HostsProblem { line, field: field.to_owned(), reason: reason.into() }
    }

    fn wrong_type(&self, value: &Spanned<DeValue<'_>>, field: &str, wanted: &str) -> HostsProblem {
        self.problem(&value.span(), field, format!("is of type {}, must be {wanted}", value.get_ref().type_str()))
    }

    fn text_of(&self, value: &Spanned<DeValue<'_>>, field: &str) -> Result<String, HostsProblem> {
        value.get_ref().as_str().map(str::to_owned).ok_or_else(|| self.wrong_type(value, field, "a string"))
    }

    fn flag(&self, value: &Spanned<DeValue<'_>>, field: &str) -> Result<bool, HostsProblem> {
        value.get_ref().as_bool().ok_or_else(|| self.wrong_type(value, field, "true or false"))
    }

    /// The `host` tables, as they are written.
    fn hosts(&self, value: &Spanned<DeValue<'_>>) -> Result<Vec<HostTable>, HostsProblem> {
        let tables = value.get_ref().as_table().ok_or_else(|| self.wrong_type(value, "host", "tables such as [host.\"URL\"]"))?;
        let mut sorted: Vec<_> = tables.iter().collect();
        sorted.sort_by_key(|(key, _)| key.span().start);
        if let Some((key, _)) = sorted.get(MAX_HOSTS) {
            return Err(self.problem(&key.span(), "host", format!("more than {MAX_HOSTS} hosts")));
        }
        let mut hosts = Vec::new();
        for (key, value) in sorted {
            let (url, field) = (key.get_ref().as_ref(), format!("host.\"{}\"", key.get_ref().escape_debug()));
            let table = value.get_ref().as_table().ok_or_else(|| self.wrong_type(value, &field, "a table"))?;
            let is_root = table.get("override_path").is_some_and(|value| value.get_ref().as_bool() == Some(true));
            let base = base(url, is_root).map_err(|reason| self.problem(&key.span(), &field, reason))?;
            let entries = table.iter().map(|(key, value)| (key.get_ref().as_ref().to_owned(), value)).collect();
            let host = self.table(&format!("{field}."), entries)?;
            hosts.push(HostTable { base: Some(base), ..host });
        }
        Ok(hosts)
    }

    /// The fields that hosts and the server have.
    fn table(&self, prefix: &str, mut entries: Vec<Entry<'_, '_>>) -> Result<HostTable, HostsProblem> {
        entries.sort_by_key(|(_, value)| value.span().start);
        let mut host = HostTable {
            base: None,
            pulls: true,
            resolves: true,
            authorities: Vec::new(),
            client: None,
            headers: Vec::new(),
            dial_timeout: None,
        };
        for (name, value) in entries {
            let field = format!("{prefix}{name}");
            match name.as_str() {
                "capabilities" => (host.pulls, host.resolves) = self.capabilities(value, &field)?,
                "ca" => host.authorities = self.paths(value, &field)?,
                "client" => host.client = self.client(value, &field)?,
                "skip_verify" => {
                    if self.flag(value, &field)? {
                        let reason = "certificates are always verified: name the certificate authority of the host in ca";
                        return Err(self.problem(&value.span(), &field, reason));
                    }
                }
                "header" => host.headers = self.headers(value, &field)?,
                // It is part of the URL.
                "override_path" => drop(self.flag(value, &field)?),
                "dial_timeout" => {
                    let text = self.text_of(value, &field)?;
                    let timeout = go_duration(&text).filter(|timeout| *timeout > Duration::ZERO && *timeout <= MAX_TIMEOUT);
                    let bad = || self.problem(&value.span(), &field, format!("{text:?} is not a time such as \"5s\", at most 10m"));
                    host.dial_timeout = Some(timeout.ok_or_else(bad)?);
                }
                _ => return Err(self.problem(&value.span(), &field, "is not a field of hosts.toml")),
            }
        }
        Ok(host)
    }

    /// Permissions to ask for content, and for what tags name. An empty list is as none, as in containerd.
    fn capabilities(&self, value: &Spanned<DeValue<'_>>, field: &str) -> Result<(bool, bool), HostsProblem> {
        let wanted = "a list of \"pull\", \"resolve\" and \"push\"";
        let list = value.get_ref().as_array().ok_or_else(|| self.wrong_type(value, field, wanted))?;
        let (mut pulls, mut resolves) = (list.is_empty(), list.is_empty());
        for item in list.iter() {
            match self.text_of(item, field)?.to_ascii_lowercase().as_str() {
                "pull" => pulls = true,
                "resolve" => resolves = true,
                "push" => {}
                other => return Err(self.problem(&item.span(), field, format!("{other:?} is not one of pull, resolve, push"))),
            }
        }
        Ok((pulls, resolves))
    }

    fn path(&self, value: &Spanned<DeValue<'_>>, field: &str) -> Result<PathBuf, HostsProblem> {
        let text = self.text_of(value, field)?;
        if text.is_empty() || text.contains('\0') {
            return Err(self.problem(&value.span(), field, format!("{text:?} is not a path")));
        }
        Ok(self.directory.join(text))
    }

    /// One path, or a list of paths.
    fn paths(&self, value: &Spanned<DeValue<'_>>, field: &str) -> Result<Vec<PathBuf>, HostsProblem> {
        match value.get_ref() {
            DeValue::Array(list) => list.iter().map(|item| self.path(item, field)).collect(),
            _ => Ok(vec![self.path(value, field)?]),
        }
    }

    /// A file with certificate and key, a list with one such file, or a list with one pair of files.
    fn client(&self, value: &Spanned<DeValue<'_>>, field: &str) -> Result<Option<(PathBuf, PathBuf)>, HostsProblem> {
        let one = |value| self.path(value, field).map(|path| (path.clone(), path));
        let DeValue::Array(list) = value.get_ref() else { return one(value).map(Some) };
        if let Some(second) = list.get(1) {
            return Err(self.problem(&second.span(), field, "more than one client certificate"));
        }
        let Some(first) = list.first() else { return Ok(None) };
        match first.get_ref() {
            DeValue::Array(pair) => self.pair(pair, first, field).map(Some),
            _ => one(first).map(Some),
        }
    }

    fn pair(&self, pair: &DeArray<'_>, value: &Spanned<DeValue<'_>>, field: &str) -> Result<(PathBuf, PathBuf), HostsProblem> {
        match (pair.first(), pair.get(1), pair.len()) {
            (Some(certificate), Some(key), 2) => Ok((self.path(certificate, field)?, self.path(key, field)?)),
            _ => Err(self.problem(&value.span(), field, "must be a pair of a certificate and its key")),
        }
    }

    fn headers(&self, value: &Spanned<DeValue<'_>>, field: &str) -> Result<Vec<(String, String)>, HostsProblem> {
        let table = value.get_ref().as_table().ok_or_else(|| self.wrong_type(value, field, "a table"))?;
        let mut headers = Vec::new();
        for (key, value) in table.iter() {
            let (name, field) = (key.get_ref().as_ref().to_owned(), format!("{field}.{}", key.get_ref().escape_debug()));
            let values: Vec<&Spanned<DeValue<'_>>> = match value.get_ref() {
                DeValue::Array(list) => list.iter().collect(),
                _ => vec![value],
            };
            for value in values {
                let text = self.text_of(value, &field)?;
                let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
                let is_valid =
                    !name.is_empty() && name.chars().all(is_token) && text.chars().all(|c| c == ' ' || c.is_ascii_graphic());
                // Values may be secrets.
                if !is_valid || headers.len() == MAX_HEADERS {
                    let reason = format!("is not the name and value of a header, or one of more than {MAX_HEADERS}");
                    return Err(self.problem(&value.span(), &field, reason));
                }
                headers.push((name.clone(), text));
            }
        }
        headers.sort();
        Ok(headers)
    }
}

/// The root of the API at a URL: its path and `/v2`, or its path alone with `override_path`.
fn base(text: &str, override_path: bool) -> Result<Url, String> {
    let bad = || format!("{text:?} is not a URL such as https://mirror.lan:5000");
    let with_scheme = if text.contains("://") { text.to_owned() } else { format!("https://{text}") };
    let mut url = Url::parse(&with_scheme).map_err(|_| bad())?;
    let is_plain = url.query().is_none() && url.fragment().is_none() && url.username().is_empty() && url.password().is_none();
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() || !is_plain {
        return Err(bad());
    }
    let path = url.path().trim_end_matches('/').to_owned();
    let path = if override_path || path.ends_with("/v2") { path } else { format!("{path}/v2") };
    url.set_path(&format!("{path}/"));
    Ok(url)
}

/// A duration as Go writes it: `1m30s`, `500ms`.
fn go_duration(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut sum = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, after) = rest.split_at(digits);
        let letters = after.find(|c: char| c.is_ascii_digit() || c == '.').unwrap_or(after.len());
        let (unit, after) = after.split_at(letters);
        let seconds = match unit {
            "ms" => 0.001,
            "s" => 1.0,
            "m" => 60.0,
            "h" => 3600.0,
            _ => return None,
        };
        sum = sum.checked_add(Duration::try_from_secs_f64(number.parse::<f64>().ok()? * seconds).ok()?)?;
        rest = after;
    }
    (!text.is_empty()).then_some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<HostsFile, String> {
        parse(text, Path::new("/certs")).map_err(|problem| problem.to_string())
    }

    const FULL: &str = r#"server = "https://registry-1.docker.io"
ca = "hub.pem"

[host."https://z.lan:5000"]
  capabilities = ["pull", "resolve"]
  ca = ["z.pem", "/etc/other.pem"]
  client = [["c.pem", "k.pem"]]
  skip_verify = false
  dial_timeout = "1m30s"
  [host."https://z.lan:5000".header]
    x-one = "1"
    X-Two = ["a", "b"]

[host."a.lan/hub"]
  capabilities = ["pull"]
  client = "both.pem"

[host."http://b.lan/api"]
  override_path = true
"#;

    #[test]
    fn file_is_read_in_its_order() {
        let file = read(FULL).unwrap();
        let bases: Vec<&str> = file.hosts.iter().map(|host| host.base.as_ref().unwrap().as_str()).collect();
        assert_eq!(bases, ["https://z.lan:5000/v2/", "https://a.lan/hub/v2/", "http://b.lan/api/"]);
        let capabilities: Vec<_> = file.hosts.iter().map(|host| (host.pulls, host.resolves)).collect();
        assert_eq!(capabilities, [(true, true), (true, false), (true, true)]);
        let [first, second, _] = &file.hosts[..] else { panic!() };
        assert_eq!(first.authorities, [Path::new("/certs/z.pem"), Path::new("/etc/other.pem")]);
        assert_eq!(first.client, Some(("/certs/c.pem".into(), "/certs/k.pem".into())));
        assert_eq!(second.client, Some(("/certs/both.pem".into(), "/certs/both.pem".into())));
        let headers = [("X-Two", "a"), ("X-Two", "b"), ("x-one", "1")].map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(first.headers, headers);
        assert_eq!(first.dial_timeout, Some(Duration::from_secs(90)));
        assert_eq!(file.server.base.as_ref().unwrap().as_str(), "https://registry-1.docker.io/v2/");
        assert_eq!(file.server.authorities, [Path::new("/certs/hub.pem")]);
        assert_eq!(read("").unwrap().server.base, None);
        assert_eq!(read("server = \"\"\n").unwrap().server.base, None);
    }

    #[test]
    fn faults_have_line_and_field() {
        for (text, problem) in [
            ("\nserver = 1\n", "2: server: is of type integer, must be a string"),
            ("[host.\"https://a\"]\ncapabilites = [\"pull\"]\n", "2: host.\"https://a\".capabilites: is not a field of hosts.toml"),
            (
                "[host.\"https://a\"]\n\ncapabilities = [\"pull\",\n \"fetch\"]\n",
                "4: host.\"https://a\".capabilities: \"fetch\" is not one of",
            ),
            ("skip_verify = true\n", "1: skip_verify: certificates are always verified: name the certificate authority"),
            ("[host.\"ftp://a\"]\n", "1: host.\"ftp://a\": \"ftp://a\" is not a URL"),
            ("[host.\"https://u:p@a\"]\n", "is not a URL"),
            ("[host.\"https://a\"]\nclient = [\"a\", \"b\"]\n", "2: host.\"https://a\".client: more than one client certificate"),
            ("[host.\"https://a\"]\nclient = [[\"a\"]]\n", "must be a pair"),
            ("[host.\"https://a\"]\ndial_timeout = \"5\"\n", "is not a time"),
            ("[host.\"https://a\".header]\nx = \"secret\\n\"\n", "2: host.\"https://a\".header.x: is not the name and value"),
            ("a = \n", "1: it is not valid TOML"),
        ] {
            let found = read(text).unwrap_err();
            assert!(found.contains(problem) && !found.contains("secret"), "{text}: {found}");
        }
    }

    #[test]
    fn hosts_are_limited() {
        let text = |count: usize| (0..count).map(|number| format!("[host.\"https://{number}.lan\"]\n")).collect::<String>();
        assert_eq!(read(&text(MAX_HOSTS)).unwrap().hosts.len(), MAX_HOSTS);
        assert!(read(&text(MAX_HOSTS + 1)).unwrap_err().contains("more than 16 hosts"));
    }

    #[test]
    fn durations_are_those_of_go() {
        let found = ["5s", "1m30s", "1.5s", "250ms", "", "5", "s", "-1s", "1d", "1e9h"].map(go_duration);
        let millis = |millis| Some(Duration::from_millis(millis));
        assert_eq!(found[..4], [millis(5000), millis(90_000), millis(1500), millis(250)]);
        assert_eq!(found[4..], [None; 6]);
    }
}
