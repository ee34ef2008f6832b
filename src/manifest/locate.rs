//! Positions of the fields of any YAML document, for readers that decode it themselves.

use super::lines::Lines;
use super::node::{Node, Value};
use super::places::Places;
use super::positions::{PathHash, PositionMap, PositionMapBuilder};
use super::{Limits, yaml};
use podstead_pod::Position;

/// The places of all fields of a document, by path (`sources[0].name`). The empty map for what is no YAML document.
pub fn locate(bytes: &[u8]) -> PositionMap {
    let Ok(text) = std::str::from_utf8(bytes) else { return PositionMap::default() };
    let Ok(root) = yaml::load(text, 0, 1, &Limits::default()) else { return PositionMap::default() };
    let lines = Lines::new(bytes);
    let mut positions = PositionMapBuilder::default();
    walk(&root, PathHash::ROOT, Places::Text(&lines), &mut positions);
    positions.build(Position { line: 1, column: 1 }, "")
}

fn walk(node: &Node, path: PathHash, places: Places<'_>, positions: &mut PositionMapBuilder) {
    let mut record = |path: PathHash, at: Option<u32>| {
        if let Some(at) = at {
            positions.record(path, places.place(at));
        }
    };
    match &node.value {
        Value::Map(entries) => {
            for entry in entries {
                let path = path.child(&entry.key);
                record(path, entry.value.at.or(entry.key_at));
            }
            for entry in entries {
                walk(&entry.value, path.child(&entry.key), places, positions);
            }
        }
        Value::List(items) => {
            for (index, item) in items.iter().enumerate() {
                record(path.index(index), item.at);
            }
            for (index, item) in items.iter().enumerate() {
                walk(item, path.index(index), places, positions);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Unsupported(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_found_and_what_is_missing_has_the_place_of_its_parent() {
        let map = locate(b"nodeName: a\nsources:\n- name: x\n  http:\n    url: u\n- {name: y}\n");
        let at = |field: &str| map.position(field).map(|position| (position.line, position.column));
        assert_eq!(at("nodeName"), Some((1, 11)));
        assert_eq!(at("sources[0].http.url"), Some((5, 10)));
        assert_eq!(at("sources[0].http.timeoutSeconds").map(|at| at.0), Some(5));
        assert_eq!(at("sources[1].name"), Some((6, 10)));
        assert_eq!(at("logging"), Some((1, 1)));
    }

    #[test]
    fn what_is_no_document_has_no_places() {
        for bytes in [&b"a: [b"[..], b"\xff", b""] {
            assert_eq!(locate(bytes).position("a").map(|at| at.line).unwrap_or(1), 1);
        }
    }
}
