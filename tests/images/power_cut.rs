//! The power goes: an ext4 of its own is shut down under the store without flushing its journal.

use crate::support::{TestStore, references, run};
use podstead::{
    image::{ImageStore, ImageStoreConfig},
    pod::containers::PullPolicy,
    runtime::{ImageService, PullSecrets},
    sys::atomic_file,
};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

nix::ioctl_write_ptr_bad!(
    /// `EXT4_IOC_SHUTDOWN`.
    ext4_shutdown,
    0x8004_587d,
    u32
);
/// `EXT4_GOING_FLAGS_NOLOGFLUSH`: not even what the journal has in memory.
const NO_LOG_FLUSH: u32 = 2;

/// A file system in a file, mounted; unmounted when dropped.
pub(crate) struct Disk {
    directory: tempfile::TempDir,
}

impl Disk {
    pub(crate) fn new() -> Self {
        Self::of_size(1 << 30)
    }

    pub(crate) fn of_size(bytes: u64) -> Self {
        Self::made_by(bytes, &["mkfs.ext4", "-q", "-E", "lazy_itable_init=1"])
    }

    fn made_by(bytes: u64, mkfs: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let disk = Self { directory };
        File::create(disk.file()).unwrap().set_len(bytes).unwrap();
        run(Command::new(mkfs[0]).args(&mkfs[1..]).arg(disk.file()));
        fs::create_dir(disk.mount_point()).unwrap();
        disk.mount();
        disk
    }

    fn file(&self) -> PathBuf {
        self.directory.path().join("disk")
    }

    pub(crate) fn mount_point(&self) -> PathBuf {
        self.directory.path().join("mounted")
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.mount_point().join("images")
    }

    fn mount(&self) {
        run(Command::new("mount").args(["-o", "loop"]).arg(self.file()).arg(self.mount_point()));
    }

    /// The power goes: from now on nothing reaches the disk, and everything fails.
    #[expect(unsafe_code, reason = "no crate has this ioctl")]
    pub(crate) fn cut(&self) {
        let root = File::open(self.mount_point()).unwrap();
        // SAFETY: the ioctl reads one integer, which lives during the call.
        unsafe { ext4_shutdown(std::os::fd::AsRawFd::as_raw_fd(&root), &NO_LOG_FLUSH) }.unwrap();
    }

    /// Bytes that the kernel has written to it, once all is there.
    pub(crate) fn written(&self) -> u64 {
        use std::os::linux::fs::MetadataExt;
        rustix::fs::syncfs(File::open(self.mount_point()).unwrap()).unwrap();
        let device = fs::metadata(self.mount_point()).unwrap().st_dev();
        let path = format!("/sys/dev/block/{}:{}/stat", nix::sys::stat::major(device), nix::sys::stat::minor(device));
        fs::read_to_string(path).unwrap().split_whitespace().nth(6).unwrap().parse::<u64>().unwrap() * 512
    }

    /// The kernel makes it read-only, as after an error of the disk.
    pub(crate) fn make_read_only(&self) {
        run(Command::new("mount").args(["-o", "remount,abort,errors=remount-ro"]).arg(self.mount_point()));
    }

    /// The kernel finds an error in the file system, which goes on.
    pub(crate) fn report_error(&self) {
        use std::os::linux::fs::MetadataExt;
        let device = fs::metadata(self.mount_point()).unwrap().st_dev();
        let block = format!("/sys/dev/block/{}:{}", nix::sys::stat::major(device), nix::sys::stat::minor(device));
        let name = fs::read_link(block).unwrap().file_name().unwrap().to_owned();
        assert!(name.to_string_lossy().starts_with("loop"), "{name:?} is not the disk of a test");
        fs::write(Path::new("/sys/fs/ext4").join(name).join("trigger_fs_error"), "for a test").unwrap();
    }

    /// It comes back. Waits for threads of the store that was dropped: they block on the disk, and have files open until they fail.
    pub(crate) fn restart(&self) {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let output = Command::new("umount").arg(self.mount_point()).output().unwrap();
            if output.status.success() {
                break;
            }
            assert!(Instant::now() < deadline, "{}", String::from_utf8_lossy(&output.stderr));
            std::thread::park_timeout(Duration::from_millis(20));
        }
        // A mount namespace that another process made meanwhile has the mount as well, until that process leaves it: mounted now, the file system
        // would be the one that was shut down.
        while self.has_loop_device() {
            assert!(Instant::now() < deadline, "somebody keeps the disk mounted");
            std::thread::park_timeout(Duration::from_millis(20));
        }
        self.mount();
    }

    fn has_loop_device(&self) -> bool {
        let output = Command::new("losetup").arg("--associated").arg(self.file()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        !output.stdout.is_empty()
    }

    pub(crate) fn open(&self, test: &TestStore) -> Arc<ImageStore> {
        ImageStore::open(&self.root(), crate::support::with_jobs(ImageStoreConfig::default()), test.events.clone()).unwrap()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        let unmounted = Command::new("umount").arg("--lazy").arg(self.mount_point()).status();
        assert!(std::thread::panicking() || unmounted.unwrap().success());
    }
}

/// Some hundred files of all sizes.
pub(crate) fn archive(test: &TestStore, name: &str) -> PathBuf {
    let root = test.path(&format!("root-{name}"));
    for directory in 0..20 {
        let directory = root.join(format!("d{directory}"));
        fs::create_dir_all(&directory).unwrap();
        for file in 0..20_usize {
            fs::write(directory.join(format!("f{file}")), vec![b'x'; 1 + file * file * 97]).unwrap();
        }
    }
    fs::write(root.join("large"), vec![b'y'; 20_000_000]).unwrap();
    test.make_image(
        &format!("{name}.tar.zst"),
        &format!("localhost/{name}:1"),
        &["--root", root.to_str().unwrap(), "--add", &format!("/etc/hostname:/etc/{name}")],
    )
}

pub(crate) fn assert_whole(layers: &[PathBuf]) {
    let base = &layers[0];
    for directory in 0..20 {
        for file in 0..20_usize {
            let content = fs::read(base.join(format!("d{directory}/f{file}"))).unwrap();
            assert!(
                content.len() == 1 + file * file * 97 && content.iter().all(|byte| *byte == b'x'),
                "d{directory}/f{file} is damaged"
            );
        }
    }
    let large = fs::read(base.join("large")).unwrap();
    assert!(large.len() == 20_000_000 && large.iter().all(|byte| *byte == b'y'));
    assert!(fs::metadata(layers[1].join("etc")).unwrap().is_dir());
}

pub(crate) fn entries(path: &Path) -> usize {
    fs::read_dir(path).unwrap().count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_that_is_listed_is_whole_after_the_power_went() {
    let test = TestStore::new();
    let disk = Disk::new();
    let store = disk.open(&test);
    store.import(archive(&test, "a")).await.unwrap();
    // At once: nothing had time to be written by itself.
    disk.cut();
    drop(store);
    disk.restart();
    let store = disk.open(&test);
    let image = store.ensure("localhost/a:1", PullPolicy::Never, &PullSecrets::none()).await.unwrap();
    assert_whole(&image.layers);
    assert_eq!(test.events.all(), [], "nothing was damaged");
    // A second image of the same base, and a removal.
    store.import(archive(&test, "b")).await.unwrap();
    store.remove("localhost/a:1", false).await.unwrap();
    disk.cut();
    drop(store);
    disk.restart();
    let store = disk.open(&test);
    assert_eq!(references(&store).await, ["localhost/b:1"]);
    assert_whole(&store.ensure("localhost/b:1", PullPolicy::Never, &PullSecrets::none()).await.unwrap().layers);
    assert_eq!(entries(&disk.root().join("layers")), 2, "the layer that only the removed image had is gone");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_image_that_was_being_made_when_the_power_went_is_not_listed_and_leaves_nothing() {
    let test = TestStore::new();
    let (first, second) = (archive(&test, "a"), archive(&test, "b"));
    let disk = Disk::new();
    let store = disk.open(&test);
    store.import(first).await.unwrap();
    drop(store);
    let files_of_a = files(&disk.root().join("layers"));
    let mut cut_short = 0;
    // From the first file in staging to shortly before the end.
    for cut in 0..6 {
        let store = disk.open(&test);
        let importing = tokio::spawn({
            let (store, second) = (Arc::clone(&store), second.clone());
            async move { store.import(second).await }
        });
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while files(&disk.root().join("staging")) < 1 + cut * 80 && !importing.is_finished() {
            assert!(std::time::Instant::now() < deadline, "the import does not get there");
            tokio::task::yield_now().await;
        }
        disk.cut();
        let result = importing.await.unwrap();
        drop(store);
        disk.restart();
        let store = disk.open(&test);
        let listed = references(&store).await;
        assert!(listed.contains(&"localhost/a:1".to_owned()), "what was there before is untouched");
        for reference in &listed {
            assert_whole(&store.ensure(reference, PullPolicy::Never, &PullSecrets::none()).await.unwrap().layers);
        }
        assert_eq!(files(&disk.root().join("staging")), 0);
        match (result, listed.len()) {
            (Ok(_), 2) => store.remove("localhost/b:1", false).await.unwrap(),
            (Ok(_), _) => panic!("what was reported done is gone"),
            (Err(_), 1) => {
                cut_short += 1;
                assert_eq!(files(&disk.root().join("layers")), files_of_a, "what nothing names is removed");
            }
            (Err(_), _) => store.remove("localhost/b:1", false).await.unwrap(),
        }
    }
    assert!(cut_short > 2, "only {cut_short} of 6 cuts came before the end");
}

/// Files below `path`.
pub(crate) fn files(path: &Path) -> usize {
    let mut count = 0;
    for entry in fs::read_dir(path).into_iter().flatten().flatten() {
        count += match entry.file_type() {
            Ok(kind) if kind.is_dir() => files(&entry.path()),
            Ok(_) | Err(_) => 1,
        };
    }
    count
}

/// A record of some pages that is told apart by its number.
fn record(number: u64) -> String {
    format!("{number}\n").repeat(2000)
}

/// The number of a record, which has to be whole.
fn number(path: &Path) -> u64 {
    let text = fs::read_to_string(path).unwrap();
    let number = text.lines().next().unwrap_or_else(|| panic!("{} is empty", path.display())).parse().unwrap();
    assert!(text == record(number), "{} is not whole", path.display());
    number
}

/// Replaces one record again and again, each time beside a record in a new directory, until the power goes. `written` is the last durable one.
fn write_until_cut(place: &Path, written: &AtomicU64) {
    for next in 1.. {
        let directory = place.join(format!("d{next}"));
        let made = fs::create_dir(&directory).and_then(|()| {
            atomic_file::stage(&directory.join("new"), record(next).as_bytes(), 0o600)?
                .after(|| atomic_file::sync_directory(place))?
                .put()?;
            atomic_file::write_durable(&place.join("replaced"), record(next).as_bytes(), 0o600)
        });
        match made {
            Ok(()) => written.store(next, Ordering::SeqCst),
            Err(_) => return,
        }
    }
}

/// Cuts the power while records are written, and asserts that those are durable that were reported to be, and that no other one is half.
#[test]
fn records_survive_power_cuts() {
    let disk = Disk::of_size(256 << 20);
    assert!(atomic_file::keeps_order(&disk.mount_point()));
    for round in 0..5_u64 {
        let place = disk.mount_point().join(format!("round{round}"));
        fs::create_dir(&place).unwrap();
        atomic_file::sync_directory(&disk.mount_point()).unwrap();
        let written = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| write_until_cut(&place, &written));
            let deadline = Instant::now() + Duration::from_secs(60);
            while written.load(Ordering::SeqCst) < 3 * round + 1 {
                assert!(Instant::now() < deadline, "no record is written");
                std::thread::yield_now();
            }
            disk.cut();
        });
        disk.restart();
        let durable = written.load(Ordering::SeqCst);
        assert!([durable, durable + 1].contains(&number(&place.join("replaced"))), "round {round}: {durable} was durable");
        for earlier in 1..=durable {
            assert_eq!(number(&place.join(format!("d{earlier}/new"))), earlier);
        }
        let under_way = place.join(format!("d{}/new", durable + 1));
        assert!(!under_way.try_exists().unwrap() || number(&under_way) == durable + 1);
    }
}

#[test]
fn journal_is_needed_for_order() {
    let disk = Disk::made_by(64 << 20, &["mkfs.ext4", "-q", "-O", "^has_journal"]);
    assert!(!atomic_file::keeps_order(&disk.mount_point()));
}
