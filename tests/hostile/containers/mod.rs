//! Running containers that try to leave their bounds: the classes of known container escapes.

mod floods;
mod image_files;
mod kernel;
mod runtime;
mod unit;

use crate::support::{TestHost, make_image};
use std::fs;
use std::path::{Path, PathBuf};

/// Reference of the image that a case makes.
const HOSTILE: &str = "localhost/hostile:1";

/// A container of a pod.
#[derive(Clone, Copy)]
struct Container<'a> {
    name: &'a str,
    /// Script for `/bin/sh -c`.
    script: &'a str,
    /// More fields, each as a line in flow style.
    fields: &'a [&'a str],
}

impl<'a> Container<'a> {
    fn new(name: &'a str, script: &'a str, fields: &'a [&'a str]) -> Self {
        Self { name, script, fields }
    }

    fn yaml(&self, image: &str) -> String {
        let Self { name, script, fields } = self;
        // As JSON, which is YAML: line breaks stay what they are.
        let script = serde_json::to_string(script).unwrap();
        let mut text = format!("  - name: {name}\n    image: {image}\n");
        if !fields.iter().any(|field| field.starts_with("command:")) {
            text += &format!("    command: [/bin/sh, -c, {script}]\n");
        }
        fields.iter().for_each(|field| text += &format!("    {field}\n"));
        text
    }
}

/// A pod `name`; `spec` has more fields of its spec, each as a line in flow style.
fn pod(name: &str, image: &str, spec: &[&str], containers: &[Container<'_>]) -> String {
    let mut text = format!("apiVersion: v1\nkind: Pod\nmetadata: {{name: {name}}}\nspec:\n  terminationGracePeriodSeconds: 1\n");
    spec.iter().for_each(|field| text += &format!("  {field}\n"));
    text += "  containers:\n";
    containers.iter().for_each(|container| text += &container.yaml(image));
    text
}

/// Imports an image of busybox with one more layer, which `fill` writes; `options` are those of `make-image.sh`.
fn import(host: &TestHost, options: &[&str], fill: impl FnOnce(&Path)) {
    let layer = host.path("hostile-layer");
    fs::create_dir(&layer).unwrap();
    fill(&layer);
    let archive = host.path("hostile.tar");
    let layer = ["--layer".as_ref(), layer.as_os_str()].into_iter();
    make_image(&layer.chain(options.iter().map(AsRef::as_ref)).collect::<Vec<_>>(), &archive, HOSTILE);
    host.cli_ok(&["image", "import", archive.to_str().unwrap()]);
}

/// A file of the host that nothing in a container may read or change.
struct Victim {
    path: PathBuf,
}

const SECRET: &str = "of the host alone";

impl Victim {
    fn new(host: &TestHost) -> Self {
        let path = host.path("victim");
        fs::create_dir(&path).unwrap();
        fs::write(path.join("file"), SECRET).unwrap();
        Self { path: path.join("file") }
    }

    fn directory(&self) -> &Path {
        self.path.parent().unwrap()
    }

    fn assert_unharmed(&self) {
        assert_eq!(fs::read_to_string(&self.path).unwrap(), SECRET);
        let entries: Vec<_> = fs::read_dir(self.directory()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(entries, ["file"], "something was made beside the victim");
    }
}

fn sh(host: &TestHost, pod: &str, script: &str) -> String {
    host.exec(pod, "main", &["/bin/sh", "-c", script])
}

/// Output and errors of a command that may fail.
fn try_sh(host: &TestHost, pod: &str, script: &str) -> String {
    let output = host.cli(&["exec", pod, "-c", "main", "--", "/bin/sh", "-c", script]);
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

const FOREVER: &str = "echo started; exec sleep 1000000";

/// Words of the kernel to who may not: a read-only mount, a missing right, a filter, AppArmor.
const REFUSALS: [&str; 3] = ["Read-only file system", "Permission denied", "Operation not permitted"];

/// Number of refusals in the output of a script.
fn refusals(said: &str) -> usize {
    REFUSALS.iter().map(|refusal| said.matches(refusal).count()).sum()
}
