//! Secrets that SOPS has encrypted: opened for real containers, kept when they cannot be, and never in clear on disk.
//!
//! `tests/support/sops.py` encrypts, by the documentation of SOPS and with Debian's `age`.

use crate::support::{TestHost, binary, eventually};
use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Makes an identity file; returns the recipient.
pub(crate) fn keygen(path: &Path) -> String {
    fs::remove_file(path).ok();
    let made = Command::new("age-keygen").arg("-o").arg(path).output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let public = Command::new("age-keygen").arg("-y").arg(path).output().unwrap();
    String::from_utf8(public.stdout).unwrap().trim().to_owned()
}

pub(crate) fn encrypt(plain: &str, options: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/sops.py");
    let mut command = Command::new("/usr/bin/python3");
    command.arg(script).args(options).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(plain.as_bytes()).unwrap();
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success());
    String::from_utf8(out.stdout).unwrap()
}

const REGEX: &str = "^(data|stringData)$";

fn secret(password: &str, recipients: &[&str]) -> String {
    let plain = format!(
        "apiVersion: v1\nkind: Secret\nmetadata: {{name: db}}\nstringData:\n  password: {password}\n  note: |\n    two\n    lines\n  empty: ''\n"
    );
    let mut options = vec!["--encrypted-regex", REGEX];
    recipients.iter().for_each(|recipient| options.extend(["--age", recipient]));
    encrypt(&plain, &options)
}

const POD: &str = "apiVersion: v1
kind: Pod
metadata: {name: web}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: localhost/busybox:1
    command: [sleep, '1000000']
    env: [{name: PASSWORD, valueFrom: {secretKeyRef: {name: db, key: password}}}]
    volumeMounts: [{name: db, mountPath: /db}]
  volumes: [{name: db, secret: {secretName: db}}]
";

fn wait_seen(host: &TestHost, expected: &str) {
    eventually(&format!("{expected:?} in the container"), || {
        let out = host.cli(&["exec", "web", "-c", "main", "--", "/bin/sh", "-c", "echo $PASSWORD $(cat /db/password)"]);
        let seen = String::from_utf8_lossy(&out.stdout).trim().to_owned();
        if seen == expected { Ok(()) } else { Err(format!("{seen:?} {}", host.daemon_log())) }
    });
}

fn wait_logged(host: &TestHost, needle: &str) {
    eventually(&format!("{needle:?} in the daemon's log"), || {
        let log = host.daemon_log();
        if log.contains(needle) { Ok(()) } else { Err(log) }
    });
}

/// True if a file of the same file system has these bytes: volumes of Secrets are on others.
fn holds(directory: &Path, needle: &[u8]) -> bool {
    let device = fs::metadata(directory).unwrap().dev();
    fs::read_dir(directory).unwrap().any(|entry| {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        let path = entry.path();
        (kind.is_dir() && fs::metadata(&path).unwrap().dev() == device && holds(&path, needle))
            || (kind.is_file() && fs::read(&path).unwrap_or_default().windows(needle.len()).any(|window| window == needle))
    })
}

fn command(host: &TestHost, arguments: &[&str]) -> Output {
    Command::new(binary("podstead")).arg("--config").arg(host.path("config.yaml")).args(arguments).output().unwrap()
}

#[test]
fn encrypted_secret_reaches_pod_and_outlives_key() {
    let mut host = TestHost::prepare("ageKeyFile: KEY\n");
    let (key, config) = (host.path("age.key"), host.path("config.yaml"));
    fs::write(&config, fs::read_to_string(&config).unwrap().replace("KEY", &key.display().to_string())).unwrap();
    let recipient = keygen(&key);
    let other = keygen(&host.path("other.key"));
    host.write_manifest("db.yaml", &secret("hunter2", &[&other, &recipient]));
    host.write_manifest("web.yaml", POD);
    host.start_daemon();
    host.wait_running("web");
    wait_seen(&host, "hunter2 hunter2");
    assert_eq!(host.exec("web", "main", &["/bin/cat", "/db/note", "/db/empty"]), "two\nlines\n");

    // A value that was moved, and one in clear, are refused; what was there stays.
    let good = fs::read_to_string(host.path("manifests/db.yaml")).unwrap();
    host.write_manifest("db.yaml", &good.replace("name: db", "name: db\n    labels: {a: b}"));
    wait_logged(&host, "the MAC does not match");
    wait_seen(&host, "hunter2 hunter2");

    // For somebody else: as above. After a restart, too, and without the key.
    host.write_manifest("db.yaml", &secret("hunter3", &[&other]));
    wait_logged(
        &host,
        &format!("db.yaml:9:1: error[sops]: sops: is encrypted with SOPS for {other}, but this host is {recipient}"),
    );
    host.kill_daemon();
    fs::remove_file(&key).unwrap();
    host.start_daemon();
    wait_logged(&host, &format!("is encrypted with SOPS for {other}, but this host has no age identity"));
    wait_seen(&host, "hunter2 hunter2");

    // The key that it is for comes: it is opened without a change of the manifest.
    fs::copy(host.path("other.key"), host.path(".new.key")).unwrap();
    fs::set_permissions(host.path(".new.key"), fs::Permissions::from_mode(0o644)).unwrap();
    fs::rename(host.path(".new.key"), &key).unwrap();
    wait_seen(&host, "hunter3 hunter3");
    wait_logged(&host, "has mode 0644: its key decrypts every Secret");

    let shown = host.cli_ok(&["diff"]) + &host.cli_ok(&["history", "-o", "json"]) + &host.daemon_log();
    assert!(!shown.contains("hunter"), "{shown}");
    for content in ["hunter", "aHVudGVy"] {
        assert!(!holds(&host.path("state"), content.as_bytes()), "{content} is in clear on disk");
    }
}

/// Writes a manifest into a directory of the source, by rename.
fn write_in_layer(host: &TestHost, path: &str, text: &str) {
    let new = host.path("new-manifest");
    fs::write(&new, text).unwrap();
    fs::rename(new, host.path("manifests").join(path)).unwrap();
}

fn patch(name: &str, more: &str) -> String {
    let head = "apiVersion: podstead.dev/v1alpha1\nkind: Patch\nmetadata:\n  name: ";
    format!("{head}{name}\ntarget:\n  kind: Secret\n  name: db\n{more}")
}

#[test]
fn patches_change_an_encrypted_secret_once_open() {
    let mut host = TestHost::prepare("    layers: [base, host]\nageKeyFile: KEY\n");
    let (key, config) = (host.path("age.key"), host.path("config.yaml"));
    fs::write(&config, fs::read_to_string(&config).unwrap().replace("KEY", &key.display().to_string())).unwrap();
    let recipient = keygen(&key);
    for layer in ["base", "host"] {
        fs::create_dir(host.path("manifests").join(layer)).unwrap();
    }
    write_in_layer(&host, "base/db.yaml", &secret("hunter2", &[&recipient]));
    write_in_layer(&host, "base/web.yaml", POD);
    let note = patch("note", "strategicMerge:\n  stringData:\n    note: of this host\n    empty: null\n");
    write_in_layer(&host, "host/note.yaml", &note);
    let sealed = patch("password", "json:\n- op: replace\n  path: /stringData/password\n  value: hunter3\n");
    let options = ["--encrypted-regex", "^value$", "--age", &recipient];
    write_in_layer(&host, "host/password.yaml", &encrypt(&sealed, &options));
    host.start_daemon();
    host.wait_running("web");
    wait_seen(&host, "hunter3 hunter3");
    assert_eq!(host.exec("web", "main", &["/bin/sh", "-c", "cat /db/note; ls /db"]), "of this hostnote\npassword\n");

    assert!(!host.daemon_log().contains("are stored unencrypted on this host's disk"), "{}", host.daemon_log());

    // A patch for somebody else stays closed, and what was there stays; so with one that does not fit, which tells no value.
    let other = keygen(&host.path("other.key"));
    let for_another = encrypt(&sealed.replace("hunter3", "hunter5"), &["--encrypted-regex", "^value$", "--age", &other]);
    write_in_layer(&host, "host/password.yaml", &for_another);
    wait_logged(&host, &format!("is encrypted with SOPS for {other}, but this host is {recipient}"));
    wait_seen(&host, "hunter3 hunter3");
    write_in_layer(&host, "host/password.yaml", &encrypt(&sealed, &options));
    let unfit = "json:\n- {op: test, path: /stringData/password, value: hunter4}\n- {op: remove, path: /stringData/note}\n";
    write_in_layer(&host, "host/note.yaml", &patch("note", unfit));
    wait_logged(&host, "test failed: /stringData/password has another value");
    wait_seen(&host, "hunter3 hunter3");
    fs::remove_file(host.path("manifests/host/note.yaml")).unwrap();
    fs::remove_file(host.path("manifests/host/password.yaml")).unwrap();
    wait_seen(&host, "hunter2 hunter2");
    write_in_layer(&host, "host/password.yaml", &encrypt(&sealed, &options));
    wait_seen(&host, "hunter3 hunter3");
    host.kill_daemon();
    host.start_daemon();
    wait_seen(&host, "hunter3 hunter3");

    let shown = host.cli_ok(&["diff"]) + &host.cli_ok(&["history", "-o", "json"]) + &host.daemon_log();
    assert!(!shown.contains("hunter"), "{shown}");
    for content in ["hunter", "aHVudGVy"] {
        assert!(!holds(&host.path("state"), content.as_bytes()), "{content} is in clear on disk");
    }
}

#[test]
fn checks_without_key_name_what_is_sealed() {
    let host = TestHost::prepare("");
    let recipient = keygen(&host.path("age.key"));
    let manifests = host.path("manifests");
    host.write_manifest("db.yaml", &secret("hunter2", &[&recipient]));
    host.write_manifest("web.yaml", POD);
    let path = manifests.display().to_string();
    for arguments in [&["validate", &path][..], &["render", &path]] {
        let out = command(&host, arguments);
        let told = String::from_utf8_lossy(&out.stdout).into_owned() + &String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "{told}");
        assert!(told.contains("only its unencrypted values were checked"), "{told}");
    }
    host.write_manifest("db.yaml", &secret("hunter2", &[&recipient]).replace("metadata:", "imutable: true\nmetadata:"));
    let out = command(&host, &["validate", &path]);
    assert!(!out.status.success() && String::from_utf8_lossy(&out.stdout).contains("imutable"), "{out:?}");
}

#[test]
fn key_may_be_credential_of_systemd() {
    let mut host = TestHost::prepare("");
    let credentials = host.path("credentials");
    fs::create_dir(&credentials).unwrap();
    let recipient = keygen(&credentials.join("podstead.age-key"));
    host.write_manifest("db.yaml", &secret("hunter2", &[&recipient]));
    host.write_manifest("web.yaml", POD);
    host.start_daemon();
    wait_logged(&host, "but this host has no age identity");
    host.kill_daemon();
    host.credentials = Some(credentials);
    host.start_daemon();
    host.wait_running("web");
    wait_seen(&host, "hunter2 hunter2");
}

#[test]
fn sops_documents_of_all_shapes_are_opened() {
    let host = TestHost::prepare("ageKeyFile: KEY\n");
    let (key, config) = (host.path("age.key"), host.path("config.yaml"));
    fs::write(&config, fs::read_to_string(&config).unwrap().replace("KEY", &key.display().to_string())).unwrap();
    let recipient = keygen(&key);
    let plain = "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\nstringData: {k: v, same_unencrypted: w}\nimmutable: false\n";
    let json =
        r#"{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "j"}, "stringData": {"k": "v"}, "data": {"b": "aGk="}}"#;
    let two = format!("{plain}---\n{}", POD.replace("1000000", "7"));
    let all: &[(&str, &str, &[&str])] = &[
        ("whole.yaml", plain, &[]),
        ("json.json", json, &["--json", "--encrypted-regex", REGEX]),
        ("sealed-only.yaml", &plain.replace("name: a", "name: m"), &["--mac-only-encrypted", "--encrypted-regex", REGEX]),
        ("two.yaml", &two.replace("name: a", "name: t"), &[]),
    ];
    for (name, plain, options) in all {
        host.write_manifest(name, &encrypt(plain, &[options, &["--age", &recipient][..]].concat()));
    }
    let path = host.path("manifests").display().to_string();
    let out = command(&host, &["render", &path]);
    let (shown, told) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    assert!(out.status.success(), "{told}");
    assert!(!shown.contains("ENC[") && !told.contains("checked"), "{shown}{told}");
    assert_eq!(shown.matches("kind: Secret").count(), 4, "{shown}");
    assert_eq!(shown.matches("kind: Pod").count(), 1, "{shown}");
    assert!(told.contains("unencrypted on this host's disk"), "{told}");
}
