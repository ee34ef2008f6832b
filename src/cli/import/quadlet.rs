//! Quadlet units of podman: `.container` and `.volume` files of a directory.

use super::docker_run::{add_mount, add_variable, apply, capability, network, restart, user};
use super::model::{Project, Restart, Service};
use super::words::{mount, ports, seconds, split};
use super::{read_text, words};
use anyhow::{Context as _, bail};
use std::fs;
use std::path::Path;

/// Files that are read; more are no set of units for one host.
const MAX_FILES: usize = 500;

/// Reads a directory.
pub(super) fn read(directory: &Path) -> anyhow::Result<Project> {
    let entries = fs::read_dir(directory).with_context(|| format!("read {}", directory.display()))?;
    let mut names: Vec<String> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    anyhow::ensure!(names.len() <= MAX_FILES, "{} has more than {MAX_FILES} files", directory.display());
    let mut project = Project { origin: directory.display().to_string(), ..Project::default() };
    for name in names {
        match name.rsplit_once('.') {
            Some((stem, "container")) => {
                let path = directory.join(&name);
                let text = read_text(&path)?;
                project.services.push(container(stem, &text).with_context(|| format!("read {}", path.display()))?);
            }
            // A claim is written for each volume that a container mounts.
            Some((_, "volume")) => {}
            Some((_, "network")) => project.notes.push(format!("{name}: pods reach each other by the names of their services")),
            Some((_, "kube")) => project.notes.push(format!("{name}: its Yaml= is a manifest already; add that file to a source")),
            Some((_, "pod" | "image" | "build")) => project.notes.push(format!("{name} is not carried over")),
            Some(_) | None => {}
        }
    }
    if project.services.is_empty() {
        bail!("{} has no .container files", directory.display());
    }
    Ok(project)
}

/// Reads a `.container` file. **Pure**.
fn container(stem: &str, text: &str) -> anyhow::Result<Service> {
    let mut service = Service { name: stem.trim_end_matches('@').to_owned(), ..Service::default() };
    if stem.ends_with('@') {
        service.note("templates of units are not carried over: write a manifest for each instance");
    }
    // systemd does not restart a service unless it is told to.
    service.run.restart = Restart::Never;
    let mut section = "";
    let joined = text.replace("\\\n", " ");
    for line in joined.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';'])) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = match name {
                "Container" => "Container",
                "Service" => "Service",
                "Unit" | "Install" => "",
                other => bail!("unknown section [{other}]"),
            };
            continue;
        }
        let (key, value) =
            line.split_once('=').map(|(key, value)| (key.trim(), value.trim())).with_context(|| format!("{line:?} has no ="))?;
        match section {
            "Container" => of_container(&mut service, key, value)?,
            "Service" => of_service(&mut service, key, value),
            _ => {}
        }
    }
    anyhow::ensure!(!service.image.is_empty(), "it has no Image=");
    if service.health.as_ref().is_some_and(|health| !health.is_usable()) {
        service.health = None;
    }
    Ok(service)
}

fn of_service(service: &mut Service, key: &str, value: &str) {
    match key {
        "Restart" => {
            service.run.restart = match value {
                "no" => restart("no"),
                "on-failure" | "on-abnormal" | "on-abort" | "on-watchdog" => restart("on-failure"),
                _ => restart("always"),
            };
        }
        "TimeoutStopSec" => service.run.grace = seconds(value),
        "RestartSec" | "TimeoutStartSec" | "Type" => {}
        other => service.note(format!("{other}={value} of [Service] is not carried over")),
    }
}

fn of_container(service: &mut Service, key: &str, value: &str) -> anyhow::Result<()> {
    let wrong = || format!("cannot read {key}={value}");
    let words_of = || split(value).with_context(wrong);
    match key {
        "Image" => service.image = value.to_owned(),
        "ContainerName" => service.name = value.to_owned(),
        "Exec" => service.command = words_of()?,
        "Entrypoint" => service.entrypoint = words_of()?,
        "Environment" => {
            for word in words_of()? {
                let (name, value) = word.split_once('=').with_context(wrong)?;
                add_variable(service, name, value);
            }
        }
        "PublishPort" => service.ports.extend(ports(value).with_context(wrong)?),
        "Volume" => {
            let mount = mount(value).with_context(wrong)?;
            add_mount(service, mount);
        }
        "Network" => network(service, value.strip_suffix(".network").unwrap_or(value)),
        "User" => {
            let group = service.rights.group;
            user(service, value);
            service.rights.group = service.rights.group.or(group);
        }
        "Group" => match value.parse() {
            Ok(group) => service.rights.group = Some(group),
            Err(_) => service.note(format!("group {value} is not carried over: set runAsGroup to its number")),
        },
        "WorkingDir" => service.run.directory = Some(value.to_owned()),
        "HostName" => service.run.hostname = Some(value.to_owned()),
        "ReadOnly" => service.rights.read_only = is_true(value),
        "AddCapability" => service.rights.add.extend(value.split_whitespace().map(capability)),
        "DropCapability" => service.rights.drop.extend(value.split_whitespace().map(capability)),
        "Sysctl" => service.run.sysctls.extend(value.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))),
        "Tmpfs" => apply(service, "tmpfs", Some(value))?,
        "Mount" => apply(service, "mount", Some(value))?,
        "AddHost" => apply(service, "add-host", Some(value))?,
        "ShmSize" => apply(service, "shm-size", Some(value))?,
        "Memory" => service.run.memory = words::memory(value),
        "StopTimeout" => service.run.grace = seconds(value),
        "HealthCmd" => apply(service, "health-cmd", Some(value))?,
        "HealthInterval" => apply(service, "health-interval", Some(value))?,
        "HealthTimeout" => apply(service, "health-timeout", Some(value))?,
        "HealthStartPeriod" => apply(service, "health-start-period", Some(value))?,
        "HealthRetries" => apply(service, "health-retries", Some(value))?,
        // What any container has here.
        "RunInit" | "Pull" | "Label" | "Annotation" => {}
        "AutoUpdate" => service.note("AutoUpdate: an image is updated by a commit that names the new one"),
        "Secret" => service.note(format!("secret {value} is in podman: write a Secret, and mount it")),
        other => service.note(format!("{other}={value} is not carried over")),
    }
    Ok(())
}

fn is_true(value: &str) -> bool {
    matches!(value, "true" | "yes" | "on" | "1")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unit_becomes_a_service() {
        let text = "[Unit]\nDescription=Web\n\n[Container]\nImage=docker.io/library/busybox:1\nExec=sh -c 'httpd -f' \\\n  --more\n\
                    Environment=A=b \"C=d e\"\nPublishPort=8080:80\nVolume=web.volume:/data\nUser=5\nAutoUpdate=registry\n\n\
                    [Service]\nRestart=always\nTimeoutStopSec=1min\n";
        let service = container("web", text).unwrap();
        assert_eq!(service.command, ["sh", "-c", "httpd -f", "--more"]);
        assert_eq!(service.environment, [("A".to_owned(), "b".to_owned()), ("C".to_owned(), "d e".to_owned())]);
        assert_eq!((service.run.restart, service.rights.user), (Restart::Always, Some(5)));
        assert_eq!(service.notes.len(), 1, "{:?}", service.notes);
        assert!(container("x", "[Container]\nExec=a\n").is_err() && container("x", "[Container]\nnothing\n").is_err());
    }
}
