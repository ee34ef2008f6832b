//! Documents as sigs.k8s.io/yaml reads them.

use super::*;

/// The tree as JSON, duplicates and unsupported values marked.
fn shown(node: &Node) -> String {
    match &node.value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) => number.to_string(),
        Value::String(text) => format!("{text:?}"),
        Value::List(items) => format!("[{}]", items.iter().map(shown).collect::<Vec<_>>().join(",")),
        Value::Map(entries) => {
            let entries = entries.iter().map(|entry| {
                let mark = if entry.duplicate_of.is_some() { "!" } else { "" };
                format!("{mark}{:?}:{}", entry.key, shown(&entry.value))
            });
            format!("{{{}}}", entries.collect::<Vec<_>>().join(","))
        }
        Value::Unsupported(what) => format!("<{what}>"),
    }
}

fn read(text: &str) -> String {
    match load(text, 0, 1, &Limits::default()) {
        Ok(node) => shown(&node),
        Err(fault) => format!("{}@{}: {}", fault.code, fault.at.unwrap(), fault.message),
    }
}

#[test]
fn quoted_scalars_are_strings_and_unquoted_ones_follow_yaml_1_1() {
    for (text, expected) in [
        ("a: yes", r#"{"a":true}"#),
        ("a: 'yes'", r#"{"a":"yes"}"#),
        ("a: \"yes\"", r#"{"a":"yes"}"#),
        ("a: !!str yes", r#"{"a":"yes"}"#),
        ("a: !!str 5", r#"{"a":"5"}"#),
        ("a: &x !!str 5\nb: !!str &y 0644", r#"{"a":"5","b":"0644"}"#),
        ("a: !!int 0644", "error"),
        ("a: 0644", r#"{"a":420}"#),
        ("a: '0644'", r#"{"a":"0644"}"#),
        ("a: \"\"\nb: ''\nc:", r#"{"a":"","b":"","c":null}"#),
        ("a: \"x\\ty\"", r#"{"a":"x\ty"}"#),
        ("a: 'it''s'", r#"{"a":"it's"}"#),
        ("a: one\n  two", r#"{"a":"one two"}"#),
        ("a: |\n  1\nb: >-\n  on\n  off", r#"{"a":"1\n","b":"on off"}"#),
        ("a: |2\n   x\n", r#"{"a":" x\n"}"#),
        ("a: \"1\" # yes\nb: no # 1", r#"{"a":"1","b":false}"#),
        ("a: 'x'\r\nb: y\r\n", r#"{"a":"x","b":true}"#),
        (
            "a: 0x10000000000000000\nb: [-0x8000000000000001, 0b1]\nc: 18446744073709551616\nd: 0xffffffffffffffff",
            r#"{"a":"0x10000000000000000","b":["-0x8000000000000001",1],"c":1.8446744073709552e+19,"d":18446744073709551615}"#,
        ),
        ("[1, 2.50, ~, on, 0x10, '1']", r#"[1,2.5,null,true,16,"1"]"#),
    ] {
        if expected == "error" {
            assert!(read(text).starts_with("yaml-syntax"), "{text:?}: {}", read(text));
        } else {
            assert_eq!(read(text), expected, "{text:?}");
        }
    }
}

#[test]
fn keys_are_strings_whatever_they_look_like() {
    assert_eq!(read("yes: 1\n5: 2\n1.5: 3\n'no': 4"), r#"{"true":1,"5":2,"1.5":3,"no":4}"#);
    assert_eq!(read("{a: 1, \"b\": 2}"), r#"{"a":1,"b":2}"#);
    assert_eq!(read("? [a]\n: b"), "unsupported-yaml@3: a key cannot be a list");
    assert_eq!(read("a: {{ value }}"), "unsupported-yaml@6: a key cannot be a mapping");
    assert_eq!(read("~: b"), "unsupported-yaml@0: a key cannot be nothing");
}

#[test]
fn a_repeated_key_is_marked_in_each_place() {
    assert_eq!(read("a: 1\nb: {c: 1, 'c': 2}\na: 3"), r#"{"a":1,"b":{"c":1,!"c":2},!"a":3}"#);
    assert_eq!(read("1: a\n'1': b"), r#"{"1":"a",!"1":"b"}"#);
    assert_eq!(read(r#"{"a": 1, "a": 2}"#), r#"{"a":1,!"a":2}"#);
}

#[test]
fn merge_keys_add_what_is_not_written() {
    assert_eq!(read("x: &x {a: 1, b: 2}\nw:\n  <<: *x\n  b: 3"), r#"{"x":{"a":1,"b":2},"w":{"b":3,"a":1}}"#);
    let text = "x: &x {a: 1}\nz: &z {a: 2, c: 2}\nw: {<<: [*x, *z], b: 1}";
    assert_eq!(read(text), r#"{"x":{"a":1},"z":{"a":2,"c":2},"w":{"b":1,"a":1,"c":2}}"#);
    assert_eq!(read("a: {'<<': 1}"), r#"{"a":{"<<":1}}"#);
    assert_eq!(read("a: {<<: 1}"), r#"{"a":{"<<":<`<<` with something that is not a mapping>}}"#);
    assert_eq!(read(r#"{"<<": {"a": 1}}"#), r#"{"<<":{"a":1}}"#);
}

#[test]
fn aliases_repeat_and_tags_of_programs_are_refused() {
    assert_eq!(read("a: &a [1, x]\nb: *a"), r#"{"a":[1,"x"],"b":[1,"x"]}"#);
    assert_eq!(read("a: *b"), "yaml-syntax@3: unknown anchor");
    assert_eq!(read("a: !secret x"), r#"{"a":<the tag !secret>}"#);
    assert_eq!(read("a: !secret {b: c}\nd: 1"), r#"{"a":<the tag !secret>,"d":1}"#);
    assert_eq!(read("a: !!binary YQ=="), r#"{"a":<the tag !!binary>}"#);
    assert_eq!(read("a: !!binary |\n  YQ=="), r#"{"a":<the tag !!binary>}"#);
    assert_eq!(read("a: .inf"), r#"{"a":<a number that JSON cannot express (infinity or not-a-number)>}"#);
}

#[test]
fn signs_in_strings_and_comments_are_no_tags() {
    for (text, value) in [
        ("a: \"{!\"\nb: 1", r#"{"a":"{!","b":1}"#),
        ("a: \"x\\n !y\"\nb: z", r#"{"a":"x\n !y","b":"z"}"#),
        ("a: 'it''s {!' # as it is, !really\nb: z", r#"{"a":"it's {!","b":"z"}"#),
        ("# !important\na: b", r#"{"a":"b"}"#),
        ("a: &x b !c\nd: *x\ne: f !g\nh: i", r#"{"a":"b !c","d":"b !c","e":"f !g","h":"i"}"#),
        ("a: &x \"b !c\\n\"\nd: e", r#"{"a":"b !c\n","d":"e"}"#),
        ("a: |\n  b !c\nd: e", r#"{"a":"b !c\n","d":"e"}"#),
        ("a: [x !y, z]\nb: !!str\nc: d", r#"{"a":["x !y","z"],"b":"","c":"d"}"#),
        ("a: (b && !c) || (!d\n  && e) || !f)\ng: h", r#"{"a":"(b && !c) || (!d && e) || !f)","g":"h"}"#),
        ("a: b\n\n  !c\n\n  !d\ne: f", r#"{"a":"b\n!c\n!d","e":"f"}"#),
        ("a: &x v\nb: *x\nc: d\n  !e\nf: g", r#"{"a":"v","b":"v","c":"d !e","f":"g"}"#),
        ("a: !!map\n  b: c", r#"{"a":{"b":"c"}}"#),
    ] {
        assert_eq!(read(text), value, "{text}");
    }
    assert_eq!(read("a: &x !!binary YQ==\nb: *x"), r#"{"a":<the tag !!binary>,"b":<the tag !!binary>}"#);
    assert_eq!(read("a: !!binary # text\n  YQ=="), r#"{"a":<the tag !!binary>}"#);
    assert_eq!(read("a: [!!str 1, !!str true]"), r#"{"a":["1","true"]}"#);
}

#[test]
fn json_is_read_as_json() {
    assert_eq!(read("{\n\t\"a\": [1, 2.5, true, null, \"\\ud83d\\ude00\\/\"]\n}"), r#"{"a":[1,2.5,true,null,"😀/"]}"#);
    assert_eq!(read(r#"{"a": "yes", "b": "0644"}"#), r#"{"a":"yes","b":"0644"}"#);
    assert_eq!(read("{\"a\": 1\n\"b\": 2}"), "json-syntax@8: not JSON: expected `,` or `}`");
    assert_eq!(read("{\"a\": 1"), "json-syntax@7: not JSON: EOF while parsing an object");
    assert_eq!(read("{\"a\": 1}\n{\"b\": 1}"), "json-syntax@9: not JSON: trailing characters");
}

#[test]
fn syntax_errors_have_a_place_and_a_hint() {
    for (text, at, message, hint) in [
        ("a: 1\n\tb: 2", 5, "tabs are not allowed for indentation", "spaces"),
        ("a: b: c", 4, "mapping values are not allowed in this context", "quotes"),
        ("a: @x", 3, "a value cannot begin with `@`", "quote"),
        ("a: \"x\nb: 1", 10, "found unexpected end of stream while scanning a quoted scalar that begins in line 7", "not closed"),
        ("a: [1, 2\nb: 1", 10, "did not find expected ',' or ']' while parsing a flow sequence that begins in line 7", "comma"),
        ("a:\n  b: 1\n c: 2", 11, "did not find expected key while parsing a block mapping", "indentation"),
        ("a: 1\n...\nb: 2", 9, "did not find expected <document start>", ""),
    ] {
        let fault = load(text, 0, 7, &Limits::default()).unwrap_err();
        assert_eq!((fault.at, fault.message.as_str()), (Some(at), message), "{text:?}");
        assert!(fault.hint.clone().unwrap_or_default().contains(hint), "{text:?}: {:?}", fault.hint);
    }
}

#[test]
fn aliases_and_depth_are_bounded() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..20 {
        let inner = format!("*a{}", level - 1);
        bomb.push_str(&format!("a{level}: &a{level} [{}]\n", [inner.as_str(); 9].join(", ")));
    }
    assert_eq!(read(&bomb).split('@').next(), Some("too-complex"));
    assert_eq!(read("a: &a [*a]").split('@').next(), Some("too-complex"));
    assert_eq!(read(&format!("a: {}{}", "[".repeat(70), "]".repeat(70))).split('@').next(), Some("too-complex"));
    assert_eq!(read(&format!("{{\"a\": {}{}}}", "[".repeat(70), "]".repeat(70))).split('@').next(), Some("too-complex"));
    assert!(read(&format!("a: {}{}", "[".repeat(60), "]".repeat(60))).starts_with("{\"a\":[["));
}

/// Every place in the tree, with what it is the place of.
fn places<'a>(node: &Node, text: &'a str, found: &mut Vec<(String, &'a str)>) {
    let word = |at: Option<u32>| at.map_or("?", |at| text[at as usize..].split(['\n', ',', ']', '}']).next().unwrap());
    match &node.value {
        Value::List(items) => items.iter().for_each(|item| places(item, text, found)),
        Value::Map(entries) => entries.iter().for_each(|entry| {
            found.push((entry.key.clone(), word(entry.key_at)));
            places(&entry.value, text, found);
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Unsupported(_) => {
            found.push((shown(node), word(node.at)));
        }
    }
}

#[test]
fn scalars_of_every_style_know_their_place() {
    let text = "a: 1\n\"b\\t\": [x, 2 , \"3\\n\",\n  -4, # five 5\n  'it''s', +6, ~, 7]\nc: |\n  1\n\n  2\nd:\n- 8\n- - yes\n  - >-\n    9\n  - 10\n- plain\n  text\n- 11";
    let mut found = Vec::new();
    places(&load(text, 0, 1, &Limits::default()).unwrap(), text, &mut found);
    let expected = [
        ("a", "a: 1"),
        ("1", "1"),
        ("b\t", "\"b\\t\": [x"),
        ("\"x\"", "x"),
        ("2", "2 "),
        ("\"3\\n\"", "\"3\\n\""),
        ("-4", "-4"),
        ("\"it's\"", "'it''s'"),
        ("6", "+6"),
        ("null", "~"),
        ("7", "7"),
        ("c", "c: |"),
        ("\"1\\n\\n2\\n\"", "|"),
        ("d", "d:"),
        ("8", "8"),
        ("true", "yes"),
        ("\"9\"", ">-"),
        ("10", "10"),
        ("\"plain text\"", "plain"),
    ];
    for (at, expected) in expected.iter().enumerate() {
        assert_eq!((found[at].0.as_str(), found[at].1), *expected, "number {at}");
    }
}

#[test]
fn a_place_that_cannot_be_told_is_not_guessed() {
    let text = "a: &a 1\nb: *a\nc: [*a, 1]";
    let mut found = Vec::new();
    places(&load(text, 0, 1, &Limits::default()).unwrap(), text, &mut found);
    let expected = [("a", "a: &a 1"), ("1", "1"), ("b", "b: *a"), ("1", "?"), ("c", "c: [*a"), ("1", "?"), ("1", "?")];
    assert_eq!(found.iter().map(|(what, place)| (what.as_str(), *place)).collect::<Vec<_>>(), expected);
}

#[test]
fn an_alias_means_the_anchor_before_it() {
    let text = "a: &x 1\nb: *x\nc: &x 2\n# &x\nd: *x\ne: &x [3]\nf: *x\ng: \"&x *x\"\nh: *x\n";
    assert_eq!(read(text), r#"{"a":1,"b":1,"c":2,"d":2,"e":[3],"f":[3],"g":"&x *x","h":[3]}"#);
    // Places are those of the text as it was written.
    let node = load("a: &x 1\nb: &x 2\nc: *x\nd: 5\n", 0, 1, &Limits::default()).unwrap();
    let places: Vec<_> =
        ["a", "b", "c", "d"].map(|key| node.entry(key).unwrap()).map(|entry| (entry.key_at, entry.value.at)).into();
    assert_eq!(places, [(Some(0), Some(6)), (Some(8), Some(14)), (Some(16), None), (Some(22), Some(25))]);
}
