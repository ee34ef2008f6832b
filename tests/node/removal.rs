//! A pod that is removed leaves nothing behind, and never takes along what is not its own.

use crate::support::{TestHost, eventually, leftovers};

#[test]
fn removed_pod_leaves_nothing_behind() {
    let host = TestHost::start();
    let kept = host.path("kept");
    std::fs::create_dir(&kept).unwrap();
    std::fs::write(kept.join("precious"), "data").unwrap();
    let manifest = format!(
        "
apiVersion: v1
kind: Pod
metadata: {{name: full}}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: main
      image: localhost/busybox:1
      command: [/bin/sh, -c, 'touch /disk/a /memory/a /host/a; exec sleep 1000000']
      volumeMounts:
        - {{name: disk, mountPath: /disk, subPath: below}}
        - {{name: memory, mountPath: /memory}}
        - {{name: host, mountPath: /host}}
  volumes:
    - {{name: disk, emptyDir: {{}}}}
    - {{name: memory, emptyDir: {{medium: Memory, sizeLimit: 1Mi}}}}
    - {{name: host, hostPath: {{path: {}, type: Directory}}}}
",
        kept.display()
    );
    host.write_manifest("full.yaml", &manifest);
    let pod = host.wait_running("full");
    eventually("the container to have written", || kept.join("a").try_exists().unwrap().then_some(()).ok_or("not yet".into()));
    assert!(!leftovers(&pod.uid()).is_empty(), "the search must be able to find something");
    host.remove_manifest("full.yaml");
    host.wait_gone("full");
    eventually("nothing to be left in the kernel", || {
        let rest = leftovers(&pod.uid());
        if rest.is_empty() { Ok(()) } else { Err(format!("{rest:?}")) }
    });
    // Its logs stay a little longer.
    eventually("no directory to be left", || {
        let folders = [host.path("state/pods"), host.path("run/pods")];
        let rest: Vec<String> = folders
            .iter()
            .flat_map(|folder| std::fs::read_dir(folder).into_iter().flatten().flatten())
            .map(|entry| entry.path().display().to_string())
            .filter(|path| path.contains(&pod.uid()))
            .collect();
        if rest.is_empty() { Ok(()) } else { Err(format!("{rest:?}")) }
    });
    assert_eq!(std::fs::read_to_string(kept.join("precious")).unwrap(), "data", "a hostPath is not podstead's to remove");
}

#[test]
fn last_manifest_removed_removes_last_pod() {
    let host = TestHost::start();
    host.write_manifest(
        "one.yaml",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: one}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n    \
         - {name: main, image: 'localhost/busybox:1', command: [sleep, '1000000']}\n",
    );
    host.wait_running("one");
    host.remove_manifest("one.yaml");
    host.wait_gone("one");
    assert_eq!(host.cli_ok(&["get", "pods", "-o", "name"]), "");
}
