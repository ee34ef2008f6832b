//! Several compose files as one document, and services that extend others. **Pure**, but for the reader of files that it is given.

use anyhow::{Context as _, bail};
use serde_yaml::{Mapping, Value};
use std::path::{Path, PathBuf};

/// Services that extend each other in a row.
const MAX_DEPTH: usize = 16;

/// Reads a file and replaces its variables.
pub(super) type Load<'a> = &'a mut dyn FnMut(&Path) -> anyhow::Result<Value>;

/// Puts a later document over an earlier one, by the rules of compose.
pub(super) fn merge(base: &mut Value, over: Value, key: &str) {
    if let Value::Tagged(tagged) = over {
        *base = if tagged.tag == "!reset" { Value::Null } else { tagged.value };
        return;
    }
    let is_pairs = matches!(key, "environment" | "labels" | "sysctls" | "depends_on" | "extra_hosts" | "networks" | "annotations");
    if is_pairs && (base.is_sequence() != over.is_sequence()) {
        *base = as_pairs(std::mem::take(base), key);
        return merge(base, as_pairs(over, key), key);
    }
    match (base, over) {
        (Value::Mapping(base), Value::Mapping(over)) => {
            for (name, value) in over {
                let key = name.as_str().unwrap_or_default().to_owned();
                match base.get_mut(&name) {
                    Some(known) => merge(known, value, &key),
                    None => drop(base.insert(name, value)),
                }
            }
        }
        (Value::Sequence(base), Value::Sequence(over)) if !matches!(key, "command" | "entrypoint" | "test") => {
            for item in over {
                let target = target_of(&item, key);
                base.retain(|known| *known != item && (target.is_none() || target_of(known, key) != target));
                base.push(item);
            }
        }
        (base, over) => *base = over,
    }
}

/// The purpose of an entry of a list: a later one for the same replaces it.
fn target_of(item: &Value, key: &str) -> Option<String> {
    match (key, item) {
        ("volumes" | "devices", Value::String(text)) => text.split(':').nth(1).map(str::to_owned),
        ("environment" | "labels" | "sysctls", Value::String(text)) => text.split('=').next().map(str::to_owned),
        ("volumes" | "configs" | "secrets", item) => item.get("target").and_then(Value::as_str).map(str::to_owned),
        _ => None,
    }
}

/// `[A=b, C]` as `{A: b, C: null}`.
fn as_pairs(value: Value, key: &str) -> Value {
    let separator = if key == "extra_hosts" { &[':', '='][..] } else { &['='][..] };
    match value {
        Value::Sequence(items) => {
            let pair = |item: Value| match item {
                Value::String(text) => match text.split_once(separator) {
                    Some((name, value)) => (Value::from(name), Value::from(value)),
                    None => (Value::from(text), Value::Null),
                },
                other => (other, Value::Null),
            };
            Value::Mapping(items.into_iter().map(pair).collect::<Mapping>())
        }
        other => other,
    }
}

/// Replaces `extends` of each service by what it extends, and `include` of the document by the files.
pub(super) fn resolve(document: &mut Value, directory: &Path, load: Load<'_>) -> anyhow::Result<()> {
    include(document, directory, load)?;
    let whole = document.clone();
    let Some(services) = document.get_mut("services").and_then(Value::as_mapping_mut) else { return Ok(()) };
    for (name, service) in services {
        let name = name.as_str().unwrap_or_default().to_owned();
        *service = extended(service.clone(), &whole, directory, load, 0).with_context(|| format!("services.{name}.extends"))?;
    }
    Ok(())
}

fn include(document: &mut Value, directory: &Path, load: Load<'_>) -> anyhow::Result<()> {
    let Some(included) = document.as_mapping_mut().and_then(|fields| fields.remove("include")) else { return Ok(()) };
    let mut whole = Value::Mapping(Mapping::new());
    for item in included.as_sequence().context("include: expected a list")? {
        let paths: Vec<&str> = match item.get("path").unwrap_or(item) {
            Value::Sequence(paths) => paths.iter().filter_map(Value::as_str).collect(),
            path => path.as_str().into_iter().collect(),
        };
        for path in paths {
            let path = directory.join(path);
            let mut file = load(&path).with_context(|| format!("include {}", path.display()))?;
            if file.get("include").is_some() {
                bail!("include {}: it includes other files itself: name them in the first file", path.display());
            }
            let parent = path.parent().unwrap_or(directory).to_owned();
            services_of(&mut file).for_each(|service| rebase(service, &parent));
            merge(&mut whole, file, "");
        }
    }
    let own = std::mem::take(document);
    merge(&mut whole, own, "");
    *document = whole;
    Ok(())
}

fn services_of(document: &mut Value) -> impl Iterator<Item = &mut Value> {
    document
        .get_mut("services")
        .and_then(Value::as_mapping_mut)
        .into_iter()
        .flat_map(|services| services.iter_mut().map(|(_, service)| service))
}

fn extended(mut service: Value, document: &Value, directory: &Path, load: Load<'_>, depth: usize) -> anyhow::Result<Value> {
    let Some(extends) = service.as_mapping_mut().and_then(|fields| fields.remove("extends")) else { return Ok(service) };
    anyhow::ensure!(depth < MAX_DEPTH, "more than {MAX_DEPTH} services extend each other");
    let field = |name: &str| extends.get(name).and_then(Value::as_str);
    let name = extends.as_str().or_else(|| field("service")).context("it names no service")?;
    let find = |document: &Value| document.get("services").and_then(|services| services.get(name)).cloned();
    let mut base = match field("file") {
        None => {
            let base = find(document).with_context(|| format!("there is no service {name}"))?;
            extended(base, document, directory, load, depth + 1)?
        }
        Some(file) => {
            let path: PathBuf = directory.join(file);
            let other = load(&path)?;
            let parent = path.parent().unwrap_or(directory).to_owned();
            let mut base = find(&other).with_context(|| format!("{} has no service {name}", path.display()))?;
            base = extended(base, &other, &parent, load, depth + 1)?;
            rebase(&mut base, &parent);
            base
        }
    };
    merge(&mut base, service, "");
    Ok(base)
}

/// Makes the relative paths of a service absolute, because it comes from another directory.
fn rebase(service: &mut Value, directory: &Path) {
    let absolute = |text: &mut String| {
        if text.starts_with('.') {
            *text = directory.join(&*text).display().to_string();
        }
    };
    for key in ["volumes", "env_file"] {
        let Some(value) = service.get_mut(key) else { continue };
        let items = match value {
            Value::Sequence(items) => items.iter_mut().collect(),
            other => vec![other],
        };
        for item in items {
            match item {
                // Without a dot it may be the name of a volume.
                Value::String(text) if key == "env_file" && !text.starts_with('/') => {
                    *text = directory.join(&*text).display().to_string()
                }
                Value::String(text) => absolute(text),
                other => {
                    for field in ["source", "path"] {
                        if let Some(Value::String(text)) = other.get_mut(field) {
                            absolute(text);
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Value {
        serde_yaml::from_str(text).unwrap()
    }

    fn resolved(text: &str, files: &[(&str, &str)]) -> anyhow::Result<Value> {
        let mut document = of(text);
        let mut load = |path: &Path| {
            let file = files.iter().find(|(name, _)| Path::new(name) == path).with_context(|| format!("no {}", path.display()))?;
            Ok(of(file.1))
        };
        resolve(&mut document, Path::new("/srv"), &mut load)?;
        Ok(document)
    }

    #[test]
    fn later_files_override_and_add() {
        let mut base =
            of("services: {a: {image: x, command: [a, b], environment: [A=1, B=2], ports: ['80:80'], volumes: ['v:/v', 'w:/w']}}");
        merge(
            &mut base,
            of(
                "services: {a: {command: [c], environment: {B: 3}, ports: ['81:81', '80:80'], volumes: ['./v:/v'], image: !override y}}",
            ),
            "",
        );
        let expected = "services: {a: {image: y, command: [c], environment: {A: '1', B: 3}, ports: ['81:81', '80:80'], volumes: ['w:/w', './v:/v']}}";
        assert_eq!(base, of(expected));
    }

    #[test]
    fn services_extend_others_of_any_file() {
        let base = (
            "/srv/common/base.yml",
            "services: {b: {image: x, env_file: a.env, volumes: ['./d:/d', 'v:/v'], extends: c}, c: {restart: always}}",
        );
        let document = resolved("services: {a: {extends: {file: common/base.yml, service: b}, image: y}}", &[base]).unwrap();
        let expected =
            "services: {a: {restart: always, image: y, env_file: /srv/common/a.env, volumes: [/srv/common/./d:/d, 'v:/v']}}";
        assert_eq!(document, of(expected));
        for wrong in
            ["services: {a: {extends: b}}", "services: {a: {extends: a}}", "services: {a: {extends: {file: x.yml, service: b}}}"]
        {
            assert!(resolved(wrong, &[]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn included_files_add_their_services() {
        let file = ("/srv/db/compose.yaml", "services: {db: {image: p, volumes: ['./data:/data']}}");
        let document = resolved("include: [db/compose.yaml]\nservices: {a: {image: x}}", &[file]).unwrap();
        assert_eq!(document, of("services: {db: {image: p, volumes: [/srv/db/./data:/data]}, a: {image: x}}"));
    }
}
