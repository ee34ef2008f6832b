//! Attempts to mount an export, and explanations of their failures. **Pure**.

use super::message::Failure;
use nix::errno::Errno;
use podstead_pod::nfs::{NfsOptions, NfsVersion, NfsVolume};
use std::net::{IpAddr, SocketAddr};

/// Addresses of a server that are tried, at most.
const MAX_ADDRESSES: usize = 4;

/// One call of mount(2).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Attempt {
    /// Address of the server, with its zone.
    pub(super) address: String,
    /// Version of the protocol.
    pub(super) version: NfsVersion,
}

/// Attempt that follows a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// The next version at the same address.
    Version,
    /// Version 3 at the same address, which knows other paths than version 4.
    Version3,
    /// The next address.
    Address,
    /// None: the answer is the same everywhere.
    End,
}

/// Attempts in their order: all versions at one address, then the next address.
pub(super) fn attempts(options: &NfsOptions, addresses: &[SocketAddr]) -> Vec<Attempt> {
    let mut found: Vec<String> = Vec::new();
    for address in addresses.iter().filter(|address| options.fits(address.ip())) {
        let text = text_of(*address);
        if !found.contains(&text) && found.len() < MAX_ADDRESSES {
            found.push(text);
        }
    }
    let versions = options.versions();
    let at = |address: String| versions.iter().map(move |version| Attempt { address: address.clone(), version: *version });
    found.into_iter().flat_map(at).collect()
}

fn text_of(address: SocketAddr) -> String {
    match address {
        SocketAddr::V6(address) if address.scope_id() != 0 => format!("{}%{}", address.ip(), address.scope_id()),
        SocketAddr::V4(_) | SocketAddr::V6(_) => match address.ip() {
            IpAddr::V6(ip) => ip.to_ipv4_mapped().map_or(ip.to_string(), |ip| ip.to_string()),
            IpAddr::V4(ip) => ip.to_string(),
        },
    }
}

/// The attempts that are left after a failure of the first one.
pub(super) fn after(failure: &Failure, rest: &[Attempt]) -> Vec<Attempt> {
    let is_here = |attempt: &&Attempt| attempt.address == failure.address;
    let is_elsewhere = |attempt: &&Attempt| attempt.address != failure.address;
    match next(Errno::from_raw(failure.errno), failure.version) {
        Next::Version => rest.to_vec(),
        Next::Version3 => rest.iter().filter(is_here).filter(|attempt| attempt.version == NfsVersion::V3).cloned().collect(),
        Next::Address => rest.iter().filter(is_elsewhere).cloned().collect(),
        Next::End => Vec::new(),
    }
}

fn next(errno: Errno, version: NfsVersion) -> Next {
    match errno {
        // Of the server, and of a kernel that has not all minor versions.
        Errno::EPROTONOSUPPORT | Errno::EINVAL => Next::Version,
        Errno::ENOENT if version != NfsVersion::V3 => Next::Version3,
        errno if is_unreachable(errno) => Next::Address,
        _ => Next::End,
    }
}

fn is_unreachable(errno: Errno) -> bool {
    matches!(
        errno,
        Errno::ECONNREFUSED
            | Errno::ECONNRESET
            | Errno::ETIMEDOUT
            | Errno::EHOSTUNREACH
            | Errno::EHOSTDOWN
            | Errno::ENETUNREACH
            | Errno::EADDRNOTAVAIL
            | Errno::EAFNOSUPPORT
    )
}

/// The reason why a volume is not mounted, from all its failures: an answer of the server says more than silence, and that more than a version that
/// it does not have.
pub(super) fn explain(volume: &NfsVolume, failures: &[Failure]) -> String {
    let weight = |failure: &&Failure| match Errno::from_raw(failure.errno) {
        Errno::EPROTONOSUPPORT | Errno::EINVAL => 2,
        errno if is_unreachable(errno) => 1,
        _ => 0,
    };
    let Some(failure) = failures.iter().min_by_key(weight) else {
        return format!("mount {volume}: no address of the server fits proto");
    };
    let NfsVolume { server, path, .. } = volume;
    let versions: Vec<String> = failures.iter().map(|failure| failure.version.to_string()).collect();
    let reason = match Errno::from_raw(failure.errno) {
        Errno::ENODEV => "this host's kernel has no NFS client: install the kernel package with the module nfs (on Debian a linux-image package), \
                          and check it with: modprobe nfs"
            .to_owned(),
        Errno::EPROTONOSUPPORT => format!("{server} does not offer NFS version {}", versions.join(", ")),
        Errno::EINVAL => "the kernel refuses the mount options".to_owned(),
        Errno::ENOENT | Errno::ENOTDIR => format!("{server} exports no directory {path}"),
        Errno::EACCES => format!("{server} does not export {path} to this host: check its list of exports"),
        Errno::EPERM => format!("{server} does not let this host mount {path}: check its list of exports and its security flavors"),
        Errno::ECONNREFUSED => format!("no NFS server answers at {}: connection refused", failure.address),
        errno if is_unreachable(errno) => format!("{server} at {} cannot be reached: {}", failure.address, errno.desc()),
        errno => format!("{} (NFS version {} at {})", errno.desc(), failure.version, failure.address),
    };
    format!("mount {volume}: {reason}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn volume() -> NfsVolume {
        NfsVolume { server: "nas".into(), path: "/x".into(), read_only: false, options: String::new() }
    }

    /// Tries until something succeeds; returns what was tried and the explanation.
    fn tried(options: &str, addresses: &[&str], answer: impl Fn(&Attempt) -> Option<Errno>) -> (String, String) {
        let addresses: Vec<SocketAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
        let mut left = attempts(&NfsOptions::parse(options).unwrap(), &addresses);
        let (mut names, mut failures) = (Vec::new(), Vec::new());
        while !left.is_empty() {
            let attempt = left.remove(0);
            names.push(format!("{} {}", attempt.address, attempt.version));
            let Some(errno) = answer(&attempt) else { return (names.join(", "), String::new()) };
            let failure = Failure { address: attempt.address, version: attempt.version, errno: errno as i32 };
            left = after(&failure, &left);
            failures.push(failure);
        }
        (names.join(", "), explain(&volume(), &failures))
    }

    #[test]
    fn older_versions_follow_where_newer_ones_are_not_spoken() {
        let speaks_3 = |attempt: &Attempt| (attempt.version != NfsVersion::V3).then_some(Errno::EPROTONOSUPPORT);
        let (names, told) = tried("", &["192.0.2.1:0"], speaks_3);
        assert_eq!((names.as_str(), told.as_str()), ("192.0.2.1 4.2, 192.0.2.1 4.1, 192.0.2.1 4.0, 192.0.2.1 3", ""));
        let (names, told) = tried("vers=4", &["192.0.2.1:0"], speaks_3);
        assert_eq!(names, "192.0.2.1 4.2, 192.0.2.1 4.1, 192.0.2.1 4.0");
        assert_eq!(told, "mount nas:/x: nas does not offer NFS version 4.2, 4.1, 4.0");
    }

    #[test]
    fn unreachable_address_is_followed_by_the_next() {
        let answer = |attempt: &Attempt| attempt.address.contains(':').then_some(Errno::ENETUNREACH);
        let (names, told) = tried("", &["[2001:db8::1]:0", "192.0.2.1:0", "192.0.2.1:0"], answer);
        assert_eq!((names.as_str(), told.as_str()), ("2001:db8::1 4.2, 192.0.2.1 4.2", ""));
        let (_, told) = tried("", &["192.0.2.1:0"], |_| Some(Errno::ECONNREFUSED));
        assert_eq!(told, "mount nas:/x: no NFS server answers at 192.0.2.1: connection refused");
    }

    #[test]
    fn missing_export_is_looked_for_by_version_3_and_told() {
        let answer = |attempt: &Attempt| Some(if attempt.version == NfsVersion::V3 { Errno::ECONNREFUSED } else { Errno::ENOENT });
        let (names, told) = tried("", &["192.0.2.1:0", "192.0.2.2:0"], answer);
        assert_eq!((names.as_str(), told.as_str()), ("192.0.2.1 4.2, 192.0.2.1 3", "mount nas:/x: nas exports no directory /x"));
    }

    #[test]
    fn kernel_without_client_is_told_at_once() {
        let (names, told) = tried("", &["192.0.2.1:0", "192.0.2.2:0"], |_| Some(Errno::ENODEV));
        assert_eq!(names, "192.0.2.1 4.2");
        assert!(told.starts_with("mount nas:/x: this host's kernel has no NFS client: install"), "{told}");
    }

    #[test]
    fn addresses_keep_their_zone_and_fit_the_protocol() {
        let shown = |options: &str, addresses: &[&str]| {
            let addresses: Vec<SocketAddr> = addresses.iter().map(|address| address.parse().unwrap()).collect();
            attempts(&NfsOptions::parse(options).unwrap(), &addresses)
                .into_iter()
                .map(|attempt| attempt.address)
                .collect::<Vec<_>>()
        };
        assert_eq!(shown("vers=3", &["[fe80::1%3]:0", "192.0.2.1:0"]), ["fe80::1%3", "192.0.2.1"]);
        assert_eq!(shown("vers=3,proto=tcp", &["[fe80::1%3]:0", "192.0.2.1:0"]), ["192.0.2.1"]);
        assert_eq!(explain(&volume(), &[]), "mount nas:/x: no address of the server fits proto");
        let many: Vec<String> = (1..9).map(|last| format!("192.0.2.{last}:0")).collect();
        assert_eq!(shown("vers=3", &many.iter().map(String::as_str).collect::<Vec<_>>()).len(), MAX_ADDRESSES);
    }
}
