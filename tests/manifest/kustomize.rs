//! `podstead render` and `podstead validate` on kustomizations.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The repository, with its example of a base and two overlays.
const REPOSITORY: &str = env!("CARGO_MANIFEST_DIR");

fn podstead(directory: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_podstead"));
    command.current_dir(directory).args(arguments).env_remove("PODSTEAD_CONFIG").stdin(Stdio::null());
    command.output().unwrap()
}

fn texts(output: &Output) -> (&str, &str) {
    (std::str::from_utf8(&output.stdout).unwrap(), std::str::from_utf8(&output.stderr).unwrap())
}

fn rendered(directory: &Path, layer: &str) -> Output {
    podstead(directory, &["render", ".", "--host", "shop-1", "--layers", layer])
}

/// A copy of the example.
fn example() -> tempfile::TempDir {
    let copy = tempfile::tempdir().unwrap();
    for file in [
        "base/kustomization.yaml",
        "base/agent.yaml",
        "base/greeting.txt",
        "overlays/shop-1/kustomization.yaml",
        "overlays/shop-2/kustomization.yaml",
    ] {
        let (from, to) = (Path::new(REPOSITORY).join("manifests/kustomize").join(file), copy.path().join(file));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    }
    copy
}

fn edit(root: &tempfile::TempDir, file: &str, from: &str, to: &str) {
    let path = root.path().join(file);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{text}");
    fs::write(path, text.replace(from, to)).unwrap();
}

#[test]
fn the_overlay_of_a_host_is_rendered() {
    let repository = Path::new(REPOSITORY);
    let layered = ["render", "manifests/kustomize", "--host", "shop-1", "--layers", "overlays/${NODE_NAME}"];
    let output = podstead(repository, &layered);
    let (stdout, stderr) = texts(&output);
    assert_eq!((output.status.code(), stderr), (Some(0), ""));
    for words in [
        "# manifests/kustomize/base/agent.yaml:1",
        "image: localhost/busybox:1\n",
        "memory: 64Mi",
        "LEVEL: debug",
        "site: shop-1",
        "hello from a file",
    ] {
        assert!(stdout.contains(words), "{words}: {stdout}");
    }
    assert_eq!(stdout.matches("kind: Pod\n").count(), 1, "{stdout}");
    let other = podstead(repository, &["render", "manifests/kustomize", "--host", "shop-2", "--layers", "overlays/${NODE_NAME}"]);
    let (stdout, _) = texts(&other);
    assert!(stdout.contains("image: localhost/busybox:2\n") && stdout.contains("memory: 32Mi"), "{stdout}");
}

#[test]
fn each_overlay_is_validated_by_itself() {
    let repository = Path::new(REPOSITORY);
    let output = podstead(repository, &["validate", "-R", "--strict", "manifests/kustomize", "--node-name", "edge"]);
    let (stdout, stderr) = texts(&output);
    assert_eq!((output.status.code(), stdout), (Some(0), ""), "{stderr}");
    assert!(stderr.contains("2 valid pods"), "{stderr}");
}

#[test]
fn problems_name_the_file_that_wrote_them() {
    let root = example();
    edit(&root, "overlays/shop-1/kustomization.yaml", "memory: 64Mi", "memory: much");
    let output = rendered(root.path(), "overlays/shop-1");
    assert_eq!(output.status.code(), Some(1));
    assert!(texts(&output).1.starts_with("overlays/shop-1/kustomization.yaml:"), "{}", texts(&output).1);
    assert_eq!(rendered(root.path(), "overlays/shop-2").status.code(), Some(0));
    let output = podstead(root.path(), &["validate", "-R", ".", "--node-name", "edge", "--color", "never"]);
    let (stdout, stderr) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stdout.contains("overlays/shop-1/kustomization.yaml:") && stdout.contains("memory: much"), "{stdout}");
    assert!(stderr.contains("1 valid pod"), "{stderr}");
}

#[test]
fn a_build_that_fails_renders_nothing() {
    let root = example();
    edit(&root, "overlays/shop-1/kustomization.yaml", "images:", "imagez:");
    let output = rendered(root.path(), "overlays/shop-1");
    let (stdout, stderr) = texts(&output);
    assert_eq!((output.status.code(), stdout), (Some(1), ""));
    assert!(stderr.contains("unknown field") && stderr.contains("did you mean \"images\"?"), "{stderr}");
}

#[test]
fn overlay_is_built_by_its_own_path() {
    let root = example();
    let whole = rendered(root.path(), "overlays/shop-1");
    let objects = |output: &Output| texts(output).0.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n");
    for (directory, path, base) in
        [("", "overlays/shop-1", "base"), ("overlays/shop-1", ".", "../../base"), ("overlays", "shop-1", "../base")]
    {
        let output = podstead(&root.path().join(directory), &["render", path, "--host", "shop-1"]);
        let (stdout, stderr) = texts(&output);
        assert_eq!((output.status.code(), stderr), (Some(0), ""), "{path}");
        assert_eq!(objects(&output), objects(&whole));
        assert!(stdout.contains(&format!("\n# {base}/agent.yaml:1")), "{stdout}");
    }
    edit(&root, "base/agent.yaml", "image:", "imagez:");
    let output = podstead(&root.path().join("overlays"), &["validate", "shop-1", "--node-name", "edge", "--color", "never"]);
    let (stdout, stderr) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stdout.starts_with("base/agent.yaml:") || stdout.starts_with("../base/agent.yaml:"), "{stdout}");
    assert!(stdout.contains(" | ") && stdout.contains("imagez:"), "the line is shown: {stdout}");
}

#[test]
fn overlay_of_git_source_builds_in_clone() {
    let root = example();
    let git = |arguments: &[&str]| {
        let output = Command::new("git").current_dir(root.path()).args(arguments).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    git(&["init", "--quiet"]);
    git(&["remote", "add", "origin", "https://git.lan/shop/edge"]);
    let config = format!(
        "apiVersion: podstead.dev/v1alpha1\nkind: Config\nnodeName: shop-1\nsources:\n\
         - {{name: fleet, git: {{url: https://git.lan/shop/edge, path: overlays/shop-1}}}}\n\
         - {{name: local, directory: {{path: {}/overlays/shop-1}}}}\n",
        root.path().display()
    );
    fs::write(root.path().join("podstead.conf"), config).unwrap();
    let validate = |source: &str, path: &str| {
        podstead(root.path(), &["validate", path, "--source", source, "--config", "podstead.conf", "--color", "never"])
    };
    let output = validate("fleet", ".");
    let (stdout, stderr) = texts(&output);
    assert_eq!((output.status.code(), stdout), (Some(0), ""), "{stderr}");
    assert!(stderr.contains("1 valid pod"), "{stderr}");
    // A directory source has nothing but its directory.
    let output = validate("local", "overlays/shop-1");
    let (stdout, stderr) = texts(&output);
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stdout.contains("set the source's path to a directory that contains it"), "{stdout}");
}

#[test]
fn a_kustomization_alone_is_not_built() {
    let root = example();
    let file = "overlays/shop-1/kustomization.yaml";
    edit(&root, file, "resources:", "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:");
    for arguments in [&["validate", file, "--node-name", "a"][..], &["render", file, "--host", "a"]] {
        let output = podstead(root.path(), arguments);
        let (stdout, stderr) = texts(&output);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        let text = format!("{stdout}{stderr}");
        assert!(text.contains("only the kustomization.yaml of a directory or git source is built"), "{text}");
    }
}

#[test]
fn kustomize_prints_what_kubectl_prints() {
    let repository = Path::new(REPOSITORY);
    for overlay in ["manifests/kustomize/overlays/shop-1", "manifests/kustomize/overlays/shop-2"] {
        let ours = podstead(repository, &["kustomize", overlay]);
        let theirs = Command::new("kubectl").current_dir(repository).args(["kustomize", overlay]).output().unwrap();
        assert_eq!(texts(&ours), (std::str::from_utf8(&theirs.stdout).unwrap(), ""), "{overlay}");
        assert!(ours.status.success() && theirs.status.success());
    }
}

#[test]
fn kustomize_names_file_and_line_of_fault() {
    let copy = example();
    edit(&copy, "overlays/shop-1/kustomization.yaml", "resources:", "resourcess:");
    let output = podstead(copy.path(), &["kustomize", "overlays/shop-1"]);
    let (stdout, stderr) = texts(&output);
    assert_eq!((output.status.code(), stdout), (Some(1), ""));
    assert!(stderr.starts_with("overlays/shop-1/kustomization.yaml:"), "{stderr}");
    let output = podstead(copy.path(), &["kustomize", "."]);
    let (_, stderr) = texts(&output);
    assert_eq!((output.status.code(), stderr), (Some(1), "podstead: . contains no kustomization.yaml\n"));
}
