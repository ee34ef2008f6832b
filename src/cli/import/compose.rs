//! Compose files.

use super::compose_fields::{self, Place};
use super::model::Project;
use super::text::read_text;
use super::{compose_merge, env_file};
use anyhow::{Context as _, bail};
use serde_yaml::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Services of one file; more are no project for one host.
const MAX_SERVICES: usize = 200;
/// Bytes of all values after variables were replaced.
const MAX_REPLACED: usize = 4 << 20;

/// Files that docker reads after the one of the same name.
const OVERRIDES: [(&str, &str); 4] = [
    ("compose.yaml", "compose.override.yaml"),
    ("compose.yml", "compose.override.yml"),
    ("docker-compose.yaml", "docker-compose.override.yaml"),
    ("docker-compose.yml", "docker-compose.override.yml"),
];

/// Reads files, each of which overrides the ones before it, and `.env` beside the first one.
pub(super) fn read(paths: &[PathBuf]) -> anyhow::Result<Project> {
    let [first, later @ ..] = paths else { bail!("expected a compose file") };
    let directory = first.parent().map(|directory| if directory.as_os_str().is_empty() { Path::new(".") } else { directory });
    let directory = std::path::absolute(directory.unwrap_or(Path::new(".")))?;
    let mut variables: BTreeMap<String, String> = BTreeMap::new();
    if directory.join(".env").is_file() {
        variables.extend(env_file::variables(&read_text(&directory.join(".env"))?));
    }
    let mut texts = Vec::new();
    for path in paths {
        texts.push((path.display().to_string(), read_text(path)?));
    }
    let place = Place { directory, variables };
    let mut project = parse(&texts, &place)?;
    project.origin = names(&texts);
    let unread = OVERRIDES.iter().find(|(name, _)| first.ends_with(name)).map(|(_, name)| place.directory.join(name));
    if let Some(path) = unread.filter(|path| later.is_empty() && path.is_file()) {
        project.notes.push(format!("{} was not read, which docker reads, too: name both files", path.display()));
    }
    Ok(project)
}

fn names(texts: &[(String, String)]) -> String {
    texts.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ")
}

/// Reads the texts of files, which have names. Files that they refer to are read at `place`.
fn parse(texts: &[(String, String)], place: &Place) -> anyhow::Result<Project> {
    let mut project = Project::default();
    let mut missing = Vec::new();
    let mut budget = MAX_REPLACED;
    let mut load = |text: &str| {
        let mut document: Value = serde_yaml::from_str(text).context("the compose file is not valid YAML")?;
        document.apply_merge().context("the compose file has a wrong merge key")?;
        replace(&mut document, &place.variables, &mut missing, &mut budget)?;
        anyhow::Ok(document)
    };
    let all = names(texts);
    let mut document = Value::Mapping(serde_yaml::Mapping::new());
    for (name, text) in texts {
        compose_merge::merge(&mut document, load(text).with_context(|| name.clone())?, "");
    }
    let mut of_file = |path: &Path| load(&read_text(path)?).with_context(|| path.display().to_string());
    compose_merge::resolve(&mut document, &place.directory, &mut of_file).with_context(|| all.clone())?;
    missing.sort_unstable();
    missing.dedup();
    for name in missing {
        project.notes.push(format!("variable {name} is not set in .env: it became empty"));
    }
    let Some(services) = document.get("services").and_then(Value::as_mapping) else {
        bail!("{all}: the compose file has no services");
    };
    anyhow::ensure!(services.len() <= MAX_SERVICES, "{all}: the compose file has more than {MAX_SERVICES} services");
    for (name, fields) in services {
        let name = name.as_str().with_context(|| format!("{all}: a service has a name that is no text"))?;
        let service = compose_fields::service(name, fields, &document, place);
        let service = service.with_context(|| format!("{all}: services.{name}"))?;
        project.services.push(service);
    }
    networks(&mut project, &document);
    for key in document.as_mapping().into_iter().flatten().filter_map(|(key, _)| key.as_str()) {
        if !matches!(key, "services" | "volumes" | "networks" | "secrets" | "configs" | "version" | "name")
            && !key.starts_with("x-")
        {
            project.notes.push(format!("{key} is not carried over"));
        }
    }
    Ok(project)
}

/// Notes on networks, since all pods reach each other.
fn networks(project: &mut Project, document: &Value) {
    let networks = document.get("networks").and_then(Value::as_mapping);
    let named: Vec<&str> =
        networks.into_iter().flatten().filter_map(|(name, _)| name.as_str()).filter(|name| *name != "default").collect();
    if named.len() > 1 {
        project.notes.push(format!(
            "networks {} separate services: here every pod reaches every other, unless a NetworkPolicy denies it",
            named.join(", ")
        ));
    }
    for (name, network) in networks.into_iter().flatten() {
        if network.get("internal").and_then(Value::as_bool) == Some(true) {
            let name = name.as_str().unwrap_or_default();
            project.notes.push(format!("network {name} is internal: here a NetworkPolicy denies the way out"));
        }
    }
}

/// Replaces variables in all texts.
fn replace(
    value: &mut Value,
    variables: &BTreeMap<String, String>,
    missing: &mut Vec<String>,
    budget: &mut usize,
) -> anyhow::Result<()> {
    match value {
        Value::String(text) => {
            if text.contains('$') {
                *text = replaced(text, variables, missing)?;
            }
            *budget =
                budget.checked_sub(text.len()).context("the compose file becomes too large when its variables are replaced")?;
        }
        Value::Sequence(items) => items.iter_mut().try_for_each(|item| replace(item, variables, missing, budget))?,
        Value::Mapping(entries) => entries.values_mut().try_for_each(|entry| replace(entry, variables, missing, budget))?,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Tagged(_) => {}
    }
    Ok(())
}

/// `$NAME`, `${NAME}`, `${NAME:-default}`, `${NAME-default}`, `${NAME:?error}` and `$$`.
fn replaced(text: &str, variables: &BTreeMap<String, String>, missing: &mut Vec<String>) -> anyhow::Result<String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix('$') {
            out.push('$');
            rest = after;
        } else if let Some(after) = rest.strip_prefix('{') {
            let (inner, after) = after.split_once('}').with_context(|| format!("{text:?} has a ${{ that is not closed"))?;
            rest = after;
            let end = inner.find(|character: char| !is_of_name(character)).unwrap_or(inner.len());
            let (name, modifier) = inner.split_at(end);
            let known = variables.get(name).map(String::as_str);
            let of_default = |default: &'_ str| default.to_owned();
            let value = match (modifier, known) {
                (_, Some(known)) if !(known.is_empty() && modifier.starts_with(':')) => known.to_owned(),
                (modifier, _) => match modifier.strip_prefix(":-").or_else(|| modifier.strip_prefix('-')) {
                    Some(default) => of_default(default),
                    None => {
                        missing.push(name.to_owned());
                        String::new()
                    }
                },
            };
            out.push_str(&value);
        } else {
            let end = rest.find(|character: char| !is_of_name(character)).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            rest = after;
            match variables.get(name) {
                _ if name.is_empty() => out.push('$'),
                Some(value) => out.push_str(value),
                None => missing.push(name.to_owned()),
            }
        }
    }
    out.push_str(rest);
    Ok(out)
}

fn is_of_name(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::super::model::{MountSource, Restart};
    use super::*;

    fn of(text: &str) -> Project {
        let variables = [("TAG".to_owned(), "1.2".to_owned())].into();
        parse(&[("compose.yaml".to_owned(), text.to_owned())], &Place { directory: "/srv/shop".into(), variables }).unwrap()
    }

    #[test]
    fn variables_are_replaced_with_defaults() {
        let variables: BTreeMap<String, String> = [("A".to_owned(), "x".to_owned()), ("E".to_owned(), String::new())].into();
        let mut missing = Vec::new();
        let mut of = |text: &str| replaced(text, &variables, &mut missing).unwrap();
        assert_eq!(of("$A ${A} ${B:-d} ${E:-e} ${E-e} $$A $"), "x x d e  $A $");
        assert_eq!(of("${C}"), "");
        assert_eq!(missing, ["C"]);
        assert!(replaced("${A", &variables, &mut Vec::new()).is_err());
    }

    #[test]
    fn wordpress_with_database_is_carried_over() {
        let project = of("
services:
  db:
    image: mysql:8.0
    command: '--default-authentication-plugin=mysql_native_password'
    volumes: [db_data:/var/lib/mysql]
    restart: always
    environment: [MYSQL_ROOT_PASSWORD=somewordpress, MYSQL_DATABASE=wordpress]
    expose: [3306]
  wordpress:
    image: wordpress:${TAG}
    volumes: [wp_data:/var/www/html]
    ports: ['80:80']
    restart: always
    environment: {WORDPRESS_DB_HOST: db, WORDPRESS_DB_NAME: wordpress}
    depends_on: [db]
volumes: {db_data: null, wp_data: null}
");
        let [db, wordpress] = project.services.as_slice() else { panic!("{project:?}") };
        assert_eq!(db.command, ["--default-authentication-plugin=mysql_native_password"]);
        assert_eq!(db.mounts[0].source, MountSource::Named("db_data".into()));
        assert_eq!(db.notes.len(), 1, "the password: {:?}", db.notes);
        assert_eq!((wordpress.image.as_str(), wordpress.ports[0].host, wordpress.notes.len()), ("wordpress:1.2", Some(80), 0));
    }

    #[test]
    fn traefik_front_is_noted() {
        let project = of("
services:
  traefik:
    image: traefik:v3
    command: [--providers.docker=true, --entrypoints.web.address=:80]
    ports: ['80:80', '127.0.0.1:8080:8080']
    volumes: ['/var/run/docker.sock:/var/run/docker.sock:ro']
  whoami:
    image: traefik/whoami
    labels: ['traefik.http.routers.whoami.rule=Host(`whoami.localhost`)']
    deploy: {replicas: 2, resources: {limits: {cpus: '0.5', memory: 50M}}}
    build: .
    profiles: [debug]
");
        let [traefik, whoami] = project.services.as_slice() else { panic!("{project:?}") };
        assert!(traefik.notes.iter().any(|note| note.contains("docker.sock")) && traefik.mounts.is_empty());
        assert!(whoami.notes.iter().any(|note| note.contains("labels")) && whoami.notes.iter().any(|note| note.contains("build")));
        assert_eq!((whoami.run.replicas, whoami.run.memory.as_deref()), (Some(2), Some("50Mi")));
    }

    #[test]
    fn long_notations_and_health_are_read() {
        let project = of("
services:
  app:
    image: nextcloud
    restart: 'no'
    ports: [{target: 80, published: '8080', host_ip: 127.0.0.1, protocol: tcp}]
    volumes:
      - {type: volume, source: nextcloud, target: /var/www/html}
      - {type: bind, source: ./data, target: /data, read_only: true}
      - {type: tmpfs, target: /tmp, tmpfs: {size: 1000}}
    healthcheck: {test: [CMD, curl, -f, http://localhost], interval: 1m30s, timeout: 10s, retries: 5, start_period: 40s}
    user: '33:33'
    cap_add: [CAP_NET_ADMIN]
    read_only: true
    stop_grace_period: 1m
    extra_hosts: ['db:10.0.0.1']
    secret_thing: 1
");
        let app = &project.services[0];
        assert_eq!((app.run.restart, app.run.grace, app.rights.user), (Restart::Never, Some(60), Some(33)));
        assert_eq!(app.mounts[1].source, MountSource::Host("/srv/shop/data".into()));
        let health = app.health.clone().unwrap();
        assert_eq!((health.command.len(), health.period, health.delay), (3, Some(90), Some(40)));
        assert_eq!(app.rights.add, ["NET_ADMIN"]);
        assert!(app.notes.iter().any(|note| note.contains("secret_thing")));
    }

    #[test]
    fn hostile_files_are_refused() {
        let place = Place { directory: "/".into(), variables: BTreeMap::new() };
        let parse = |text: &str| parse(&[("compose.yaml".to_owned(), text.to_owned())], &place);
        let many: String = (0..300).map(|number| format!("  s{number}: {{image: a}}\n")).collect();
        let bomb: String = (0..12)
            .map(|level| format!("x-{}: &a{} [{}]\n", level + 1, level + 1, vec![format!("*a{level}"); 9].join(", ")))
            .collect();
        for text in [
            "",
            "services: 1",
            "services: {a: {ports: ['99999:1']}}",
            "services: {a: [1]}",
            "a: [",
            "services: {1: {image: a}}",
            &format!("services:\n{many}"),
            &format!("x-0: &a0 [lol]\n{bomb}services: {{a: {{image: b}}}}"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(format!("{error:#}").starts_with("compose.yaml: "), "{error:#}");
        }
    }
}
