//! Properties for any input: no panic, no contradiction in the answer, and a typed object written out is read as the same object.

use crate::support::{WEB, check_invariants, decode, pod};
use k8s_openapi::api::core::v1::Pod;
use podstead::manifest::schema::{Struct, Type, table};
use podstead::manifest::to_yaml;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

/// Pieces of manifests, good and bad, that random text would never hit.
const TOKENS: &[&str] = &[
    "apiVersion: v1\n",
    "kind: Pod\n",
    "kind: List\nitems:\n",
    "metadata:\n",
    "  name: a\n",
    "spec:\n",
    "containers",
    "---\n",
    "...\n",
    "- ",
    "  ",
    "\n",
    ": ",
    "{",
    "}",
    "[",
    "]",
    ",",
    "\"",
    "'",
    "|\n",
    ">-\n",
    "&a ",
    "*a",
    "<<: *a\n",
    "!!str ",
    "!x ",
    "#",
    "? ",
    "\t",
    "\r\n",
    "%YAML 1.1\n",
    "0644",
    "yes",
    "~",
    "1e3",
    ".inf",
    "null",
    "\u{feff}",
    "\u{85}",
    "ü",
    "\0",
    "\u{1b}",
    "\\",
    "@",
    "`",
];

fn token() -> impl Strategy<Value = String> {
    prop_oneof![4 => prop::sample::select(TOKENS).prop_map(str::to_owned), 1 => any::<char>().prop_map(|letter| letter.to_string())]
}

/// One change to a text.
#[derive(Clone, Debug)]
enum Edit {
    Insert(prop::sample::Index, String),
    Remove(prop::sample::Index, usize),
    RepeatLine(prop::sample::Index, prop::sample::Index),
    Byte(prop::sample::Index, u8),
    Truncate(prop::sample::Index),
}

fn edit() -> impl Strategy<Value = Edit> {
    prop_oneof![
        4 => (any::<prop::sample::Index>(), token()).prop_map(|(at, text)| Edit::Insert(at, text)),
        3 => (any::<prop::sample::Index>(), 1..20_usize).prop_map(|(at, length)| Edit::Remove(at, length)),
        2 => (any::<prop::sample::Index>(), any::<prop::sample::Index>()).prop_map(|(from, to)| Edit::RepeatLine(from, to)),
        1 => (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(at, byte)| Edit::Byte(at, byte)),
        1 => any::<prop::sample::Index>().prop_map(Edit::Truncate),
    ]
}

fn edited(text: &str, edits: &[Edit]) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for edit in edits {
        let within = |at: &prop::sample::Index, bytes: &[u8]| at.index(bytes.len() + 1);
        match edit {
            Edit::Insert(at, text) => {
                let at = within(at, &bytes);
                bytes.splice(at..at, text.bytes());
            }
            Edit::Remove(at, length) => {
                let at = within(at, &bytes);
                let end = (at + length).min(bytes.len());
                bytes.drain(at..end);
            }
            Edit::RepeatLine(from, to) => {
                let lines: Vec<Vec<u8>> = bytes.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
                if !lines.is_empty() {
                    let line = lines[from.index(lines.len())].clone();
                    let at: usize = lines[..to.index(lines.len())].iter().map(Vec::len).sum();
                    bytes.splice(at..at, line);
                }
            }
            Edit::Byte(at, byte) => {
                let at = within(at, &bytes);
                if let Some(place) = bytes.get_mut(at) {
                    *place = *byte;
                }
            }
            Edit::Truncate(at) => bytes.truncate(within(at, &bytes)),
        }
    }
    bytes
}

/// Makes values of a type from a stream of random numbers.
struct Maker<'a> {
    numbers: &'a mut dyn Iterator<Item = u32>,
    /// The strings that it uses.
    words: &'a [&'a str],
}

const WORDS: &[&str] = &[
    "",
    "a",
    "nginx:1.27",
    "yes",
    "no",
    "y",
    "N",
    "on",
    "null",
    "~",
    "true",
    "0",
    "0644",
    "0x1F",
    "0o17",
    "1e3",
    ".5",
    "-1",
    ".inf",
    ".nan",
    "<<",
    "=",
    "a: b",
    "a #b",
    "#b",
    "- a",
    "-",
    "? a",
    "a,b",
    "[a]",
    "{a}",
    "&a",
    "*a",
    "!a",
    "%a",
    "@a",
    "`a`",
    "'a'",
    "\"a\"",
    "a\\b",
    " a",
    "a ",
    "a\nb",
    "a\nb\n",
    "\na",
    "a\n\n---\nb",
    "---",
    "...",
    "a\tb",
    "\ta",
    "ü €",
    "𝄞",
    "\u{85}a",
    "a\u{2028}b",
    "\u{feff}a",
    "\u{7f}",
    "\u{1b}[0m",
    "2001-01-01",
    "1:30",
    "0b1",
    "1_000",
    "0X1F",
    "0B1",
    "0_7",
    "a:",
];

impl Maker<'_> {
    fn number(&mut self, below: usize) -> usize {
        self.numbers.next().unwrap_or(0) as usize % below
    }

    fn pick<'b>(&mut self, choice: &[&'b str]) -> &'b str {
        choice[self.number(choice.len())]
    }

    fn object(&mut self, structure: &'static Struct, depth: usize) -> Value {
        let mut map = Map::new();
        for field in structure.fields {
            let deep = field.ty.structure().is_some();
            let wanted = self.number(if deep { 4 + 2 * depth } else { 3 }) == 0;
            if field.required || wanted {
                map.insert(field.name.to_owned(), self.value(&field.ty, depth + 1));
            }
        }
        Value::Object(map)
    }

    fn value(&mut self, ty: &Type, depth: usize) -> Value {
        match ty {
            Type::Str => self.pick(self.words).into(),
            Type::Bool => (self.number(2) == 0).into(),
            Type::Int32 => [0, 1, -1, i32::MAX, i32::MIN][self.number(5)].into(),
            Type::Int64 => [0, 1, -1, i64::MAX, i64::MIN][self.number(5)].into(),
            Type::IntOrString => match self.number(3) {
                0 => self.pick(self.words).into(),
                _ => i32::try_from(self.number(70_000)).unwrap().into(),
            },
            Type::Quantity => self.pick(&["1", "100m", "0.5", "64Mi", "1e3", "2Gi", "-1", ".5", "5.", "3n"]).into(),
            Type::Time => self.pick(&["2024-05-01T12:00:00Z", "1970-01-01T00:00:00Z"]).into(),
            Type::Base64 => self.pick(&["", "YQ==", "YWI=", "YWJj", "+/+/"]).into(),
            Type::Any => json!({"f:metadata": {"f:labels": {}}}),
            Type::List(inner) => (0..self.number(3)).map(|_| self.value(inner, depth)).collect(),
            Type::Map(inner) => {
                let entries = (0..self.number(3)).map(|_| (self.pick(self.words).to_owned(), self.value(inner, depth)));
                Value::Object(entries.collect())
            }
            Type::Object(structure) => self.object(structure, depth),
        }
    }

    fn pod(&mut self) -> Pod {
        let mut value = self.object(&table::POD, 0);
        value["apiVersion"] = "v1".into();
        value["kind"] = "Pod".into();
        value["metadata"] = self.object(&table::OBJECT_META, 1);
        value["metadata"]["name"] = "web".into();
        value["metadata"]["namespace"] = "prod".into();
        value["spec"] = self.object(&table::POD_SPEC, 1);
        serde_json::from_value(value).unwrap()
    }
}

fn random() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(any::<u32>(), 0..3000)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_get_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check_invariants(&bytes, &decode("any", &bytes));
    }

    #[test]
    fn any_mixture_of_yaml_gets_an_answer(tokens in prop::collection::vec(token(), 0..60)) {
        let text = tokens.concat();
        check_invariants(text.as_bytes(), &decode("any", &text));
    }

    #[test]
    fn any_change_to_good_manifests_gets_answer(edits in prop::collection::vec(edit(), 1..8)) {
        let bytes = edited(&format!("{WEB}---\n{}", WEB.replace("name: web", "name: two")), &edits);
        check_invariants(&bytes, &decode("any", &bytes));
    }

    #[test]
    fn typed_pod_as_json_is_equal(numbers in random()) {
        // JSON's writer lets stand in a file what YAML does not.
        let words: Vec<&str> = WORDS.iter().copied().filter(|word| !word.contains(['\u{feff}', '\u{7f}'])).collect();
        let made = Maker { numbers: &mut numbers.into_iter(), words: &words }.pod();
        let text = serde_json::to_string_pretty(&made).unwrap();
        prop_assert_eq!(&pod(&text), &made);
        let list = format!("{{\"apiVersion\": \"v1\", \"kind\": \"PodList\", \"items\": [{}]}}", serde_json::to_string(&made).unwrap());
        prop_assert_eq!(&pod(list), &made);
    }

    #[test]
    fn typed_pod_as_yaml_is_equal(numbers in random()) {
        let made = Maker { numbers: &mut numbers.into_iter(), words: WORDS }.pod();
        let text = to_yaml(&serde_json::to_value(&made).unwrap());
        prop_assert_eq!(&pod(&text), &made, "{}", text);
    }
}
