//! ConfigMaps and Secrets from literals, files and environment files, and the hashes of their content.

use super::CODE;
use super::kustomization::{Generator, GeneratorOptions};
use super::reader::{Pairs, Text};
use super::resource::{BEHAVIOR, ENABLED, NEEDS_HASH, Resource};
use super::tree::{Field, Scalar, Tag, Tree, Value};
use crate::fault::{Fault, quoted};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Kind of a generated object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    ConfigMap,
    Secret,
}

/// Behaviour towards an object that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Behavior {
    Create,
    Merge,
    Replace,
}

impl Behavior {
    /// The behaviour of a generated object.
    pub(super) fn of(resource: &Resource) -> Self {
        Self::parse(resource.annotation(BEHAVIOR).unwrap_or_default())
    }

    /// Unknown words mean nothing, as upstream has it.
    fn parse(word: &str) -> Self {
        match word {
            "merge" => Self::Merge,
            "replace" => Self::Replace,
            _ => Self::Create,
        }
    }

    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Create => "create",
            Self::Merge => "merge",
            Self::Replace => "replace",
        }
    }
}

/// A key with its content and place.
type Data = BTreeMap<String, (Vec<u8>, u32)>;

/// Reads the content of a file of the kustomization, with its place.
pub(super) type ReadFile<'r> = &'r mut dyn FnMut(&Text) -> Result<(Vec<u8>, u32), Fault>;

/// The warning about a word that is no behavior, which upstream ignores.
pub(super) fn unknown_behavior(behavior: &Text) -> Option<Fault> {
    if matches!(behavior.text.as_str(), "" | "create" | "merge" | "replace") {
        return None;
    }
    let message = format!("unknown behavior {}, which means create", quoted(&behavior.text));
    Some(Fault::at(CODE, behavior.at, message).field("behavior").hint("it must be create, merge or replace"))
}

/// Makes the object of a generator.
pub(super) fn generate(
    generator: &Generator,
    kind: Kind,
    global: Option<&GeneratorOptions>,
    read: ReadFile<'_>,
) -> Result<Resource, Fault> {
    let at = generator.at;
    if generator.name.is_empty() {
        return Err(Fault::at(CODE, at, "a generated object must have a name").field("name"));
    }
    let data = data_of(generator, read)?;
    let mut tree = Tree::map(at);
    tree.set("apiVersion", Tree::scalar(at, Scalar::plain("v1")));
    let kind_text = match kind {
        Kind::ConfigMap => "ConfigMap",
        Kind::Secret => "Secret",
    };
    tree.set("kind", Tree::scalar(at, Scalar::plain(kind_text)));
    let mut metadata = Tree::map(at);
    metadata.set("name", Tree::string(generator.name.at, &*generator.name.text));
    if !generator.namespace.is_empty() {
        metadata.set("namespace", Tree::string(generator.namespace.at, &*generator.namespace.text));
    }
    tree.set("metadata", metadata);
    match kind {
        Kind::ConfigMap => put_config_map(&mut tree, data),
        Kind::Secret => {
            let named = !generator.secret_type.is_empty();
            let secret_type = if named { generator.secret_type.text.as_str() } else { "Opaque" };
            tree.set("type", Tree::string(if named { generator.secret_type.at } else { at }, secret_type));
            let field = |(key, (bytes, at)): (String, (Vec<u8>, u32))| Field { key, at, value: Tree::string(at, encoded(&bytes)) };
            tree.set("data", Tree { at, value: Value::Map(data.into_iter().map(field).collect()) });
        }
    }
    let mut resource = Resource::new(tree);
    let options = options(generator.options.as_ref(), global);
    put_metadata(&mut resource, "labels", &options.labels);
    put_metadata(&mut resource, "annotations", &options.annotations);
    if options.immutable {
        resource.tree.set("immutable", Tree::scalar(at, Scalar::tagged("true", Tag::Bool)));
    }
    if !options.disable_name_suffix_hash {
        resource.annotate(NEEDS_HASH, ENABLED);
    }
    resource.annotate(BEHAVIOR, Behavior::parse(&generator.behavior.text).word());
    Ok(resource)
}

fn put_metadata(resource: &mut Resource, field: &str, pairs: &Pairs) {
    if let (false, Some(metadata)) = (pairs.is_empty(), resource.tree.get_mut("metadata")) {
        let field_of =
            |(key, text): &(String, Text)| Field { key: key.clone(), at: text.at, value: Tree::string(text.at, &*text.text) };
        let at = metadata.at;
        metadata.set(field, Tree { at, value: Value::Map(pairs.iter().map(field_of).collect()) });
    }
}

/// The options of a generator; those of the kustomization fill in what it does not say.
fn options(own: Option<&GeneratorOptions>, global: Option<&GeneratorOptions>) -> GeneratorOptions {
    let mut options = own.cloned().unwrap_or_default();
    let Some(global) = global else { return options };
    let fill = |own: &mut Pairs, global: &Pairs| {
        for pair in global {
            if !own.iter().any(|(key, _)| *key == pair.0) {
                own.push(pair.clone());
            }
        }
        own.sort_by(|one, other| one.0.cmp(&other.0));
    };
    fill(&mut options.labels, &global.labels);
    fill(&mut options.annotations, &global.annotations);
    options.disable_name_suffix_hash |= global.disable_name_suffix_hash;
    options.immutable |= global.immutable;
    options
}

fn data_of(generator: &Generator, read: ReadFile<'_>) -> Result<Data, Fault> {
    let mut data = Data::new();
    let mut put = |key: String, bytes: Vec<u8>, at: u32, place: u32| {
        if data.contains_key(&key) {
            let message = format!("{} repeats the key {}", quoted(&generator.name.text), quoted(&key));
            return Err(Fault::at(CODE, place, message));
        }
        data.insert(key, (bytes, at));
        Ok(())
    };
    for file in &generator.envs {
        let (bytes, at) = read(file)?;
        for (key, value) in environment(&bytes, at)? {
            put(key, value, at, file.at)?;
        }
    }
    for literal in &generator.literals {
        let (key, value) =
            literal.text.split_once('=').filter(|(key, _)| !key.is_empty()).ok_or_else(|| {
                Fault::at(CODE, literal.at, format!("{} is not key=value", quoted(&literal.text))).field("literals")
            })?;
        put(key.to_owned(), without_quotes(value).as_bytes().to_vec(), literal.at, literal.at)?;
    }
    for source in &generator.files {
        let (key, path) = file_source(source)?;
        let (bytes, at) = read(&Text { text: path.to_owned(), at: source.at })?;
        put(key.to_owned(), bytes, at, source.at)?;
    }
    Ok(data)
}

/// `path`, or `key=path`.
fn file_source(source: &Text) -> Result<(&str, &str), Fault> {
    let fault = |message: &str| Fault::at(CODE, source.at, format!("{}: {message}", quoted(&source.text))).field("files");
    match source.text.split('=').collect::<Vec<_>>()[..] {
        [path] => Ok((super::paths::file_name(path.trim_end_matches('/')), path)),
        ["", _] => Err(fault("the key is missing")),
        [_, ""] => Err(fault("the path is missing")),
        [key, path] => Ok((key, path)),
        _ => Err(fault("a key and a path cannot contain =")),
    }
}

fn without_quotes(text: &str) -> &str {
    let inner = |quote| text.strip_prefix(quote).and_then(|text| text.strip_suffix(quote));
    if text.len() < 2 { text } else { inner('"').or_else(|| inner('\'')).unwrap_or(text) }
}

/// Lines `key=value`; empty ones and comments are skipped.
fn environment(bytes: &[u8], at: u32) -> Result<Vec<(String, Vec<u8>)>, Fault> {
    let mut pairs = Vec::new();
    let lines = bytes.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    for (index, line) in lines.enumerate() {
        let Ok(line) = std::str::from_utf8(line) else {
            return Err(Fault::at(CODE, at, format!("line {} is not UTF-8", index + 1)));
        };
        let line = if index == 0 { line.strip_prefix('\u{feff}').unwrap_or(line) } else { line };
        let line = line.trim_start();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, value) = line.split_once('=').unwrap_or((line, ""));
        if key.is_empty() {
            continue;
        }
        pairs.push((key.to_owned(), value.as_bytes().to_vec()));
    }
    Ok(pairs)
}

/// Text goes to `data`, everything else to `binaryData`.
fn put_config_map(tree: &mut Tree, data: Data) {
    let at = tree.at;
    for (key, (bytes, place)) in data {
        let (field, text) = match String::from_utf8(bytes) {
            Ok(text) => ("data", text),
            Err(error) => ("binaryData", encoded(error.as_bytes())),
        };
        if let Some(map) = tree.get_or_make(field, at) {
            map.set(&key, Tree::string(place, text));
        }
    }
}

/// Base64 in lines of 70 characters, when there is more than one.
fn encoded(bytes: &[u8]) -> String {
    const LINE: usize = 70;
    let text = STANDARD.encode(bytes);
    if text.len() < LINE {
        return text;
    }
    let mut lines = String::with_capacity(text.len() + text.len() / LINE + 1);
    for line in text.as_bytes().chunks(LINE) {
        lines.extend(line.iter().map(|byte| char::from(*byte)));
        lines.push('\n');
    }
    lines
}

/// Merges the content of the object that was there below that of a generated one.
pub(super) fn merge_data(generated: &mut Resource, known: &Resource) {
    let own = generated.tree.clone();
    let text = |tree: &Tree| if tree.is_null() { String::new() } else { tree.text().to_owned() };
    let maps = ["data", "binaryData"].map(|field| {
        let mut merged: BTreeMap<String, (String, u32)> = BTreeMap::new();
        for tree in [&known.tree, &own] {
            let fields = tree.get(field).map_or(&[][..], Tree::fields);
            merged.extend(fields.iter().map(|field| (field.key.clone(), (text(&field.value), field.value.at))));
        }
        merged
    });
    let at = own.at;
    generated.tree.remove("data");
    generated.tree.remove("binaryData");
    for (field, merged) in ["data", "binaryData"].into_iter().zip(maps) {
        if !merged.is_empty() {
            let field_of = |(key, (text, at)): (String, (String, u32))| Field { key, at, value: Tree::string(at, text) };
            generated.tree.set(field, Tree { at, value: Value::Map(merged.into_iter().map(field_of).collect()) });
        }
    }
}

/// The suffix of an object's name: ten characters of the SHA-256 of its content as JSON, in an alphabet without words.
pub(super) fn hash(resource: &Resource) -> String {
    let tree = &resource.tree;
    let mut json = String::from("{");
    // The name is never found by upstream, and empty; keys are sorted.
    match resource.kind() {
        "ConfigMap" => {
            if let Some(binary) = tree.get("binaryData").filter(|data| matches!(data.value, Value::Map(_))) {
                json.push_str("\"binaryData\":");
                value(&mut json, binary);
                json.push(',');
            }
            member(&mut json, "data", tree.get("data"));
            json.push_str(",\"kind\":\"ConfigMap\",\"name\":\"\"");
        }
        "Secret" => {
            member(&mut json, "data", tree.get("data"));
            json.push_str(",\"kind\":\"Secret\",\"name\":\"\"");
            if let Some(data) = tree.get("stringData").filter(|data| matches!(data.value, Value::Map(_))) {
                json.push_str(",\"stringData\":");
                value(&mut json, data);
            }
            json.push(',');
            member(&mut json, "type", tree.get("type"));
        }
        _ => value(&mut json, tree),
    }
    json.push('}');
    let digest = hex::encode(ring::digest::digest(&ring::digest::SHA256, json.as_bytes()));
    let letter = |digit: char| match digit {
        '0' => 'g',
        '1' => 'h',
        '3' => 'k',
        'a' => 'm',
        'e' => 't',
        other => other,
    };
    digest.chars().take(10).map(letter).collect()
}

fn member(json: &mut String, key: &str, tree: Option<&Tree>) {
    string(json, key);
    json.push(':');
    match tree {
        None => json.push_str("\"\""),
        Some(Tree { value: Value::Scalar(scalar), .. }) => string(json, &scalar.text),
        Some(tree) => value(json, tree),
    }
}

/// A value as Go's JSON writes it.
pub(super) fn value(json: &mut String, tree: &Tree) {
    match &tree.value {
        Value::Scalar(scalar) => match scalar.tag {
            Tag::Null => json.push_str("null"),
            Tag::Bool => json.push_str(if scalar.text.starts_with(['t', 'T']) { "true" } else { "false" }),
            Tag::Int | Tag::Float => json.push_str(&number(&scalar.text)),
            Tag::Time => string(json, &super::time::parse(&scalar.text).unwrap_or_else(|| scalar.text.clone())),
            Tag::String => string(json, &scalar.text),
        },
        Value::List(items) => {
            json.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    json.push(',');
                }
                value(json, item);
            }
            json.push(']');
        }
        Value::Map(fields) => {
            let mut sorted: Vec<&Field> = fields.iter().collect();
            sorted.sort_by(|one, other| one.key.cmp(&other.key));
            json.push('{');
            for (index, field) in sorted.into_iter().enumerate() {
                if index > 0 {
                    json.push(',');
                }
                string(json, &field.key);
                json.push(':');
                value(json, &field.value);
            }
            json.push('}');
        }
    }
}

/// A number as Go's JSON writes it: exponents below 10^-6 and from 10^21 on.
fn number(text: &str) -> String {
    let crate::node::Value::Number(number) = crate::yaml::plain(text) else { return text.to_owned() };
    let Some(float) = number.as_f64().filter(|_| number.as_i64().is_none() && number.as_u64().is_none()) else {
        return number.to_string();
    };
    let magnitude = float.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let scientific = format!("{float:e}");
        return if scientific.contains("e-") { scientific } else { scientific.replace('e', "e+") };
    }
    format!("{float}")
}

/// A string as Go's JSON writes it, with the escapes for HTML.
fn string(json: &mut String, text: &str) {
    json.push('"');
    for character in text.chars() {
        let written = match character {
            '"' | '\\' => write!(json, "\\{character}"),
            '\n' => write!(json, "\\n"),
            '\r' => write!(json, "\\r"),
            '\t' => write!(json, "\\t"),
            '\u{8}' => write!(json, "\\b"),
            '\u{c}' => write!(json, "\\f"),
            '<' | '>' | '&' | '\u{0}'..='\u{1f}' | '\u{2028}' | '\u{2029}' => write!(json, "\\u{:04x}", u32::from(character)),
            other => write!(json, "{other}"),
        };
        debug_assert!(written.is_ok(), "writing to a string cannot fail");
    }
    json.push('"');
}
