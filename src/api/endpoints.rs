//! `v1` Endpoints: the endpoints of each Service in the form that came before EndpointSlices, for the clients that still ask for it, such as
//! `kubectl describe service` up to 1.30. They are made from Services and EndpointSlices when somebody asks. **Pure**.

use super::services::SERVICE_NAME_LABEL;
use super::table::{AGE, Column, age_of};
use jiff::Timestamp;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Endpoints that a table names; the others are counted.
const SHOWN: usize = 3;

/// Columns of Endpoints.
pub(super) const COLUMNS: &[Column] = &[
    Column::name(),
    Column::text("Endpoints", "Addresses and ports of pods that are ready, of the first family of the Service"),
    AGE,
];

/// The Endpoints of all Services that have some or select pods.
pub(super) fn shown(services: &[Value], slices: &[Value]) -> Vec<Value> {
    let mut by_service: BTreeMap<(&str, &str), Vec<&Value>> = BTreeMap::new();
    for slice in slices {
        let metadata = &slice["metadata"];
        let service = metadata["labels"][SERVICE_NAME_LABEL].as_str().unwrap_or_default();
        by_service.entry((metadata["namespace"].as_str().unwrap_or_default(), service)).or_default().push(slice);
    }
    let of_service = |service: &Value| {
        let [namespace, name] = ["namespace", "name"].map(|field| service["metadata"][field].as_str().unwrap_or_default());
        let slices = by_service.get(&(namespace, name)).map_or(&[][..], Vec::as_slice);
        let selects = service["spec"]["selector"].as_object().is_some_and(|selector| !selector.is_empty());
        (selects || !slices.is_empty()).then(|| endpoints(service, slices))
    };
    services.iter().filter_map(of_service).collect()
}

fn endpoints(service: &Value, slices: &[&Value]) -> Value {
    let mut metadata = service["metadata"].clone();
    if let Some(fields) = metadata.as_object_mut() {
        fields.retain(|name, _| matches!(name.as_str(), "name" | "namespace" | "labels" | "annotations" | "creationTimestamp"));
    }
    let family = service["spec"]["ipFamilies"][0].as_str().unwrap_or("IPv4");
    // Slices with the same ports are one subset.
    let mut subsets: BTreeMap<String, Subset<'_>> = BTreeMap::new();
    for slice in slices.iter().filter(|slice| slice["addressType"] == family) {
        let subset = subsets.entry(slice["ports"].to_string()).or_insert_with(|| Subset::new(&slice["ports"]));
        slice["endpoints"].as_array().into_iter().flatten().for_each(|endpoint| subset.add(endpoint));
    }
    let subsets: Vec<Value> = subsets.into_values().filter_map(Subset::finish).collect();
    json!({"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata, "subsets": subsets})
}

/// Addresses with the same ports.
struct Subset<'a> {
    ports: &'a Value,
    ready: Vec<Value>,
    not_ready: Vec<Value>,
}

impl<'a> Subset<'a> {
    fn new(ports: &'a Value) -> Self {
        Self { ports, ready: Vec::new(), not_ready: Vec::new() }
    }

    fn add(&mut self, endpoint: &Value) {
        let list = if endpoint["conditions"]["ready"] == false { &mut self.not_ready } else { &mut self.ready };
        for address in endpoint["addresses"].as_array().into_iter().flatten() {
            let mut shown = json!({"ip": address});
            for field in ["hostname", "nodeName", "targetRef"] {
                if !endpoint[field].is_null() {
                    shown[field] = endpoint[field].clone();
                }
            }
            list.push(shown);
        }
    }

    /// `None` without addresses, as upstream has it.
    fn finish(self) -> Option<Value> {
        let Self { ports, ready, not_ready } = self;
        let mut subset = json!({});
        for (field, mut addresses) in [("addresses", ready), ("notReadyAddresses", not_ready)] {
            if !addresses.is_empty() {
                addresses.sort_by(|one, other| one["ip"].as_str().cmp(&other["ip"].as_str()));
                subset[field] = addresses.into();
            }
        }
        if subset.as_object().is_none_or(serde_json::Map::is_empty) {
            return None;
        }
        if ports.as_array().is_some_and(|ports| !ports.is_empty()) {
            subset["ports"] = ports.clone();
        }
        Some(subset)
    }
}

/// The cells of `kubectl get endpoints`.
pub(super) fn cells(object: &Value, now: Timestamp) -> Vec<Value> {
    let mut all = Vec::new();
    for subset in object["subsets"].as_array().into_iter().flatten() {
        let addresses = || subset["addresses"].as_array().into_iter().flatten().filter_map(|address| address["ip"].as_str());
        match subset["ports"].as_array() {
            Some(ports) => all.extend(ports.iter().flat_map(|port| addresses().map(|ip| joined(ip, &port["port"])))),
            None => all.extend(addresses().map(str::to_owned)),
        }
    }
    let more = all.len().saturating_sub(SHOWN);
    all.truncate(SHOWN);
    let text = match (all.is_empty(), more) {
        (true, _) => "<none>".to_owned(),
        (false, 0) => all.join(","),
        (false, more) => format!("{} + {more} more...", all.join(",")),
    };
    vec![object["metadata"]["name"].clone(), json!(text), age_of(object, now)]
}

fn joined(ip: &str, port: &Value) -> String {
    if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slice(family: &str, name: &str, endpoints: Value) -> Value {
        json!({
            "metadata": {"name": name, "namespace": "shop", "labels": {SERVICE_NAME_LABEL: "web"}}, "addressType": family,
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}], "endpoints": endpoints,
        })
    }

    #[test]
    fn endpoints_are_of_the_first_family() {
        let spec = json!({"selector": {"app": "web"}, "ipFamilies": ["IPv4", "IPv6"]});
        let metadata = json!({"name": "web", "namespace": "shop", "labels": {"a": "b"}, "resourceVersion": "7"});
        let services = [
            json!({"metadata": metadata, "spec": spec}),
            json!({"metadata": {"name": "none", "namespace": "shop"}, "spec": {"selector": {"app": "none"}}}),
            json!({"metadata": {"name": "outside", "namespace": "shop"}, "spec": {"type": "ExternalName"}}),
        ];
        let target = json!({"kind": "Pod", "name": "web-1"});
        let slices = [
            slice("IPv4", "one", json!([{"addresses": ["10.0.0.2"], "conditions": {"ready": true}, "targetRef": target}])),
            slice(
                "IPv4",
                "two",
                json!([
                    {"addresses": ["10.0.0.1"], "conditions": {}},
                    {"addresses": ["10.0.0.3"], "conditions": {"ready": false}},
                ]),
            ),
            slice("IPv6", "six", json!([{"addresses": ["fd00::1"], "conditions": {"ready": true}}])),
        ];
        let shown = shown(&services, &slices);
        let subset = json!({
            "addresses": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2", "targetRef": target}],
            "notReadyAddresses": [{"ip": "10.0.0.3"}],
            "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
        });
        assert_eq!(shown[0]["metadata"], json!({"name": "web", "namespace": "shop", "labels": {"a": "b"}}));
        assert_eq!(shown[0]["subsets"], json!([subset]));
        assert_eq!((&shown[1]["metadata"]["name"], &shown[1]["subsets"]), (&json!("none"), &json!([])));
        assert_eq!(shown.len(), 2);
        assert_eq!(cells(&shown[0], Timestamp::UNIX_EPOCH), ["web", "10.0.0.1:8080,10.0.0.2:8080", "<unknown>"]);
        assert_eq!(cells(&shown[1], Timestamp::UNIX_EPOCH), ["none", "<none>", "<unknown>"]);
    }

    #[test]
    fn table_names_three_endpoints() {
        let addresses: Vec<Value> = (1..6).map(|number| json!({"ip": format!("fd00::{number}")})).collect();
        let object = json!({"metadata": {"name": "web"}, "subsets": [{"addresses": addresses, "ports": [{"port": 80}]}]});
        assert_eq!(cells(&object, Timestamp::UNIX_EPOCH)[1], "[fd00::1]:80,[fd00::2]:80,[fd00::3]:80 + 2 more...");
    }
}
