//! The fields of one service of a compose file.

use super::compose_files::{files, mounts};
use super::docker_run::{ULIMITS, add_variable, capability, network, pull, restart, security, shell, sysctl, user};
use super::model::{Health, Mount, MountSource, Port, Restart, Service};
use super::words::{cpu, memory, object_name, ports, protocol_of, seconds, shares, signal, split, tmpfs};
use super::{devices, env_file};
use anyhow::{Context as _, bail};
use serde_yaml::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// The surroundings of a compose file.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// Its directory, for the files that it names.
    pub(super) directory: PathBuf,
    /// The variables of `.env`.
    pub(super) variables: BTreeMap<String, String>,
}

impl Place {
    /// The path of a file that the compose file names.
    pub(super) fn path(&self, text: &str) -> PathBuf {
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
    service.finish();
    Ok(service)
}

fn field(service: &mut Service, key: &str, value: &Value, document: &Value, place: &Place) -> anyhow::Result<()> {
    match key {
        "image" => service.image = text(value)?,
        "entrypoint" => service.entrypoint = command(value)?,
        "command" => service.command = command(value)?,
        "working_dir" => service.run.directory = Some(text(value)?),
        "hostname" => service.run.hostname = Some(text(value)?),
        "container_name" => service.aliases.push(text(value)?),
        "restart" => service.run.restart = restart(&text(value)?),
        "environment" => {
            pairs(value)?.into_iter().for_each(|(name, value)| match value.as_ref().or_else(|| place.variables.get(&name)) {
                Some(value) => add_variable(service, &name, value),
                None => service.note(format!("variable {name} has the value of your shell; set it in the manifest")),
            })
        }
        "env_file" => env_files(service, value, place)?,
        "ports" => port_list(service, value)?,
        "volumes" => mounts(service, value, document, place)?,
        "tmpfs" => {
            for target in one_or_more(value)? {
                service.mounts.push(tmpfs(&target).with_context(|| format!("cannot read {target:?}"))?);
            }
        }
        "devices" => devices_of(service, value)?,
        "secrets" | "configs" => files(service, key, value, document, place)?,
        "healthcheck" => service.health = Some(health(value)?),
        "deploy" => deploy(service, value)?,
        "mem_limit" => service.run.memory = Some(memory(&text(value)?).context("not an amount of memory")?),
        "cpus" => service.run.cpu = Some(cpu(&text(value)?).context("not a number of processors")?),
        "mem_reservation" => service.run.memory_request = Some(memory(&text(value)?).context("not an amount of memory")?),
        "cpu_shares" => service.run.cpu_request = shares(&text(value)?),
        "scale" => service.run.replicas = Some(text(value)?.parse().context("not a number")?),
        "stop_signal" => service.run.stop_signal = Some(signal(&text(value)?).context("not a signal")?),
        "pull_policy" => service.run.pull = pull(&text(value)?),
        "dns" => service.run.dns.servers = one_or_more(value)?,
        "dns_search" => service.run.dns.searches = one_or_more(value)?,
        "dns_opt" => service.run.dns.options = one_or_more(value)?,
        "user" | "group_add" | "privileged" | "read_only" | "cap_add" | "cap_drop" | "security_opt" | "pid" | "ipc" => {
            right(service, key, value)?;
        }
        "network_mode" => network(service, &text(value)?),
        "stdin_open" | "tty" => service.run.tty |= value.as_bool().unwrap_or_default(),
        "stop_grace_period" => service.run.grace = Some(seconds(&text(value)?).context("not a duration")?),
        "shm_size" => {
            let size = memory(&text(value)?).context("not an amount of memory")?;
            service.mounts.push(Mount::new(MountSource::Memory(Some(size)), "/dev/shm"));
        }
        "extra_hosts" => extra_hosts(service, value)?,
        "sysctls" => {
            let pairs = pairs(value)?.into_iter().filter_map(|(name, value)| Some((name, value?)));
            pairs.for_each(|(name, value)| sysctl(service, &name, &value));
        }
        "depends_on" => depends_on(service, value, document),
        "networks" => networks(service, value)?,
        "links" => links(service, value)?,
        "labels" => service.note("labels are not carried over: nothing here reads labels of docker"),
        "profiles" => service.note("profiles are not carried over: leave the manifest out where it shall not run"),
        "build" => service.note("build is not carried over: podstead does not build images"),
        "logging" => service.note("logging is not carried over: podstead stores and rotates logs"),
        "ulimits" => service.note(format!("ulimits are not carried over: {ULIMITS}")),
        "memswap_limit" | "mem_swappiness" => {
            service.note(format!("{key} is not carried over: containers with a memory limit do not swap"))
        }
        "pids_limit" => service.note("pids_limit is not carried over: podPidsLimit of the configuration is for each pod"),
        // Pods reach each other anyway, and each has an init that reaps zombies.
        "expose" | "init" | "platform" | "attach" => {}
        extension if extension.starts_with("x-") => {}
        other => service.note(format!("{other} is not carried over")),
    }
    Ok(())
}

/// A text, a number or a boolean as a text.
pub(super) fn text(value: &Value) -> anyhow::Result<String> {
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

fn env_files(service: &mut Service, value: &Value, place: &Place) -> anyhow::Result<()> {
    let items = match value {
        Value::Sequence(items) => items.iter().collect(),
        other => vec![other],
    };
    for item in items {
        let path = text(item.get("path").unwrap_or(item))?;
        let is_required = item.get("required").and_then(Value::as_bool).unwrap_or(true);
        env_file::add(service, &path, &place.path(&path), is_required);
    }
    Ok(())
}

fn devices_of(service: &mut Service, value: &Value) -> anyhow::Result<()> {
    for item in value.as_sequence().context("expected a list")? {
        let of = |name: &str| item.get(name).map(text).transpose();
        let written = match of("source")? {
            Some(source) => [Some(source), of("target")?, of("permissions")?].into_iter().flatten().collect::<Vec<_>>().join(":"),
            None => text(item)?,
        };
        devices::add_device(service, &written);
    }
    Ok(())
}

fn right(service: &mut Service, key: &str, value: &Value) -> anyhow::Result<()> {
    let is_true = value.as_bool().unwrap_or_default();
    match (key, value.as_str()) {
        ("user", _) => user(service, &text(value)?),
        ("privileged", _) => service.rights.privileged = is_true,
        ("read_only", _) => service.rights.read_only = is_true,
        ("cap_add", _) => service.rights.add.extend(one_or_more(value)?.iter().map(|name| capability(name))),
        ("cap_drop", _) => service.rights.drop.extend(one_or_more(value)?.iter().map(|name| capability(name))),
        ("security_opt", _) => one_or_more(value)?.iter().for_each(|option| security(service, option)),
        ("group_add", _) => {
            for group in one_or_more(value)? {
                match group.parse() {
                    Ok(group) => service.rights.groups.push(group),
                    Err(_) => service.note(format!("group {group} is not carried over: add its number to supplementalGroups")),
                }
            }
        }
        ("pid", Some("host")) => service.rights.host_pid = true,
        ("ipc", Some("host")) => service.rights.host_ipc = true,
        ("ipc", Some("private" | "shareable" | "none")) => {}
        _ => service.note(format!("{key} is not carried over")),
    }
    Ok(())
}

/// Other names of the service. Names of networks do not matter.
fn networks(service: &mut Service, value: &Value) -> anyhow::Result<()> {
    for (name, network) in value.as_mapping().into_iter().flatten() {
        if let Some(aliases) = network.get("aliases") {
            service.aliases.extend(one_or_more(aliases)?);
        }
        for key in ["ipv4_address", "ipv6_address"] {
            if let Some(address) = network.get(key).and_then(Value::as_str) {
                let name = name.as_str().unwrap_or_default();
                service.note(format!(
                    "{address} in the network {name} is not carried over: others reach it by the name {}",
                    service.name
                ));
            }
        }
    }
    Ok(())
}

/// Names that this service alone has for others.
fn links(service: &mut Service, value: &Value) -> anyhow::Result<()> {
    for link in one_or_more(value)? {
        if let Some((other, alias)) = link.split_once(':').filter(|(other, alias)| other != alias) {
            service
                .note(format!("link {link}: a Service {alias} that selects app: {} gives {other} this name", object_name(other)));
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
                let published = of("published")?.filter(|port| !port.is_empty());
                if published.as_ref().is_some_and(|port| port.contains('-')) {
                    service.note(format!("port {container} has a range of ports of the host: the first one is used"));
                }
                let first = published.as_deref().map(|port| port.split('-').next().unwrap_or(port).parse::<u16>());
                let host = first.transpose().context("published is no port")?;
                let protocol =
                    protocol_of(of("protocol")?.as_deref().unwrap_or("tcp")).context("protocol is none of tcp, udp and sctp")?;
                vec![Port { host_ip: of("host_ip")?, host, container, protocol }]
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
    Ok(Health {
        command,
        period: time("interval")?,
        timeout: time("timeout")?,
        delay: time("start_period")?,
        retries,
        restarts: false,
    })
}

fn deploy(service: &mut Service, value: &Value) -> anyhow::Result<()> {
    let of = |kind: &str, name: &str| {
        let amount = value.get("resources").and_then(|resources| resources.get(kind)).and_then(|amounts| amounts.get(name));
        amount.map(text).transpose()
    };
    let memory_of = |kind: &str| {
        of(kind, "memory")?
            .map(|amount| memory(&amount).with_context(|| format!("resources.{kind}.memory is no amount")))
            .transpose()
    };
    let cpu_of = |kind: &str| {
        of(kind, "cpus")?.map(|number| cpu(&number).with_context(|| format!("resources.{kind}.cpus is no number"))).transpose()
    };
    let run = &mut service.run;
    run.memory = memory_of("limits")?.or(run.memory.take());
    run.cpu = cpu_of("limits")?.or(run.cpu.take());
    run.memory_request = memory_of("reservations")?.or(run.memory_request.take());
    run.cpu_request = cpu_of("reservations")?.or(run.cpu_request.take());
    match value.get("restart_policy").and_then(|policy| policy.get("condition")).and_then(Value::as_str) {
        Some("none") => run.restart = Restart::Never,
        Some("on-failure") => run.restart = Restart::OnFailure,
        _ => {}
    }
    let reserved = value.get("resources").and_then(|resources| resources.get("reservations"));
    if reserved.is_some_and(|reserved| reserved.get("devices").is_some()) {
        service.note("reserved devices: name the device of a CDI specification in an annotation cdi.k8s.io/NAME");
    }
    if of("limits", "pids")?.is_some() {
        service.note("resources.limits.pids is not carried over: podPidsLimit of the configuration is for each pod");
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
fn depends_on(service: &mut Service, value: &Value, document: &Value) {
    for (name, condition) in value.as_mapping().into_iter().flatten() {
        let Some(name) = name.as_str() else { continue };
        let of = |field: &str| document.get("services").and_then(|services| services.get(name)).and_then(|other| other.get(field));
        match condition.get("condition").and_then(Value::as_str).unwrap_or("service_started") {
            "service_started" => {}
            // A name without ready pods is not found.
            "service_healthy" if of("healthcheck").is_some() => service.note(format!(
                "depends_on {name} with service_healthy: it starts at once, does not find the name {name} until {name} is healthy, and has to try again or end"
            )),
            "service_completed_successfully" => service.note(format!(
                "depends_on {name} with service_completed_successfully: it starts at once; an init container instead of {name} would run before it"
            )),
            condition => {
                service.note(format!("depends_on {name} with {condition}: it starts at once, and has to wait for {name} by itself"));
            }
        }
    }
}
