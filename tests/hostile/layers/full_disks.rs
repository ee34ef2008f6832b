//! Images for which a small file system has no space, or no inodes.

use super::archive::{Image, Layer, file, gzip, noise, tar};
use super::store::{Registry, Store, entries};
use podstead::image::{ImageStoreConfig, RegistryConfig, Reserve};
use std::path::{Path, PathBuf};

const MIB: u64 = 1 << 20;

/// A small file system.
struct Mounted(PathBuf);

impl Mounted {
    fn on(directory: &Path, options: &str) -> Self {
        let point = directory.join("images");
        std::fs::create_dir(&point).unwrap();
        nix::mount::mount(Some("tmpfs"), &point, Some("tmpfs"), nix::mount::MsFlags::empty(), Some(options)).unwrap();
        Self(point)
    }

    /// Free bytes and inodes.
    fn free(&self) -> (u64, u64) {
        let found = rustix::fs::statvfs(&self.0).unwrap();
        (found.f_bavail * found.f_frsize, found.f_favail)
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        nix::mount::umount2(&self.0, nix::mount::MntFlags::MNT_DETACH).unwrap();
    }
}

/// A store on such a file system, which is unmounted first.
struct Bench {
    disk: Mounted,
    store: Store,
}

impl Bench {
    fn new(options: &str, reserve: Reserve, registry: Option<&Registry>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let disk = Mounted::on(directory.path(), options);
        let registries =
            registry.iter().map(|registry| RegistryConfig { host: registry.host(), http: true, ..Default::default() }).collect();
        Self { disk, store: Store::at(directory, ImageStoreConfig { reserve, registries, ..Default::default() }) }
    }
}

#[test]
fn image_larger_than_disk_is_refused() {
    let layer = || Layer::of(&[file("f", &noise(40 << 20))]);
    let registry = Registry::of(Image::of(&[layer()]));
    let reserve = Reserve { storage_percent: 0, storage_at_least: 30 * MIB, inodes_percent: 0 };
    let bench = Bench::new("size=64m", reserve, Some(&registry));
    for reason in [bench.store.refused(&[layer()]), bench.store.pull_refused(&registry)] {
        for part in ["the disk of the image store is full", "of 64 MiB free, 30 MiB of it reserved", "at least 40 MiB needed"] {
            assert!(reason.contains(part), "{reason}");
        }
    }
}

#[test]
fn unpacking_ends_at_the_reserve_of_space() {
    // Little to fetch, much to unpack, and not more than 200 times as much.
    let block = [noise(4000), vec![0; 252_000]].concat();
    // Beyond the reserve it goes on for longer than until the next look at the disk, which is each 64 MiB.
    let entries: Vec<Vec<u8>> = (0..1200).map(|index| file(&format!("f{index}"), &block)).collect();
    let archive = tar(&entries);
    let layer = || Layer::raw(gzip(&archive));
    let registry = Registry::of(Image::of(&[layer()]));
    let reserve = Reserve { storage_percent: 25, storage_at_least: 100 * MIB, inodes_percent: 0 };
    let bench = Bench::new("size=280m", reserve, Some(&registry));
    for reason in [bench.store.refused(&[layer()]), bench.store.pull_refused(&registry)] {
        for part in ["the disk of the image store is full", "100 MiB of it reserved (images.reserve)"] {
            assert!(reason.contains(part), "{reason}");
        }
        assert!(bench.disk.free().0 > 270 * MIB, "what was unpacked is gone");
    }
}

#[test]
fn unpacking_ends_at_the_reserve_of_inodes() {
    let files: Vec<Vec<u8>> = (0..15_000).map(|index| file(&format!("f{index}"), b"")).collect();
    let layer = || Layer::of(&files);
    let registry = Registry::of(Image::of(&[layer()]));
    let reserve = Reserve { storage_percent: 0, storage_at_least: 0, inodes_percent: 50 };
    let bench = Bench::new("size=64m,nr_inodes=20000", reserve, Some(&registry));
    for reason in [bench.store.refused(&[layer()]), bench.store.pull_refused(&registry)] {
        for part in ["the disk of the image store is full", "of 20000 inodes free, 10000 of them reserved"] {
            assert!(reason.contains(part), "{reason}");
        }
        assert!(bench.disk.free().1 > 19_900, "what was unpacked is gone");
    }
}

#[test]
fn filling_disk_without_reserve_leaves_nothing() {
    let block = [noise(4000), vec![0; 252_000]].concat();
    let files: Vec<Vec<u8>> = (0..300).map(|index| file(&format!("f{index}"), &block)).collect();
    let reserve = Reserve { storage_percent: 0, storage_at_least: 0, inodes_percent: 0 };
    let bench = Bench::new("size=40m", reserve, None);
    let reason = bench.store.refused(&[Layer::of(&files)]);
    assert!(reason.contains("the disk of the image store is full") && reason.contains("No space left"), "{reason}");
    assert_eq!(entries(&bench.store.path("images/staging")), 0);
    assert!(bench.disk.free().0 > 38 * MIB, "what was unpacked is gone");
}
