//! Export and import of the data of claims, with real pods, onto another host, and with hostile archives.

use crate::support::{TestHost, eventually};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const CLAIM: &str = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec:\n  accessModes: [ReadWriteOnce]\n  \
                     resources: {requests: {storage: 1Gi}}\n";

fn pod() -> String {
    format!(
        "{CLAIM}---\napiVersion: v1\nkind: Pod\nmetadata: {{name: db}}\nspec:\n  terminationGracePeriodSeconds: 1\n  \
         volumes: [{{name: data, persistentVolumeClaim: {{claimName: data}}}}]\n  containers:\n    - name: main\n      \
         image: localhost/busybox:1\n      volumeMounts: [{{name: data, mountPath: /data}}]\n      command: [sleep, '1000000']\n"
    )
}

/// The command with the configuration of the host, which has the paths.
fn volume(host: &TestHost, arguments: &[&str]) -> Output {
    let config = host.path("config.yaml").display().to_string();
    host.cli(&[&["--config", &config, "volume"], arguments].concat())
}

fn done(output: Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{text}");
    text
}

fn refused(output: Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn data(host: &TestHost) -> PathBuf {
    host.path("state/volumes/default/data/data")
}

/// Fills the volume with what archives lose easily.
fn fill(data: &Path) {
    let script = "echo text > file; ln file second; ln -s /etc/passwd link; mkdir -p deep/er; echo x > deep/er/file; chown 1234:4321 file; \
                  chmod 4755 deep/er/file; truncate -s 100M sparse; echo end >> sparse; python3 -c \"import os; os.setxattr('file', 'user.kept', b'value')\"; mkfifo pipe; \
                  touch -d 2001-02-03T04:05:06Z file";
    assert!(Command::new("sh").args(["-ec", script]).current_dir(data).status().unwrap().success());
}

fn check(data: &Path) {
    let file = fs::metadata(data.join("file")).unwrap();
    assert_eq!((file.uid(), file.gid(), file.nlink(), file.mtime()), (1234, 4321, 2, 981_173_106));
    assert_eq!(file.ino(), fs::metadata(data.join("second")).unwrap().ino());
    assert_eq!(fs::read_link(data.join("link")).unwrap(), Path::new("/etc/passwd"));
    assert_eq!(fs::metadata(data.join("deep/er/file")).unwrap().permissions().mode() & 0o7777, 0o4755);
    let sparse = fs::metadata(data.join("sparse")).unwrap();
    assert_eq!(sparse.len(), (100 << 20) + 4);
    assert!(sparse.blocks() < 1000, "{} blocks", sparse.blocks());
    let read = "import os; print(os.getxattr('file', 'user.kept').decode(), end='')";
    let value = Command::new("python3").args(["-c", read]).current_dir(data).output().unwrap();
    assert_eq!(value.stdout, b"value");
}

#[test]
fn exported_claim_is_restored_on_new_host() {
    let host = TestHost::start();
    host.write_manifest("db.yaml", &pod());
    let before = host.wait_running("db");
    fill(&data(&host));
    let archive = host.path("data.tar.zst").display().to_string();
    let said = done(volume(&host, &["export", "data", "-o", &archive]));
    assert!(said.contains("stopping pod db-edge-1"), "{said}");
    let after = eventually("the pod to run again", || host.pod("db").filter(|pod| pod.runs("main")).ok_or_else(String::new));
    assert_eq!(after.uid(), before.uid());
    assert_ne!(after.container_id("main"), before.container_id("main"));
    assert!(fs::metadata(&archive).unwrap().len() < 1 << 20, "holes take no space");
    let listed = Command::new("tar").args(["--zstd", "-tf", &archive]).output().unwrap();
    assert!(String::from_utf8_lossy(&listed.stdout).contains("./deep/er/file"), "{listed:?}");

    // Before the new host has a daemon or a manifest.
    let mut other = TestHost::prepare("");
    done(volume(&other, &["import", "data", &archive]));
    check(&data(&other));
    other.start_daemon();
    other.write_manifest("db.yaml", &pod());
    other.wait_running("db");
    assert_eq!(other.exec("db", "main", &["cat", "/data/file"]), "text\n");
    check(&data(&other));
}

#[test]
fn import_replaces_data_of_running_pod() {
    let host = TestHost::start();
    host.write_manifest("db.yaml", &pod());
    host.wait_running("db");
    host.exec("db", "main", &["sh", "-c", "echo old > /data/old"]);
    let tree = host.path("tree");
    fs::create_dir(&tree).unwrap();
    fs::write(tree.join("new"), "new\n").unwrap();
    fs::write(tree.join(".wh.new"), "no whiteout\n").unwrap();
    let archive = host.path("plain.tar").display().to_string();
    assert!(Command::new("tar").args(["-cf", &archive, "-C"]).arg(&tree).arg(".").status().unwrap().success());
    assert!(refused(volume(&host, &["import", "data", &archive])).contains("--replace replaces it"));
    done(volume(&host, &["import", "data", &archive, "--replace"]));
    host.wait_running("db");
    assert_eq!(host.exec("db", "main", &["ls", "-A", "/data"]), ".wh.new\nnew\n");
    let left = fs::read_dir(host.path("state/volumes")).unwrap().flatten().map(|entry| entry.file_name());
    let left: Vec<_> = left.filter(|name| name.to_string_lossy().starts_with('.')).collect();
    let is_empty = |name: &std::ffi::OsString| fs::read_dir(host.path("state/volumes").join(name)).unwrap().next().is_none();
    assert!(left.iter().all(is_empty), "{left:?}");
}

#[test]
fn hostile_archives_leave_claim_unchanged() {
    let host = TestHost::prepare("");
    let victim = host.path("victim");
    fs::write(&victim, "untouched").unwrap();
    let archive = |name: &str, script: &str| {
        let path = host.path(name);
        let python = format!("import tarfile, io\nt = tarfile.open({:?}, 'w')\nI = tarfile.TarInfo\n{script}\nt.close()\n", path);
        let mut command = Command::new("python3").arg("-").stdin(Stdio::piped()).spawn().unwrap();
        std::io::Write::write_all(&mut command.stdin.take().unwrap(), python.as_bytes()).unwrap();
        assert!(command.wait().unwrap().success());
        path.display().to_string()
    };
    let at = victim.display();
    let add = "f.size = 4; t.addfile(f, io.BytesIO(b'evil'))";
    let cases = [
        ("up.tar", format!("f = I('../../../../victim'); {add}")),
        ("device.tar", "f = I('disk'); f.type = tarfile.BLKTYPE; f.devmajor = 8; t.addfile(f)".to_owned()),
        ("hard.tar", format!("f = I('h'); f.type = tarfile.LNKTYPE; f.linkname = '{at}'; t.addfile(f)")),
        ("deep.tar", format!("f = I('/'.join('d' * 600)); {add}")),
        ("large.tar", "f = I('f'); f.size = 2 << 20; t.addfile(f, io.BytesIO(bytes(2 << 20)))".to_owned()),
        ("many.tar", "for n in range(101):\n    t.addfile(I('f%d' % n))".to_owned()),
    ];
    for (name, script) in cases {
        let path = archive(name, &script);
        let error = refused(volume(&host, &["import", "data", &path, "--max-size", "1Mi", "--max-files", "100"]));
        assert!(error.contains("claim data is unchanged"), "{name}: {error}");
        assert!(!data(&host).try_exists().unwrap(), "{name}");
    }
    // What leads outside inside the tree is made there, and nothing is followed.
    let link = archive(
        "link.tar",
        &format!("f = I('l'); f.type = tarfile.SYMTYPE; f.linkname = '/'; t.addfile(f)\nf = I('l{at}'); {add}"),
    );
    volume(&host, &["import", "data", &link]);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "untouched");
    let cut = host.path("cut.tar");
    fs::write(&cut, &fs::read(host.path("large.tar")).unwrap()[..5000]).unwrap();
    assert!(refused(volume(&host, &["import", "other", &cut.display().to_string()])).contains("unchanged"));
    assert!(refused(volume(&host, &["import", "../../x", &link])).contains("is not a namespace and the name of a claim"));
    assert!(refused(volume(&host, &["export", "nosuch", "-o", "/nonexistent/x"])).contains("has no data"));
}
