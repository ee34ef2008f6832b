//! Volumes of other hosts. **Pure**.

use super::model::{MountSource, Service};
use super::words::object_name;
use podstead_pod::nfs::{NfsOptions, check, check_path, check_server};

/// Options of mount(8) and of the helper of nfs-utils that say nothing here.
const WITHOUT_EFFECT: [&str; 15] =
    ["_netdev", "async", "auto", "bg", "defaults", "dev", "exec", "fg", "intr", "noauto", "nofail", "nointr", "rw", "suid", "tcp"];

/// The source of a mount of another file system: an export of NFS, or a directory of the host with a note.
pub(super) fn of_file_system(service: &mut Service, name: &str, kind: &str, device: &str, options: &str) -> MountSource {
    if let Some(source) = export(service, name, kind, device, options) {
        return source;
    }
    let server = options.split(',').find_map(|option| option.strip_prefix("addr=")).unwrap_or_default();
    let path = format!("/mnt/{}", object_name(name));
    service.note(format!("volume {name} is {kind} {server}{device}: mount it on the host at {path}, before podstead starts"));
    MountSource::Host(path)
}

fn export(service: &mut Service, name: &str, kind: &str, device: &str, options: &str) -> Option<MountSource> {
    if !matches!(kind, "nfs" | "nfs4") {
        return None;
    }
    let (host, path) = device.split_once(":/").map(|(host, path)| (host, format!("/{path}")))?;
    let address = options.split(',').find_map(|option| option.trim().strip_prefix("addr="));
    let server = address.unwrap_or(host).trim_matches(['[', ']']).to_owned();
    if server.is_empty() || check_server(&server).is_err() || check_path(&path).is_err() {
        return None;
    }
    let (mut kept, mut dropped, mut read_only) = (Vec::new(), Vec::new(), false);
    for option in options.split(',').map(str::trim).filter(|option| !option.is_empty()) {
        match option {
            "ro" => read_only = true,
            _ if WITHOUT_EFFECT.contains(&option) || option.starts_with("addr=") || option.starts_with("retry=") => {}
            _ if check(option).is_ok() => kept.push(option),
            _ => dropped.push(option),
        }
    }
    if kind == "nfs4" && !kept.iter().any(|option| option.starts_with("vers=") || option.starts_with("nfsvers=")) {
        kept.push("vers=4");
    }
    let mut options = kept.join(",");
    if let Err(rule) = NfsOptions::parse(&options) {
        service.note(format!("mount options {options} of the volume {name} are not carried over: {rule}"));
        options.clear();
    }
    if !dropped.is_empty() {
        service.note(format!("mount options {} of the volume {name} are not carried over", dropped.join(",")));
    }
    Some(MountSource::Export { name: name.to_owned(), server, path, options, read_only })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(kind: &str, device: &str, options: &str) -> (MountSource, Vec<String>) {
        let mut service = Service::default();
        (of_file_system(&mut service, "Data", kind, device, options), service.notes)
    }

    fn exported(server: &str, path: &str, options: &str, read_only: bool) -> MountSource {
        let (server, path, options) = (server.into(), path.into(), options.into());
        MountSource::Export { name: "Data".into(), server, path, options, read_only }
    }

    #[test]
    fn exports_keep_server_path_and_options() {
        for (kind, device, options, expected) in [
            (
                "nfs",
                ":/export/data",
                "addr=10.0.0.1,rw,nolock,soft,nfsvers=3",
                exported("10.0.0.1", "/export/data", "nolock,soft,nfsvers=3", false),
            ),
            ("nfs", "nas:/export", "", exported("nas", "/export", "", false)),
            ("nfs4", "[2001:db8::1]:/export", "ro,_netdev", exported("2001:db8::1", "/export", "vers=4", true)),
        ] {
            assert_eq!(read(kind, device, options), (expected, vec![]), "{device} {options}");
        }
    }

    #[test]
    fn unknown_options_and_file_systems_are_noted() {
        let (source, notes) = read("nfs", "nas:/x", "fsc,soft");
        assert_eq!(source, exported("nas", "/x", "soft", false));
        assert_eq!(notes, ["mount options fsc of the volume Data are not carried over"]);
        let (source, notes) = read("cifs", "//nas/share", "username=a");
        assert_eq!(source, MountSource::Host("/mnt/data".into()));
        assert_eq!(notes, ["volume Data is cifs //nas/share: mount it on the host at /mnt/data, before podstead starts"]);
        assert_eq!(read("nfs", ":/x", "soft").0, MountSource::Host("/mnt/data".into()), "no server");
    }
}
