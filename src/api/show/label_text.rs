//! Labels and label selectors as kubectl writes them. **Pure**.

use serde_json::Value;

/// Text for nothing.
const NONE: &str = "<none>";

/// `a=b,c=d`, or `<none>`.
pub fn labels_text(labels: &Value) -> String {
    let labels = labels.as_object().into_iter().flatten();
    joined(labels.map(|(name, value)| (name.clone(), format!("{name}={}", value.as_str().unwrap_or_default()))).collect())
}

/// `a=b,c in (d,e),!f`, by key, or `<none>`.
pub fn selector_text(selector: &Value) -> String {
    let equal = selector["matchLabels"].as_object().into_iter().flatten();
    let equal = equal.map(|(name, value)| (name.clone(), format!("{name}={}", value.as_str().unwrap_or_default())));
    let expressions = selector["matchExpressions"].as_array().into_iter().flatten();
    let expressions = expressions.map(|expression| {
        let key = expression["key"].as_str().unwrap_or_default();
        let mut values: Vec<&str> = expression["values"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        let text = match expression["operator"].as_str() {
            Some("In") => format!("{key} in ({values})"),
            Some("NotIn") => format!("{key} notin ({values})"),
            Some("DoesNotExist") => format!("!{key}"),
            // `Exists`: other operators are refused in manifests.
            Some(_) | None => key.to_owned(),
        };
        (key.to_owned(), text)
    });
    joined(equal.chain(expressions).collect())
}

fn joined(mut by_key: Vec<(String, String)>) -> String {
    by_key.sort();
    let texts: Vec<String> = by_key.into_iter().map(|(_, text)| text).collect();
    if texts.is_empty() { NONE.to_owned() } else { texts.join(",") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn selectors_are_written_by_key() {
        let expressions = json!([
            {"key": "b", "operator": "In", "values": ["y", "x"]}, {"key": "d", "operator": "DoesNotExist"},
            {"key": "a", "operator": "Exists"}, {"key": "e", "operator": "NotIn", "values": ["z"]},
        ]);
        let all = json!({"matchLabels": {"c": "1"}, "matchExpressions": expressions});
        assert_eq!(selector_text(&all), "a,b in (x,y),c=1,!d,e notin (z)");
        assert_eq!(selector_text(&Value::Null), "<none>");
        assert_eq!(labels_text(&json!({"b": "2", "a": "1"})), "a=1,b=2");
        assert_eq!(labels_text(&json!({})), "<none>");
    }
}
