//! The crates of the workspace: their order, what none of them may link, and the page that shows them.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Crates that compile and are tested on any machine with Rust: no tokio, no C.
const PURE: &[&str] = &[
    "podstead-pod",
    "podstead-manifest",
    "podstead-trust",
    "podstead-workload",
    "podstead-service",
    "podstead-policy",
    "podstead-jsonpath",
];

/// Crates without tokio: the shim, which is there once per pod, and all that it links.
const WITHOUT_TOKIO: &[&str] = &["podstead-shim", "podstead-container", "podstead-copy", "podstead-sys"];

/// A crate with C of its own that needs a compiler and no package.
const BRINGS_ITS_C: &str = "ring";

const PAGE: &str = "docs/contributing/workspace.md";

const HEAD: &str = "# The crates

```text
        bytes            objects          SET            operations       one per pod             actions
source -----> manifest ---------> store -------> mux ---------------> sync ------------> worker ---------> runtime image network volume probe
                                                                                           |
                                                                                           v
                                                                                         status ---> api, dns, upstream
```

Each folder of `src/` is a crate. A crate depends only on crates above it in this list, which is the `members` list of the root `Cargo.toml`;
cargo refuses a cycle, and a test refuses another order. The third column leaves out what a crate gets through another one that it names.

";

const TAIL: &str = "
`src/main.rs` and `src/bin/podstead-shim.rs` are the two binaries, in the root package, so that a test never runs an old shim. `src/lib.rs` gives
the crates short names for the tests in `tests/`, which belong to the root package.

*pure*: no files, no clock, no environment, no tokio, and no C but that of `ring`. *no tokio*: what the shim links.

Helpers and fakes for tests of other crates are modules `testing`, `fake` or `fakes` behind the feature `testing`, which only dev-dependencies
enable. Versions, lints and the features of other crates are in the root `Cargo.toml`.

Made from the `Cargo.toml` files by `UPDATE=1 cargo test --test architecture`.
";

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn cargo(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO")).args(arguments).args(["--locked", "--offline"]).current_dir(root()).output().unwrap();
    assert!(output.status.success(), "cargo {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// The target triple of this machine.
fn host() -> String {
    let output = Command::new("rustc").arg("-vV").output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc names its host").to_owned()
}

/// One crate of the workspace.
struct Member {
    name: String,
    folder: String,
    description: String,
    /// Crates of the workspace that it links.
    dependencies: BTreeSet<String>,
}

/// The crates in the order of the root `Cargo.toml`.
fn members() -> Vec<Member> {
    let metadata: serde_json::Value = serde_json::from_str(&cargo(&["metadata", "--no-deps", "--format-version", "1"])).unwrap();
    let read = |package: &serde_json::Value| {
        let text = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
        let folder = PathBuf::from(text("manifest_path")).parent().unwrap().strip_prefix(root()).unwrap().to_owned();
        let edges = package["dependencies"].as_array().unwrap().iter().filter(|edge| edge["kind"].is_null());
        let names = edges.map(|edge| edge["name"].as_str().unwrap().to_owned()).filter(|name| name.starts_with("podstead-"));
        Member {
            name: text("name"),
            folder: folder.to_str().unwrap().to_owned(),
            description: text("description"),
            dependencies: names.collect(),
        }
    };
    let mut members: Vec<Member> = metadata["packages"].as_array().unwrap().iter().map(read).collect();
    members.retain(|member| member.name != "podstead");
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    members.sort_by_key(|member| manifest.find(&format!("\"{}\"", member.folder)));
    assert!(members.len() > 10, "only {} crates", members.len());
    members
}

/// The crates that `package` links or is built with.
fn tree(package: &str) -> BTreeSet<String> {
    let text = cargo(&["tree", "--package", package, "--edges", "normal,build", "--prefix", "none", "--format", "{p}"]);
    text.lines().filter_map(|line| line.split_whitespace().next().map(ToOwned::to_owned)).collect()
}

#[test]
fn crates_depend_only_on_those_above_them() {
    let mut above = BTreeSet::new();
    for member in members() {
        let below: Vec<_> = member.dependencies.difference(&above).collect();
        assert!(below.is_empty(), "{} depends on {below:?}, which the list of members has below it", member.name);
        above.insert(member.name);
    }
}

#[test]
fn the_shim_has_no_tokio() {
    for package in WITHOUT_TOKIO.iter().chain(PURE) {
        let tree = tree(package);
        let found: Vec<_> = tree.iter().filter(|name| name.starts_with("tokio")).collect();
        assert!(found.is_empty(), "{package} links {found:?}");
        assert!(!tree.contains("libgit2-sys"), "{package} links libgit2");
    }
    let with_libcontainer: Vec<String> =
        members().into_iter().map(|member| member.name).filter(|name| tree(name).contains("libcontainer")).collect();
    assert_eq!(with_libcontainer, ["podstead-shim"], "one crate needs Debian's libseccomp");
}

#[test]
fn pure_crates_link_no_c() {
    // Crates for other platforms are not on this machine.
    let text = cargo(&["metadata", "--format-version", "1", "--filter-platform", &host()]);
    let metadata: serde_json::Value = serde_json::from_str(&text).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let linking: BTreeSet<&str> =
        packages.filter(|package| package["links"].is_string()).map(|package| package["name"].as_str().unwrap()).collect();
    for package in PURE {
        let tree = tree(package);
        let found: Vec<_> = tree
            .iter()
            .filter(|name| linking.contains(name.as_str()) || name.ends_with("-sys"))
            .filter(|name| name.as_str() != BRINGS_ITS_C && !metadata_only(name))
            .collect();
        assert!(found.is_empty(), "{package} links {found:?}");
    }
}

/// Returns true for crates with a `links` that names no library: it rules out two versions of them in one program.
fn metadata_only(name: &str) -> bool {
    name == "k8s-openapi"
}

/// The page.
fn page() -> String {
    let members = members();
    let by_name: BTreeMap<&str, &Member> = members.iter().map(|member| (member.name.as_str(), member)).collect();
    fn reach<'a>(name: &str, by_name: &BTreeMap<&str, &'a Member>, found: &mut BTreeSet<&'a str>) {
        for next in &by_name[name].dependencies {
            if found.insert(next) {
                reach(next, by_name, found);
            }
        }
    }
    let mut text = HEAD.to_owned();
    text += "| crate | | depends on | what it is |\n| --- | --- | --- | --- |\n";
    for member in &members {
        let mut through = BTreeSet::new();
        for next in &member.dependencies {
            reach(next, &by_name, &mut through);
        }
        let direct = members.iter().map(|other| other.name.as_str()).filter(|name| member.dependencies.contains(*name));
        let short = |name: &str| name.trim_start_matches("podstead-").to_owned();
        let direct: Vec<String> = direct.filter(|name| !through.contains(name)).map(short).collect();
        let mark = match member.name.as_str() {
            name if PURE.contains(&name) => "pure",
            name if WITHOUT_TOKIO.contains(&name) => "no tokio",
            _ => "",
        };
        text += &format!("| `{}` | {mark} | {} | {} |\n", member.folder, direct.join(", "), member.description);
    }
    text + TAIL
}

#[test]
fn the_page_shows_the_crates() {
    let (page, path) = (page(), root().join(PAGE));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let present = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(page == present, "{PAGE} is not up to date: run UPDATE=1 cargo test --test architecture");
}
