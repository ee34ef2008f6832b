//! An OCI bundle with busybox, for bare runtimes.

use std::path::Path;
use std::process::Command;

/// Makes `directory/rootfs` and `directory/config.json` for `/bin/true`, with what the runtime itself proposes.
pub(crate) fn make(directory: &Path, runtime: &str) -> bool {
    let bin = directory.join("rootfs/bin");
    std::fs::create_dir_all(&bin).unwrap();
    std::fs::copy("/bin/busybox", bin.join("busybox")).unwrap();
    for applet in ["sh", "true"] {
        std::os::unix::fs::symlink("busybox", bin.join(applet)).unwrap();
    }
    let made = Command::new(runtime).arg("spec").current_dir(directory).status();
    if !made.is_ok_and(|status| status.success()) {
        return false;
    }
    let path = directory.join("config.json");
    let mut spec: serde_json::Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let process = spec["process"].as_object_mut().unwrap();
    process.insert("terminal".into(), false.into());
    process.insert("args".into(), serde_json::json!(["/bin/true"]));
    // Raising limits needs CAP_SYS_RESOURCE, which test machines may lack.
    process.remove("rlimits");
    std::fs::write(path, spec.to_string()).unwrap();
    true
}
