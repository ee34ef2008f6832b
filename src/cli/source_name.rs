//! Selection of a source, whose name may be omitted if the host has only one.

use super::client::{Client, OWN, Target};
use super::pods::ServedList;
use anyhow::bail;
use serde_json::Value;

/// A source, and what else was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chosen {
    /// The name.
    pub(super) source: String,
    /// A revision, where one was given.
    pub(super) revision: Option<String>,
}

/// Asks the daemon for its sources, and chooses as [`choose`].
pub(super) async fn ask(client: &Client, first: Option<&str>, second: Option<&str>) -> anyhow::Result<Chosen> {
    // Named wholly: nothing has to be asked, and an unknown name is the daemon's to refuse.
    if let (Some(source), Some(revision)) = (first, second) {
        return Ok(Chosen { source: source.to_owned(), revision: Some(revision.to_owned()) });
    }
    let list: ServedList = client.get(Target::new(OWN, &["sources"])).await?;
    let name = |source: &Value| source["metadata"]["name"].as_str().map(str::to_owned);
    let names: Vec<String> = list.items.iter().filter_map(name).collect();
    choose(&names, first)
}

/// As [`ask`], for commands that take a source alone.
pub(super) async fn ask_alone(client: &Client, given: Option<&str>) -> anyhow::Result<String> {
    match given {
        Some(source) => Ok(source.to_owned()),
        None => Ok(ask(client, None, None).await?.source),
    }
}

/// Of `[SOURCE] [REVISION]` with at most one given: a name of a source is a source; on a host with one source, anything else is a revision.
fn choose(names: &[String], given: Option<&str>) -> anyhow::Result<Chosen> {
    match (given, names) {
        (Some(given), names) if names.iter().any(|name| name == given) => Ok(Chosen { source: given.to_owned(), revision: None }),
        (_, []) => bail!("no source is configured on this host"),
        (revision, [only]) => Ok(Chosen { source: only.clone(), revision: revision.map(str::to_owned) }),
        (Some(given), names) => bail!("source {given:?} not found; sources of this host: {}", names.join(", ")),
        (None, names) => bail!("name a source; sources of this host: {}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(names: &[&str], given: Option<&str>) -> Result<(String, Option<String>), String> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        choose(&names, given).map(|chosen| (chosen.source, chosen.revision)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_source_need_not_be_named_where_there_is_one() {
        assert_eq!(chosen(&["fleet"], None), Ok(("fleet".into(), None)));
        assert_eq!(chosen(&["fleet"], Some("fleet")), Ok(("fleet".into(), None)));
        assert_eq!(chosen(&["fleet"], Some("3f2a")), Ok(("fleet".into(), Some("3f2a".into()))));
    }

    #[test]
    fn with_several_the_names_are_said() {
        assert_eq!(chosen(&["a", "b"], Some("b")), Ok(("b".into(), None)));
        assert_eq!(chosen(&["a", "b"], None), Err("name a source; sources of this host: a, b".into()));
        assert_eq!(chosen(&["a", "b"], Some("c")), Err("source \"c\" not found; sources of this host: a, b".into()));
        assert_eq!(chosen(&[], None), Err("no source is configured on this host".into()));
    }
}
