//! Removes secrets. **Pure**.
//!
//! Some manifests contain passwords as plain text instead of references to Secrets. So all literal values of variables and headers are
//! removed.

use serde_json::Value;

/// Stands where something was taken out.
const REDACTED: &str = "<redacted>";

/// Annotation in which kubectl stores a copy of the object.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Removes values of environment variables and HTTP headers from a pod, a list of pods or anything that contains pods.
pub(super) fn pods(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(pods),
        Value::Object(fields) => {
            for (name, field) in fields {
                match (name.as_str(), &mut *field) {
                    ("env" | "httpHeaders", Value::Array(pairs)) => pairs.iter_mut().for_each(|pair| hide(pair, "value")),
                    ("annotations", Value::Object(_)) => hide(field, LAST_APPLIED),
                    _ => pods(field),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// Removes the values of ConfigMaps in a list; keys are kept.
pub(super) fn config_maps(list: &mut Value) {
    let items = list.get_mut("items").and_then(Value::as_array_mut).into_iter().flatten();
    for map in items {
        for field in ["data", "binaryData"] {
            let entries = map.get_mut(field).and_then(Value::as_object_mut).into_iter().flatten();
            entries.for_each(|(_, content)| *content = Value::from(REDACTED));
        }
        if let Some(annotations) = map.pointer_mut("/metadata/annotations") {
            hide(annotations, LAST_APPLIED);
        }
    }
}

/// Removes values of headers, and credentials in URLs, from a configuration.
pub(super) fn config(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(config),
        Value::Object(fields) => {
            for (name, field) in fields {
                match (name.as_str(), &mut *field) {
                    ("headers", Value::Object(headers)) => headers.values_mut().for_each(|value| *value = Value::from(REDACTED)),
                    _ => config(field),
                }
            }
        }
        Value::String(text) => {
            if let Some(without) = without_user(text) {
                *text = without;
            }
            if let Some(without) = without_query(text) {
                *text = without;
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Removes the values of environment variables from unit files, because the URL of a proxy may contain a password.
pub(super) fn unit(text: &str) -> String {
    let line = |line: &str| match line.trim_start().strip_prefix("Environment=") {
        Some(set) if !set.is_empty() => format!("Environment={REDACTED}\n"),
        _ => format!("{line}\n"),
    };
    // A backslash continues a line on the next one.
    text.replace("\\\n", " ").lines().map(line).collect()
}

/// Removes credentials from a kubeconfig.
pub(super) fn kubeconfig(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(kubeconfig),
        Value::Object(fields) => {
            for (name, field) in fields {
                match name.as_str() {
                    "token" | "password" | "client-key-data" | "client-certificate-data" | "auth-provider" => {
                        *field = Value::from(REDACTED)
                    }
                    // Of an exec plugin.
                    "args" => *field = Value::from(REDACTED),
                    "env" => field.as_array_mut().into_iter().flatten().for_each(|variable| hide(variable, "value")),
                    _ => kubeconfig(field),
                }
            }
        }
        Value::String(_) => config(value),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn hide(object: &mut Value, field: &str) {
    if let Some(value) = object.get_mut(field) {
        *value = Value::from(REDACTED);
    }
}

/// A URL without what stands behind its path, which may be a token.
fn without_query(url: &str) -> Option<String> {
    let (place, query) = url.split_once('?')?;
    (place.contains("://") && !query.is_empty()).then(|| format!("{place}?{REDACTED}"))
}

/// A URL without what stands before the host.
fn without_user(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    let (user, _) = authority.rsplit_once('@')?;
    // The user name of ssh is no secret.
    if scheme == "ssh" && !user.contains(':') {
        return None;
    }
    Some(format!("{scheme}://{REDACTED}{}", &rest[user.len()..]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_of_variables_and_headers_of_pods_go_and_references_stay() {
        let applied = json!({"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{hunter2}", "note": "kept"}});
        let mut list = json!({"items": [{"metadata": applied, "spec": {
            "initContainers": [{"env": [{"name": "A", "value": "hunter2"}]}],
            "containers": [{
                "env": [{"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}}, {"name": "C", "value": "hunter2"}],
                "livenessProbe": {"httpGet": {"httpHeaders": [{"name": "Authorization", "value": "Basic hunter2"}]}},
                "command": ["run", "--env", "x"],
            }],
        }}]});
        pods(&mut list);
        let text = list.to_string();
        assert!(!text.contains("hunter2"), "{text}");
        assert_eq!(text.matches(REDACTED).count(), 4, "{text}");
        assert!(text.contains("kept"), "{text}");
        assert!(text.contains(r#""secretKeyRef":{"key":"k","name":"s"}"#) && text.contains(r#"["run","--env","x"]"#), "{text}");
    }

    #[test]
    fn a_kubeconfig_keeps_its_server_and_its_paths_and_nothing_else_that_matters() {
        let mut written = json!({
            "clusters": [{"name": "c", "cluster": {"server": "https://api.lan", "proxy-url": "http://u:hunter2@proxy:1/"}}],
            "users": [
                {"name": "a", "user": {"token": "hunter2", "client-key-data": "hunter2", "client-certificate": "node.pem"}},
                {"name": "b", "user": {"exec": {"command": "plugin", "args": ["--secret=hunter2"], "env": [{"name": "S", "value": "hunter2"}]}}},
                {"name": "c", "user": {"auth-provider": {"config": {"id-token": "hunter2"}}, "username": "u", "password": "hunter2"}},
            ],
        });
        kubeconfig(&mut written);
        let text = written.to_string();
        assert!(!text.contains("hunter2"), "{text}");
        for kept in ["https://api.lan", "<redacted>@proxy:1/", "node.pem", r#""command":"plugin""#, r#""name":"S""#] {
            assert!(text.contains(kept), "{kept} in {text}");
        }
    }

    #[test]
    fn variables_of_a_unit_go_and_its_other_settings_stay() {
        let text = "# a.conf\n[Service]\nEnvironment=HTTPS_PROXY=http://u:hunter2@p:1/ \\\n  TOKEN=hunter2\nEnvironmentFile=/etc/default/podstead\nUMask=0022\n";
        let kept = "# a.conf\n[Service]\nEnvironment=<redacted>\nEnvironmentFile=/etc/default/podstead\nUMask=0022\n";
        assert_eq!(unit(text), kept);
    }

    #[test]
    fn keys_of_config_maps_stay() {
        let mut list = json!({"items": [{"metadata": {"name": "m", "annotations": {LAST_APPLIED: "hunter2"}}, "data": {"key": "hunter2"}, "binaryData": {"other": "aHVudGVyMg=="}}]});
        config_maps(&mut list);
        assert_eq!(
            list,
            json!({"items": [{"metadata": {"name": "m", "annotations": {LAST_APPLIED: REDACTED}}, "data": {"key": REDACTED}, "binaryData": {"other": REDACTED}}]})
        );
    }

    #[test]
    fn headers_and_credentials_in_urls_of_the_configuration_go() {
        let mut written = json!({"sources": [
            {"http": {"url": "https://config.lan/x@y", "proxy": "http://user:hunter2@proxy:3128/", "headers": {"X-Token": ["hunter2"]}}},
            {"git": {"url": "ssh://git@host/fleet.git"}},
            {"http": {"url": "https://config.lan/signed.yaml?token=hunter2"}},
        ]});
        config(&mut written);
        let text = written.to_string();
        assert!(!text.contains("hunter2"), "{text}");
        assert!(
            text.contains("http://<redacted>@proxy:3128/")
                && text.contains("ssh://git@host/")
                && text.contains("config.lan/x@y")
                && text.contains("signed.yaml?<redacted>"),
            "{text}"
        );
    }
}
