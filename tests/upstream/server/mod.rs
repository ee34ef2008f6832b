//! An API server with one client, a node: objects with versions, a watch with a history, and the refusals of NodeRestriction.

mod merge;
mod restriction;

use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard};
use tokio::sync::watch;

/// Kind, namespace, name.
type Key = (String, String, String);

/// One change, for watches.
#[derive(Clone, Debug)]
pub(crate) struct Change {
    pub(crate) version: u64,
    pub(crate) kind: &'static str,
    pub(crate) object: Value,
}

/// Stored objects, and the rights of the node.
#[derive(Debug)]
pub(crate) struct Store {
    /// Name of the node that asks.
    pub(crate) node: String,
    pub(crate) namespaces: BTreeSet<String>,
    /// Kinds that the node has no right to create.
    pub(crate) forbidden: BTreeSet<String>,
    /// Fields of a status that this server is too old to know: it drops them.
    pub(crate) unknown: BTreeSet<String>,
    /// This server is older than probes by gRPC: what is left of one has no handler.
    pub(crate) is_old: bool,
    /// The admission plugins see the pods as of some moments ago, and do not find one that is new.
    pub(crate) admission_lags: bool,
    /// To a node, a pod that is not there is forbidden (1.32 and later).
    pub(crate) hides_absent: bool,
    pub(crate) requests: u64,
    /// Number of writes and removals of each kind.
    pub(crate) writes: BTreeMap<String, u64>,
    version: u64,
    serial: u64,
    objects: BTreeMap<Key, Value>,
    history: VecDeque<Change>,
    /// Every change after this version is in the history.
    floor: u64,
    latest: watch::Sender<u64>,
}

/// A backup of the store.
#[derive(Debug)]
pub(crate) struct Backup {
    version: u64,
    objects: BTreeMap<Key, Value>,
}

/// A refusal, as the body that a real server sends.
#[derive(Debug)]
pub(crate) struct Refusal(pub(crate) u16, pub(crate) Value);

/// A request in the terms of HTTP.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) query: BTreeMap<String, String>,
    pub(crate) content_type: &'a str,
    pub(crate) body: Option<Value>,
}

/// A server that its tests and its connections share.
#[derive(Clone, Debug)]
pub(crate) struct Server(Arc<Mutex<Store>>);

pub(crate) fn refusal(code: u16, reason: &str, kind: &str, message: &str) -> Refusal {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "details": {"kind": kind}, "code": code,
    });
    Refusal(code, status)
}

impl Server {
    pub(crate) fn new(node: &str) -> Self {
        let store = Store {
            node: node.into(),
            namespaces: BTreeSet::from(["default".to_owned(), "kube-node-lease".to_owned()]),
            forbidden: BTreeSet::new(),
            unknown: BTreeSet::new(),
            is_old: false,
            admission_lags: false,
            hides_absent: true,
            requests: 0,
            writes: BTreeMap::new(),
            version: 1000,
            serial: 0,
            objects: BTreeMap::new(),
            history: VecDeque::new(),
            floor: 1000,
            latest: watch::Sender::new(1000),
        };
        Self(Arc::new(Mutex::new(store)))
    }

    pub(crate) fn store(&self) -> MutexGuard<'_, Store> {
        self.0.lock().unwrap()
    }

    pub(crate) fn answer(&self, asked: &Asked<'_>) -> Result<Value, Refusal> {
        self.store().answer(asked)
    }
}

impl Store {
    /// Told of every change.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.latest.subscribe()
    }

    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    /// All objects of a kind.
    pub(crate) fn all(&self, kind: &str) -> Vec<Value> {
        self.objects.iter().filter(|(key, _)| key.0 == kind).map(|(_, object)| object.clone()).collect()
    }

    pub(crate) fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        self.objects.get(&key(kind, namespace, name)).cloned()
    }

    /// Stores anything, as an administrator may do.
    pub(crate) fn put(&mut self, kind: &str, mut object: Value) -> Value {
        self.version += 1;
        let metadata = &mut object["metadata"];
        let (namespace, name) = (text(&metadata["namespace"]), text(&metadata["name"]));
        if metadata["uid"].is_null() {
            self.serial += 1;
            metadata["uid"] = format!("uid-{}", self.serial).into();
            metadata["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        metadata["resourceVersion"] = self.version.to_string().into();
        let object = merge::stored(object);
        let before = self.objects.insert(key(kind, &namespace, &name), object.clone());
        self.record(kind, if before.is_some() { "MODIFIED" } else { "ADDED" }, object.clone());
        object
    }

    /// Takes away anything at once, as an administrator may do (`--force --grace-period=0`).
    pub(crate) fn remove(&mut self, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let mut object = self.objects.remove(&key(kind, namespace, name))?;
        self.version += 1;
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.record(kind, "DELETED", object.clone());
        Some(object)
    }

    /// Begins a deletion as `kubectl delete pod` does: the node has to agree.
    pub(crate) fn begin_deletion(&mut self, namespace: &str, name: &str) {
        if let Some(mut object) = self.get("pods", namespace, name) {
            object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:30Z".into();
            object["metadata"]["deletionGracePeriodSeconds"] = 30.into();
            self.put("pods", object);
        }
    }

    /// Forgets the history: watches that come from before have to list again.
    pub(crate) fn compact(&mut self) {
        self.history.clear();
        self.floor = self.version;
    }

    /// Takes a backup as `etcdctl snapshot save` does.
    pub(crate) fn back_up(&self) -> Backup {
        Backup { version: self.version, objects: self.objects.clone() }
    }

    /// Restores a backup as `etcdctl snapshot restore` does: everything is as it was, versions too, and no watch is told.
    pub(crate) fn restore(&mut self, backup: Backup) {
        (self.version, self.objects) = (backup.version, backup.objects);
        self.compact();
    }

    /// Forgets all objects of a kind, without a word to anybody.
    pub(crate) fn drop_all(&mut self, kind: &str) {
        self.objects.retain(|key, _| key.0 != kind);
    }

    fn record(&mut self, kind: &str, change: &'static str, object: Value) {
        *self.writes.entry(kind.to_owned()).or_default() += 1;
        if kind == "pods" {
            self.history.push_back(Change { version: self.version, kind: change, object });
        }
        self.latest.send_replace(self.version);
    }

    /// Changes of pods after `version`.
    pub(crate) fn since(&self, version: u64) -> Result<Vec<Change>, Refusal> {
        if version < self.floor {
            return Err(refusal(410, "Expired", "", &format!("too old resource version: {version} ({})", self.floor)));
        }
        Ok(self.history.iter().filter(|change| change.version > version).cloned().collect())
    }

    /// The version from which the request watches the node's own pods, if it does.
    pub(crate) fn watch_from(&self, asked: &Asked<'_>) -> Option<Result<u64, Refusal>> {
        (asked.query.get("watch").is_some_and(|watch| watch == "true")).then(|| {
            self.check_selector(asked)?;
            let version = asked.query.get("resourceVersion").and_then(|version| version.parse().ok());
            version.ok_or_else(|| refusal(400, "BadRequest", "", "no resourceVersion"))
        })
    }

    fn check_selector(&self, asked: &Asked<'_>) -> Result<(), Refusal> {
        let own = format!("spec.nodeName={}", self.node);
        if asked.query.get("fieldSelector") == Some(&own) {
            return Ok(());
        }
        Err(refusal(403, "Forbidden", "pods", "can only list/watch pods with spec.nodeName field selector"))
    }

    /// Answers one request that is no watch.
    pub(crate) fn answer(&mut self, asked: &Asked<'_>) -> Result<Value, Refusal> {
        self.requests += 1;
        let parts: Vec<&str> = asked.path.trim_start_matches('/').split('/').collect();
        let rest: &[&str] = match parts.as_slice() {
            ["api", "v1", rest @ ..] => rest,
            ["apis", "coordination.k8s.io", "v1", rest @ ..] => rest,
            _ => return Err(refusal(404, "NotFound", "", "the server could not find the requested resource")),
        };
        match (asked.method, rest) {
            ("GET", ["pods"]) => self.list(asked),
            ("POST", ["namespaces", namespace, "pods"]) => {
                let object = body(asked)?;
                restriction::create_pod(self, namespace, &object)?;
                if self.is_old && !object["spec"]["containers"][0]["livenessProbe"]["grpc"].is_null() {
                    let message = "spec.containers[0].livenessProbe: Required value: must specify a handler type";
                    return Err(refusal(422, "Invalid", "pods", message));
                }
                self.create("pods", namespace, with_status(object))
            }
            ("GET", ["namespaces", namespace, "pods", name]) => self.own_pod(namespace, name),
            ("DELETE", ["namespaces", namespace, "pods", name]) => self.delete_pod(namespace, name, asked),
            ("PATCH", ["namespaces", namespace, "pods", name, "status"]) => {
                self.find("pods", namespace, name)?;
                self.own_pod(namespace, name)?;
                self.patch("pods", namespace, name, asked, Some("status"))
            }
            ("POST", ["nodes"]) => {
                let object = body(asked)?;
                if object["metadata"]["name"] != self.node.as_str() {
                    return Err(refusal(403, "Forbidden", "nodes", "node is not allowed to modify another node"));
                }
                restriction::label_node(&Value::Null, &object)?;
                self.create("nodes", "", object)
            }
            ("GET", ["nodes", name]) => self.find("nodes", "", name),
            ("PATCH", ["nodes", name]) => {
                let object = body(asked)?;
                if !object["spec"]["taints"].is_null() {
                    return Err(refusal(403, "Forbidden", "nodes", "is not allowed to modify taints"));
                }
                let before = self.find("nodes", "", name)?;
                restriction::label_node(&before, &merge::strategic(&before, &object))?;
                self.patch("nodes", "", name, asked, None)
            }
            ("PATCH", ["nodes", name, "status"]) => self.patch("nodes", "", name, asked, Some("status")),
            ("POST", ["namespaces", namespace, "leases"]) => self.create("leases", namespace, body(asked)?),
            ("GET", ["namespaces", namespace, "leases", name]) => self.find("leases", namespace, name),
            ("PUT", ["namespaces", namespace, "leases", name]) => self.replace("leases", namespace, name, body(asked)?),
            ("POST", ["namespaces", namespace, "events"]) => self.create("events", namespace, body(asked)?),
            ("PATCH", ["namespaces", namespace, "events", name]) => self.patch("events", namespace, name, asked, None),
            _ => Err(refusal(403, "Forbidden", "", &format!("a node may not {} {}", asked.method, asked.path))),
        }
    }

    fn list(&self, asked: &Asked<'_>) -> Result<Value, Refusal> {
        self.check_selector(asked)?;
        let of_node = |pod: &Value| pod["spec"]["nodeName"] == self.node.as_str();
        // Pages go on behind a name, as of the version of the first one.
        let token = asked.query.get("continue").and_then(|token| token.split_once(' '));
        let version = token.map_or_else(|| self.version.to_string(), |(version, _)| version.to_owned());
        let name = |pod: &Value| format!("{}/{}", text(&pod["metadata"]["namespace"]), text(&pod["metadata"]["name"]));
        let rest = |pod: &Value| of_node(pod) && token.is_none_or(|(_, last)| *name(pod) > *last);
        let mut items: Vec<_> = self.all("pods").into_iter().filter(rest).collect();
        items.sort_by_key(name);
        let limit = asked.query.get("limit").and_then(|limit| limit.parse().ok()).unwrap_or(items.len());
        let is_last = items.len() <= limit;
        items.truncate(limit);
        let next =
            if is_last { String::new() } else { items.last().map(|pod| format!("{version} {}", name(pod))).unwrap_or_default() };
        Ok(json!({
            "kind": "PodList", "apiVersion": "v1", "items": items,
            "metadata": {"resourceVersion": version, "continue": next},
        }))
    }

    fn find(&self, kind: &str, namespace: &str, name: &str) -> Result<Value, Refusal> {
        self.get(kind, namespace, name).ok_or_else(|| refusal(404, "NotFound", kind, &format!("{kind} {name:?} not found")))
    }

    fn own_pod(&self, namespace: &str, name: &str) -> Result<Value, Refusal> {
        let is_own = |pod: &Value| pod["spec"]["nodeName"] == self.node.as_str();
        match self.find("pods", namespace, name) {
            Ok(pod) if is_own(&pod) => Ok(pod),
            Err(absent) if !self.hides_absent => Err(absent),
            Ok(_) | Err(_) => Err(refusal(403, "Forbidden", "pods", "no relationship found between node and this object")),
        }
    }

    fn create(&mut self, kind: &str, namespace: &str, mut object: Value) -> Result<Value, Refusal> {
        if self.forbidden.contains(kind) {
            return Err(refusal(403, "Forbidden", kind, &format!("cannot create resource {kind:?}")));
        }
        if !namespace.is_empty() && !self.namespaces.contains(namespace) {
            return Err(refusal(404, "NotFound", "namespaces", &format!("namespaces {namespace:?} not found")));
        }
        let name = text(&object["metadata"]["name"]);
        if self.get(kind, namespace, &name).is_some() {
            return Err(refusal(409, "AlreadyExists", kind, &format!("{kind} {name:?} already exists")));
        }
        if !namespace.is_empty() {
            object["metadata"]["namespace"] = namespace.into();
        }
        object["metadata"]["uid"] = Value::Null;
        Ok(self.put(kind, object))
    }

    fn replace(&mut self, kind: &str, namespace: &str, name: &str, object: Value) -> Result<Value, Refusal> {
        let before = self.find(kind, namespace, name)?;
        if !object["metadata"]["resourceVersion"].is_null()
            && object["metadata"]["resourceVersion"] != before["metadata"]["resourceVersion"]
        {
            let message = "the object has been modified; please apply your changes to the latest version and try again";
            return Err(refusal(409, "Conflict", kind, message));
        }
        Ok(self.put(kind, object))
    }

    fn patch(&mut self, kind: &str, namespace: &str, name: &str, asked: &Asked<'_>, only: Option<&str>) -> Result<Value, Refusal> {
        if asked.content_type != "application/strategic-merge-patch+json" {
            return Err(refusal(415, "UnsupportedMediaType", kind, asked.content_type));
        }
        let patch = body(asked)?;
        let before = self.find(kind, namespace, name)?;
        let uid = &patch["metadata"]["uid"];
        if !uid.is_null() && *uid != before["metadata"]["uid"] {
            let message =
                format!("Precondition failed: UID in precondition: {uid}, UID in object meta: {}", before["metadata"]["uid"]);
            return Err(refusal(409, "Conflict", kind, &message));
        }
        let merged = merge::strategic(&before, &patch);
        let mut after = before.clone();
        match only {
            // A subresource changes nothing else.
            Some(part) => after[part] = merged[part].clone(),
            None => after = merged,
        }
        for field in &self.unknown {
            after["status"].as_object_mut().map(|status| status.remove(field));
        }
        if merge::stored(after.clone()) == before {
            return Ok(before);
        }
        Ok(self.put(kind, after))
    }

    fn delete_pod(&mut self, namespace: &str, name: &str, asked: &Asked<'_>) -> Result<Value, Refusal> {
        self.find("pods", namespace, name)?;
        let pod = self.own_pod(namespace, name)?;
        if std::mem::take(&mut self.admission_lags) {
            return self.find("pods", namespace, "");
        }
        let options = body(asked)?;
        let uid = &options["preconditions"]["uid"];
        if !uid.is_null() && *uid != pod["metadata"]["uid"] {
            return Err(refusal(409, "Conflict", "pods", "Precondition failed: UID in precondition"));
        }
        if options["gracePeriodSeconds"] == 0 {
            self.remove("pods", namespace, name);
        } else {
            self.begin_deletion(namespace, name);
        }
        Ok(pod)
    }
}

fn with_status(mut pod: Value) -> Value {
    pod["status"] = json!({"phase": "Pending", "qosClass": "BestEffort"});
    pod["metadata"]["generation"] = 1.into();
    pod["spec"]["priority"] = 0.into();
    pod["spec"]["preemptionPolicy"] = "PreemptLowerPriority".into();
    pod
}

fn body(asked: &Asked<'_>) -> Result<Value, Refusal> {
    asked.body.clone().ok_or_else(|| refusal(400, "BadRequest", "", "no body"))
}

fn key(kind: &str, namespace: &str, name: &str) -> Key {
    (kind.to_owned(), namespace.to_owned(), name.to_owned())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
