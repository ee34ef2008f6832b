//! Networks that a pod asks for beside its own: the annotation `k8s.v1.cni.cncf.io/networks`, in its short and in its JSON form. **Pure**.

use super::{is_interface_name, is_name, quoted};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeSet;
use std::net::IpAddr;

/// Annotation that names additional networks.
pub(crate) const NETWORKS: &str = "k8s.v1.cni.cncf.io/networks";
/// Annotation that names another network for the pod's first interface.
pub(crate) const DEFAULT_NETWORK: &str = "v1.multus-cni.io/default-network";

/// A pod's first interface.
pub(crate) const FIRST_INTERFACE: &str = "eth0";

/// A longer annotation is refused; Kubernetes allows this much for all together.
const MAX_BYTES: usize = 256 << 10;
/// More interfaces are a mistake.
const MAX_NETWORKS: usize = 32;

/// Why an annotation cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("annotation {annotation}: {place}{message}")]
pub(crate) struct SelectionError {
    annotation: &'static str,
    place: String,
    message: String,
}

/// One network that a pod asks for.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Selection {
    /// Name of the network, by its configuration.
    pub(crate) name: String,
    /// As written; networks of this host have no namespaces.
    pub(crate) namespace: Option<String>,
    /// Name of the interface.
    pub(crate) interface: String,
    /// Addresses that it shall have, with or without prefix.
    pub(crate) ips: Vec<String>,
    /// Hardware address that it shall have.
    pub(crate) mac: Option<String>,
    /// For `args.cni` of the configuration.
    pub(crate) cni_args: Map<String, Value>,
}

/// One item of the JSON form. Whatever else multus knows is refused: it would be ignored.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    name: String,
    #[serde(default)]
    namespace: Option<String>,
    #[serde(default, alias = "interfaceRequest")]
    interface: Option<String>,
    #[serde(default)]
    ips: Option<Vec<String>>,
    #[serde(default)]
    mac: Option<String>,
    #[serde(default, rename = "cni-args")]
    cni_args: Option<Map<String, Value>>,
}

/// The additional networks; interfaces without a name of their own are called `net1` and so on, by their place in the list.
pub(crate) fn additional(text: &str) -> Result<Vec<Selection>, SelectionError> {
    let mut selections = parse(NETWORKS, text)?;
    let mut taken: BTreeSet<String> = BTreeSet::from([FIRST_INTERFACE.to_owned(), "lo".to_owned()]);
    for (index, selection) in selections.iter_mut().enumerate() {
        if selection.interface.is_empty() {
            selection.interface = format!("net{}", index + 1);
        }
        if !taken.insert(selection.interface.clone()) {
            let message = format!("interface {} is there already", selection.interface);
            return Err(SelectionError { annotation: NETWORKS, place: format!("[{index}]: "), message });
        }
    }
    Ok(selections)
}

/// The network of the pod's first interface.
pub(crate) fn default_network(text: &str) -> Result<Selection, SelectionError> {
    let wrong = |message: &str| SelectionError { annotation: DEFAULT_NETWORK, place: String::new(), message: message.to_owned() };
    let mut selections = parse(DEFAULT_NETWORK, text)?;
    match (selections.pop(), selections.len()) {
        (Some(selection), 0) if selection.interface.is_empty() || selection.interface == FIRST_INTERFACE => {
            Ok(Selection { interface: FIRST_INTERFACE.to_owned(), ..selection })
        }
        (Some(_), 0) => Err(wrong("the first interface is called eth0")),
        (Some(_) | None, _) => Err(wrong("one network is to be named")),
    }
}

fn parse(annotation: &'static str, text: &str) -> Result<Vec<Selection>, SelectionError> {
    let wrong = |place: String, message: String| SelectionError { annotation, place, message };
    if text.len() > MAX_BYTES {
        return Err(wrong(String::new(), format!("is longer than {MAX_BYTES} bytes")));
    }
    let text = text.trim();
    let selections: Vec<Selection> = if text.starts_with('[') || text.starts_with('{') {
        let items: Vec<Value> = match serde_json::from_str(text) {
            Ok(Value::Array(items)) => items,
            Ok(_) => return Err(wrong(String::new(), "is no list".to_owned())),
            Err(error) => return Err(wrong(String::new(), quoted(&error.to_string()))),
        };
        let item = |(index, item): (usize, Value)| {
            let written = Written::deserialize(item).map_err(|error| wrong(format!("[{index}]: "), quoted(&error.to_string())))?;
            written.checked().map_err(|message| wrong(format!("[{index}]: "), message))
        };
        items.into_iter().take(MAX_NETWORKS + 1).enumerate().map(item).collect::<Result<_, _>>()?
    } else {
        let items = text.split(',').map(str::trim).filter(|item| !item.is_empty()).take(MAX_NETWORKS + 1);
        items.map(|item| short(item).map_err(|message| wrong(String::new(), message))).collect::<Result<_, _>>()?
    };
    if selections.len() > MAX_NETWORKS {
        return Err(wrong(String::new(), format!("names more than {MAX_NETWORKS} networks")));
    }
    Ok(selections)
}

/// `[<namespace>/]<name>[@<interface>]`.
fn short(item: &str) -> Result<Selection, String> {
    let (rest, interface) = match item.split_once('@') {
        Some((_, "")) => return Err(format!("{:?} names no interface after @", quoted(item))),
        Some((rest, interface)) => (rest, Some(interface.to_owned())),
        None => (item, None),
    };
    let (namespace, name) = match rest.split_once('/') {
        Some((namespace, name)) => (Some(namespace.to_owned()), name),
        None => (None, rest),
    };
    Written { name: name.to_owned(), namespace, interface, ips: None, mac: None, cni_args: None }.checked()
}

impl Written {
    fn checked(self) -> Result<Selection, String> {
        let Self { name, namespace, interface, ips, mac, cni_args } = self;
        if !is_name(&name) {
            return Err(format!("{:?} is no name of a network", quoted(&name)));
        }
        if let Some(namespace) = namespace.as_ref().filter(|namespace| !is_name(namespace)) {
            return Err(format!("{:?} is no namespace", quoted(namespace)));
        }
        let interface = interface.unwrap_or_default();
        if !interface.is_empty() && !is_interface_name(&interface) {
            return Err(format!("{:?} is no name of an interface", quoted(&interface)));
        }
        let ips = ips.unwrap_or_default();
        if let Some(ip) = ips.iter().find(|ip| ip.parse::<IpAddr>().is_err() && super::result::network(ip).is_none()) {
            return Err(format!("{:?} is no address", quoted(ip)));
        }
        let mac = mac.filter(|mac| !mac.is_empty());
        if let Some(mac) = mac.as_ref().filter(|mac| !is_mac(mac)) {
            return Err(format!("{:?} is no hardware address", quoted(mac)));
        }
        Ok(Selection { name, namespace, interface, ips, mac, cni_args: cni_args.unwrap_or_default() })
    }
}

fn is_mac(text: &str) -> bool {
    let mut groups = 0;
    let are_hex = text.split(':').all(|group| {
        groups += 1;
        group.len() == 2 && group.bytes().all(|byte| byte.is_ascii_hexdigit())
    });
    are_hex && groups == 6
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn short_forms(text: &str) -> Vec<(String, Option<String>, String)> {
        let tuple = |selection: Selection| (selection.name, selection.namespace, selection.interface);
        additional(text).unwrap().into_iter().map(tuple).collect()
    }

    fn problem(text: &str) -> String {
        let text = additional(text).unwrap_err().to_string();
        text.strip_prefix("annotation k8s.v1.cni.cncf.io/networks: ").unwrap().to_owned()
    }

    #[test]
    fn the_short_form_names_networks_and_perhaps_interfaces() {
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(
            short_forms("plant, default/cameras@cam0,,plant"),
            [
                ("plant".to_owned(), None, "net1".to_owned()),
                ("cameras".to_owned(), some("default"), "cam0".to_owned()),
                ("plant".to_owned(), None, "net3".to_owned()),
            ]
        );
        assert_eq!(short_forms(""), []);
    }

    #[test]
    fn the_json_form_asks_for_addresses_and_arguments() {
        let text = r#"[{"name": "plant", "namespace": "x", "interface": "vlan7", "ips": ["10.7.0.9/24", "fd00::9"],
            "mac": "02:00:00:00:00:09", "cni-args": {"vlan": 7}}, {"name": "b"}]"#;
        let selections = additional(text).unwrap();
        assert_eq!(
            selections[0],
            Selection {
                name: "plant".into(),
                namespace: Some("x".into()),
                interface: "vlan7".into(),
                ips: vec!["10.7.0.9/24".into(), "fd00::9".into()],
                mac: Some("02:00:00:00:00:09".into()),
                cni_args: serde_json::from_str(r#"{"vlan": 7}"#).unwrap(),
            }
        );
        assert_eq!(selections[1].interface, "net2");
    }

    #[test]
    fn what_cannot_be_followed_is_refused_in_words() {
        for (text, words) in [
            ("a b", "\"a b\" is no name of a network"),
            ("a@", "\"a@\" names no interface after @"),
            ("a@eth0", "[0]: interface eth0 is there already"),
            ("a@x,b@x", "[1]: interface x is there already"),
            ("a@longer-than-fifteen", "\"longer-than-fifteen\" is no name of an interface"),
            (r#"[{"name": "a", "ips": ["ten"]}]"#, "[0]: \"ten\" is no address"),
            (r#"[{"name": "a", "mac": "02:00"}]"#, "[0]: \"02:00\" is no hardware address"),
            (r#"{"name": "a"}"#, "is no list"),
            (r#"[{"interface": "x"}]"#, "[0]: missing field `name`"),
        ] {
            assert_eq!(problem(text), words, "{text}");
        }
        assert!(problem(r#"[{"name": "a", "default-route": ["10.0.0.1"]}]"#).starts_with("[0]: unknown field `default-route`"));
        assert!(problem("[{]").contains("line 1"), "{}", problem("[{]"));
        assert_eq!(problem(&"a,".repeat(33)), "names more than 32 networks");
    }

    #[test]
    fn one_network_is_the_pods_first() {
        assert_eq!(default_network("ns/plant").unwrap().interface, "eth0");
        assert_eq!(default_network(r#"[{"name": "plant", "ips": ["10.7.0.9/24"]}]"#).unwrap().ips, ["10.7.0.9/24"]);
        for text in ["", "a,b", "a@net1"] {
            default_network(text).unwrap_err();
        }
    }

    proptest! {
        #[test]
        fn interfaces_are_valid_and_never_given_twice(text in "[a-c@/,0 ]{0,40}") {
            if let Ok(selections) = additional(&text) {
                let names: BTreeSet<&str> = selections.iter().map(|selection| selection.interface.as_str()).collect();
                prop_assert_eq!(names.len(), selections.len());
                prop_assert!(names.iter().all(|name| is_interface_name(name) && *name != FIRST_INTERFACE));
            }
        }
    }
}
