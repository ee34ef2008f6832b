//! Containers of a pod, with spec and status side by side.

use super::probe;
use super::writer::Description;
use crate::trouble::ending;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerState, ContainerStatus, EnvFromSource, EnvVar, ResourceRequirements};
use podstead_api::show::age_since;

/// All containers of one kind; nothing when there are none.
pub(super) fn containers(
    text: &mut Description,
    heading: &str,
    containers: Option<&[Container]>,
    statuses: Option<&[ContainerStatus]>,
    now: Timestamp,
) {
    let containers = containers.unwrap_or_default();
    if containers.is_empty() {
        return;
    }
    text.heading(heading);
    for container in containers {
        text.indented_heading(1, &container.name);
        let status = statuses.unwrap_or_default().iter().find(|status| status.name == container.name);
        definition(text, container);
        if let Some(status) = status {
            observed(text, status, now);
        }
    }
}

fn definition(text: &mut Description, container: &Container) {
    let mut field = |name: &str, value: String| {
        if !value.is_empty() {
            text.indented(2, name, &value);
        }
    };
    field("Image", container.image.clone().unwrap_or_default());
    field("Command", container.command.as_deref().unwrap_or_default().join("\n"));
    field("Args", container.args.as_deref().unwrap_or_default().join("\n"));
    let ports = container.ports.iter().flatten().map(|port| {
        let host = port.host_port.map(|host| format!(" on host port {host}")).unwrap_or_default();
        format!("{}/{}{host}", port.container_port, port.protocol.as_deref().unwrap_or("TCP"))
    });
    field("Ports", ports.collect::<Vec<_>>().join(", "));
    field("Limits", amounts(container.resources.as_ref(), |resources| resources.limits.as_ref()));
    field("Requests", amounts(container.resources.as_ref(), |resources| resources.requests.as_ref()));
    for (name, probe) in
        [("Liveness", &container.liveness_probe), ("Readiness", &container.readiness_probe), ("Startup", &container.startup_probe)]
    {
        field(name, probe.as_ref().map(probe::probe).unwrap_or_default());
    }
    field("Env From", container.env_from.iter().flatten().map(whole).collect::<Vec<_>>().join("\n"));
    field("Environment", container.env.iter().flatten().map(variable).collect::<Vec<_>>().join("\n"));
    let mounts = container.volume_mounts.iter().flatten().map(|mount| {
        let mode = if mount.read_only == Some(true) { "read-only" } else { "writable" };
        format!("{} from {} ({mode})", mount.mount_path, mount.name)
    });
    field("Mounts", mounts.collect::<Vec<_>>().join("\n"));
}

type Amounts = std::collections::BTreeMap<String, k8s_openapi::apimachinery::pkg::api::resource::Quantity>;

fn amounts(resources: Option<&ResourceRequirements>, which: fn(&ResourceRequirements) -> Option<&Amounts>) -> String {
    let amounts = resources.and_then(which).into_iter().flatten();
    amounts.map(|(name, amount)| format!("{name} {}", amount.0)).collect::<Vec<_>>().join(", ")
}

/// An object that is taken as a whole: not what it holds.
fn whole(source: &EnvFromSource) -> String {
    let (kind, name, optional) = match (&source.config_map_ref, &source.secret_ref) {
        (Some(reference), _) => ("config map", reference.name.as_str(), reference.optional),
        (None, Some(reference)) => ("secret", reference.name.as_str(), reference.optional),
        (None, None) => ("<elsewhere>", "", None),
    };
    let prefix = source.prefix.as_deref().filter(|prefix| !prefix.is_empty());
    let prefix = prefix.map(|prefix| format!(", with prefix {prefix}")).unwrap_or_default();
    format!("{kind} {name}{prefix}{}", self::optional(optional))
}

/// A value that comes from elsewhere is not resolved: it may be a secret.
fn variable(variable: &EnvVar) -> String {
    let source = variable.value_from.as_ref().map(|source| {
        if let Some(field) = &source.field_ref {
            format!("<field {}>", field.field_path)
        } else if let Some(key) = &source.config_map_key_ref {
            format!("<key {} of config map {}>{}", key.key, key.name, optional(key.optional))
        } else if let Some(key) = &source.secret_key_ref {
            format!("<key {} of secret {}>{}", key.key, key.name, optional(key.optional))
        } else if let Some(resource) = &source.resource_field_ref {
            format!("<resource {}>", resource.resource)
        } else {
            "<elsewhere>".to_owned()
        }
    });
    format!("{}={}", variable.name, source.or_else(|| variable.value.clone()).unwrap_or_default().replace('\n', " "))
}

const fn optional(optional: Option<bool>) -> &'static str {
    match optional {
        Some(true) => " (optional)",
        Some(false) | None => "",
    }
}

fn observed(text: &mut Description, status: &ContainerStatus, now: Timestamp) {
    text.indented(2, "State", &state(status.state.as_ref(), now));
    if let Some(last) = &status.last_state
        && *last != ContainerState::default()
    {
        text.indented(2, "Last State", &state(Some(last), now));
    }
    text.indented(2, "Ready", &status.ready.to_string());
    text.indented(2, "Restarts", &status.restart_count.to_string());
    for (name, value) in [("Container ID", status.container_id.as_deref()), ("Image ID", Some(status.image_id.as_str()))] {
        if let Some(value) = value.filter(|value| !value.is_empty()) {
            text.indented(2, name, value);
        }
    }
}

fn state(state: Option<&ContainerState>, now: Timestamp) -> String {
    let Some(state) = state else { return "Unknown".to_owned() };
    if let Some(running) = &state.running {
        let since = running.started_at.as_ref().map(|time| time.0);
        return format!("Running for {}", age_since(since, now));
    }
    if let Some(terminated) = &state.terminated {
        let message = terminated.message.as_deref().map(|message| format!("\n{}", message.trim_end())).unwrap_or_default();
        return format!("{}{message}", ending(terminated, now));
    }
    let waiting = state.waiting.as_ref();
    let reason = waiting.and_then(|waiting| waiting.reason.as_deref()).unwrap_or("Waiting");
    match waiting.and_then(|waiting| waiting.message.as_deref()) {
        Some(message) => format!("{reason}: {message}"),
        None => reason.to_owned(),
    }
}
