//! `docs/reference/config-fields.md`: every field of the configuration, from the structures that serde reads and their doc comments.

use super::rust_source::{Field, Shape, shapes};
use super::{cell, compare};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Files with structures of the configuration.
const SOURCES: &[&str] = &[
    "src/config/written.rs",
    "src/settings/network.rs",
    "src/settings/dns.rs",
    "src/settings/upstream.rs",
    "src/settings/pressure.rs",
    "src/settings/user_namespaces.rs",
    "src/settings/api.rs",
    "src/config/images.rs",
    "src/config/notify.rs",
    "src/config/pull_windows.rs",
    "src/config/source/written.rs",
    "src/config/source/commit_status.rs",
    "src/settings/allow.rs",
    "src/settings/channels.rs",
    "src/settings/image_policy.rs",
    "src/settings/requirements.rs",
    "src/config/source/share.rs",
    "src/image/mirror_config.rs",
    "src/image/registry_config.rs",
    "src/pod/standards/level.rs",
    "src/telemetry/logging.rs",
];

const ROOT: &str = "WrittenConfig";

/// Links to further documentation.
const MORE: &[(&str, &str)] = &[
    ("ageKeyFile", "[encrypted manifests](encrypted-manifests.md)"),
    ("api", "[use kubectl](../how-to/kubectl.md)"),
    ("cdiSpecDirs", "[devices](devices.md)"),
    ("imagePolicy", "[which images may run](config.md#which-images-may-run)"),
    ("images", "[what an image may take](config.md#what-an-image-may-take)"),
    ("images.bandwidth", "[windows and bandwidth](config.md#windows-and-bandwidth)"),
    ("images.windows[]", "[windows and bandwidth](config.md#windows-and-bandwidth)"),
    ("labels", "[variables](config.md#variables)"),
    ("logging", "[log](logging.md)"),
    ("monitoring", "[monitoring](monitoring.md)"),
    ("network", "[network](network.md)"),
    ("network.acceptInIptables", "[beside firewalls](../explanation/network.md#beside-firewalls-and-other-engines)"),
    ("network.cni", "[CNI](cni.md)"),
    ("network.dns", "[names](network.md#names)"),
    ("network.mode", "[on a bridge](network.md#on-a-bridge)"),
    ("notify", "[be notified of failures](../how-to/notifications.md)"),
    ("registries[].mirrors[]", "[mirrors](../how-to/mirrors.md)"),
    ("registriesDirectory", "[the directory of containerd](config.md#the-directory-of-containerd)"),
    ("registries[]", "[a private registry](../how-to/private-registry.md)"),
    ("sources[]", "[sources](sources.md)"),
    ("sources[].allow", "[what a source may use](config.md#what-a-source-may-use)"),
    ("sources[].git", "[git](git-source.md)"),
    ("sources[].bundle", "[bundles](bundle-source.md)"),
    ("sources[].oci", "[artifacts in a registry](registry-source.md)"),
    ("sources[].layers", "[one repository, many hosts](many-hosts.md)"),
    ("sources[].podSecurity", "[what pods have to be](config.md#what-pods-have-to-be)"),
    ("sources[].require", "[what pods have to be](config.md#what-pods-have-to-be)"),
    ("sources[].requireSignature", "[signatures](../explanation/signatures.md)"),
    ("sources[].share", "[what sources reach of each other](config.md#what-sources-reach-of-each-other)"),
    ("sources[].substitute", "[variables](config.md#variables)"),
    ("sources[].writable", "[writable sources](sources.md#writable-sources)"),
    ("upstream", "[a cluster](upstream.md)"),
    ("upstream.pressure", "[the Node](upstream.md#the-node)"),
    ("userNamespaces", "[users of a pod](users.md)"),
    ("variables", "[variables](config.md#variables)"),
    ("webhook", "[sources](sources.md)"),
];

const HEAD: &str = "\
# All fields of the configuration

This page lists all fields of the configuration file. The page [configuration](config.md) explains how to use them. A field is optional unless its default is
*must be set*. The page is generated from the code with `UPDATE=1 cargo test --test cli reference`.
";

fn all_shapes() -> BTreeMap<String, Shape> {
    let read = |file: &&str| std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).unwrap();
    SOURCES.iter().flat_map(|file| shapes(&read(file))).collect()
}

/// One structure, and all places in the file where it is written.
struct Section {
    name: String,
    places: Vec<String>,
    doc: String,
}

/// Structures in the order in which their fields are met, each once.
fn sections(shapes: &BTreeMap<String, Shape>) -> Vec<Section> {
    let mut sections = vec![Section { name: ROOT.to_owned(), places: vec![String::new()], doc: String::new() }];
    fn add(shapes: &BTreeMap<String, Shape>, name: &str, place: &str, sections: &mut Vec<Section>) {
        let Some(Shape::Structure(fields)) = shapes.get(name) else { return };
        for field in fields {
            let Some((inner, path)) = nested(shapes, field, place) else { continue };
            match sections.iter_mut().find(|section| section.name == inner) {
                Some(known) => known.places.push(path),
                None => {
                    sections.push(Section { name: inner.clone(), places: vec![path.clone()], doc: field.doc.clone() });
                    add(shapes, &inner, &path, sections);
                }
            }
        }
    }
    add(shapes, ROOT, "", &mut sections);
    sections
}

/// The structure that a field holds, and its path.
fn nested(shapes: &BTreeMap<String, Shape>, field: &Field, place: &str) -> Option<(String, String)> {
    let (inner, list) = match field.kind.strip_prefix("Option<").and_then(|kind| kind.strip_suffix('>')).unwrap_or(&field.kind) {
        list if list.starts_with("Vec<") => (list.strip_prefix("Vec<")?.strip_suffix('>')?, "[]"),
        kind => (kind, ""),
    };
    matches!(shapes.get(inner), Some(Shape::Structure(_)))
        .then(|| (inner.to_owned(), format!("{}{list}", join(place, &field.name))))
}

fn join(place: &str, name: &str) -> String {
    if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") }
}

/// A Rust type in words.
fn value(shapes: &BTreeMap<String, Shape>, kind: &str) -> String {
    let inside = |prefix: &str| kind.strip_prefix(prefix).and_then(|kind| kind.strip_suffix('>'));
    if let Some(inner) = inside("Option<") {
        return value(shapes, inner);
    }
    if let Some(inner) = inside("Vec<") {
        return format!(
            "list of {}",
            value(shapes, inner).replace("path", "paths").replace("text", "texts").replace("number", "numbers")
        );
    }
    if let Some(inner) = inside("BTreeMap<String, ") {
        return format!("{} by name", value(shapes, inner));
    }
    match kind {
        "String" => "text".to_owned(),
        "PathBuf" => "path".to_owned(),
        "bool" => "true or false".to_owned(),
        "IpAddr" => "address".to_owned(),
        "u8" | "u16" | "u32" | "u64" | "usize" | "i64" => "number".to_owned(),
        name => match shapes.get(name) {
            Some(Shape::Structure(_)) => "fields".to_owned(),
            Some(Shape::OneOf(values)) => values.iter().map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", "),
            Some(Shape::Either(types)) => types.iter().map(|kind| value(shapes, kind)).collect::<Vec<_>>().join(" or "),
            None => panic!("{name} is a type that is not known here"),
        },
    }
}

/// A doc comment as what it means and what counts without the field.
fn meaning_and_default(doc: &str) -> (String, Option<String>) {
    let Some((before, rest)) = doc.split_once("Default: ") else { return (doc.to_owned(), None) };
    let (default, after) = rest.split_once(". ").unwrap_or((rest.trim_end_matches('.'), ""));
    (format!("{} {after}", before.trim()).trim().to_owned(), Some(default.to_owned()))
}

fn more(path: &str) -> Option<&'static str> {
    MORE.iter().find(|(place, _)| *place == path).map(|(_, link)| *link)
}

fn page(shapes: &BTreeMap<String, Shape>) -> String {
    let mut page = HEAD.to_owned();
    for section in sections(shapes) {
        let Some(Shape::Structure(fields)) = shapes.get(&section.name) else { unreachable!("sections are structures") };
        if section.places[0].is_empty() {
            page.push('\n');
        } else {
            let places: Vec<String> = section.places.iter().map(|place| format!("`{place}`")).collect();
            page.extend(["\n## ", &places.join(", "), "\n\n"]);
            let (meaning, default) = meaning_and_default(&section.doc);
            let default = default.map(|default| format!(" Default: {default}."));
            let link = section.places.iter().find_map(|place| more(place)).map(|link| format!(" See {link}."));
            let said = [Some(cell(&meaning)), default, link].into_iter().flatten().collect::<String>();
            if !said.trim().is_empty() {
                page.extend([said.trim(), "\n\n"]);
            }
        }
        page.push_str("| field | value | meaning | default |\n|---|---|---|---|\n");
        for field in fields {
            let inner = nested(shapes, field, &section.places[0]);
            let (mut meaning, default) = meaning_and_default(&field.doc);
            if let Some((inner, _)) = &inner {
                let anchor = sections_anchor(shapes, inner);
                meaning = format!("[its own fields](#{anchor})");
            } else {
                meaning = cell(&meaning);
                if let Some(link) = more(&join(&section.places[0], &field.name)) {
                    meaning.extend([" See ", link, "."]);
                }
            }
            let default = match default {
                Some(default) => cell(&default),
                None if !field.may_be_absent => "*must be set*".to_owned(),
                None if field.kind == "bool" => "false".to_owned(),
                None => String::new(),
            };
            let kind = value(shapes, &field.kind);
            page.extend(["| `", &field.name, "` | ", &kind, " | ", &meaning, " | ", &default, " |\n"]);
        }
    }
    page
}

/// The anchor that mdBook gives to a section's heading.
fn sections_anchor(shapes: &BTreeMap<String, Shape>, name: &str) -> String {
    let section = sections(shapes).into_iter().find(|section| section.name == name).unwrap();
    let kept = |letter: &char| letter.is_alphanumeric() || " -_".contains(*letter);
    section.places.join(", ").to_lowercase().chars().filter(kept).collect::<String>().replace(' ', "-")
}

#[test]
fn page_of_fields_is_made_from_structures() {
    compare("reference/config-fields.md", &page(&all_shapes()));
}

#[test]
fn every_field_has_meaning_and_reference() {
    let shapes = all_shapes();
    let mut paths = BTreeSet::new();
    for section in sections(&shapes) {
        let Some(Shape::Structure(fields)) = shapes.get(&section.name) else { unreachable!("sections are structures") };
        for field in fields {
            assert!(!field.doc.is_empty(), "{}.{} has no doc comment", section.name, field.name);
            paths.insert(join(&section.places[0], &field.name));
        }
        paths.extend(section.places);
    }
    let stale: Vec<_> = MORE.iter().filter(|(path, _)| !paths.contains(*path)).collect();
    assert!(stale.is_empty(), "{stale:?}");
}

/// The page could name what serde does not know.
#[test]
fn fields_are_those_that_daemon_knows() {
    let shapes = all_shapes();
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("config.yaml");
    let said = |path: &str| {
        let written = path.rsplit('.').fold("1".to_owned(), |below, step| match step.strip_suffix("[]") {
            Some(name) => format!("{{{name}: [{below}]}}"),
            None => format!("{{{step}: {below}}}"),
        });
        let header = "apiVersion: podstead.dev/v1alpha1, kind: Config, ";
        std::fs::write(&file, written.replacen('{', &format!("{{{header}"), 1)).unwrap();
        let output =
            Command::new(env!("CARGO_BIN_EXE_podstead")).args(["config", "check", "--config"]).arg(&file).output().unwrap();
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(said("network.dns.noSuchField").contains("unknown field"), "a field that is not known has to be told");
    for section in sections(&shapes) {
        let Some(Shape::Structure(fields)) = shapes.get(&section.name) else { unreachable!("sections are structures") };
        for field in fields.iter().filter(|field| !["apiVersion", "kind"].contains(&field.name.as_str())) {
            for place in &section.places {
                let path = join(place, &field.name);
                let said = said(&path);
                assert!(!said.contains("unknown field"), "{path}: {said}");
            }
        }
    }
}
