//! `podstead cp` with real containers: what it keeps, and that no link leads out of a container, or out of the local target.

use crate::support::TestHost;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

/// A pod of one container that runs `script`, and then waits.
fn pod(name: &str, spec: &str, container: &str, script: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 1\n{spec}  containers:\n    - name: main\n      \
         image: localhost/busybox:1\n{container}      command: [/bin/sh, -c, '{script}; echo ready; mkfifo /tmp/wait; read line </tmp/wait']\n\
         \x20     volumeMounts: [{{name: tmp, mountPath: /tmp}}]\n  volumes: [{{name: tmp, emptyDir: {{}}}}]\n"
    )
}

fn start(host: &TestHost, name: &str, spec: &str, container: &str, script: &str) {
    host.write_manifest(&format!("{name}.yaml"), &pod(name, spec, container, script));
    host.wait_running(name);
    host.wait_log(name, "main", "ready");
}

fn write(path: &Path, content: &[u8], mode: u32) {
    fs::write(path, content).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// A directory `tree` with files, directories and a link.
fn tree(host: &TestHost) -> PathBuf {
    let tree = host.path("tree");
    fs::create_dir_all(tree.join("a/b/empty")).unwrap();
    write(&tree.join("a/script"), b"#!/bin/sh\n", 0o755);
    write(&tree.join("a/b/secret"), b"s", 0o600);
    write(&tree.join("a/b/nothing"), b"", 0o644);
    write(&tree.join("name with spaces and \u{e9}"), b"x", 0o644);
    let large: Vec<u8> = (0..5_000_000_u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    write(&tree.join("large"), &large, 0o644);
    symlink("a/script", tree.join("link")).unwrap();
    tree
}

/// Relative paths and contents of all files; directories end with a slash.
fn listed(root: &Path) -> Vec<(String, Vec<u8>)> {
    let mut found = Vec::new();
    let mut left = vec![root.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            let path = entry.path();
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            match entry.file_type().unwrap() {
                kind if kind.is_dir() => {
                    found.push((format!("{name}/"), Vec::new()));
                    left.push(path);
                }
                kind if kind.is_file() => found.push((name, fs::read(path).unwrap())),
                _ => found.push((name, b"neither file nor directory".to_vec())),
            }
        }
    }
    found.sort();
    found
}

fn refused(host: &TestHost, arguments: &[&str]) -> String {
    let out = host.cli(arguments);
    assert_eq!(out.status.code(), Some(1), "podstead {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stderr).unwrap()
}

#[test]
fn trees_come_and_go_without_any_program() {
    let host = TestHost::start();
    // Nothing that could be executed is left when the container is ready.
    host.write_manifest(
        "bare.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: bare}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n    - name: main\n      image: \
         localhost/busybox:1\n      command: [/bin/sh, -c, 'mkfifo /wait; mkdir /data; echo ready; rm -rf /bin /sbin /usr; read line </wait']\n",
    );
    host.wait_running("bare");
    host.wait_log("bare", "main", "ready");
    let tree = tree(&host);
    let local = |name: &str| host.path(name).display().to_string();
    host.cli_ok(&["cp", &local("tree"), "bare:/data"]);
    let out = host.cli(&["cp", "bare:/data/tree", &local("back")]);
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert_eq!(String::from_utf8_lossy(&out.stderr), "left out symbolic links: 1\n");
    fs::remove_file(tree.join("link")).unwrap();
    assert_eq!(listed(&host.path("back")), listed(&tree));
    // Under another name, beside it; a single file into a directory, and by name.
    host.cli_ok(&["cp", &local("tree"), "default/bare:/data/other", "-c", "main"]);
    host.cli_ok(&["cp", "bare:/data/other/a/script", &local("back")]);
    assert_eq!(fs::read(host.path("back/script")).unwrap(), b"#!/bin/sh\n");
    host.cli_ok(&["cp", "bare:data/other/a/b/secret", &local("new/deep/secret")]);
    assert_eq!(fs::read(host.path("new/deep/secret")).unwrap(), b"s");
    // The link came along.
    host.cli_ok(&["cp", "bare:/data/tree/link", &local("linked")]);
    assert_eq!(fs::read(host.path("linked")).unwrap(), b"#!/bin/sh\n");
    assert!(
        refused(&host, &["cp", "bare:/nowhere", &local("x")])
            .contains("podstead: in bare: open /nowhere: No such file or directory")
    );
    assert!(refused(&host, &["cp", "bare:/wait", &local("x")]).contains("/wait: neither a file nor a directory"));
    assert!(
        refused(&host, &["cp", &local("tree"), "bare:/nowhere/x"])
            .contains("podstead: in bare: open the directory of /nowhere/x: No such file or directory")
    );
    assert!(refused(&host, &["cp", &local("nowhere"), "bare:/data"]).contains("nowhere: No such file or directory"));
    assert!(refused(&host, &["cp", "nosuch:/data", &local("x")]).contains("nosuch"));
    assert!(fs::symlink_metadata(host.path("x")).is_err());
}

#[test]
fn owners_and_modes_are_kept_for_root() {
    let host = TestHost::start();
    start(&host, "root", "", "", "mkdir -p /data/deep; umask 027; touch /data/old; ln -s deep /data/way");
    let file = host.path("file");
    write(&file, b"content", 0o4750);
    chown(&file, Some(1234), Some(2345)).unwrap();
    // chown takes the bit away.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o4750)).unwrap();
    let local = file.display().to_string();
    let look = |path: &str| host.exec("root", "main", &["stat", "-c", "%u:%g %a %F", path]);
    host.cli_ok(&["cp", &local, "root:/data"]);
    assert_eq!(look("/data/file"), "1234:2345 4750 regular file\n");
    host.cli_ok(&["cp", "--no-preserve", &local, "root:/data/plain"]);
    assert_eq!(look("/data/plain"), "0:0 750 regular file\n");
    // What is there is replaced, and a directory may be reached by a link.
    host.cli_ok(&["cp", &local, "root:/data/old"]);
    assert_eq!(look("/data/old"), "1234:2345 4750 regular file\n");
    host.cli_ok(&["cp", &local, "root:/data/way"]);
    assert_eq!(host.exec("root", "main", &["cat", "/data/deep/file"]), "content");
    // A directory that its owner may not write to, either.
    fs::create_dir(host.path("closed")).unwrap();
    write(&host.path("closed/in"), b"1", 0o444);
    fs::set_permissions(host.path("closed"), fs::Permissions::from_mode(0o555)).unwrap();
    host.cli_ok(&["cp", &host.path("closed").display().to_string(), "root:/data"]);
    assert_eq!(look("/data/closed"), "0:0 555 directory\n");
    // Here, all is of the user who copies.
    host.cli_ok(&["cp", "root:/data/file", &host.path("back").display().to_string()]);
    let back = fs::metadata(host.path("back")).unwrap();
    assert_eq!((back.uid(), back.mode() & 0o7111), (0, 0));
}

#[test]
fn user_of_container_has_no_more_rights() {
    let host = TestHost::start();
    start(&host, "user", "  securityContext: {runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000}\n", "", "mkdir /tmp/mine");
    let file = host.path("file");
    write(&file, b"content", 0o640);
    chown(&file, Some(1234), Some(2345)).unwrap();
    let local = file.display().to_string();
    host.cli_ok(&["cp", &local, "user:/tmp/mine"]);
    assert_eq!(host.exec("user", "main", &["stat", "-c", "%u %a", "/tmp/mine/file"]), "1000 640\n");
    assert!(refused(&host, &["cp", &local, "user:/etc"]).contains("create file: Permission denied"));
    host.exec("user", "main", &["chmod", "0", "/tmp/mine/file"]);
    assert!(refused(&host, &["cp", "user:/tmp/mine/file", &local]).contains("Permission denied"));
    start(&host, "fixed", "", "      securityContext: {readOnlyRootFilesystem: true}\n", "true");
    assert!(refused(&host, &["cp", &local, "fixed:/etc"]).contains("Read-only file system"));
    host.cli_ok(&["cp", &local, "fixed:/tmp"]);
}

#[test]
fn no_link_leads_out_of_the_container() {
    let host = TestHost::start();
    let outside = host.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "of the host").unwrap();
    let at = outside.display();
    let up = "../".repeat(40);
    let script = format!(
        "mkdir /data; ln -s {at} /data/absolute; ln -s {up}{at} /data/relative; ln -s {at}/secret /data/file; ln -s /proc/1/root{at} /data/root; \
         ln -s / /data/all; ln -s loop /data/loop; echo mine >/data/own; echo inside >/etc/secret; ln -s /etc/secret /data/etc"
    );
    start(&host, "evil", "", "", &script);
    let local = |name: &str| host.path(name).display().to_string();
    // Reading.
    for path in ["absolute/secret", "relative/secret", "file", "root/secret", "loop", &format!("{up}{at}/secret")] {
        let error = refused(&host, &["cp", &format!("evil:/data/{path}"), &local("stolen")]);
        assert!(error.contains("No such file or directory") || error.contains("symbolic links"), "{path}: {error}");
    }
    host.cli_ok(&["cp", "evil:/data/etc", &local("etc")]);
    assert_eq!(fs::read_to_string(host.path("etc")).unwrap(), "inside\n");
    host.cli_ok(&["cp", "evil:/data", &local("tree")]);
    assert_eq!(listed(&host.path("tree")), [("own".to_owned(), b"mine\n".to_vec())]);
    // Writing.
    fs::write(host.path("new"), "new").unwrap();
    for path in ["absolute/new", "relative/new", "root/new"] {
        refused(&host, &["cp", &local("new"), &format!("evil:/data/{path}")]);
    }
    host.cli_ok(&["cp", &local("new"), "evil:/data/file"]);
    host.cli_ok(&["cp", &local("new"), "evil:/data/all"]);
    assert_eq!(host.exec("evil", "main", &["cat", "/new", "/data/file"]), "newnew");
    assert_eq!(listed(&outside), [("secret".to_owned(), b"of the host".to_vec())]);
    assert!(fs::symlink_metadata(host.path("stolen")).is_err() && fs::symlink_metadata("/new").is_err());
    // A local link is the user's own, but a container must not choose it.
    fs::create_dir(host.path("target")).unwrap();
    symlink(outside.join("secret"), host.path("target/own")).unwrap();
    assert!(refused(&host, &["cp", "evil:/data", &local("target")]).contains("symbolic links"));
    assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "of the host");
}

#[test]
fn files_may_exceed_memory_of_container() {
    let host = TestHost::start();
    start(&host, "small", "", "      resources: {limits: {memory: 24Mi}}\n", "mkdir /data");
    let size = 96 << 20;
    fs::write(host.path("large"), vec![7; size]).unwrap();
    let local = |name: &str| host.path(name).display().to_string();
    host.cli_ok(&["cp", &local("large"), "small:/data"]);
    host.cli_ok(&["cp", "small:/data/large", &local("back")]);
    assert_eq!(fs::metadata(host.path("back")).unwrap().len(), size as u64);
}

#[test]
fn pods_with_own_users_get_files() {
    let host = TestHost::start();
    // Other users pass the run directory.
    fs::set_permissions(host.path(""), fs::Permissions::from_mode(0o711)).unwrap();
    start(&host, "mapped", "  hostUsers: false\n", "", "mkdir /data");
    fs::write(host.path("file"), "content").unwrap();
    let local = |name: &str| host.path(name).display().to_string();
    host.cli_ok(&["cp", &local("file"), "mapped:/data"]);
    assert_eq!(host.exec("mapped", "main", &["stat", "-c", "%u:%g", "/data/file"]), "0:0\n");
    host.cli_ok(&["cp", "mapped:/data/file", &local("back")]);
    assert_eq!(fs::read_to_string(host.path("back")).unwrap(), "content");
}
