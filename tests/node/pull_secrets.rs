//! Images of a private registry: pulled with the Secrets that a pod names, and not given to pods without them.

use crate::support::registry::{HTTP, PASSWORD, Registry};
use crate::support::{PodView, TestHost, eventually, image_archive};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::path::Path;

/// Debian's docker-registry, which wants a user and a password.
struct PrivateRegistry {
    registry: Registry,
    place: String,
    _directory: tempfile::TempDir,
}

impl PrivateRegistry {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let registry = Registry::serve_private(directory.path(), HTTP);
        Self { place: registry.host.clone(), registry, _directory: directory }
    }

    fn push(&self, name: &str) {
        self.registry.push(image_archive(), name);
    }

    /// A host that reaches it, and has no credentials of its own.
    fn host(&self) -> TestHost {
        TestHost::start_with(&format!("registries:\n  - host: {}\n    http: true\n", self.place))
    }

    fn auth(user: &str, password: &str) -> String {
        STANDARD.encode(format!("{user}:{password}"))
    }

    /// As `kubectl create secret docker-registry` makes it.
    fn secret(&self, name: &str, user: &str, password: &str) -> String {
        let auth = Self::auth(user, password);
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: {name}}}\ntype: kubernetes.io/dockerconfigjson\nstringData:\n  .dockerconfigjson: \
             '{{\"auths\":{{\"{}\":{{\"username\":\"{user}\",\"password\":\"{password}\",\"auth\":\"{auth}\"}}}}}}'\n",
            self.place
        )
    }

    fn pod(&self, name: &str, policy: &str, secrets: &[&str]) -> String {
        let secrets: Vec<String> = secrets.iter().map(|name| format!("{{name: {name}}}")).collect();
        format!(
            "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 1\n  imagePullSecrets: [{}]\n  \
             containers:\n    - {{name: main, image: '{}/shop/till:1', imagePullPolicy: {policy}, command: [sleep, '1000000']}}\n",
            secrets.join(", "),
            self.place
        )
    }
}

fn wait_refused(host: &TestHost, name: &str, reasons: &[&str]) -> PodView {
    host.wait_for_pod(name, "an image that it does not get", |pod| reasons.contains(&pod.waiting_reason("main")))
}

const NOT_PULLED: &[&str] = &["ErrImagePull", "ImagePullBackOff"];

/// The file below the directory that holds the text. Sockets and what others removed meanwhile hold nothing.
fn holds(directory: &Path, text: &str) -> Option<std::path::PathBuf> {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        if kind.is_dir() && path.file_name().is_some_and(|name| name != "layers") {
            if let Some(found) = holds(&path, text) {
                return Some(found);
            }
        } else if kind.is_file() && std::fs::read(&path).unwrap_or_default().windows(text.len()).any(|part| part == text.as_bytes())
        {
            return Some(path);
        }
    }
    None
}

#[test]
fn registries_count_without_a_restart() {
    let registry = PrivateRegistry::start();
    registry.push("shop/till:1");
    let host = TestHost::start();
    let daemon = host.daemon_pid();
    host.write_manifest("pull.yaml", &registry.secret("pull", "me", PASSWORD));
    host.write_manifest("till.yaml", &registry.pod("till", "Always", &["pull"]));
    // By https, which the registry does not speak.
    wait_refused(&host, "till", NOT_PULLED);
    let config = std::fs::read_to_string(host.path("config.yaml")).unwrap();
    let registries = format!("registries:\n  - host: {}\n    http: true\n", registry.place);
    std::fs::write(host.path("config.yaml"), format!("{config}{registries}")).unwrap();
    host.wait_running("till");
    assert_eq!(host.daemon_pid(), daemon);
    assert!(!host.cli_ok(&["status"]).contains("restart of the daemon"));
}

/// shows: spec.imagePullSecrets
#[test]
fn private_image_needs_the_right_secret() {
    let mut registry = PrivateRegistry::start();
    registry.push("shop/till:1");
    let mut host = registry.host();
    host.write_manifest("wrong.yaml", &registry.secret("wrong", "me", "guess"));
    host.write_manifest("till.yaml", &registry.pod("till", "Always", &["wrong", "pull"]));
    let pod = wait_refused(&host, "till", NOT_PULLED);
    let message = pod.container("main").to_string();
    assert!(message.contains("with Secret default/wrong: ") && message.contains("401 Unauthorized"), "{message}");
    assert!(!message.contains("guess"), "{message}");
    let events = host.cli_ok(&["get", "events"]);
    assert!(events.contains("FailedToRetrieveImagePullSecret") && events.contains("secret \"pull\" not found"), "{events}");

    // Two Secrets for the same registry: the second one is tried after the first one was refused.
    host.write_manifest("pull.yaml", &registry.secret("pull", "me", PASSWORD));
    host.wait_running("till");

    for (name, policy, reasons) in
        [("always", "Always", NOT_PULLED), ("present", "IfNotPresent", NOT_PULLED), ("never", "Never", &["ErrImageNeverPull"][..])]
    {
        host.write_manifest(&format!("{name}.yaml"), &registry.pod(name, policy, &[]));
        let pod = wait_refused(&host, name, reasons);
        let message = pod.container("main").to_string();
        assert!(message.contains("401 Unauthorized") || message.contains("a Secret that this pod does not have"), "{message}");
        host.write_manifest(&format!("{name}-s.yaml"), &registry.pod(&format!("{name}-s"), policy, &["pull"]));
        host.wait_running(&format!("{name}-s"));
    }
    // Another Secret, which has to prove itself once.
    host.write_manifest("you.yaml", &registry.secret("you", "you", PASSWORD));
    host.write_manifest("other.yaml", &registry.pod("other", "IfNotPresent", &["you"]));
    host.wait_running("other");

    // Nobody can be asked any more: those who had it have it, also after a restart of the daemon.
    registry.registry.stop();
    host.kill_daemon();
    host.start_daemon();
    host.write_manifest("late.yaml", &registry.pod("late", "Always", &["you"]));
    host.wait_running("late");
    host.write_manifest("stranger.yaml", &registry.pod("stranger", "Always", &[]));
    wait_refused(&host, "stranger", NOT_PULLED);
    host.wait_running("till");

    for secret in [PASSWORD, "guess", &PrivateRegistry::auth("me", PASSWORD), &PrivateRegistry::auth("you", PASSWORD)] {
        assert!(!host.daemon_log().contains(secret), "{secret} is in the daemon's log");
        assert_eq!(holds(&host.path("state"), secret), None, "{secret} is on disk");
        assert!(!host.cli_ok(&["get", "events", "-o", "json"]).contains(secret), "{secret} is in an event");
    }
}

/// shows: spec.imagePullSecrets, spec.imagePullSecrets[].name
#[test]
fn repaired_secret_pulls_all_kinds_at_once() {
    let registry = PrivateRegistry::start();
    for name in ["shop/init:1", "shop/data:1"] {
        registry.push(name);
    }
    let host = registry.host();
    let place = &registry.place;
    // The older type, for a path of the registry; and a Secret of a type that holds no credentials.
    let legacy = |path: &str, auth: &str| {
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: old}}\ntype: kubernetes.io/dockercfg\nstringData:\n  .dockercfg: \
             '{{\"http://{place}/{path}\":{{\"auth\":\"{auth}\"}}}}'\n"
        )
    };
    let auth = PrivateRegistry::auth("you", PASSWORD);
    host.write_manifest("old.yaml", &legacy("other", &auth));
    let manifest = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: opaque}}\nstringData: {{key: value}}\n---\n\
         apiVersion: v1\nkind: Pod\nmetadata: {{name: all}}\nspec:\n  terminationGracePeriodSeconds: 1\n  imagePullSecrets: [{{name: opaque}}, {{name: old}}]\n  \
         initContainers:\n    - {{name: first, image: '{place}/shop/init:1', command: ['true']}}\n  containers:\n    - name: main\n      \
         image: localhost/busybox:1\n      command: [sleep, '1000000']\n      volumeMounts: [{{name: data, mountPath: /data}}]\n  \
         volumes: [{{name: data, image: {{reference: '{place}/shop/data:1'}}}}]\n"
    );
    host.write_manifest("all.yaml", &manifest);
    let told = |needle: &str| {
        eventually(&format!("{needle:?} in the events"), || {
            let events = host.cli_ok(&["get", "events", "-o", "json"]);
            if events.contains(needle) { Ok(()) } else { Err(events) }
        });
    };
    told("none of imagePullSecrets (default/opaque, default/old) has credentials for");
    told("default/opaque is of neither type");
    host.write_manifest("old.yaml", &legacy("shop", "bm8gY29sb24="));
    told("Secret default/old: the auth of its entry for");
    host.write_manifest("old.yaml", &legacy("shop", &auth));
    host.wait_running("all");
    host.cli_ok(&["exec", "all", "-c", "main", "--", "/bin/sh", "-c", "test -e /data/bin/busybox"]);
}

/// shows: spec.imagePullSecrets
#[test]
fn a_pull_secret_may_be_encrypted() {
    let registry = PrivateRegistry::start();
    registry.push("shop/till:1");
    let identity = tempfile::tempdir().unwrap();
    let key = identity.path().join("age.key");
    let recipient = crate::encrypted::keygen(&key);
    let host = TestHost::start_with(&format!(
        "ageKeyFile: {}\nregistries:\n  - host: {}\n    http: true\n",
        key.display(),
        registry.place
    ));
    let sealed = crate::encrypted::encrypt(
        &registry.secret("pull", "me", PASSWORD),
        &["--encrypted-regex", "^(data|stringData)$", "--age", &recipient],
    );
    assert!(!sealed.contains(PASSWORD));
    host.write_manifest("pull.yaml", &sealed);
    host.write_manifest("till.yaml", &registry.pod("till", "Always", &["pull"]));
    host.wait_running("till");
}

#[test]
fn the_example_with_a_private_image_runs() {
    let registry = PrivateRegistry::start();
    registry.push("shop/till:1");
    let host = registry.host();
    let example = include_str!("../../manifests/private-image.yaml").replace("registry.lan:5000", &registry.place);
    host.write_manifest("private-image.yaml", &example);
    host.wait_running("till");
    assert!(!host.cli_ok(&["get", "events"]).contains("Failed"), "the more exact entry is tried first");
}

#[test]
fn most_specific_secret_entry_counts() {
    let registry = PrivateRegistry::start();
    registry.push("shop/till:1");
    let host = registry.host();
    let place = &registry.place;
    let secret = |entries: &[(&str, &str)]| {
        let entries: Vec<String> = entries
            .iter()
            .map(|(path, password)| format!("\"{place}{path}\":{{\"username\":\"me\",\"password\":\"{password}\"}}"))
            .collect();
        format!(
            "apiVersion: v1\nkind: Secret\nmetadata: {{name: paths}}\ntype: kubernetes.io/dockerconfigjson\nstringData:\n  .dockerconfigjson: \
             '{{\"auths\":{{{}}}}}'\n",
            entries.join(",")
        )
    };
    // Of another path, and of a deeper one: neither is for the image.
    host.write_manifest("paths.yaml", &secret(&[("/other", PASSWORD), ("/shop/till/deeper", PASSWORD)]));
    host.write_manifest("till.yaml", &registry.pod("till", "Always", &["paths"]));
    let pod = wait_refused(&host, "till", NOT_PULLED);
    assert!(pod.container("main").to_string().contains("401 Unauthorized"), "{}", pod.0["status"]);
    eventually("the event", || {
        let events = host.cli_ok(&["get", "events", "-o", "json"]);
        if events.contains("none of imagePullSecrets (default/paths) has credentials for") { Ok(()) } else { Err(events) }
    });
    // The more exact one is tried first and refused, then the one of the registry as a whole.
    host.write_manifest("paths.yaml", &secret(&[("/shop/till", "guess"), ("", PASSWORD)]));
    host.wait_running("till");
    // Only the one of the path is right.
    host.write_manifest("paths.yaml", &secret(&[("", "guess"), ("/other", "guess"), ("/shop", PASSWORD)]));
    host.write_manifest("second.yaml", &registry.pod("second", "Always", &["paths"]));
    host.wait_running("second");
}
