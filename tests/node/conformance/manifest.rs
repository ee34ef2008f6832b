//! The manifests of a row: what a pod was, and what it shall be.

use super::row::{End, Image, Row, Said, Stage};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Reference of the image of all containers.
pub(super) const IMAGE: &str = "localhost/busybox:1";

/// Another reference, of the same content.
pub(super) const OTHER_IMAGE: &str = "localhost/busybox:2";

/// A grace period that no test sees the end of.
const FOR_EVER: u64 = 3600;

/// The shortest grace period in which a container can say that it was asked.
const SHORT: u64 = 3;

/// Registries that do not give what they are asked for.
#[derive(Debug)]
pub(super) struct Registries {
    /// Nobody takes the connection.
    pub(super) refusing: String,
    /// Nobody answers.
    pub(super) silent: String,
}

/// The files of a row by their names, and their contents.
pub(super) type Files = BTreeMap<String, String>;

impl Row {
    /// Files that are there before the daemon goes.
    pub(super) fn files_before(&self, pod: &str, host: &str) -> Files {
        let mut files = Files::new();
        if self.sandbox.is_some() {
            self.add_config_maps(self.config_maps_were.as_ref().unwrap_or(&self.config_maps), pod, &mut files);
            let mut spec = self.was.as_ref().unwrap_or(&self.pod).clone();
            // Those that nothing was made of yet run all the same, and are forgotten: they must not wait for anything.
            for container in containers(&mut spec).filter(|container| self.run(name(container)).is_none()) {
                container.as_object_mut().unwrap().retain(|key, _| !matches!(key.as_str(), "env" | "envFrom" | "volumeMounts"));
            }
            files.insert(format!("{pod}.yaml"), self.manifest(spec, pod, host, None));
        }
        files
    }

    /// Files that are there when the daemon comes back.
    pub(super) fn files_after(&self, pod: &str, host: &str, registries: &Registries) -> Files {
        let mut files = Files::new();
        self.add_config_maps(&self.config_maps, pod, &mut files);
        if !matches!(self.end, Some(End::Removed(_))) {
            files.insert(format!("{pod}.yaml"), self.manifest(self.pod.clone(), pod, host, Some(registries)));
        }
        files
    }

    fn add_config_maps(&self, maps: &BTreeMap<String, BTreeMap<String, String>>, pod: &str, files: &mut Files) {
        for (name, content) in maps {
            let name = format!("{pod}-{name}");
            let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": content});
            files.insert(format!("{name}.yaml"), object.to_string());
        }
    }

    /// `registries` where images may be missing.
    fn manifest(&self, mut spec: Value, pod: &str, host: &str, registries: Option<&Registries>) -> String {
        rename_config_maps(&mut spec, pod);
        if let Some(left) = self.stopping.values().max() {
            spec["terminationGracePeriodSeconds"] = if *left == 0 { SHORT } else { FOR_EVER }.into();
        }
        if self.volumes_failed && registries.is_some() {
            spec["volumes"] = json!([{"name": "missing", "hostPath": {"path": "/nowhere/of/podstead", "type": "Directory"}}]);
            spec["containers"][0]["volumeMounts"] = json!([{"name": "missing", "mountPath": "/missing"}]);
        }
        for container in containers(&mut spec) {
            let name = name(container).to_owned();
            self.complete(container, &name);
            let image = match self.images.get(&name).zip(registries) {
                Some((Image::Failed, registries)) => format!("{}/none:1", registries.refusing),
                Some((Image::Pulling, registries)) => format!("{}/none:1", registries.silent),
                Some((Image::Present, _)) | None => {
                    container["imagePullPolicy"] = "Never".into();
                    let is_usual = matches!(container["image"].as_str(), Some("a" | "i" | "s"));
                    if is_usual { IMAGE } else { OTHER_IMAGE }.to_owned()
                }
            };
            container["image"] = image.into();
            container["command"] = json!(["/bin/sh", "-c", self.script(&name), format!("{host}/{pod}"), name]);
        }
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": pod}, "spec": spec}).to_string()
    }

    /// Script of a container: it says so when it runs, and ends as it is told by a signal. `$0` and `$1`, which are not used, name it.
    fn script(&self, name: &str) -> String {
        let end = match (self.is_stubborn(name), self.code_when_asked(name)) {
            (true, _) => String::new(),
            (false, code) => format!("; exit {}", code.unwrap_or("143")),
        };
        format!(
            "trap 'exit 0' USR1; trap 'exit 1' USR2; trap 'exit 2' PROF; trap 'exit 111' HUP; trap 'exit 42' ALRM; \
             trap 'echo asked{end}' TERM; echo run; while :; do sleep 1000000 & wait; done"
        )
    }

    /// Gives a container the probes and hooks that its row speaks of.
    fn complete(&self, container: &mut Value, name: &str) {
        let fields = container.as_object_mut().unwrap();
        // An edit of what it runs is an edit of what it sees: all run the same.
        let edit: Vec<Value> = ["command", "args"].iter().filter_map(|field| fields.remove(*field)).collect();
        if !edit.is_empty() {
            let variable = json!({"name": "EDIT", "value": json!(edit).to_string()});
            fields.entry("env").or_insert_with(|| json!([])).as_array_mut().unwrap().push(variable);
        }
        let said = self.probes.get(name).copied();
        for kind in ["livenessProbe", "startupProbe", "readinessProbe"] {
            if let Some(probe) = fields.get_mut(kind) {
                let grace = probe.get("terminationGracePeriodSeconds").cloned();
                *probe = probe_that_says(kind, said, self.attempt(name) > 0);
                probe.as_object_mut().unwrap().extend(grace.map(|grace| ("terminationGracePeriodSeconds".to_owned(), grace)));
            }
        }
        let needed = match said {
            Some(Said::Startup) => Some("startupProbe"),
            Some(Said::Liveness) => Some("livenessProbe"),
            Some(Said::Starting | Said::Unready) | None => None,
        };
        if let Some(kind) = needed.filter(|kind| !fields.contains_key(*kind)) {
            fields.insert(kind.to_owned(), probe_that_says(kind, said, false));
        }
        if let Some(hook) = container.pointer_mut("/lifecycle/postStart") {
            let rest = match self.post_start.get(name) {
                None | Some(Stage::Ended) => "",
                Some(Stage::Failed) => "test -e /sick && exit 1; exec sleep 1000000",
                Some(Stage::Owed | Stage::Running) => "until test -e /go; do sleep 0.1; done",
            };
            *hook = hook_that_says("started", rest);
        }
        if let Some(hook) = container.pointer_mut("/lifecycle/preStop") {
            let is_endless = self.pre_stop.get(name) == Some(&Stage::Running);
            *hook = hook_that_says("stopping", if is_endless { "exec sleep 1000000" } else { "" });
        }
    }
}

fn containers(spec: &mut Value) -> impl Iterator<Item = &mut Value> {
    let lists = spec.as_object_mut().unwrap().iter_mut().filter(|(key, _)| matches!(key.as_str(), "initContainers" | "containers"));
    lists.filter_map(|(_, list)| list.as_array_mut()).flatten()
}

fn name(container: &Value) -> &str {
    container["name"].as_str().unwrap()
}

/// All pods of a table are in one namespace: their ConfigMaps have the pods' names before their own.
fn rename_config_maps(value: &mut Value, pod: &str) {
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                if matches!(key.as_str(), "configMap" | "configMapRef" | "configMapKeyRef") {
                    value["name"] = format!("{pod}-{}", value["name"].as_str().unwrap()).into();
                } else {
                    rename_config_maps(value, pod);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename_config_maps(item, pod)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// A hook that speaks in the container's log, and then does the rest.
fn hook_that_says(word: &str, rest: &str) -> Value {
    json!({"exec": {"command": ["/bin/sh", "-c", format!("echo {word} > /proc/1/fd/1; {rest}")]}})
}

/// A probe of a container that falls ill when there is a file `/sick` in it, or that does what the row says. With `goes_on`, the first run
/// of the container is as far as it can be when there is a file `/go` in it.
fn probe_that_says(kind: &str, said: Option<Said>, goes_on: bool) -> Value {
    let exec = |script: &str| json!({"exec": {"command": ["/bin/sh", "-c", script]}, "periodSeconds": 1, "failureThreshold": 1, "timeoutSeconds": 3600});
    match (kind, said) {
        ("readinessProbe", Some(_)) => exec("false"),
        // It says nothing until it fails: what has started once would never be asked again.
        ("startupProbe", Some(Said::Startup)) => exec("test -e /sick && exit 1; exec sleep 1000000"),
        ("livenessProbe", Some(Said::Liveness)) => exec("test ! -e /sick"),
        ("startupProbe", Some(Said::Starting)) if goes_on => exec("until test -e /go; do sleep 0.1; done"),
        ("startupProbe", Some(Said::Starting)) => exec("exec sleep 1000000"),
        ("startupProbe", _) | ("livenessProbe", Some(Said::Unready | Said::Starting)) => exec("true"),
        // It is not asked yet.
        _ => json!({"exec": {"command": ["false"]}, "initialDelaySeconds": 3600}),
    }
}
