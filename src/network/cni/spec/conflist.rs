//! Network configurations: `.conflist` files with a chain of plugins, `.conf` and `.json` files with one. **Pure**.

use super::version::CniVersion;
use super::{is_name, quoted};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// A longer file is refused.
pub(crate) const MAX_CONFLIST_BYTES: usize = 1 << 20;
/// A longer chain is a mistake.
const MAX_PLUGINS: usize = 32;

/// Form of a configuration file, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// A chain.
    List,
    /// One plugin.
    Single,
}

impl Form {
    /// By the end of a file's name; `None` for a file that is no configuration.
    pub(crate) fn of(file_name: &str) -> Option<Self> {
        match file_name.rsplit_once('.') {
            Some(("", _)) => None,
            Some((_, "conflist")) => Some(Self::List),
            Some((_, "conf" | "json")) => Some(Self::Single),
            Some(_) | None => None,
        }
    }
}

/// Reason why a configuration cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ConflistError {
    /// It is too long.
    #[error("is longer than {MAX_CONFLIST_BYTES} bytes")]
    TooLong,
    /// It is no JSON.
    #[error("line {line}, column {column}: {message}")]
    Syntax {
        /// From 1.
        line: usize,
        /// From 1.
        column: usize,
        /// The error.
        message: String,
    },
    /// It is no configuration.
    #[error("{field}: {message}")]
    Field {
        /// Such as `plugins[1].type`.
        field: String,
        /// The error.
        message: String,
    },
}

fn wrong(field: impl Into<String>, message: impl Into<String>) -> ConflistError {
    ConflistError::Field { field: field.into(), message: message.into() }
}

/// A plugin of a chain.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plugin {
    /// Name of its program.
    pub(crate) kind: String,
    /// Its capabilities, by the configuration.
    pub(crate) capabilities: BTreeSet<String>,
    /// All that is written for it.
    pub(crate) written: Map<String, Value>,
}

/// A network: a chain of plugins.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Conflist {
    /// Its name, which keeps its addresses apart from those of others.
    pub(crate) name: String,
    /// The versions that it is written for and that podstead speaks, the earliest first; at least one.
    pub(crate) versions: Vec<CniVersion>,
    /// CHECK is not to be asked for.
    pub(crate) disable_check: bool,
    /// GC is not to be asked for.
    pub(crate) disable_gc: bool,
    /// The chain; at least one.
    pub(crate) plugins: Vec<Plugin>,
}

impl Conflist {
    /// Reads a file.
    pub(crate) fn parse(bytes: &[u8], form: Form) -> Result<Self, ConflistError> {
        if bytes.len() > MAX_CONFLIST_BYTES {
            return Err(ConflistError::TooLong);
        }
        let value: Value = serde_json::from_slice(bytes).map_err(|error| {
            let text = error.to_string();
            let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
            ConflistError::Syntax { line: error.line(), column: error.column(), message: quoted(message) }
        })?;
        Self::from_value(value, form)
    }

    /// Takes apart what was read. A plugin alone is a chain of one.
    pub(crate) fn from_value(value: Value, form: Form) -> Result<Self, ConflistError> {
        let Value::Object(mut written) = value else { return Err(wrong("file", "is not an object")) };
        match (form, written.contains_key("plugins")) {
            (Form::Single, true) => return Err(wrong("plugins", "is allowed only in a .conflist file")),
            (Form::List, false) => return Err(wrong("plugins", "is missing")),
            (Form::Single, false) | (Form::List, true) => {}
        }
        let name = match written.get("name") {
            Some(Value::String(name)) if is_name(name) => name.clone(),
            Some(Value::String(name)) => return Err(wrong("name", format!("{:?} is not a valid network name", quoted(name)))),
            Some(_) => return Err(wrong("name", "is not a string")),
            None => return Err(wrong("name", "is missing")),
        };
        let versions = versions(&written)?;
        let flag = |field: &str| match written.get(field) {
            None | Some(Value::Null | Value::Bool(false)) => Ok(false),
            Some(Value::Bool(true)) => Ok(true),
            // As the reference implementation takes it.
            Some(Value::String(text)) if text.eq_ignore_ascii_case("true") => Ok(true),
            Some(Value::String(text)) if text.eq_ignore_ascii_case("false") => Ok(false),
            Some(_) => Err(wrong(field, "is not a boolean")),
        };
        let (disable_check, disable_gc) = (flag("disableCheck")?, flag("disableGC")?);
        let plugins = match form {
            Form::Single => vec![plugin("", Value::Object(written))?],
            Form::List => match written.remove("plugins") {
                Some(Value::Array(items)) if items.len() > MAX_PLUGINS => {
                    return Err(wrong("plugins", format!("has {} items, at most {MAX_PLUGINS} are allowed", items.len())));
                }
                Some(Value::Array(items)) if !items.is_empty() => {
                    let numbered = items.into_iter().enumerate();
                    numbered.map(|(index, item)| plugin(&format!("plugins[{index}]."), item)).collect::<Result<_, _>>()?
                }
                Some(Value::Array(_)) => return Err(wrong("plugins", "is empty")),
                Some(_) | None => return Err(wrong("plugins", "is not a list")),
            },
        };
        Ok(Self { name, versions, disable_check, disable_gc, plugins })
    }

    /// As a chain, for a record; [`Conflist::from_value`] reads it again.
    pub(crate) fn to_value(&self) -> Value {
        let versions: Vec<&str> = self.versions.iter().map(|version| version.as_str()).collect();
        let plugins: Vec<Value> = self.plugins.iter().map(|plugin| Value::Object(plugin.written.clone())).collect();
        serde_json::json!({
            "name": self.name,
            "cniVersion": versions.last(),
            "cniVersions": versions,
            "disableCheck": self.disable_check,
            "disableGC": self.disable_gc,
            "plugins": plugins,
        })
    }

    /// The latest version among those for which it is written.
    pub(crate) fn latest(&self) -> CniVersion {
        self.versions.last().copied().unwrap_or(CniVersion::V0_3_0)
    }

    /// Returns true if a plugin has this capability.
    pub(crate) fn is_capable(&self, capability: &str) -> bool {
        self.plugins.iter().any(|plugin| plugin.capabilities.contains(capability))
    }
}

/// `cniVersion`, and `cniVersions` if it is there.
fn versions(written: &Map<String, Value>) -> Result<Vec<CniVersion>, ConflistError> {
    let mut named = Vec::new();
    match written.get("cniVersion") {
        None => {}
        Some(Value::String(text)) => named.push(text.as_str()),
        Some(_) => return Err(wrong("cniVersion", "is not a string")),
    }
    match written.get("cniVersions") {
        None | Some(Value::Null) => {}
        Some(Value::Array(items)) => {
            for item in items {
                named.push(item.as_str().ok_or_else(|| wrong("cniVersions", "is not a list of strings"))?);
            }
        }
        Some(_) => return Err(wrong("cniVersions", "is not a list")),
    }
    let spoken: BTreeSet<CniVersion> = named.iter().filter_map(|text| CniVersion::parse(text)).collect();
    if spoken.is_empty() {
        let known = CniVersion::ALL.map(CniVersion::as_str).join(", ");
        return Err(wrong(
            "cniVersion",
            match named.first() {
                Some(first) => format!("{:?} is not supported: use one of {known}", quoted(first)),
                None => format!("is missing: use one of {known}"),
            },
        ));
    }
    Ok(spoken.into_iter().collect())
}

fn plugin(at: &str, value: Value) -> Result<Plugin, ConflistError> {
    let Value::Object(written) = value else { return Err(wrong(at.trim_end_matches('.'), "is not an object")) };
    let kind = match written.get("type") {
        // It names a program in one of the directories of plugins.
        Some(Value::String(kind)) if is_name(kind) => kind.clone(),
        Some(Value::String(kind)) => {
            return Err(wrong(format!("{at}type"), format!("{:?} is not a valid plugin name", quoted(kind))));
        }
        Some(_) => return Err(wrong(format!("{at}type"), "is not a string")),
        None => return Err(wrong(format!("{at}type"), "is missing")),
    };
    let mut capabilities = BTreeSet::new();
    match written.get("capabilities") {
        None | Some(Value::Null) => {}
        Some(Value::Object(map)) => {
            for (name, is_there) in map {
                match is_there {
                    Value::Bool(true) => drop(capabilities.insert(name.clone())),
                    Value::Bool(false) => {}
                    _ => return Err(wrong(format!("{at}capabilities.{}", quoted(name)), "is not a boolean")),
                }
            }
        }
        Some(_) => return Err(wrong(format!("{at}capabilities"), "is not an object")),
    }
    Ok(Plugin { kind, capabilities, written })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BRIDGE: &str = r#"{"cniVersion": "1.0.0", "name": "plant", "disableCheck": true, "plugins": [
        {"type": "bridge", "bridge": "br7", "ipam": {"type": "host-local", "subnet": "10.7.0.0/24"}},
        {"type": "portmap", "capabilities": {"portMappings": true, "snat": false}}]}"#;

    fn parse(text: &str) -> Result<Conflist, String> {
        Conflist::parse(text.as_bytes(), Form::List).map_err(|error| error.to_string())
    }

    #[test]
    fn a_chain_is_read_with_what_its_plugins_can_be_told() {
        let list = parse(BRIDGE).unwrap();
        assert_eq!(
            (list.name.as_str(), list.latest(), list.disable_check, list.disable_gc),
            ("plant", CniVersion::V1_0_0, true, false)
        );
        let kinds: Vec<&str> = list.plugins.iter().map(|plugin| plugin.kind.as_str()).collect();
        assert_eq!(kinds, ["bridge", "portmap"]);
        assert!(list.is_capable("portMappings") && !list.is_capable("snat"));
        assert_eq!(Conflist::from_value(list.to_value(), Form::List).unwrap(), list, "a record of it is the same");
    }

    #[test]
    fn a_plugin_alone_is_a_chain_of_one() {
        let text = r#"{"cniVersion": "0.3.1", "name": "one", "type": "macvlan", "master": "eth0"}"#;
        let list = Conflist::parse(text.as_bytes(), Form::Single).unwrap();
        assert_eq!(list.plugins[0].written["master"], "eth0");
        assert_eq!(Form::of("10-a.conflist"), Some(Form::List));
        assert_eq!((Form::of("10-a.conf"), Form::of("a.json")), (Some(Form::Single), Some(Form::Single)));
        assert_eq!((Form::of("a.conf.bak"), Form::of(".conf"), Form::of("README")), (None, None, None));
    }

    #[test]
    fn the_versions_that_podstead_speaks_are_kept() {
        let of = |versions: &str| {
            parse(&format!(r#"{{{versions} "name": "a", "plugins": [{{"type": "b"}}]}}"#)).map(|list| list.versions)
        };
        assert_eq!(
            of(r#""cniVersion": "9.9.9", "cniVersions": ["0.4.0", "1.1.0", "2.0.0"],"#).unwrap(),
            [CniVersion::V0_4_0, CniVersion::V1_1_0]
        );
        assert_eq!(
            of(r#""cniVersion": "0.2.0","#).unwrap_err(),
            "cniVersion: \"0.2.0\" is not supported: use one of 0.3.0, 0.3.1, 0.4.0, 1.0.0, 1.1.0"
        );
        assert!(of("").unwrap_err().starts_with("cniVersion: is missing"));
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        let head = r#""cniVersion": "1.0.0", "name": "a""#;
        for (text, problem) in [
            ("{\n  \"name\": \"a\",,\n}".to_owned(), "line 2, column 15: key must be a string"),
            ("[]".to_owned(), "file: is not an object"),
            (format!("{{{head}}}"), "plugins: is missing"),
            (format!("{{{head}, \"plugins\": []}}"), "plugins: is empty"),
            (format!("{{{head}, \"plugins\": [{{\"type\": \"b\"}}, 7]}}"), "plugins[1]: is not an object"),
            (format!("{{{head}, \"plugins\": [{{}}]}}"), "plugins[0].type: is missing"),
            (
                format!("{{{head}, \"plugins\": [{{\"type\": \"../../bin/sh\"}}]}}"),
                "plugins[0].type: \"../../bin/sh\" is not a valid plugin name",
            ),
            (
                format!("{{{head}, \"plugins\": [{{\"type\": \"b\", \"capabilities\": {{\"ips\": 1}}}}]}}"),
                "plugins[0].capabilities.ips: is not a boolean",
            ),
            (r#"{"cniVersion": "1.0.0", "name": "a/b", "plugins": []}"#.to_owned(), "name: \"a/b\" is not a valid network name"),
        ] {
            assert_eq!(parse(&text).unwrap_err(), problem, "{text}");
        }
        assert_eq!(Conflist::parse(&vec![b' '; MAX_CONFLIST_BYTES + 1], Form::List), Err(ConflistError::TooLong));
        let deep = format!("{{\"name\": {}1{}}}", "[".repeat(10_000), "]".repeat(10_000));
        assert!(parse(&deep).unwrap_err().contains("recursion"), "no stack overflows");
    }

    proptest! {
        #[test]
        fn whatever_is_accepted_is_the_same_after_it_was_recorded(bytes in "\\PC{0,200}", form in prop_oneof![Just(Form::List), Just(Form::Single)]) {
            if let Ok(list) = Conflist::parse(bytes.as_bytes(), form) {
                prop_assert_eq!(Conflist::from_value(list.to_value(), Form::List).unwrap(), list);
            }
        }
    }
}
