//! Structures in a source file as serde reads them, with their doc comments. Supports only the forms that the configuration uses; any other
//! makes the test fail.

use std::collections::BTreeMap;

/// A field as it is written in YAML.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) name: String,
    pub(super) doc: String,
    /// Its Rust type.
    pub(super) kind: String,
    /// serde accepts its absence.
    pub(super) may_be_absent: bool,
}

/// A structure, or an enumeration of which one value is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Structure(Vec<Field>),
    /// Names of the values.
    OneOf(Vec<String>),
    /// Other shapes, by type.
    Either(Vec<String>),
}

/// Every public shape of a file that serde reads, by its Rust name.
pub(super) fn shapes(source: &str) -> BTreeMap<String, Shape> {
    let mut found = BTreeMap::new();
    let mut lines = source.lines();
    let mut attributes = String::new();
    while let Some(line) = lines.next() {
        if line.starts_with("#[") {
            attributes.push_str(line);
        } else if let Some((kind, name)) = opening(line) {
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "}").map(str::trim).collect();
            if attributes.contains("Deserialize") {
                found.insert(name.to_owned(), shape(kind, &attributes, &body));
            }
            attributes.clear();
        } else if !line.starts_with("///") {
            attributes.clear();
        }
    }
    found
}

fn opening(line: &str) -> Option<(&str, &str)> {
    let (kind, rest) = line.strip_prefix("pub ")?.split_once(' ')?;
    let name = rest.strip_suffix(" {")?;
    ["struct", "enum"].contains(&kind).then_some((kind, name))
}

fn shape(kind: &str, attributes: &str, body: &[&str]) -> Shape {
    let rename = attributes.split_once("rename_all = \"").and_then(|(_, rest)| rest.split_once('"')).map_or("", |(rule, _)| rule);
    if kind == "enum" {
        let variants: Vec<&str> =
            body.iter().filter(|line| line.starts_with(|first: char| first.is_ascii_uppercase())).copied().collect();
        if attributes.contains("untagged") {
            let types = variants.iter().map(|variant| variant.split_once('(').unwrap().1.trim_end_matches("),").to_owned());
            return Shape::Either(types.collect());
        }
        let written = |variant: &&str| match rename {
            "lowercase" => variant.trim_end_matches(',').to_lowercase(),
            "" => variant.trim_end_matches(',').to_owned(),
            other => panic!("rename_all = {other:?} of an enumeration"),
        };
        return Shape::OneOf(variants.iter().map(written).collect());
    }
    assert_eq!(rename, "camelCase", "{attributes}");
    let mut fields = Vec::new();
    let mut field = Field::default();
    let mut renamed = None;
    for line in body {
        if let Some(text) = line.strip_prefix("///") {
            field.doc.push_str(text);
        } else if let Some(serde) = line.strip_prefix("#[serde(") {
            field.may_be_absent |= serde.starts_with("default");
            renamed = serde.split_once("rename = \"").and_then(|(_, rest)| rest.split_once('"')).map(|(name, _)| name.to_owned());
            assert!(!serde.contains("flatten") && !serde.contains("alias"), "{line}");
        } else if let Some((name, kind)) = line.strip_prefix("pub ").and_then(|line| line.strip_suffix(',')?.split_once(": ")) {
            field.name = renamed.take().unwrap_or_else(|| camel(name));
            kind.clone_into(&mut field.kind);
            field.doc = field.doc.trim().to_owned();
            fields.push(std::mem::take(&mut field));
        } else {
            panic!("{line:?} is no form of a field that is known here");
        }
    }
    Shape::Structure(fields)
}

fn camel(name: &str) -> String {
    let mut words = name.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |written, word| written + &word[..1].to_uppercase() + &word[1..])
}

#[test]
fn structure_is_read_as_serde_reads_it() {
    let source = "/// Doc.\n#[derive(Deserialize)]\n#[serde(rename_all = \"camelCase\")]\npub struct A {\n    /// One\n    /// two.\n    #[serde(default, rename = \"type\")]\n    pub kind: Option<K>,\n    pub max_size: u8,\n}\n\
                  #[derive(Deserialize)]\n#[serde(rename_all = \"lowercase\")]\npub enum K {\n    /// X.\n    Xy,\n    Z,\n}\n\
                  #[derive(Deserialize)]\n#[serde(untagged)]\npub enum E {\n    One(String),\n}\npub struct Other {\n    x: u8,\n}\n";
    let field = |name: &str, doc: &str, kind: &str, may_be_absent| Field {
        name: name.into(),
        doc: doc.into(),
        kind: kind.into(),
        may_be_absent,
    };
    let expected = BTreeMap::from([
        ("A".to_owned(), Shape::Structure(vec![field("type", "One two.", "Option<K>", true), field("maxSize", "", "u8", false)])),
        ("K".to_owned(), Shape::OneOf(vec!["xy".into(), "z".into()])),
        ("E".to_owned(), Shape::Either(vec!["String".into()])),
    ]);
    assert_eq!(shapes(source), expected);
}
