//! Image references as docker and containerd read them. **Pure**.
//!
//! `[host[:port]/]repository[:tag][@digest]`. Without a host it is Docker Hub's, there without a user it is `library/`, and without
//! tag and digest it is `:latest`. The grammar is that of the `distribution/reference` package.

use super::digest::Digest;
use std::fmt;
use std::str::FromStr;

/// Registry of references without a host.
pub const DEFAULT_HOST: &str = "docker.io";
/// Longest name (host and repository) that registries accept.
const NAME_MAX: usize = 255;
const TAG_MAX: usize = 128;

/// A fully qualified image reference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Reference {
    host: String,
    repository: String,
    tag: Option<String>,
    digest: Option<Digest>,
}

impl Reference {
    /// The registry, with its port if one is written: `docker.io`, `localhost:5000`, `[::1]:5000`.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The path in the registry: `library/nginx`.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// The tag; `None` only when there is a digest.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest, which decides over the tag.
    pub fn digest(&self) -> Option<Digest> {
        self.digest
    }

    /// Selector for the registry: the digest, else the tag.
    pub fn selector(&self) -> String {
        match (self.digest, &self.tag) {
            (Some(digest), _) => digest.to_string(),
            (None, Some(tag)) => tag.clone(),
            (None, None) => "latest".to_owned(),
        }
    }

    /// The same repository at a tag, which has to be a valid one.
    pub fn tagged(&self, tag: &str) -> Self {
        Self { host: self.host.clone(), repository: self.repository.clone(), tag: Some(tag.to_owned()), digest: None }
    }

    /// The same repository at a digest.
    pub fn at(&self, digest: Digest) -> Self {
        Self { host: self.host.clone(), repository: self.repository.clone(), tag: None, digest: Some(digest) }
    }
}

impl fmt::Display for Reference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.host, self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        match self.digest {
            Some(digest) => write!(f, "@{digest}"),
            None => Ok(()),
        }
    }
}

impl FromStr for Reference {
    /// The reason, for a person.
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("it is empty".into());
        }
        if let Some(bad) = text.chars().find(|c| c.is_whitespace() || c.is_control() || !c.is_ascii()) {
            return Err(format!("it contains the character {bad:?}"));
        }
        if let Some((scheme, _)) = text.split_once("://") {
            return Err(format!("it starts with a scheme ({scheme}://): write host/repository:tag"));
        }
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest.parse::<Digest>().map_err(|error| error.to_string())?)),
            None => (text, None),
        };
        let (host, rest) = split_host(rest);
        // After the host a colon can only begin the tag.
        let (repository, tag) = match rest.split_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (rest, None),
        };
        check_host(host)?;
        check_repository(repository)?;
        if let Some(tag) = tag {
            check_tag(tag)?;
        }
        if host == DEFAULT_HOST && Digest::from_hex(repository).is_ok() {
            return Err("64 hexadecimal digits are an image ID, not a name".into());
        }
        let repository = match host == DEFAULT_HOST && !repository.contains('/') {
            true => format!("library/{repository}"),
            false => repository.to_owned(),
        };
        if host.len() + 1 + repository.len() > NAME_MAX {
            return Err(format!("its name is longer than {NAME_MAX} characters"));
        }
        let tag = match (tag, digest) {
            (None, None) => Some("latest".to_owned()),
            (tag, _) => tag.map(str::to_owned),
        };
        Ok(Self { host: host.to_owned(), repository, tag, digest })
    }
}

/// The first component is a host if it could not be a repository's: it has a dot, a colon or an upper-case letter, or is `localhost`.
fn split_host(text: &str) -> (&str, &str) {
    match text.split_once('/') {
        Some((first, rest))
            if first.contains(['.', ':']) || first == "localhost" || first.bytes().any(|b| b.is_ascii_uppercase()) =>
        {
            match first {
                "index.docker.io" => (DEFAULT_HOST, rest),
                host => (host, rest),
            }
        }
        Some(_) | None => (DEFAULT_HOST, text),
    }
}

fn check_host(host: &str) -> Result<(), String> {
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']').ok_or_else(|| format!("host {host:?} has no closing bracket"))?;
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(format!("host {host:?} is not an IPv6 address"));
            }
            (None, port)
        }
        None => match host.find(':') {
            Some(colon) => (Some(&host[..colon]), &host[colon..]),
            None => (Some(host), ""),
        },
    };
    if let Some(name) = name {
        let good = |label: &str| {
            let edge = |byte: Option<u8>| byte.is_some_and(|b| b.is_ascii_alphanumeric());
            edge(label.bytes().next())
                && edge(label.bytes().next_back())
                && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
        };
        if !name.split('.').all(good) {
            return Err(format!("host {name:?} is not a host name"));
        }
    }
    match port.strip_prefix(':') {
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) && digits.parse::<u16>().is_ok() => Ok(()),
        None if port.is_empty() => Ok(()),
        Some(_) | None => Err(format!("the port of host {host:?} is not a number from 0 to 65535")),
    }
}

fn check_repository(repository: &str) -> Result<(), String> {
    for component in repository.split('/') {
        if component.is_empty() {
            return Err("its repository has an empty component".into());
        }
        if component.bytes().any(|b| b.is_ascii_uppercase()) {
            return Err(format!("its repository must be lower case ({component:?})"));
        }
        if !is_path_component(component.as_bytes()) {
            return Err(format!(
                "{component:?} is not a repository component: lower-case letters and digits, separated by one of . _ __ or hyphens"
            ));
        }
    }
    Ok(())
}

/// `[a-z0-9]+((\.|_|__|-+)[a-z0-9]+)*`
fn is_path_component(text: &[u8]) -> bool {
    let word = |b: &u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    if !text.first().is_some_and(word) || !text.last().is_some_and(word) {
        return false;
    }
    text.split(|b| word(b)).all(|separator| matches!(separator, b"" | b"." | b"_" | b"__") || separator.iter().all(|b| *b == b'-'))
}

fn check_tag(tag: &str) -> Result<(), String> {
    let word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    match tag.bytes().next() {
        None => return Err("its tag is empty".into()),
        Some(first) if !word(first) => return Err(format!("tag {tag:?} must start with a letter, a digit or _")),
        Some(_) => {}
    }
    if tag.len() > TAG_MAX {
        return Err(format!("its tag is longer than {TAG_MAX} characters"));
    }
    match tag.bytes().all(|b| word(b) || b == b'.' || b == b'-') {
        true => Ok(()),
        false => Err(format!("tag {tag:?} may contain only letters, digits, _ . and -")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DIGEST: &str = "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn short_names_are_completed_as_docker_does() {
        for (text, full) in [
            ("nginx", "docker.io/library/nginx:latest"),
            ("nginx:1.27", "docker.io/library/nginx:1.27"),
            ("user/app", "docker.io/user/app:latest"),
            ("docker.io/nginx", "docker.io/library/nginx:latest"),
            ("index.docker.io/nginx", "docker.io/library/nginx:latest"),
            ("localhost/busybox:1", "localhost/busybox:1"),
            ("localhost:5000/a/b/c", "localhost:5000/a/b/c:latest"),
            ("registry.example.com/team/app:v1.2.3_4-5", "registry.example.com/team/app:v1.2.3_4-5"),
            ("127.0.0.1:5000/x", "127.0.0.1:5000/x:latest"),
            ("[::1]:5000/x:t", "[::1]:5000/x:t"),
            ("Registry/x", "Registry/x:latest"),
            ("a__b/c--d.e_f", "docker.io/a__b/c--d.e_f:latest"),
        ] {
            assert_eq!(text.parse::<Reference>().unwrap().to_string(), full, "{text}");
        }
    }

    #[test]
    fn a_digest_needs_no_tag_and_decides_over_one() {
        let reference: Reference = format!("nginx@{DIGEST}").parse().unwrap();
        assert_eq!((reference.tag(), reference.selector()), (None, DIGEST.to_owned()));
        let reference: Reference = format!("nginx:1@{DIGEST}").parse().unwrap();
        assert_eq!((reference.tag(), reference.selector()), (Some("1"), DIGEST.to_owned()));
        assert_eq!(reference.to_string(), format!("docker.io/library/nginx:1@{DIGEST}"));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let long = format!("example.com/{}", "a".repeat(250));
        for (text, reason) in [
            ("", "empty"),
            (" nginx", "character ' '"),
            ("nginx\n", "character '\\n'"),
            ("naïve", "character 'ï'"),
            ("https://docker.io/nginx", "scheme"),
            ("Nginx", "lower case"),
            ("nginx:", "tag is empty"),
            ("nginx:-x", "must start with a letter, a digit or _"),
            ("nginx:a/b", "port"),
            ("nginx:a:b", "may contain only letters"),
            ("a//b", "empty component"),
            ("/a", "empty component"),
            ("a/", "empty component"),
            ("a...b", "not a repository component"),
            ("a___b", "not a repository component"),
            ("-a", "not a repository component"),
            ("../a", "not a host name"),
            ("a/../b", "not a repository component"),
            ("nginx@sha256:12", "64 lower-case"),
            ("nginx@md5:12", "sha256"),
            ("nginx@", "algorithm"),
            ("localhost:99999/x", "port"),
            ("localhost:/x", "port"),
            ("[::g]/x", "IPv6"),
            ("-host.com/x", "host name"),
            (&DIGEST[7..], "image ID"),
            (&long, "longer than 255"),
            (&format!("a:{}", "t".repeat(129)), "longer than 128"),
        ] {
            let error = text.parse::<Reference>().expect_err(text);
            assert!(error.contains(reason), "{text:?}: {error}");
        }
    }

    proptest! {
        #[test]
        fn parsing_never_panics_and_what_parses_is_stable(text in "[a-zA-Z0-9./:@_\\[\\]-]{0,80}|\\PC{0,40}") {
            if let Ok(reference) = text.parse::<Reference>() {
                let again: Reference = reference.to_string().parse().unwrap();
                prop_assert_eq!(again, reference);
            }
        }
    }
}
