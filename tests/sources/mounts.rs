//! Mounts on top of a followed directory, each test in a mount namespace of its own, and a kernel that gives no inotify.

use crate::follower::{follow, follow_with, options, put};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use podstead::artifact::SourceReport;
use podstead::source::dir::DirectoryOptions;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Runs a test on a thread whose mounts nobody else sees, and which end with it. Threads that it starts are in there with it.
pub(crate) fn in_own_mounts<F: Future<Output = ()>>(test: impl FnOnce() -> F + Send + 'static) {
    let thread = std::thread::spawn(|| {
        unshare(CloneFlags::CLONE_NEWNS).unwrap();
        mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>).unwrap();
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test());
    });
    thread.join().unwrap();
}

pub(crate) fn mount_tmpfs(path: &Path) {
    mount(Some("tmpfs"), path, Some("tmpfs"), MsFlags::empty(), None::<&str>).unwrap();
}

pub(crate) fn unmount(path: &Path) {
    umount2(path, MntFlags::MNT_DETACH).unwrap();
}

#[test]
fn a_mount_on_top_is_followed_and_an_unmount_is_another_place() {
    in_own_mounts(|| async {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("manifests");
        fs::create_dir(&path).unwrap();
        let mut source = follow(&path);
        let below = source.content(&[]).await;
        mount_tmpfs(&path);
        put(&path.join("p.yaml"), "one");
        let mounted = source.content(&[("p.yaml", "one")]).await;
        assert_ne!(mounted.place, below.place);
        put(&path.join("p.yaml"), "two");
        source.content(&[("p.yaml", "two")]).await;
        unmount(&path);
        let unmounted = source.content(&[]).await;
        assert_eq!(unmounted.place, below.place, "an empty mount point is not the emptied directory");
        put(&path.join("p.yaml"), "three");
        source.content(&[("p.yaml", "three")]).await;
    });
}

#[test]
fn what_changes_behind_an_overlay_is_found_by_the_next_pass() {
    in_own_mounts(|| async {
        let base = tempfile::tempdir().unwrap();
        mount_tmpfs(base.path());
        let at = |name: &str| base.path().join(name);
        for name in ["lower", "upper", "work", "merged"] {
            fs::create_dir(at(name)).unwrap();
        }
        let data =
            format!("lowerdir={},upperdir={},workdir={}", at("lower").display(), at("upper").display(), at("work").display());
        mount(Some("overlay"), &at("merged"), Some("overlay"), MsFlags::empty(), Some(data.as_str())).unwrap();
        let mut source = follow_with(&at("merged"), DirectoryOptions { relist: Duration::from_millis(100), ..options() });
        source.content(&[]).await;
        put(&at("upper").join("p.yaml"), "one");
        source.content(&[("p.yaml", "one")]).await;
        unmount(&at("merged"));
    });
}

/// The body of the test below, run where the kernel gives no inotify instance.
#[tokio::test]
#[ignore = "run by without_inotify_changes_are_still_found"]
async fn inner_without_inotify() {
    let directory = tempfile::tempdir().unwrap();
    put(&directory.path().join("p.yaml"), "one");
    let mut source = follow_with(directory.path(), DirectoryOptions { relist: Duration::from_secs(3600), ..options() });
    source.content(&[("p.yaml", "one")]).await;
    let SourceReport::Degraded(Some(text)) = source.next().await else { panic!("not told") };
    assert!(text.contains("inotify") && text.contains("max_user_instances"), "{text}");
    put(&directory.path().join("p.yaml"), "two");
    source.content(&[("p.yaml", "two")]).await;
    // Of the namespace that was made for this test.
    fs::write("/proc/sys/user/max_inotify_instances", "16").unwrap();
    let report = source.next().await;
    assert!(matches!(report, SourceReport::Degraded(None)), "{report:?}");
}

#[test]
fn without_inotify_changes_are_still_found() {
    let script = "echo 0 > /proc/sys/user/max_inotify_instances && exec \"$0\" --exact --ignored mounts::inner_without_inotify";
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "sh", "-c", script])
        .arg(std::env::current_exe().unwrap())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}{}", String::from_utf8_lossy(&output.stderr));
}
