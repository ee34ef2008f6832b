//! `--sort-by`: the order of what is listed. **Pure**.

use anyhow::bail;
use clap::Args;
use podstead_jsonpath::Columns;
use serde_json::Value;
use std::cmp::Ordering;

/// A field to sort by, as its one column.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SortKey(Box<Key>);

#[derive(Clone, Debug, PartialEq)]
struct Key {
    written: String,
    column: Columns,
}

/// `--sort-by`.
#[derive(Clone, Debug, Default, Args)]
pub(super) struct SortArgs {
    /// Sort by this field, e.g. .metadata.creationTimestamp
    #[arg(long, value_name = "JSONPATH", value_parser = parse_key)]
    sort_by: Option<SortKey>,
}

/// Reads `.metadata.name`, also without the dot or in braces.
fn parse_key(text: &str) -> Result<SortKey, String> {
    Columns::parse(&format!("KEY:{text}"))
        .map(|column| SortKey(Box::new(Key { written: text.to_owned(), column })))
        .map_err(|error| error.to_string())
}

impl SortArgs {
    /// Reports whether there is an order.
    pub(super) fn is_given(&self) -> bool {
        self.sort_by.is_some()
    }

    /// Puts items in order, by the field of their objects. Those with equal fields stay as they were.
    pub(super) fn sort<T>(&self, items: &mut Vec<T>, object: impl Fn(&T) -> &Value) -> anyhow::Result<()> {
        let Some(SortKey(key)) = &self.sort_by else { return Ok(()) };
        let Key { written, column } = &**key;
        let mut keyed = Vec::with_capacity(items.len());
        for item in items.drain(..) {
            let key = column.row(object(&item))?.concat();
            keyed.push((key, item));
        }
        if !keyed.is_empty() && keyed.iter().all(|(key, _)| key == "<none>") {
            bail!("no object of the list has the field {written} of --sort-by");
        }
        keyed.sort_by(|(one, _), (other, _)| compare(one, other));
        items.extend(keyed.into_iter().map(|(_, item)| item));
        Ok(())
    }
}

/// Numbers by their value; texts as people sort them, where 9 comes before 10.
fn compare(one: &str, other: &str) -> Ordering {
    match (one.parse::<f64>(), other.parse::<f64>()) {
        (Ok(one), Ok(other)) => one.total_cmp(&other),
        _ => compare_texts(one, other),
    }
}

fn compare_texts(mut one: &str, mut other: &str) -> Ordering {
    while !one.is_empty() && !other.is_empty() {
        let (from_one, from_other) = (digits(one), digits(other));
        let ordering = if from_one.is_empty() || from_other.is_empty() {
            let ordering = one.chars().next().cmp(&other.chars().next());
            (one, other) = (behind_first(one), behind_first(other));
            ordering
        } else {
            let bare = |digits: &str| digits.trim_start_matches('0').to_owned();
            let (bare_one, bare_other) = (bare(from_one), bare(from_other));
            (one, other) = (&one[from_one.len()..], &other[from_other.len()..]);
            bare_one.len().cmp(&bare_other.len()).then(bare_one.cmp(&bare_other))
        };
        if ordering.is_ne() {
            return ordering;
        }
    }
    one.len().cmp(&other.len())
}

fn digits(text: &str) -> &str {
    &text[..text.len() - text.trim_start_matches(|character: char| character.is_ascii_digit()).len()]
}

fn behind_first(text: &str) -> &str {
    let mut characters = text.chars();
    characters.next();
    characters.as_str()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn sorted(key: &str, items: &[Value]) -> Vec<Value> {
        let args = SortArgs { sort_by: Some(parse_key(key).unwrap()) };
        let mut items = items.to_vec();
        args.sort(&mut items, |item| item).unwrap();
        items.iter().map(|item| item["a"].clone()).collect()
    }

    #[test]
    fn numbers_and_names_are_in_order() {
        let objects = |values: &[Value]| values.iter().map(|value| json!({"a": value})).collect::<Vec<_>>();
        for key in [".a", "a", "{.a}"] {
            assert_eq!(sorted(key, &objects(&[json!(10), json!(9)])), [json!(9), json!(10)]);
        }
        let names = objects(&[json!("web-10"), json!("web-9"), json!("db"), json!("web")]);
        assert_eq!(sorted(".a", &names), [json!("db"), json!("web"), json!("web-9"), json!("web-10")]);
        let times = objects(&[json!("2026-10-01T00:00:00Z"), json!("2026-09-30T23:59:59.5Z")]);
        assert_eq!(sorted(".a", &times)[0], "2026-09-30T23:59:59.5Z");
        assert!(parse_key("{.a").is_err());
        let absent = SortArgs { sort_by: Some(parse_key(".b.c").unwrap()) };
        let error = absent.sort(&mut objects(&[json!(1)]), |item| item).unwrap_err().to_string();
        assert!(error.contains(".b.c"), "{error}");
        absent.sort(&mut Vec::<Value>::new(), |item| item).unwrap();
    }
}
