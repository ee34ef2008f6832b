//! NFS volumes: the mount that a pod asks for, with options of its annotations. **Pure**.
//!
//! ```yaml
//! metadata:
//!   annotations:
//!     nfs.podstead.dev/media: vers=3,soft,timeo=100
//! spec:
//!   volumes:
//!     - name: media
//!       nfs: {server: nas.lan, path: /export/media, readOnly: true}
//! ```

use crate::Pod;
use k8s_openapi::api::core::v1::Volume;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::net::IpAddr;

/// Annotations with mount options begin so; the name of the volume follows.
pub const PREFIX: &str = "nfs.podstead.dev/";

/// Bytes of the options of one volume, at most. The kernel takes a page, with the address.
const MAX_OPTIONS: usize = 1024;
/// Bytes of a server's name, at most: those of a DNS name.
const MAX_SERVER: usize = 253;
/// Bytes of a path on the server, at most: those of the mount protocol.
const MAX_PATH: usize = 1024;

/// An NFS volume: all that decides about its mount.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NfsVolume {
    /// Name or address of the server.
    pub server: String,
    /// Path on the server.
    pub path: String,
    /// Nothing is written there.
    pub read_only: bool,
    /// Mount options of the annotation, as written.
    pub options: String,
}

impl NfsVolume {
    /// The mount of a volume; `None` for a volume of another type.
    pub fn of(pod: &Pod, volume: &Volume) -> Option<Self> {
        let source = volume.nfs.as_ref()?;
        Some(Self {
            server: source.server.clone(),
            path: source.path.clone(),
            read_only: source.read_only == Some(true),
            options: options_of(pod, &volume.name).unwrap_or_default().to_owned(),
        })
    }
}

/// `server:/path`, as in mount tables; an IPv6 address is in brackets.
impl fmt::Display for NfsVolume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bare = self.server.trim_start_matches('[').trim_end_matches(']');
        if bare.contains(':') { write!(f, "[{bare}]:{}", self.path) } else { write!(f, "{bare}:{}", self.path) }
    }
}

/// The mount options that a pod's annotation has for a volume.
pub fn options_of<'pod>(pod: &'pod Pod, volume: &str) -> Option<&'pod str> {
    let annotations = pod.metadata.annotations.as_ref()?;
    annotations.get(&format!("{PREFIX}{volume}")).map(String::as_str)
}

/// Version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum NfsVersion {
    /// Version 3, with a mount protocol and locks of its own.
    V3,
    /// Version 4 with this minor version.
    V4(u8),
}

impl fmt::Display for NfsVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::V3 => f.write_str("3"),
            Self::V4(minor) => write!(f, "4.{minor}"),
        }
    }
}

/// All versions, in the order in which they are tried.
const VERSIONS: [NfsVersion; 4] = [NfsVersion::V4(2), NfsVersion::V4(1), NfsVersion::V4(0), NfsVersion::V3];

/// Values that an option may have.
#[derive(Clone, Copy, Debug)]
enum Values {
    /// No value.
    None,
    /// A number up to this one.
    Number(u32),
    /// One of these words.
    Word(&'static [&'static str]),
}

const SWITCHES: &[&str] = &[
    "ac",
    "noac",
    "acl",
    "noacl",
    "cto",
    "nocto",
    "hard",
    "soft",
    "softerr",
    "lock",
    "nolock",
    "rdirplus",
    "nordirplus",
    "resvport",
    "noresvport",
    "sharecache",
    "nosharecache",
];
const NUMBERS: &[(&str, u32)] = &[
    ("acdirmax", 86_400),
    ("acdirmin", 86_400),
    ("acregmax", 86_400),
    ("acregmin", 86_400),
    ("actimeo", 86_400),
    ("mountport", 65_535),
    ("nconnect", 16),
    ("port", 65_535),
    ("retrans", 1000),
    ("rsize", 1 << 20),
    ("timeo", 36_000),
    ("wsize", 1 << 20),
];
const WORDS: &[(&str, &[&str])] = &[
    ("local_lock", &["all", "flock", "none", "posix"]),
    ("lookupcache", &["all", "none", "pos", "positive"]),
    ("mountproto", &["tcp", "tcp6", "udp", "udp6"]),
    ("mountvers", &["3"]),
    ("nfsvers", VERSION_WORDS),
    ("proto", &["tcp", "tcp6", "udp", "udp6"]),
    ("sec", &["krb5", "krb5i", "krb5p", "none", "sys"]),
    ("vers", VERSION_WORDS),
];
const VERSION_WORDS: &[&str] = &["3", "4", "4.0", "4.1", "4.2"];
/// Options of the mount, which the file system does not see.
const FLAGS: &[(&str, MountFlag)] = &[
    ("noatime", MountFlag::NoAccessTime),
    ("nodev", MountFlag::NoDevices),
    ("nodiratime", MountFlag::NoDirectoryAccessTime),
    ("noexec", MountFlag::NoPrograms),
    ("nosuid", MountFlag::NoSetUser),
    ("ro", MountFlag::ReadOnly),
];

/// A flag of the mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MountFlag {
    /// `noatime`.
    NoAccessTime,
    /// `nodev`.
    NoDevices,
    /// `nodiratime`.
    NoDirectoryAccessTime,
    /// `noexec`.
    NoPrograms,
    /// `nosuid`.
    NoSetUser,
    /// `ro`.
    ReadOnly,
}

/// Mount options, valid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NfsOptions {
    /// Flags of the mount.
    pub flags: Vec<MountFlag>,
    /// The rest, as the kernel takes it, without the version.
    words: Vec<String>,
    version: Option<String>,
}

impl NfsOptions {
    /// Reads comma-separated options. The error says what is wrong with which one.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > MAX_OPTIONS {
            return Err(format!("must be at most {MAX_OPTIONS} bytes"));
        }
        let mut options = Self::default();
        for option in text.split(',').map(str::trim).filter(|option| !option.is_empty()) {
            check(option)?;
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            match (name, FLAGS.iter().find(|(flag, _)| *flag == name)) {
                (_, Some((_, flag))) if !options.flags.contains(flag) => options.flags.push(*flag),
                (_, Some(_)) => {}
                ("vers" | "nfsvers", None) => options.version = Some(value.to_owned()),
                (_, None) => options.words.push(option.to_owned()),
            }
        }
        let is_udp = options.words.iter().any(|word| matches!(word.as_str(), "proto=udp" | "proto=udp6"));
        if is_udp && options.version.as_deref() != Some("3") {
            return Err("proto=udp needs vers=3".to_owned());
        }
        Ok(options)
    }

    /// Versions to try, in this order.
    pub fn versions(&self) -> Vec<NfsVersion> {
        let wanted = |version: &NfsVersion| match self.version.as_deref() {
            None => true,
            Some("4") => matches!(version, NfsVersion::V4(_)),
            Some(word) => version.to_string() == word,
        };
        VERSIONS.iter().copied().filter(wanted).collect()
    }

    /// Reports whether the server may have this address: `proto` decides for a family.
    pub fn fits(&self, address: IpAddr) -> bool {
        match self.words.iter().rev().find_map(|word| word.strip_prefix("proto=")) {
            None => true,
            Some(protocol) => protocol.ends_with('6') == address.is_ipv6(),
        }
    }

    /// The options of one attempt, as the kernel takes them. `address` is that of the server, with its zone.
    pub fn kernel_text(&self, version: NfsVersion, address: &str) -> String {
        let mut words = vec![format!("vers={version}"), format!("addr={address}")];
        // Locks of version 3 need a service beside the kernel, on this host too: without it they are those of this host.
        let names_locks = |word: &String| matches!(word.as_str(), "lock" | "nolock") || word.starts_with("local_lock=");
        if version == NfsVersion::V3 && !self.words.iter().any(names_locks) {
            words.push("nolock".to_owned());
        }
        words.extend(self.words.iter().cloned());
        words.join(",")
    }
}

/// Checks one option.
pub fn check(option: &str) -> Result<(), String> {
    let (name, value) = option.split_once('=').map_or((option, None), |(name, value)| (name, Some(value)));
    let values = if SWITCHES.contains(&name) || FLAGS.iter().any(|(flag, _)| *flag == name) {
        Values::None
    } else if let Some((_, max)) = NUMBERS.iter().find(|(number, _)| *number == name) {
        Values::Number(*max)
    } else if let Some((_, words)) = WORDS.iter().find(|(word, _)| *word == name) {
        Values::Word(words)
    } else {
        return Err(match name {
            "addr" | "mountaddr" | "mounthost" | "clientaddr" => format!("{name} is not supported: the server decides"),
            "rw" => "rw is the default: remove it".to_owned(),
            _ => format!("{name:?} is not a supported option"),
        });
    };
    match (values, value) {
        (Values::None, None) => Ok(()),
        (Values::None, Some(_)) => Err(format!("{name} takes no value")),
        (Values::Number(max), value) => match value.and_then(|value| value.parse::<u32>().ok()) {
            Some(number) if number <= max => Ok(()),
            Some(_) | None => Err(format!("{name} needs a number from 0 to {max}")),
        },
        (Values::Word(words), value) if value.is_some_and(|value| words.contains(&value)) => Ok(()),
        (Values::Word(words), _) => Err(format!("{name} must be one of {}", words.join(", "))),
    }
}

/// Checks the name or address of a server.
pub fn check_server(server: &str) -> Result<(), &'static str> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':' | '[' | ']' | '%');
    match server {
        _ if server.len() > MAX_SERVER => Err("must be at most 253 bytes"),
        _ if server.starts_with('-') || !server.chars().all(is_allowed) => Err("must be a host name or an IP address"),
        _ => Ok(()),
    }
}

/// Checks a path on a server.
pub fn check_path(path: &str) -> Result<(), &'static str> {
    match path {
        _ if !path.starts_with('/') => Err("must be an absolute path"),
        _ if path.len() > MAX_PATH => Err("must be at most 1024 bytes"),
        _ if path.split('/').any(|part| part == "..") => Err("must not contain '..'"),
        _ if path.chars().any(char::is_control) => Err("must not contain control characters"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(options: &str, version: NfsVersion) -> String {
        NfsOptions::parse(options).unwrap().kernel_text(version, "192.0.2.1")
    }

    #[test]
    fn kernel_gets_version_address_and_options() {
        assert_eq!(text("", NfsVersion::V4(2)), "vers=4.2,addr=192.0.2.1");
        assert_eq!(text("", NfsVersion::V3), "vers=3,addr=192.0.2.1,nolock");
        assert_eq!(text("lock", NfsVersion::V3), "vers=3,addr=192.0.2.1,lock");
        assert_eq!(text("vers=3,local_lock=flock", NfsVersion::V3), "vers=3,addr=192.0.2.1,local_lock=flock");
        assert_eq!(text(" soft, timeo=100,noatime,", NfsVersion::V4(0)), "vers=4.0,addr=192.0.2.1,soft,timeo=100");
    }

    #[test]
    fn flags_are_of_the_mount() {
        let options = NfsOptions::parse("noatime,ro,hard,ro").unwrap();
        assert_eq!(options.flags, [MountFlag::NoAccessTime, MountFlag::ReadOnly]);
    }

    #[test]
    fn option_decides_about_versions() {
        let versions = |options: &str| {
            let versions = NfsOptions::parse(options).unwrap().versions();
            versions.iter().map(NfsVersion::to_string).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(versions("soft"), "4.2 4.1 4.0 3");
        assert_eq!(versions("vers=4"), "4.2 4.1 4.0");
        assert_eq!(versions("nfsvers=4.1"), "4.1");
        assert_eq!(versions("vers=3"), "3");
    }

    #[test]
    fn protocol_decides_about_addresses() {
        let fits = |options: &str, address: &str| NfsOptions::parse(options).unwrap().fits(address.parse().unwrap());
        assert!(fits("", "192.0.2.1") && fits("", "2001:db8::1"));
        assert!(fits("proto=tcp", "192.0.2.1") && !fits("proto=tcp", "2001:db8::1"));
        assert!(fits("proto=tcp6", "2001:db8::1") && !fits("proto=tcp6", "192.0.2.1"));
    }

    #[test]
    fn unknown_and_broken_options_are_named() {
        for (options, expected) in [
            ("fast", "\"fast\" is not a supported option"),
            ("soft=1", "soft takes no value"),
            ("timeo", "timeo needs a number from 0 to 36000"),
            ("port=65536", "port needs a number from 0 to 65535"),
            ("vers=2", "vers must be one of 3, 4, 4.0, 4.1, 4.2"),
            ("addr=10.0.0.1", "addr is not supported: the server decides"),
            ("rw", "rw is the default: remove it"),
            ("proto=udp", "proto=udp needs vers=3"),
        ] {
            assert_eq!(NfsOptions::parse(options).unwrap_err(), expected, "{options}");
        }
        assert!(NfsOptions::parse(&"soft,".repeat(300)).unwrap_err().starts_with("must be at most"));
    }

    #[test]
    fn exports_are_written_as_in_mount_tables() {
        let shown = |server: &str| {
            NfsVolume { server: server.into(), path: "/x".into(), read_only: false, options: String::new() }.to_string()
        };
        assert_eq!(shown("nas"), "nas:/x");
        assert_eq!(shown("2001:db8::1"), "[2001:db8::1]:/x");
        assert_eq!(shown("[2001:db8::1]"), "[2001:db8::1]:/x");
    }

    #[test]
    fn servers_and_paths_are_plain() {
        assert!(check_server("nas-1.lan").is_ok() && check_server("fe80::1%eth0").is_ok());
        assert!(check_server("a b").is_err() && check_server("a,b").is_err() && check_server("-o").is_err());
        assert!(check_path("/").is_ok() && check_path("/a b,c").is_ok());
        assert!(check_path("a").is_err() && check_path("/a/../b").is_err() && check_path("/a\nb").is_err());
    }
}
