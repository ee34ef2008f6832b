//! The fields of one service of a compose file.

use super::docker_run::{add_mount, add_variable, capability, network, restart, shell, user};
use super::model::{Health, Mount, MountSource, Port, Service};
use super::words::{cpu, memory, mount, object_name, ports, seconds, split};
use super::{MAX_BYTES, read_text};
use anyhow::{Context as _, bail};
use serde_yaml::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Directory of the compose file, for the files that it names.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The directory.
    pub(super) directory: PathBuf,
}

impl Place {
    /// The path of a file that the compose file names.
    fn path(&self, text: &str) -> PathBuf {
        let path = self.directory.join(text);
        path.components().filter(|component| !matches!(component, std::path::Component::CurDir)).collect()
    }
}

/// Reads one service.
pub(super) fn service(name: &str, fields: &Value, document: &Value, place: &Place) -> anyhow::Result<Service> {
    let fields = fields.as_mapping().context("expected a mapping")?;
    let mut service = Service { name: name.to_owned(), ..Service::default() };
    for (key, value) in fields {
        let key = key.as_str().context("a field has a name that is no text")?;
        field(&mut service, key, value, document, place).with_context(|| key.to_owned())?;
    }
    if service.image.is_empty() {
        service.image = format!("localhost/{}:latest", object_name(name));
        service.note(format!("it has no image: build one, and podstead image import it as {}", service.image));
    }
    if service.health.as_ref().is_some_and(|health| !health.is_usable()) {
        service.health = None;
    }
    Ok(service)
}

fn field(service: &mut Service, key: &str, value: &Value, document: &Value, place: &Place) -> anyhow::Result<()> {
    match key {
        "image" => service.image = text(value)?,
        "entrypoint" => service.entrypoint = command(value)?,
        "command" => service.command = command(value)?,
        "working_dir" => service.run.directory = Some(text(value)?),
        "hostname" => service.run.hostname = Some(text(value)?),
        "container_name" => service.note("container_name is not carried over: the name of the service is the name of its pods"),
        "restart" => service.run.restart = restart(&text(value)?),
        "environment" => pairs(value)?.into_iter().for_each(|(name, value)| match value {
            Some(value) => add_variable(service, &name, &value),
            None => service.note(format!("variable {name} has the value of your shell; set it in the manifest")),
        }),
        "env_file" => env_files(service, value, place)?,
        "ports" => port_list(service, value)?,
        "volumes" => mounts(service, value, place)?,
        "tmpfs" => {
            for target in one_or_more(value)? {
                service.mounts.push(Mount { source: MountSource::Memory(None), target, read_only: false });
            }
        }
        "secrets" | "configs" => files(service, key, value, document, place)?,
        "healthcheck" => service.health = Some(health(value)?),
        "deploy" => deploy(service, value)?,
        "mem_limit" => service.run.memory = Some(memory(&text(value)?).context("not an amount of memory")?),
        "cpus" => service.run.cpu = Some(cpu(&text(value)?).context("not a number of processors")?),
        "user" => user(service, &text(value)?),
        "privileged" => service.rights.privileged = value.as_bool().unwrap_or_default(),
        "read_only" => service.rights.read_only = value.as_bool().unwrap_or_default(),
        "cap_add" => service.rights.add.extend(one_or_more(value)?.iter().map(|name| capability(name))),
        "cap_drop" => service.rights.drop.extend(one_or_more(value)?.iter().map(|name| capability(name))),
        "network_mode" => network(service, &text(value)?),
        "pid" if value.as_str() == Some("host") => service.rights.host_pid = true,
        "stdin_open" | "tty" => service.run.tty |= value.as_bool().unwrap_or_default(),
        "stop_grace_period" => service.run.grace = Some(seconds(&text(value)?).context("not a duration")?),
        "shm_size" => {
            let size = memory(&text(value)?).context("not an amount of memory")?;
            service.mounts.push(Mount { source: MountSource::Memory(Some(size)), target: "/dev/shm".to_owned(), read_only: false });
        }
        "extra_hosts" => extra_hosts(service, value)?,
        "sysctls" => {
            let pairs = pairs(value)?.into_iter().filter_map(|(name, value)| Some((name, value?)));
            service.run.sysctls.extend(pairs);
        }
        "depends_on" => depends_on(service, value),
        "labels" => service.note("labels are not carried over: nothing here reads labels of docker"),
        "profiles" => service.note("profiles are not carried over: leave the manifest out where it shall not run"),
        "build" => service.note("build is not carried over: podstead does not build images"),
        "logging" => service.note("logging is not carried over: podstead stores and rotates logs"),
        // Pods reach each other anyway, and each has an init that reaps zombies.
        "networks" | "expose" | "links" | "init" | "pull_policy" | "platform" => {}
        extension if extension.starts_with("x-") => {}
        other => service.note(format!("{other} is not carried over")),
    }
    Ok(())
}

/// A text, a number or a boolean as a text.
fn text(value: &Value) -> anyhow::Result<String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(value) => Ok(value.to_string()),
        Value::Null | Value::Sequence(_) | Value::Mapping(_) | Value::Tagged(_) => bail!("expected a text"),
    }
}

fn one_or_more(value: &Value) -> anyhow::Result<Vec<String>> {
    match value {
        Value::Sequence(items) => items.iter().map(text).collect(),
        other => Ok(vec![text(other)?]),
    }
}

/// A list of words, or a text that is split as by a shell. docker runs it without a shell.
fn command(value: &Value) -> anyhow::Result<Vec<String>> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Sequence(items) => items.iter().map(text).collect(),
        other => split(&text(other)?).context("a quote is not closed"),
    }
}

/// `{A: b}` or `[A=b, C]`.
fn pairs(value: &Value) -> anyhow::Result<Vec<(String, Option<String>)>> {
    match value {
        Value::Mapping(entries) => {
            let pair = |(name, value): (&Value, &Value)| {
                let value = if value.is_null() { None } else { Some(text(value)?) };
                Ok((text(name)?, value))
            };
            entries.iter().map(pair).collect()
        }
        Value::Sequence(items) => {
            let pair = |item: &Value| {
                let item = text(item)?;
                Ok(match item.split_once('=') {
                    Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                    None => (item, None),
                })
            };
            items.iter().map(pair).collect()
        }
        _ => bail!("expected a mapping or a list of NAME=value"),
    }
}

/// The variables of an `.env` file.
pub(super) fn variables(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let pair = |line: &str| {
        let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
        Some((name.trim().to_owned(), value.trim().trim_matches(['"', '\'']).to_owned()))
    };
    lines.filter_map(pair).collect()
}

fn env_files(service: &mut Service, value: &Value, place: &Place) -> anyhow::Result<()> {
    let paths = match value {
        Value::Sequence(items) => {
            items.iter().map(|item| item.get("path").map_or_else(|| text(item), text)).collect::<anyhow::Result<Vec<_>>>()?
        }
        other => vec![text(other)?],
    };
    for path in paths {
        match read_text(&place.path(&path)) {
            Ok(content) => variables(&content).iter().for_each(|(name, value)| add_variable(service, name, value)),
            Err(error) => service.note(format!("env_file {path} was not read: {error:#}")),
        }
    }
    Ok(())
}

fn port_list(service: &mut Service, value: &Value) -> anyhow::Result<()> {
    for item in value.as_sequence().context("expected a list")? {
        let read = match item {
            Value::Mapping(_) => {
                let of = |name: &str| item.get(name).map(text).transpose();
                let container = of("target")?.context("a port has no target")?.parse().context("target is no port")?;
                let host = of("published")?.map(|port| port.parse::<u16>()).transpose().context("published is no port")?;
                let udp = of("protocol")?.as_deref() == Some("udp");
                vec![Port { host_ip: of("host_ip")?, host, container, udp }]
            }
            other => {
                let port = text(other)?;
                ports(&port).with_context(|| format!("cannot read the port {port:?}"))?
            }
        };
        for port in read {
            if port.host.is_none() {
                service.note(format!("port {} has no port of the host: it is reached by other pods alone", port.container));
            }
            service.ports.push(port);
        }
    }
    Ok(())
}

fn mounts(service: &mut Service, value: &Value, place: &Place) -> anyhow::Result<()> {
    for item in value.as_sequence().context("expected a list")? {
        let found = match item {
            Value::Mapping(_) => long_mount(item)?,
            other => {
                let written = text(other)?;
                mount(&written).with_context(|| format!("cannot read the volume {written:?}"))?
            }
        };
        add_path(service, found, place);
    }
    Ok(())
}

fn long_mount(item: &Value) -> anyhow::Result<Mount> {
    let of = |name: &str| item.get(name).map(text).transpose();
    let target = of("target")?.context("a volume has no target")?;
    let source = match (of("type")?.as_deref(), of("source")?) {
        (Some("bind"), Some(path)) => MountSource::Host(path),
        (Some("tmpfs"), _) => MountSource::Memory(None),
        (_, Some(name)) => MountSource::Named(name),
        (_, None) => MountSource::Anonymous,
    };
    Ok(Mount { source, target, read_only: item.get("read_only").and_then(Value::as_bool).unwrap_or_default() })
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

fn key_name(text: &str) -> String {
    let is_allowed = |character: &char| character.is_ascii_alphanumeric() || "-_.".contains(*character);
    let key: String = text.chars().map(|character| if is_allowed(&character) { character } else { '-' }).collect();
    if key.is_empty() { "file".to_owned() } else { key }
}

/// `secrets` and `configs` of a service, which the document defines.
fn files(service: &mut Service, key: &str, value: &Value, document: &Value, place: &Place) -> anyhow::Result<()> {
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
        let content = match (of("file"), of("content")) {
            (Some(file), _) => small_text(&place.path(file)),
            (None, content) => content.map(str::to_owned),
        };
        if content.is_none() {
            service.note(format!("{key}.{source} has no file that can be read: write the object {}", object_name(&source)));
        } else if is_secret {
            service.note(format!("secret {source} is in the manifest as plain text: encrypt it before it is committed"));
        }
        let source = MountSource::File { name: object_name(&source), key: key_name(&source), content, is_secret };
        service.mounts.push(Mount { source, target, read_only: true });
    }
    Ok(())
}

fn health(value: &Value) -> anyhow::Result<Health> {
    let of = |name: &str| value.get(name).map(text).transpose();
    let time = |name: &str| -> anyhow::Result<Option<u64>> {
        of(name)?.map(|text| seconds(&text).with_context(|| format!("{name}: {text:?} is no duration"))).transpose()
    };
    let is_disabled = value.get("disable").and_then(Value::as_bool).unwrap_or_default();
    let command = match value.get("test") {
        _ if is_disabled => Vec::new(),
        None => Vec::new(),
        Some(Value::Sequence(items)) => {
            let words: Vec<String> = items.iter().map(text).collect::<anyhow::Result<_>>()?;
            match words.split_first() {
                Some((kind, rest)) if kind == "CMD" => rest.to_vec(),
                Some((kind, rest)) if kind == "CMD-SHELL" => shell(&rest.join(" ")),
                _ => Vec::new(),
            }
        }
        Some(other) => shell(&text(other)?),
    };
    let retries = of("retries")?.map(|text| text.parse()).transpose().context("retries is no number")?;
    Ok(Health { command, period: time("interval")?, timeout: time("timeout")?, delay: time("start_period")?, retries })
}

fn deploy(service: &mut Service, value: &Value) -> anyhow::Result<()> {
    let limits = value.get("resources").and_then(|resources| resources.get("limits"));
    let limit = |name: &str| limits.and_then(|limits| limits.get(name)).map(text).transpose();
    if let Some(amount) = limit("memory")? {
        service.run.memory = Some(memory(&amount).context("resources.limits.memory is no amount")?);
    }
    if let Some(number) = limit("cpus")? {
        service.run.cpu = Some(cpu(&number).context("resources.limits.cpus is no number")?);
    }
    if let Some(replicas) = value.get("replicas") {
        service.run.replicas = Some(text(replicas)?.parse().context("replicas is no number")?);
    }
    for key in value.as_mapping().into_iter().flatten().filter_map(|(key, _)| key.as_str()) {
        if !matches!(key, "resources" | "replicas" | "restart_policy") {
            service.note(format!("deploy.{key} is not carried over"));
        }
    }
    Ok(())
}

fn extra_hosts(service: &mut Service, value: &Value) -> anyhow::Result<()> {
    let hosts: Vec<(String, Option<String>)> = match value {
        Value::Sequence(items) => {
            let pair = |item: &Value| {
                let item = text(item)?;
                Ok(match item.split_once(['=', ':']) {
                    Some((name, address)) => (name.to_owned(), Some(address.to_owned())),
                    None => (item, None),
                })
            };
            items.iter().map(pair).collect::<anyhow::Result<_>>()?
        }
        other => pairs(other)?,
    };
    for (name, address) in hosts {
        match address.filter(|address| address.parse::<std::net::IpAddr>().is_ok()) {
            Some(address) => service.run.hosts.push((address, name)),
            None => service.note(format!("extra_hosts {name} has no address that can be carried over")),
        }
    }
    Ok(())
}

/// Containers start in any order and restart until what they need is there; only conditions are lost.
fn depends_on(service: &mut Service, value: &Value) {
    for (name, condition) in value.as_mapping().into_iter().flatten() {
        let condition = condition.get("condition").and_then(Value::as_str).unwrap_or("service_started");
        if let (Some(name), false) = (name.as_str(), condition == "service_started") {
            service.note(format!("depends_on {name} with {condition}: it starts at once, and has to wait for {name} by itself"));
        }
    }
}
