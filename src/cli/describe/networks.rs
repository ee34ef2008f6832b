//! Interfaces of a pod with CNI networks, from its annotation.

use super::writer::Description;
use crate::pods::annotation;
use k8s_openapi::api::core::v1::Pod;
use podstead_pod::identity::ANNOTATION_NETWORK_STATUS;
use serde::Deserialize;

#[derive(Deserialize)]
struct Interface {
    name: String,
    #[serde(default)]
    interface: String,
    #[serde(default)]
    ips: Vec<String>,
    #[serde(default)]
    mac: String,
}

/// Writes `Networks:` with an interface per line; nothing without the annotation. Invalid content is shown unchanged.
pub(super) fn networks(text: &mut Description, pod: &Pod) {
    let Some(written) = annotation(pod, ANNOTATION_NETWORK_STATUS) else { return };
    let Ok(interfaces) = serde_json::from_str::<Vec<Interface>>(written) else { return text.field("Networks", written) };
    let lines = interfaces.iter().map(|Interface { name, interface, ips, mac }| {
        let words: Vec<&str> = ips.iter().map(String::as_str).chain((!mac.is_empty()).then_some(mac.as_str())).collect();
        format!("{interface}: {name}, {}", words.join(", ")).trim_end_matches([',', ' ']).to_owned()
    });
    text.field("Networks", &lines.collect::<Vec<_>>().join("\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(status: &str) -> String {
        let pod = serde_json::json!({"metadata": {"annotations": {"k8s.v1.cni.cncf.io/network-status": status}}});
        let mut text = Description::default();
        networks(&mut text, &serde_json::from_value(pod).unwrap());
        text.finish()
    }

    #[test]
    fn every_interface_has_a_line() {
        let status = r#"[{"name": "podstead", "interface": "eth0", "ips": ["10.201.0.7", "fd70::7"], "default": true, "dns": {}},
            {"name": "default/plant", "interface": "vlan7", "mac": "02:00:00:00:07:09", "dns": {}}]"#;
        assert_eq!(
            described(status),
            "Networks:            eth0: podstead, 10.201.0.7, fd70::7\n                     vlan7: default/plant, 02:00:00:00:07:09\n"
        );
        assert_eq!(described("?"), "Networks:            ?\n");
        let mut text = Description::default();
        networks(&mut text, &Pod::default());
        assert_eq!(text.finish(), "");
    }
}
