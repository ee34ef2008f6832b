//! The manual, executed: every block of commands in the tutorial and the how-to pages runs as it stands, in its order, on a host of its own.
//! Needs root.
//!
//! * A block that is fenced as `sh` is run by bash; one that cannot be (it installs a package, reboots) is fenced as `sh,not-run`.
//! * A block that is fenced as `yaml,file=/etc/podstead/config.yaml` is written to that file, as `yaml,add=...` appended to it.
//! * `<!-- until: COMMAND -->` waits until the command succeeds: what a reader sees by looking again.
//! * On all other pages nothing is run: a block of commands is fenced as `sh,not-run` there.
//! * `tests/manual/<page>.sh`, if there is one, prepares the surroundings that the page takes for granted.
//!
//! The host is a set of namespaces in which `/etc/podstead`, `/var/lib/podstead` and so on are empty; `prologue.sh` makes it.
#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test that cannot go on has to fail, and says what it saw")]

mod links;
mod page;

use links::markdown_below;
use page::{Step, steps};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

/// Pages share the cgroup of the default configuration.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
/// A page that takes longer hangs.
const SECONDS: &str = "240";

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The pages that are executed.
fn pages() -> Vec<PathBuf> {
    let mut pages: Vec<PathBuf> =
        fs::read_dir(repository().join("docs/how-to")).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.push(repository().join("docs/tutorial.md"));
    pages.sort();
    pages
}

/// A block as a here-document whose end no page contains.
fn here(out: &mut String, text: &str) {
    let _infallible = write!(out, " <<'END-OF-BLOCK'\n{text}END-OF-BLOCK\n");
}

fn script(page: &Path) -> String {
    let folder = repository().join("tests/manual");
    let mut script = fs::read_to_string(folder.join("prologue.sh")).unwrap();
    let surroundings = folder.join(page.with_extension("sh").file_name().unwrap());
    script.push_str(&fs::read_to_string(surroundings).unwrap_or_default());
    for (number, step) in steps(&fs::read_to_string(page).unwrap()).iter().enumerate() {
        let _infallible = writeln!(script, "step={}", number + 1);
        match step {
            Step::Run(commands) => script.push_str(commands),
            Step::Write { path, text } => {
                let _infallible = write!(script, "mkdir -p \"$(dirname {path})\"; cat >{path}.new");
                here(&mut script, text);
                let _infallible = writeln!(script, "mv {path}.new {path}");
            }
            Step::Append { path, text } => {
                let _infallible = write!(script, "{{ cat {path} && cat; }} >{path}.new");
                here(&mut script, text);
                let _infallible = writeln!(script, "mv {path}.new {path}");
            }
            Step::Until(condition) => {
                let _infallible = writeln!(script, "until_true {}", shell_word(condition));
            }
        }
        script.push('\n');
    }
    script
}

fn shell_word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

fn run(page: &str) {
    assert!(nix::unistd::geteuid().is_root(), "the manual runs containers: it needs root");
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    let page = repository().join("docs").join(page);
    let image = tempfile::tempdir().unwrap();
    let archive = image.path().join("busybox.tar");
    let made =
        Command::new(repository().join("tests/support/make-image.sh")).arg(&archive).arg("localhost/busybox:1").status().unwrap();
    assert!(made.success());
    let script_file = image.path().join("script");
    fs::write(&script_file, script(&page)).unwrap();
    let output = Command::new("timeout")
        .args([
            "--kill-after=10",
            SECONDS,
            "unshare",
            "--mount",
            "--net",
            "--uts",
            "--pid",
            "--fork",
            "--kill-child",
            "--mount-proc",
            "bash",
        ])
        .arg(&script_file)
        .env("PODSTEAD_BINARIES", Path::new(env!("CARGO_BIN_EXE_podstead")).parent().unwrap())
        .env("PODSTEAD_IMAGE", &archive)
        .env("PODSTEAD_REPOSITORY", repository())
        .env_remove("PODSTEAD_CONFIG")
        .env_remove("PODSTEAD_SOCKET")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    if !output.status.success() {
        eprintln!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        panic!("{} does not do what it says: {}", page.display(), output.status);
    }
}

/// A test for each page, so that one can be run by its name.
macro_rules! pages {
    ($($name:ident: $path:literal,)*) => {
        $(#[test] fn $name() { run($path); })*
        const TESTED: &[&str] = &[$($path),*];
    };
}

pages! {
    tutorial: "tutorial.md",
    air_gapped: "how-to/air-gapped.md",
    backup: "how-to/backup.md",
    bundles: "how-to/bundles.md",
    commit_status: "how-to/commit-status.md",
    from_a_cluster: "how-to/from-a-cluster.md",
    from_docker_compose: "how-to/from-docker-compose.md",
    from_podman: "how-to/from-podman.md",
    install: "how-to/install.md",
    join_cluster: "how-to/join-cluster.md",
    kubectl: "how-to/kubectl.md",
    many_hosts: "how-to/many-hosts.md",
    mirrors: "how-to/mirrors.md",
    notifications: "how-to/notifications.md",
    private_registry: "how-to/private-registry.md",
    proxy: "how-to/proxy.md",
    registry_manifests: "how-to/registry-manifests.md",
    release: "how-to/release.md",
    secrets: "how-to/secrets.md",
    signed_commits: "how-to/signed-commits.md",
    signed_images: "how-to/signed-images.md",
    slow_pods: "how-to/slow-pods.md",
    support: "how-to/support.md",
    untrusted_source: "how-to/untrusted-source.md",
    what_do_i_do_when: "how-to/what-do-i-do-when.md",
}

#[test]
fn every_page_is_executed() {
    let mut tested: Vec<PathBuf> = TESTED.iter().map(|page| repository().join("docs").join(page)).collect();
    tested.sort();
    assert_eq!(tested, pages());
}

/// Whoever adds commands to a page that no test executes has to say so there. (A fence that is not known at all ends in `steps`.)
#[test]
fn commands_on_the_other_pages_are_marked_as_not_run() {
    let executed = pages();
    for page in markdown_below(&repository().join("docs")).into_iter().filter(|page| !executed.contains(page)) {
        let unmarked = steps(&fs::read_to_string(&page).unwrap());
        assert!(unmarked.is_empty(), "no test executes {}: fence as `sh,not-run` what is not run: {unmarked:#?}", page.display());
    }
}
