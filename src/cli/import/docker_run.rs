//! `docker run` and `podman run` commands.

use super::model::{Health, Mount, MountSource, Project, Restart, Service};
use super::words::{cpu, key_name, memory, mount, object_name, ports, propagation, seconds, shares, signal, split, tmpfs};
use super::{devices, env_file};
use anyhow::{Context as _, bail};
use podstead_pod::is_safe_sysctl;
use std::iter::Peekable;
use std::path::Path;

/// Options without a value.
#[rustfmt::skip]
const FLAGS: &[&str] = &[
    "d", "detach", "i", "interactive", "t", "tty", "rm", "privileged", "read-only", "init", "P", "publish-all", "no-healthcheck", "q",
    "quiet", "sig-proxy", "oom-kill-disable", "disable-content-trust", "replace", "rmi", "env-host", "http-proxy", "no-hosts",
    "no-hostname", "read-only-tmpfs", "passwd", "tls-verify", "unsetenv-all",
];

/// The source of limits of processes.
pub(super) const ULIMITS: &str =
    "containers have those of the service, which systemctl edit podstead sets for all (LimitMEMLOCK=infinity)";

/// Reads a command. Files that it names, and relative paths, are those of `directory`.
pub(super) fn parse(text: &str, directory: &Path) -> anyhow::Result<Project> {
    let words = split(text).context("the command has a quote that is not closed")?;
    let mut words =
        words.into_iter().skip_while(|word| matches!(word.as_str(), "sudo" | "docker" | "podman" | "container")).peekable();
    if words.next_if(|word| word == "run" || word == "create").is_none() {
        bail!("expected a command such as 'docker run -d --name web -p 80:80 nginx'");
    }
    let mut service = Service::default();
    options(&mut service, &mut words, directory)?;
    service.image = words.next().context("the command names no image")?;
    service.command = words.collect();
    if service.name.is_empty() {
        let image = service.image.rsplit('/').next().unwrap_or_default();
        service.name = object_name(image.split([':', '@']).next().unwrap_or_default());
    }
    if let Some(leader) = service.joins.take() {
        service.note(format!("it shares the network of {leader}: move the container into the manifest of {leader}"));
    }
    service.finish();
    Ok(Project { origin: "a docker run command".to_owned(), services: vec![service], notes: Vec::new() })
}

/// Carries leading options over.
pub(super) fn options(
    service: &mut Service,
    words: &mut Peekable<impl Iterator<Item = String>>,
    directory: &Path,
) -> anyhow::Result<()> {
    while let Some(option) = words.next_if(|word| word.starts_with('-') && word != "-") {
        let (name, mut value) = match option.strip_prefix("--") {
            Some(long) => match long.split_once('=') {
                Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
                None => (long.to_owned(), None),
            },
            None => short_option(&option, service)?,
        };
        if value.is_none() && !FLAGS.contains(&name.as_str()) {
            value = words.next();
        }
        match (name.as_str(), value.as_deref()) {
            ("env-file", Some(path)) => env_file::add(service, path, &directory.join(path), true),
            ("v" | "volume" | "mount", Some(value)) => {
                apply(service, &name, Some(&with_directory(value, directory)))?;
            }
            (name, value) => apply(service, name, value)?,
        }
    }
    Ok(())
}

/// A mount with the current directory where the shell would have put it.
fn with_directory(value: &str, directory: &Path) -> String {
    let directory = directory.to_string_lossy();
    let place = |value: String, name: &str| value.replace(name, &directory);
    let value = ["$(pwd)", "`pwd`", "$PWD", "${PWD}"].iter().fold(value.to_owned(), |value, name| place(value, name));
    match value.strip_prefix("./").or_else(|| value.strip_prefix('.').filter(|rest| rest.starts_with(['/', ':']))) {
        Some(rest) => format!("{directory}/{}", rest.trim_start_matches('/')),
        None => value,
    }
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
        "d"
        | "detach"
        | "init"
        | "name"
        | "h"
        | "hostname"
        | "t"
        | "tty"
        | "i"
        | "interactive"
        | "rm"
        | "pull"
        | "q"
        | "quiet"
        | "sig-proxy"
        | "replace"
        | "expose"
        | "no-healthcheck"
        | "disable-content-trust"
        | "P"
        | "publish-all" => plain(service, name, given, is_set),
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
        "tmpfs" => service.mounts.push(tmpfs(given).with_context(wrong)?),
        "shm-size" => {
            let size = memory(given).with_context(wrong)?;
            service.mounts.push(Mount::new(MountSource::Memory(Some(size)), "/dev/shm"));
        }
        "device" => devices::add_device(service, given),
        "e" | "env" => match given.split_once('=') {
            Some((name, value)) => add_variable(service, name, value),
            None => service.note(format!("variable {given} has the value of your shell; set it in the manifest")),
        },
        "secret" => secret(service, given),
        "entrypoint" => service.entrypoint = vec![given.to_owned()],
        "w" | "workdir" => service.run.directory = Some(given.to_owned()),
        "m" | "memory" => service.run.memory = Some(memory(given).with_context(wrong)?),
        "memory-reservation" => service.run.memory_request = Some(memory(given).with_context(wrong)?),
        "cpus" => service.run.cpu = Some(cpu(given).with_context(wrong)?),
        "c" | "cpu-shares" => service.run.cpu_request = shares(given),
        "net" | "network" => network(service, given),
        "network-alias" | "link" => alias(service, name, given),
        "dns" => service.run.dns.servers.push(given.to_owned()),
        "dns-search" => service.run.dns.searches.push(given.to_owned()),
        "dns-opt" | "dns-option" => service.run.dns.options.push(given.to_owned()),
        "add-host" => match given.split_once([':', '=']).filter(|(_, address)| address.parse::<std::net::IpAddr>().is_ok()) {
            Some((name, address)) => service.run.hosts.push((address.to_owned(), name.to_owned())),
            None => service.note(format!("--add-host {given} has no address that can be carried over")),
        },
        "sysctl" => {
            let (name, value) = given.split_once('=').with_context(wrong)?;
            sysctl(service, name, value);
        }
        "stop-timeout" => service.run.grace = Some(seconds(given).with_context(wrong)?),
        "stop-signal" => service.run.stop_signal = Some(signal(given).with_context(wrong)?),
        "health-cmd" => service.health.get_or_insert_default().command = health_command(given),
        "health-interval" => service.health.get_or_insert_default().period = seconds(given),
        "health-timeout" => service.health.get_or_insert_default().timeout = seconds(given),
        "health-start-period" => service.health.get_or_insert_default().delay = seconds(given),
        "health-retries" => service.health.get_or_insert_default().retries = given.parse().ok(),
        "health-on-failure" => service.health.get_or_insert_default().restarts = given != "none",
        "l" | "label" => service.note(format!("label {given} is not carried over: nothing here reads labels of docker")),
        "log-driver" | "log-opt" => service.note("logging is not carried over: podstead stores and rotates logs"),
        _ => right(service, name, value, is_set),
    }
    Ok(())
}

/// Options about the rights of a container, and those that nothing here corresponds to.
fn right(service: &mut Service, name: &str, value: Option<&str>, is_set: bool) {
    let given = value.unwrap_or_default();
    let rights = &mut service.rights;
    match name {
        "u" | "user" => user(service, given),
        "group-add" => match given.parse() {
            Ok(group) => rights.groups.push(group),
            Err(_) => service.note(format!("group {given} is not carried over: add its number to supplementalGroups")),
        },
        "privileged" => rights.privileged = is_set,
        "read-only" => rights.read_only = is_set,
        "cap-add" => rights.add.push(capability(given)),
        "cap-drop" => rights.drop.push(capability(given)),
        "security-opt" => security(service, given),
        "pid" if given == "host" => rights.host_pid = true,
        "ipc" if given == "host" => rights.host_ipc = true,
        "ipc" if matches!(given, "private" | "shareable" | "none") => {}
        "ulimit" => service.note(format!("ulimit {given} is not carried over: {ULIMITS}")),
        "gpus" => service.note(format!("gpus {given}: name the device of a CDI specification in an annotation cdi.k8s.io/NAME")),
        "pids-limit" => {
            service.note(format!("pids-limit {given} is not carried over: podPidsLimit of the configuration is for each pod"))
        }
        "memory-swap" | "memory-swappiness" => {
            service.note(format!("{name} is not carried over: containers with a memory limit do not swap"))
        }
        _ => {
            let dashes = if name.len() == 1 { "-" } else { "--" };
            let value = value.map(|value| format!(" {value}")).unwrap_or_default();
            service.note(format!("{dashes}{name}{value} is not carried over"));
        }
    }
}

fn plain(service: &mut Service, name: &str, given: &str, is_set: bool) {
    match name {
        "name" => service.name = given.to_owned(),
        "h" | "hostname" => service.run.hostname = Some(given.to_owned()),
        "t" | "tty" | "i" | "interactive" => service.run.tty |= is_set,
        "rm" => service.run.restart = if is_set { Restart::Never } else { service.run.restart },
        "pull" => service.run.pull = pull(given),
        "P" | "publish-all" => service.note("the ports of the image are not known here: add those that are needed to ports"),
        // In the background, and with an init, as any container here; zombies are reaped by its parent. Health checks of images do not run.
        _ => {}
    }
}

/// Policy of Kubernetes for pulls. Without one, its rule for tags counts.
pub(super) fn pull(text: &str) -> Option<&'static str> {
    match text {
        "always" | "newer" | "build" => Some("Always"),
        "missing" | "if_not_present" => Some("IfNotPresent"),
        "never" => Some("Never"),
        _ => None,
    }
}

/// Adds a kernel parameter, and a note if the configuration has to allow it.
pub(super) fn sysctl(service: &mut Service, name: &str, value: &str) {
    if !is_safe_sysctl(name) {
        service.note(format!("sysctl {name} is one that the configuration has to allow: allowedUnsafeSysctls: [{name}]"));
    }
    service.run.sysctls.push((name.to_owned(), value.trim().to_owned()));
}

/// Adds `no-new-privileges`, `seccomp=unconfined` and the like.
pub(super) fn security(service: &mut Service, text: &str) {
    match text.replace(['=', ' '], ":").as_str() {
        "no-new-privileges" | "no-new-privileges:true" => service.rights.no_new_privileges = true,
        "no-new-privileges:false" => service.rights.no_new_privileges = false,
        "seccomp:unconfined" => service.rights.seccomp_unconfined = true,
        "apparmor:unconfined" => service.rights.apparmor_unconfined = true,
        // Containers have no labels of SELinux here.
        label if label.starts_with("label:") => {}
        _ => service.note(format!("security option {text} is not carried over")),
    }
}

/// A secret of podman: `NAME,type=env,target=VARIABLE` or a file in `/run/secrets`.
pub(super) fn secret(service: &mut Service, text: &str) {
    let mut parts = text.split(',');
    let name = parts.next().unwrap_or_default();
    let field = |wanted: &str| {
        text.split(',').filter_map(|part| part.split_once('=')).find(|(name, _)| *name == wanted).map(|(_, value)| value)
    };
    let key = key_name(name);
    service.note(format!(
        "secret {name} is in podman: write it with kubectl create secret generic {} --from-literal={key}=VALUE --dry-run=client -o yaml",
        object_name(name)
    ));
    if field("type") == Some("env") {
        service.secret_environment.push((field("target").unwrap_or(name).to_owned(), name.to_owned()));
        return;
    }
    let target = match field("target") {
        Some(target) if target.starts_with('/') => target.to_owned(),
        target => format!("/run/secrets/{}", target.unwrap_or(name)),
    };
    let source = MountSource::File { name: object_name(name), key, content: None, is_secret: true };
    service.mounts.push(Mount { read_only: true, ..Mount::new(source, target) });
}

/// Another name of this service, or of one that it uses.
fn alias(service: &mut Service, option: &str, text: &str) {
    match (option, text.split_once(':')) {
        ("link", Some((other, alias))) if other != alias => {
            service
                .note(format!("link {text}: a Service {alias} that selects app: {} gives {other} this name", object_name(other)));
        }
        ("link", _) => {}
        _ => service.aliases.push(text.to_owned()),
    }
}

/// The command of a health check: words in JSON, or a text for a shell.
fn health_command(text: &str) -> Vec<String> {
    match serde_json::from_str::<Vec<String>>(text) {
        Ok(words) => match words.split_first() {
            Some((kind, rest)) if kind == "CMD" => rest.to_vec(),
            Some((kind, rest)) if kind == "CMD-SHELL" => shell(&rest.join(" ")),
            _ => words,
        },
        Err(_) if text == "none" => Vec::new(),
        Err(_) => shell(text),
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
        if path.len() > 1 {
            path.truncate(path.trim_end_matches('/').len());
        }
        if path.starts_with("/dev/") && !path.starts_with("/dev/shm") {
            service.note(format!(
                "{path}: a mount does not give access to devices; name them in annotations devices.podstead.dev/NAME"
            ));
        }
    }
    if matches!(mount.target.trim_end_matches('/'), "/sys" | "/proc") {
        service.note(format!("the mount at {} is left out: every container has its own; mount it at another path", mount.target));
        return;
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
        "none" => service.note("network none: a pod has a network; a NetworkPolicy can deny everything"),
        other => match other.split_once(':') {
            Some(("service" | "container", leader)) => service.joins = Some(leader.to_owned()),
            _ => service.note(format!("network {other} is not carried over: pods reach each other by the names of their services")),
        },
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
        (Some("tmpfs"), _) => MountSource::Memory(match field(&["tmpfs-size"]) {
            Some(size) => Some(memory(&size)?),
            None => None,
        }),
        (_, Some(name)) => MountSource::Named(name.strip_suffix(".volume").unwrap_or(&name).to_owned()),
        (_, None) => MountSource::Anonymous,
    };
    let propagation = field(&["bind-propagation"]).and_then(|value| propagation(&value));
    let read_only = text.split(',').any(|field| matches!(field, "readonly" | "ro" | "readonly=true" | "ro=true"));
    Some(Mount { source, target, read_only, propagation })
}

impl Service {
    /// Settles what several fields decide together, when all of them are read.
    pub(super) fn finish(&mut self) {
        // An empty entrypoint leaves the command alone.
        if self.entrypoint == [""] {
            self.entrypoint = std::mem::take(&mut self.command);
        }
        if self.health.as_ref().is_some_and(|health| !health.is_usable()) {
            self.health = None;
        }
        let name = object_name(&self.name);
        if name != self.name {
            self.note(format!("{} is called {name} here: others reach it by that name", self.name));
        }
        for alias in std::mem::take(&mut self.aliases) {
            if alias != object_name(&alias) {
                self.note(format!("the name {alias} is not carried over: it is not a name of a Service"));
            } else if alias != name && !self.aliases.contains(&alias) {
                self.aliases.push(alias);
            }
        }
        if self.run.dns.servers.len() > 3 {
            self.note("more than 3 name servers: the first 3 are used");
            self.run.dns.servers.truncate(3);
        }
        if !self.run.dns.servers.is_empty() {
            self.note("with name servers of its own it does not find other services by name: leave dnsConfig out if it needs them");
        }
    }
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
        let project = parse(text, Path::new("/")).unwrap();
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
            of("podman run --name x --runtime kata -v /var/run/docker.sock:/var/run/docker.sock --label a=b -v /sys:/sys busybox");
        let notes = project.services[0].notes.join("\n");
        assert!(
            notes.contains("--runtime kata is not carried over") && notes.contains("docker.sock") && notes.contains("label a=b"),
            "{notes}"
        );
        assert!(notes.contains("the mount at /sys is left out") && project.services[0].mounts.is_empty(), "{notes}");
        for wrong in ["docker ps", "docker run -d", "docker run 'x"] {
            assert!(parse(wrong, Path::new("/")).is_err(), "{wrong}");
        }
    }

    fn of(text: &str) -> Project {
        parse(text, Path::new("/home/anna")).unwrap()
    }

    #[test]
    fn rights_and_resources_are_carried_over() {
        let project =
            of("docker run --security-opt no-new-privileges --security-opt=seccomp=unconfined --group-add 44 --ipc=host \
                          --stop-signal INT --memory-reservation 256m -c 512 --pull always --dns 1.1.1.1 --dns-search lan \
                          --sysctl net.ipv4.ip_forward=1 --tmpfs /run:size=10m --mount type=tmpfs,dst=/t,tmpfs-size=64m nginx:1");
        let service = &project.services[0];
        let rights = &service.rights;
        assert!(rights.no_new_privileges && rights.seccomp_unconfined && rights.host_ipc && rights.groups == [44], "{rights:?}");
        let run = &service.run;
        assert_eq!((run.stop_signal.as_deref(), run.pull), (Some("SIGINT"), Some("Always")));
        assert_eq!((run.memory_request.as_deref(), run.cpu_request.as_deref()), (Some("256Mi"), Some("500m")));
        assert_eq!((run.dns.servers.len(), run.dns.searches.len()), (1, 1));
        let sizes = ["10Mi", "64Mi"].map(|size| MountSource::Memory(Some(size.into())));
        assert_eq!(service.mounts.iter().map(|mount| mount.source.clone()).collect::<Vec<_>>(), sizes);
        assert!(
            service.notes.iter().any(|note| note.contains("allowedUnsafeSysctls: [net.ipv4.ip_forward]")),
            "{:?}",
            service.notes
        );
    }

    #[test]
    fn flags_do_not_swallow_the_image() {
        for flag in ["--replace", "-P", "--quiet", "--sig-proxy=false", "--tls-verify=false"] {
            assert_eq!(of(&format!("podman run {flag} busybox:1 sh")).services[0].image, "busybox:1", "{flag}");
        }
    }

    #[test]
    fn paths_of_the_shell_become_absolute() {
        for path in ["$(pwd)/data", "$PWD/data", "${PWD}/data", "./data"] {
            let project = of(&format!("docker run -v \"{path}:/data/\" busybox"));
            assert_eq!(project.services[0].mounts[0].source, MountSource::Host("/home/anna/data".into()), "{path}");
        }
    }

    #[test]
    fn empty_entrypoint_leaves_the_command() {
        let service = &of("docker run --entrypoint '' busybox yes").services[0];
        assert_eq!((service.entrypoint.as_slice(), service.command.len()), (["yes".to_owned()].as_slice(), 0));
    }

    #[test]
    fn secrets_of_podman_become_references() {
        let project = of("podman run --secret db,type=env,target=DB_PW --secret=key busybox");
        let service = &project.services[0];
        assert_eq!(service.secret_environment, [("DB_PW".to_owned(), "db".to_owned())]);
        assert_eq!(service.mounts[0].target, "/run/secrets/key");
    }
}
