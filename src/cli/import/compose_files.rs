//! Volumes, configs and secrets of a service of a compose file.

use super::compose_fields::{Place, text};
use super::docker_run::add_mount;
use super::exports::of_file_system;
use super::model::{Mount, MountSource, Service};
use super::text::{MAX_BYTES, read_text};
use super::words::{key_name, memory, mount, object_name, propagation};
use anyhow::Context as _;
use serde_yaml::Value;
use std::fs;
use std::path::Path;

/// `volumes` of a service.
pub(super) fn mounts(service: &mut Service, value: &Value, document: &Value, place: &Place) -> anyhow::Result<()> {
    for item in value.as_sequence().context("expected a list")? {
        let found = match item {
            Value::Mapping(_) => long_mount(item)?,
            other => {
                let written = text(other)?;
                mount(&written).with_context(|| format!("cannot read the volume {written:?}"))?
            }
        };
        let found = of_driver(service, found, document);
        add_path(service, found, place);
    }
    Ok(())
}

/// A named volume that the document defines as a directory, or as one of another host.
fn of_driver(service: &mut Service, mut found: Mount, document: &Value) -> Mount {
    let MountSource::Named(name) = &found.source else { return found };
    let definition = document.get("volumes").and_then(|volumes| volumes.get(name.as_str()));
    let option = |field: &str| {
        definition.and_then(|volume| volume.get("driver_opts")).and_then(|options| options.get(field)).and_then(Value::as_str)
    };
    if definition.and_then(|volume| volume.get("external")).is_some_and(|external| external.as_bool() != Some(false)) {
        service.note(format!("volume {name} exists in docker: copy its data into the claim {}", object_name(name)));
    }
    match (option("type"), option("device"), option("o").unwrap_or_default()) {
        (Some("none") | None, Some(device), _) if device.starts_with('/') => found.source = MountSource::Host(device.to_owned()),
        (Some(kind), Some(device), options) if kind.starts_with("nfs") || kind == "cifs" => {
            found.source = of_file_system(service, name, kind, device, options);
        }
        (None, None, _) => {}
        (kind, _, _) => {
            service.note(format!("driver_opts of the volume {name} ({}) are not carried over", kind.unwrap_or("no type")))
        }
    }
    found
}

fn long_mount(item: &Value) -> anyhow::Result<Mount> {
    let of = |name: &str| item.get(name).map(text).transpose();
    let target = of("target")?.context("a volume has no target")?;
    let source = match (of("type")?.as_deref(), of("source")?) {
        (Some("bind"), Some(path)) => MountSource::Host(path),
        (Some("tmpfs"), _) => {
            let size = item.get("tmpfs").and_then(|options| options.get("size")).map(text).transpose()?;
            MountSource::Memory(size.map(|size| memory(&size).context("tmpfs.size is no amount")).transpose()?)
        }
        (_, Some(name)) => MountSource::Named(name),
        (_, None) => MountSource::Anonymous,
    };
    let propagation = item.get("bind").and_then(|bind| bind.get("propagation")).and_then(Value::as_str).and_then(propagation);
    Ok(Mount { source, target, read_only: item.get("read_only").and_then(Value::as_bool).unwrap_or_default(), propagation })
}

/// A file that is only read becomes a ConfigMap, another path one of the host.
fn add_path(service: &mut Service, mut found: Mount, place: &Place) {
    if let MountSource::Host(path) = &found.source
        && !path.starts_with(['/', '~'])
    {
        let path = place.path(path);
        match small_text(&path).filter(|_| found.read_only) {
            Some(content) => found.source = config_map(service, &path, content),
            None => {
                service.note(format!("path {} is on this machine: copy it to the host, or use a volume", path.display()));
                found.source = MountSource::Host(path.display().to_string());
            }
        }
    }
    add_mount(service, found);
}

fn config_map(service: &Service, path: &Path, content: String) -> MountSource {
    let key: String = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let name = object_name(&format!("{}-{key}", service.name));
    MountSource::File { name, key: key_name(&key), content: Some(content), is_secret: false }
}

/// The content of a file that fits into an object.
fn small_text(path: &Path) -> Option<String> {
    let metadata = fs::metadata(path).ok()?;
    let is_small = metadata.is_file() && metadata.len() < MAX_BYTES / 2;
    if is_small { read_text(path).ok() } else { None }
}

/// `secrets` and `configs` of a service, which the document defines.
pub(super) fn files(service: &mut Service, key: &str, value: &Value, document: &Value, place: &Place) -> anyhow::Result<()> {
    let is_secret = key == "secrets";
    for item in value.as_sequence().context("expected a list")? {
        let (source, target) = match item {
            Value::Mapping(_) => {
                (item.get("source").map(text).transpose()?.context("it has no source")?, item.get("target").map(text).transpose()?)
            }
            other => (text(other)?, None),
        };
        let target = match target {
            Some(target) if target.starts_with('/') => target,
            Some(target) => format!("{}/{target}", if is_secret { "/run/secrets" } else { "" }),
            None => format!("{}/{source}", if is_secret { "/run/secrets" } else { "" }),
        };
        let definition = document.get(key).and_then(|all| all.get(source.as_str()));
        let of = |field: &str| definition.and_then(|definition| definition.get(field)).and_then(Value::as_str);
        let content = match (of("file"), of("environment")) {
            (Some(file), _) => small_text(&place.path(file)),
            (None, Some(variable)) => place.variables.get(variable).cloned(),
            (None, None) => of("content").map(str::to_owned),
        };
        if content.is_none() {
            service.note(format!("{key}.{source} has no file that can be read: write the object {}", object_name(&source)));
        } else if is_secret {
            service.note(format!("secret {source} is in the manifest as plain text: encrypt it before it is committed"));
        }
        let source = MountSource::File { name: object_name(&source), key: key_name(&source), content, is_secret };
        service.mounts.push(Mount { read_only: true, ..Mount::new(source, target) });
    }
    Ok(())
}
