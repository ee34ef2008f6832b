//! A change of an object as it is shown, taken over into the object as written: no default that the API shows enters a file.

use serde_json::{Map, Value as Json};

/// Fields that identify the items of a list, in the order in which they are tried.
const KEYS: [&str; 8] = ["name", "containerPort", "mountPath", "devicePath", "ip", "port", "key", "topologyKey"];

/// The object `written`, with the differences between `shown` and `new` applied to it.
pub fn carried(written: &Json, shown: &Json, new: &Json) -> Json {
    carry(Some(written), Some(shown), Some(new)).unwrap_or_else(|| new.clone())
}

fn carry(written: Option<&Json>, shown: Option<&Json>, new: Option<&Json>) -> Option<Json> {
    if shown == new {
        return written.cloned();
    }
    let new = new?;
    match (written, shown, new) {
        (written, Some(Json::Object(shown)), Json::Object(new)) => {
            let nothing = Map::new();
            let is_absent = written.is_none();
            let written = match written {
                Some(Json::Object(written)) => written,
                Some(_) | None => &nothing,
            };
            let keys = written.keys().chain(new.keys().filter(|key| !written.contains_key(*key)));
            let carried = keys.filter_map(|key| Some((key.clone(), carry(written.get(key), shown.get(key), new.get(key))?)));
            let carried: Map<_, _> = carried.collect();
            let is_left_out = carried.is_empty() && is_absent;
            (!is_left_out).then_some(Json::Object(carried))
        }
        (Some(Json::Array(written)), Some(Json::Array(shown)), Json::Array(new)) => Some(Json::Array(list(written, shown, new))),
        _ => Some(new.clone()),
    }
}

fn list(written: &[Json], shown: &[Json], new: &[Json]) -> Vec<Json> {
    if let Some(key) = KEYS.into_iter().find(|key| [written, shown, new].iter().all(|items| is_keyed(items, key))) {
        let find = |items: &'_ [Json], item: &Json| items.iter().position(|known| known[key] == item[key]);
        let carried = new.iter().filter_map(|item| {
            let of_written = find(written, item).map(|index| &written[index]);
            let of_shown = find(shown, item).map(|index| &shown[index]);
            carry(of_written, of_shown, Some(item))
        });
        return carried.collect();
    }
    if written.len() == shown.len() && shown.len() == new.len() {
        let items = written.iter().zip(shown).zip(new);
        return items.filter_map(|((written, shown), new)| carry(Some(written), Some(shown), Some(new))).collect();
    }
    new.to_vec()
}

/// Reports whether each item has the key, and no two the same.
fn is_keyed(items: &[Json], key: &str) -> bool {
    let mut seen = std::collections::BTreeSet::new();
    items.iter().all(|item| item.get(key).is_some_and(|value| seen.insert(value.to_string())))
}
