//! `docker run` and `podman run` commands. **Pure**.

use super::model::{Health, Mount, MountSource, Project, Restart, Service};
use super::words::{cpu, memory, mount, object_name, ports, seconds, split};
use anyhow::{Context as _, bail};

/// Options without a value.
const FLAGS: &[&str] =
    &["d", "detach", "i", "interactive", "t", "tty", "rm", "privileged", "read-only", "init", "P", "publish-all", "no-healthcheck"];

/// Reads a command.
pub(super) fn parse(text: &str) -> anyhow::Result<Project> {
    let words = split(text).context("the command has a quote that is not closed")?;
    let mut words =
        words.into_iter().skip_while(|word| matches!(word.as_str(), "sudo" | "docker" | "podman" | "container")).peekable();
    if words.next_if(|word| word == "run" || word == "create").is_none() {
        bail!("expected a command such as 'docker run -d --name web -p 80:80 nginx'");
    }
    let mut service = Service::default();
    while let Some(option) = words.next_if(|word| word.starts_with('-') && word != "-") {
        let (name, mut value) = match option.strip_prefix("--") {
            Some(long) => match long.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (long.to_owned(), None),
            },
            None => short_option(&option, &mut service)?,
        };
        if value.is_none() && !FLAGS.contains(&name.as_str()) {
            value = words.next();
        }
        apply(&mut service, &name, value.as_deref())?;
    }
    service.image = words.next().context("the command names no image")?;
    service.command = words.collect();
    if service.name.is_empty() {
        let image = service.image.rsplit('/').next().unwrap_or_default();
        service.name = object_name(image.split([':', '@']).next().unwrap_or_default());
    }
    Ok(Project { origin: "a docker run command".to_owned(), services: vec![service], notes: Vec::new() })
}

/// Name and value of `-p80:80`, `-it`, `-dp 80:80`: leading flags are applied.
fn short_option(option: &str, service: &mut Service) -> anyhow::Result<(String, Option<String>)> {
    let mut rest = option.strip_prefix('-').unwrap_or_default();
    loop {
        let mut characters = rest.chars();
        let name = characters.next().map(String::from).with_context(|| format!("cannot read the option {option:?}"))?;
        rest = characters.as_str();
        if !FLAGS.contains(&name.as_str()) {
            return Ok((name, Some(rest.strip_prefix('=').unwrap_or(rest).to_owned()).filter(|value| !value.is_empty())));
        }
        if rest.is_empty() {
            return Ok((name, None));
        }
        apply(service, &name, None)?;
    }
}

/// Carries one option over. `None` as value is that of a flag.
pub(super) fn apply(service: &mut Service, name: &str, value: Option<&str>) -> anyhow::Result<()> {
    let given = value.unwrap_or_default();
    let is_set = value.is_none_or(|value| value == "true");
    let wrong = || format!("cannot read {given:?} as the value of --{name}");
    match name {
        "d" | "detach" | "init" | "name" | "h" | "hostname" | "t" | "tty" | "i" | "interactive" => {
            plain(service, name, given, is_set)
        }
        "rm" => service.run.restart = if is_set { Restart::Never } else { service.run.restart },
        "restart" => service.run.restart = restart(given),
        "p" | "publish" => service.ports.extend(ports(given).with_context(wrong)?),
        "v" | "volume" => {
            let mount = mount(given).with_context(wrong)?;
            add_mount(service, mount);
        }
        "mount" => {
            let mount = long_mount(given).with_context(wrong)?;
            add_mount(service, mount);
        }
        "tmpfs" => {
            let target = given.split(':').next().unwrap_or_default().to_owned();
            service.mounts.push(Mount { source: MountSource::Memory(None), target, read_only: false });
        }
        "shm-size" => {
            let size = memory(given).with_context(wrong)?;
            service.mounts.push(Mount { source: MountSource::Memory(Some(size)), target: "/dev/shm".to_owned(), read_only: false });
        }
        "e" | "env" => match given.split_once('=') {
            Some((name, value)) => add_variable(service, name, value),
            None => service.note(format!("variable {given} has the value of your shell; set it in the manifest")),
        },
        "entrypoint" => service.entrypoint = vec![given.to_owned()],
        "w" | "workdir" => service.run.directory = Some(given.to_owned()),
        "u" | "user" => user(service, given),
        "m" | "memory" => service.run.memory = Some(memory(given).with_context(wrong)?),
        "cpus" => service.run.cpu = Some(cpu(given).with_context(wrong)?),
        "privileged" => service.rights.privileged = is_set,
        "read-only" => service.rights.read_only = is_set,
        "cap-add" => service.rights.add.push(capability(given)),
        "cap-drop" => service.rights.drop.push(capability(given)),
        "pid" if given == "host" => service.rights.host_pid = true,
        "net" | "network" => network(service, given),
        "add-host" => match given.split_once(':') {
            Some((name, address)) => service.run.hosts.push((address.to_owned(), name.to_owned())),
            None => service.note(format!("--add-host {given} is not carried over")),
        },
        "sysctl" => service.run.sysctls.extend(given.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()))),
        "stop-timeout" => service.run.grace = Some(seconds(given).with_context(wrong)?),
        "health-cmd" => service.health.get_or_insert_default().command = shell(given),
        "health-interval" => service.health.get_or_insert_default().period = seconds(given),
        "health-timeout" => service.health.get_or_insert_default().timeout = seconds(given),
        "health-start-period" => service.health.get_or_insert_default().delay = seconds(given),
        "health-retries" => service.health.get_or_insert_default().retries = given.parse().ok(),
        "l" | "label" => service.note(format!("label {given} is not carried over: nothing here reads labels of docker")),
        _ => service.note(format!("--{name}{} is not carried over", value.map(|value| format!(" {value}")).unwrap_or_default())),
    }
    Ok(())
}

fn plain(service: &mut Service, name: &str, given: &str, is_set: bool) {
    match name {
        "name" => service.name = given.to_owned(),
        "h" | "hostname" => service.run.hostname = Some(given.to_owned()),
        "t" | "tty" | "i" | "interactive" => service.run.tty |= is_set,
        // In the background, and with an init, as any container here; zombies are reaped by its parent.
        _ => {}
    }
}

/// Reaction to the end.
pub(super) fn restart(text: &str) -> Restart {
    match text.split(':').next() {
        Some("no") => Restart::Never,
        Some("on-failure") => Restart::OnFailure,
        _ => Restart::Always,
    }
}

/// A command of a shell.
pub(super) fn shell(text: &str) -> Vec<String> {
    ["/bin/sh", "-c", text].map(str::to_owned).to_vec()
}

/// Adds a variable, and a note if it looks like a secret.
pub(super) fn add_variable(service: &mut Service, name: &str, value: &str) {
    let upper = name.to_uppercase();
    if ["PASSWORD", "PASSWD", "SECRET", "TOKEN", "API_KEY"].iter().any(|word| upper.contains(word)) && !upper.ends_with("_FILE") {
        service.note(format!("variable {name} looks like a secret: move it to a Secret, and encrypt that before it is committed"));
    }
    service.environment.retain(|(known, _)| known != name);
    service.environment.push((name.to_owned(), value.to_owned()));
}

/// Adds a mount, and notes on what cannot work.
pub(super) fn add_mount(service: &mut Service, mut mount: Mount) {
    if let MountSource::Host(path) = &mut mount.source {
        if path.ends_with("docker.sock") || path.ends_with("podman.sock") {
            service
                .note(format!("{path} does not exist without docker: a program that needs it cannot work; the mount is left out"));
            return;
        }
        if !path.starts_with('/') {
            service.note(format!("path {path} is relative: it became {}", absolute(path)));
            *path = absolute(path);
        }
    }
    service.mounts.push(mount);
}

fn absolute(path: &str) -> String {
    let path = path.trim_start_matches('.').trim_start_matches(['~', '%']).trim_matches('/');
    format!("/srv/{path}")
}

/// User and group by number.
pub(super) fn user(service: &mut Service, text: &str) {
    let (user, group) = text.split_once(':').map_or((text, None), |(user, group)| (user, Some(group)));
    match (user.parse(), group.map(str::parse)) {
        (Ok(user), None) => service.rights.user = Some(user),
        (Ok(user), Some(Ok(group))) => (service.rights.user, service.rights.group) = (Some(user), Some(group)),
        _ if text == "root" => service.rights.user = Some(0),
        _ => service.note(format!("user {text} is not carried over: set runAsUser to its number")),
    }
}

/// Without `CAP_`, which manifests do not have.
pub(super) fn capability(text: &str) -> String {
    text.to_uppercase().trim_start_matches("CAP_").to_owned()
}

/// The network of the host, or that of pods.
pub(super) fn network(service: &mut Service, text: &str) {
    match text {
        "host" => service.rights.host_network = true,
        "bridge" | "default" => {}
        "none" => service.note("network none: a pod has a network; use a source without it, or a NetworkPolicy"),
        other => service.note(format!("network {other} is not carried over: pods reach each other by the names of their services")),
    }
}

/// `type=bind,source=/a,target=/b,readonly`.
fn long_mount(text: &str) -> Option<Mount> {
    let field = |names: &[&str]| {
        let mut fields = text.split(',').filter_map(|field| field.split_once('='));
        fields.find(|(name, _)| names.contains(name)).map(|(_, value)| value.to_owned())
    };
    let target = field(&["target", "dst", "destination"])?;
    let source = field(&["source", "src"]);
    let source = match (field(&["type"]).as_deref(), source) {
        (Some("bind"), Some(path)) => MountSource::Host(path),
        (Some("tmpfs"), _) => MountSource::Memory(None),
        (_, Some(name)) => MountSource::Named(name),
        (_, None) => MountSource::Anonymous,
    };
    let read_only = text.split(',').any(|field| matches!(field, "readonly" | "ro" | "readonly=true" | "ro=true"));
    Some(Mount { source, target, read_only })
}

impl Health {
    /// Returns true if there is something to run.
    pub(super) fn is_usable(&self) -> bool {
        !self.command.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn command_becomes_a_service() {
        let text = "docker run -dit --name web -p 127.0.0.1:8080:80 -v data:/data:ro -v /srv/a:/a -e A=b --restart=on-failure:3 \
                    --memory 64m --cpus=0.5 -u 1000:1000 --cap-add=NET_ADMIN nginx:1 sh -c 'echo hi'";
        let project = parse(text).unwrap();
        let [service] = project.services.as_slice() else { panic!("{project:?}") };
        assert_eq!((service.name.as_str(), service.image.as_str()), ("web", "nginx:1"));
        assert_eq!(service.command, ["sh", "-c", "echo hi"]);
        assert_eq!((service.ports.len(), service.mounts.len(), service.run.restart), (1, 2, Restart::OnFailure));
        assert_eq!((service.run.memory.as_deref(), service.run.cpu.as_deref()), (Some("64Mi"), Some("500m")));
        assert_eq!((service.rights.user, service.rights.group), (Some(1000), Some(1000)));
        assert_eq!(service.notes, [""; 0]);
    }

    #[test]
    fn unknown_options_are_noted() {
        let project =
            parse("podman run --name x --gpus all -v /var/run/docker.sock:/var/run/docker.sock --label a=b busybox").unwrap();
        let notes = project.services[0].notes.join("\n");
        assert!(
            notes.contains("--gpus all is not carried over") && notes.contains("docker.sock") && notes.contains("label a=b"),
            "{notes}"
        );
        assert!(parse("docker ps").is_err() && parse("docker run -d").is_err() && parse("docker run 'x").is_err());
    }
}
