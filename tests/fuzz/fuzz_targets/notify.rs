//! Templates of notifications: any text ends in a template or in an error, and no value leaves the text of a body that it is put into.
#![no_main]
#![allow(dead_code, unused_imports, reason = "only a part of the crate is compiled")]

#[path = "../../../src/config/template.rs"]
mod template;

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use template::Template;

/// Kinds and keys of a document, without its texts.
fn shape(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(shape).collect::<Vec<_>>().join(",")),
        Value::Object(members) => members.values().map(shape).collect::<Vec<_>>().join(";"),
        Value::String(_) => "text".to_owned(),
        other => other.to_string(),
    }
}

/// Names of all members.
fn keys(value: &Value) -> Vec<&str> {
    match value {
        Value::Array(items) => items.iter().flat_map(keys).collect(),
        Value::Object(members) => members.iter().flat_map(|(key, value)| [vec![key.as_str()], keys(value)].concat()).collect(),
        _ => Vec::new(),
    }
}

fuzz_target!(|input: (&str, &str)| {
    let (text, value) = input;
    for parsed in [Template::argument(text), Template::body(text)] {
        match parsed {
            Ok(template) => assert_eq!(template.as_written(), text),
            Err(error) => assert!(error.len() < 2000, "{error}"),
        }
    }
    if let Ok(template) = Template::argument(text) {
        // What is no field stands for itself.
        let rendered = template.render(|field| format!("{{{field}}}"));
        assert_eq!(rendered, text);
    }
    if let Ok(template) = Template::body(text) {
        let rendered = |value: &str| -> Value { serde_json::from_str(&template.render_json(|_| value.to_owned())).unwrap() };
        let (one, other, hostile) = (rendered("x"), rendered("y"), rendered(value));
        // Names of members may have fields, too, and then change.
        if keys(&one) == keys(&other) {
            assert_eq!(shape(&hostile), shape(&one));
        }
    }
});
