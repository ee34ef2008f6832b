//! Quadlet units of podman: the files of a directory.

use super::docker_run::{add_mount, add_variable, apply, capability, network, options, pull, restart, secret, sysctl, user};
use super::exports::of_file_system;
use super::model::{MountSource, Project, Restart, Service};
use super::text::read_text;
use super::words::{self, mount, object_name, ports, seconds, signal, split};
use super::{devices, env_file};
use anyhow::{Context as _, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// Files that are read; more are no set of units for one host.
const MAX_FILES: usize = 500;

/// Sections of a unit: for each line its section, key and value.
type Lines = Vec<(String, String, String)>;

/// The units of a directory, by their names.
struct Units<'a> {
    directory: &'a Path,
    files: BTreeMap<String, Lines>,
}

impl Units<'_> {
    /// The last value of a key.
    fn value(&self, unit: &str, key: &str) -> Option<&str> {
        let lines = self.files.get(unit)?;
        lines.iter().rev().find(|(_, known, _)| known == key).map(|(_, _, value)| value.as_str())
    }
}

/// Reads a directory.
pub(super) fn read(directory: &Path) -> anyhow::Result<Project> {
    let entries = fs::read_dir(directory).with_context(|| format!("read {}", directory.display()))?;
    let mut names: Vec<String> = entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort_unstable();
    anyhow::ensure!(names.len() <= MAX_FILES, "{} has more than {MAX_FILES} files", directory.display());
    let mut units = Units { directory, files: BTreeMap::new() };
    for name in names {
        let path = directory.join(&name);
        if path.is_file()
            && matches!(
                path.extension().and_then(|kind| kind.to_str()),
                Some("container" | "pod" | "volume" | "network" | "kube" | "image" | "build")
            )
        {
            let mut text = read_text(&path)?;
            for drop_in in drop_ins(&directory.join(format!("{name}.d")))? {
                text.push('\n');
                text.push_str(&drop_in);
            }
            units.files.insert(name, lines(&text).with_context(|| format!("read {}", path.display()))?);
        }
    }
    let mut project = project(&units)?;
    project.origin = directory.display().to_string();
    if project.services.is_empty() {
        bail!("{} has no .container files", directory.display());
    }
    Ok(project)
}

/// The texts of `*.conf` in a directory, in the order of their names.
fn drop_ins(directory: &Path) -> anyhow::Result<Vec<String>> {
    let Ok(entries) = fs::read_dir(directory) else { return Ok(Vec::new()) };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.extension().is_some_and(|kind| kind == "conf"));
    paths.sort_unstable();
    anyhow::ensure!(paths.len() <= MAX_FILES, "{} has more than {MAX_FILES} files", directory.display());
    paths.iter().map(|path| read_text(path)).collect()
}

/// Cuts a unit into its lines. **Pure**.
fn lines(text: &str) -> anyhow::Result<Lines> {
    let mut section = String::new();
    let mut lines = Vec::new();
    let joined = text.replace("\\\n", " ");
    for line in joined.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';'])) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            name.clone_into(&mut section);
            continue;
        }
        let (key, value) = line.split_once('=').with_context(|| format!("{line:?} has no ="))?;
        lines.push((section.clone(), key.trim().to_owned(), value.trim().to_owned()));
    }
    Ok(lines)
}

fn project(units: &Units<'_>) -> anyhow::Result<Project> {
    let mut project = Project::default();
    for (name, lines) in &units.files {
        let (stem, kind) = name.rsplit_once('.').unwrap_or((name, ""));
        match kind {
            "container" => {
                let service =
                    container(stem, lines, units).with_context(|| format!("read {}", units.directory.join(name).display()))?;
                project.services.push(service);
            }
            "network" => project.notes.push(format!("{name}: pods reach each other by the names of their services")),
            "kube" => {
                let file = units.value(name, "Yaml").unwrap_or("the file of Yaml=");
                project.notes.push(format!("{name}: {file} is a manifest already; add it to a source"));
            }
            "build" => project.notes.push(format!("{name} is not carried over: podstead does not build images")),
            // A claim is written for each volume that a container mounts, and pods and images are those of their containers.
            _ => {}
        }
    }
    for name in units.files.keys().filter(|name| name.ends_with(".pod")) {
        pod(&mut project, name, units).with_context(|| format!("read {}", units.directory.join(name).display()))?;
    }
    for service in &mut project.services {
        if let Some(leader) = service.joins.as_ref().filter(|leader| leader.contains('.')) {
            let leader = leader.clone();
            service.note(format!("{leader} is not in this directory"));
            service.joins = None;
        }
    }
    Ok(project)
}

/// Puts the containers of a pod together: the first one stands for it.
fn pod(project: &mut Project, name: &str, units: &Units<'_>) -> anyhow::Result<()> {
    let mut members = project.services.iter_mut().filter(|service| service.joins.as_deref() == Some(name));
    let Some(leader) = members.next() else {
        project.notes.push(format!("{name}: no container is in this pod"));
        return Ok(());
    };
    leader.joins = None;
    let first = leader.name.clone();
    members.for_each(|member| member.joins = Some(first.clone()));
    let leader = project.services.iter_mut().find(|service| service.name == first).context("it has no containers")?;
    let stem = name.strip_suffix(".pod").unwrap_or(name);
    leader.pod = Some(units.value(name, "PodName").unwrap_or(stem).to_owned());
    for (section, key, value) in units.files.get(name).into_iter().flatten() {
        match (section.as_str(), key.as_str()) {
            ("Pod", "PodName" | "ServiceName" | "StopTimeout" | "ExitPolicy") => {}
            (
                "Pod",
                "PublishPort" | "Volume" | "Network" | "AddHost" | "DNS" | "DNSSearch" | "DNSOption" | "HostName" | "NetworkAlias"
                | "ShmSize" | "UserNS" | "PodmanArgs" | "Label",
            ) => of_container(leader, key, value, units)?,
            ("Pod", _) => leader.note(format!("{key}={value} of [Pod] is not carried over")),
            ("Service", "Restart") => of_service(leader, key, value),
            _ => {}
        }
    }
    let settings: Vec<_> =
        project.services.iter().filter(|service| service.name == first || service.joins.as_ref() == Some(&first)).collect();
    let restart = if settings.iter().any(|service| service.run.restart == Restart::Always) { Some(Restart::Always) } else { None };
    if let (Some(restart), Some(leader)) = (restart, project.services.iter_mut().find(|service| service.name == first)) {
        leader.run.restart = restart;
    }
    Ok(())
}

/// Reads a `.container` file.
fn container(stem: &str, lines: &Lines, units: &Units<'_>) -> anyhow::Result<Service> {
    let mut service = Service { name: stem.trim_end_matches('@').to_owned(), ..Service::default() };
    if stem.ends_with('@') {
        service.note("templates of units are not carried over: write a manifest for each instance");
    }
    // systemd does not restart a service unless it is told to.
    service.run.restart = Restart::Never;
    for (section, key, value) in lines {
        match section.as_str() {
            "Container" => of_container(&mut service, key, value, units)?,
            "Service" => of_service(&mut service, key, value),
            "Unit" | "Install" | "Quadlet" => {}
            other => service.note(format!("{key}={value} of [{other}] is not carried over")),
        }
    }
    anyhow::ensure!(!service.image.is_empty(), "it has no Image=");
    if lines
        .iter()
        .any(|(_, _, value)| ["%h", "%t", "%i", "%n", "%H", "%U", "%u"].iter().any(|specifier| value.contains(specifier)))
    {
        service.note("a value has a specifier of systemd, such as %h: write what it stands for");
    }
    service.finish();
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
        "RestartSec" | "TimeoutStartSec" | "Type" | "StartLimitIntervalSec" | "StartLimitBurst" | "Slice" => {}
        other => service.note(format!("{other}={value} of [Service] is not carried over")),
    }
}

fn of_container(service: &mut Service, key: &str, value: &str, units: &Units<'_>) -> anyhow::Result<()> {
    let wrong = || format!("cannot read {key}={value}");
    let words_of = || split(value).with_context(wrong);
    match key {
        "Image" => image(service, value, units),
        "Pod" => service.joins = Some(value.to_owned()),
        "EnvironmentFile" => {
            let path = value.strip_prefix('-').unwrap_or(value);
            env_file::add(service, path, &units.directory.join(path), !value.starts_with('-'));
        }
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
            let mut mount = mount(value).with_context(wrong)?;
            if let MountSource::Named(name) = &mount.source {
                let unit = format!("{name}.volume");
                match (units.value(&unit, "Type"), units.value(&unit, "Device")) {
                    (None | Some("none"), Some(device)) if device.starts_with('/') => {
                        mount.source = MountSource::Host(device.to_owned())
                    }
                    (Some(kind), Some(device)) => {
                        let options = units.value(&unit, "Options").unwrap_or_default();
                        mount.source = of_file_system(service, name, kind, device, options);
                    }
                    _ => {}
                }
            }
            add_mount(service, mount);
        }
        "Network" => match value.strip_suffix(".container") {
            Some(other) => service.joins = Some(other.to_owned()),
            None => network(service, value.strip_suffix(".network").unwrap_or(value)),
        },
        "NetworkAlias" => service.aliases.push(value.to_owned()),
        "AddDevice" => devices::add_device(service, value.trim_start_matches('-')),
        "DNS" => service.run.dns.servers.push(value.to_owned()),
        "DNSSearch" => service.run.dns.searches.push(value.to_owned()),
        "DNSOption" => service.run.dns.options.push(value.to_owned()),
        "PodmanArgs" => {
            let mut words = words_of()?.into_iter().peekable();
            options(service, &mut words, units.directory)?;
            if let Some(word) = words.next() {
                service.note(format!("{word} of PodmanArgs is not carried over"));
            }
        }
        _ => of_process(service, key, value)?,
    }
    Ok(())
}

/// The image, which may be the unit of one.
fn image(service: &mut Service, value: &str, units: &Units<'_>) {
    service.image = match value.rsplit_once('.') {
        Some((_, "image")) => units.value(value, "Image").unwrap_or(value).to_owned(),
        Some((stem, "build")) => {
            let image =
                units.value(value, "ImageTag").map_or_else(|| format!("localhost/{}:latest", object_name(stem)), str::to_owned);
            service.note(format!("{value} builds its image: build it elsewhere, and podstead image import it as {image}"));
            image
        }
        _ => value.to_owned(),
    };
}

/// Keys about the process and its rights.
fn of_process(service: &mut Service, key: &str, value: &str) -> anyhow::Result<()> {
    let wrong = || format!("cannot read {key}={value}");
    match key {
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
        "Sysctl" => {
            for word in split(value).with_context(wrong)? {
                let (name, value) = word.split_once('=').with_context(wrong)?;
                sysctl(service, name, value);
            }
        }
        "NoNewPrivileges" => service.rights.no_new_privileges = is_true(value),
        "SeccompProfile" if value == "unconfined" => service.rights.seccomp_unconfined = true,
        "GroupAdd" => apply(service, "group-add", Some(value))?,
        "StopSignal" => service.run.stop_signal = Some(signal(value).with_context(wrong)?),
        "Timezone" if value != "local" => add_variable(service, "TZ", value),
        "Ulimit" => apply(service, "ulimit", Some(value))?,
        "PidsLimit" => apply(service, "pids-limit", Some(value))?,
        "LogDriver" => apply(service, "log-driver", Some(value))?,
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
        "HealthOnFailure" => apply(service, "health-on-failure", Some(value))?,
        "Pull" => service.run.pull = pull(value),
        // What any container has here, or what has no meaning here.
        "RunInit"
        | "Label"
        | "Annotation"
        | "Notify"
        | "StartWithPod"
        | "CgroupsMode"
        | "ExposeHostPort"
        | "SecurityLabelDisable"
        | "SecurityLabelType"
        | "ReadOnlyTmpfs"
        | "ServiceName" => {}
        "AutoUpdate" => service.note("AutoUpdate: an image is updated by a commit that names the new one"),
        "Secret" => secret(service, value),
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

    fn of(files: &[(&str, &str)]) -> anyhow::Result<Project> {
        let files = files.iter().map(|(name, text)| Ok(((*name).to_owned(), lines(text)?))).collect::<anyhow::Result<_>>()?;
        project(&Units { directory: Path::new("/etc/containers/systemd"), files })
    }

    #[test]
    fn unit_becomes_a_service() {
        let text = "[Unit]\nDescription=Web\n\n[Container]\nImage=docker.io/library/busybox:1\nExec=sh -c 'httpd -f' \\\n  --more\n\
                    Environment=A=b \"C=d e\"\nPublishPort=8080:80\nVolume=web.volume:/data\nUser=5\nAutoUpdate=registry\n\
                    StopSignal=QUIT\nNoNewPrivileges=true\nPodmanArgs=--cpus 2\nHealthCmd=true\nHealthOnFailure=kill\n\n\
                    [Service]\nRestart=always\nTimeoutStopSec=1min\n";
        let project = of(&[("web.container", text)]).unwrap();
        let [service] = project.services.as_slice() else { panic!("{project:?}") };
        assert_eq!(service.command, ["sh", "-c", "httpd -f", "--more"]);
        assert_eq!(service.environment, [("A".to_owned(), "b".to_owned()), ("C".to_owned(), "d e".to_owned())]);
        assert_eq!((service.run.restart, service.rights.user), (Restart::Always, Some(5)));
        assert_eq!((service.run.cpu.as_deref(), service.run.stop_signal.as_deref()), (Some("2000m"), Some("SIGQUIT")));
        assert!(service.rights.no_new_privileges && service.health.as_ref().is_some_and(|health| health.restarts));
        assert_eq!(service.notes.len(), 1, "{:?}", service.notes);
        assert!(
            of(&[("x.container", "[Container]\nExec=a\n")]).is_err() && of(&[("x.container", "[Container]\nnothing\n")]).is_err()
        );
    }

    #[test]
    fn containers_of_a_pod_stay_together() {
        let container = |image: &str| format!("[Container]\nImage={image}\nPod=shop.pod\n[Service]\nRestart=always\n");
        let project = of(&[
            ("app.container", &container("app.image")),
            ("app.image", "[Image]\nImage=docker.io/library/busybox:1\n"),
            ("db.container", &container("postgres:16")),
            ("other.container", "[Container]\nImage=a\nPod=missing.pod\n"),
            ("shop.pod", "[Pod]\nPodName=shop\nPublishPort=80:80\n"),
        ])
        .unwrap();
        let [app, db, other] = project.services.as_slice() else { panic!("{project:?}") };
        assert_eq!((app.image.as_str(), app.pod_name().as_str(), app.ports.len()), ("docker.io/library/busybox:1", "shop", 1));
        assert_eq!((db.joins.as_deref(), other.joins.as_deref()), (Some("app"), None));
        assert_eq!(other.notes, ["missing.pod is not in this directory"]);
    }

    #[test]
    fn volumes_of_other_hosts_are_carried_over_or_noted() {
        let container = "[Container]\nImage=a\nVolume=data.volume:/data\n";
        let read = |volume: &str| of(&[("a.container", container), ("data.volume", volume)]).unwrap().services.remove(0);
        let service = read("[Volume]\nType=nfs\nDevice=nas:/export\nOptions=soft,rw\n");
        let MountSource::Export { server, path, options, .. } = &service.mounts[0].source else { panic!("{service:?}") };
        assert_eq!((server.as_str(), path.as_str(), options.as_str()), ("nas", "/export", "soft"));
        assert_eq!(service.notes, [""; 0]);
        let service = read("[Volume]\nType=cifs\nDevice=//nas/share\n");
        assert_eq!(service.mounts[0].source, MountSource::Host("/mnt/data".into()));
        assert!(service.notes[0].contains("//nas/share"), "{:?}", service.notes);
    }
}
