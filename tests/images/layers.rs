//! Single layers through the job that unpacks them.

use crate::support::{Recorded, binary};
use podstead::container::cgroup::Cgroups;
use podstead::container::digest::Digest;
use podstead::image::layer::{Bounds, Expected, LayerError, StagedLayer, stage_layer};
use podstead::image::limits::Budget;
use podstead::image::space::Space;
use podstead::image::staging::Staging;
use podstead::image::unpack_job::Unpacker;
use podstead::image::{JobSettings, Limits, Reserve};
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// A staging directory.
struct Bench {
    _directory: tempfile::TempDir,
    staging: Staging,
}

impl Bench {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().to_owned();
        Self::at(&path, directory, None)
    }

    fn at(path: &Path, directory: tempfile::TempDir, slice: Option<String>) -> Self {
        let settings = JobSettings { program: binary(), slice, ..JobSettings::default() };
        let unpacker = Arc::new(Unpacker::new(settings, Arc::<Recorded>::default()));
        let staging = Staging::open(path.join("staging"), unpacker).unwrap();
        Self { _directory: directory, staging }
    }

    fn stage(&self, source: impl Read, expected: Expected) -> Result<StagedLayer, LayerError> {
        let reserve = Reserve { storage_percent: 0, storage_at_least: 0, inodes_percent: 0 };
        let space = Space::of(self.staging.path(), reserve);
        let limits = Limits::default();
        let bounds = Bounds { limits, image: Arc::new(Budget::of(limits, 1)), space };
        stage_layer(source, self.staging.directory().unwrap(), expected, &bounds)
    }

    fn staged(&self) -> usize {
        std::fs::read_dir(self.staging.path()).unwrap().count()
    }
}

fn header(path: &[u8], kind: tar_core::EntryType, size: u64) -> Vec<u8> {
    let mut header = tar_core::Header::new_ustar();
    header.set_path(path).unwrap();
    header.set_mode_small(0o755);
    header.set_size(size).unwrap();
    header.set_entry_type(kind);
    header.set_checksum();
    header.as_bytes().to_vec()
}

/// Nice values of all jobs of this process that unpack, those of other tests included. They have their name when they have given way.
fn nice_values() -> Vec<String> {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let children = threads.flatten().map(|thread| std::fs::read_to_string(thread.path().join("children")).unwrap_or_default());
    let children: Vec<String> = children.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect();
    let unpacks =
        |pid: &&String| std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|words| words == b"podstead-job\0unpack\0");
    let stats = children.iter().filter(unpacks).map(|pid| std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default());
    let jobs = stats.filter(|stat| stat.contains("(podstead-job)"));
    jobs.filter_map(|stat| stat.rsplit(')').next()?.split_whitespace().nth(16).map(str::to_owned)).collect()
}

/// Ends when a job waits for it.
struct UntilJob(Vec<String>);

impl Read for UntilJob {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while self.0.is_empty() && std::time::Instant::now() < deadline {
            self.0 = nice_values();
            std::thread::park_timeout(Duration::from_millis(5));
        }
        Ok(0)
    }
}

/// I20.
#[test]
fn job_gives_way_to_others() {
    let mut source = UntilJob(Vec::new());
    let expected = Expected { blob: None, diff_id: None };
    drop(Bench::new().stage(&mut source, expected));
    assert!(!source.0.is_empty() && source.0.iter().all(|nice| nice == "5"), "{:?}", source.0);
}

/// An archive with one directory.
fn archive() -> Vec<u8> {
    [header(b"d/", tar_core::EntryType::Directory, 0), vec![0; 1024]].concat()
}

#[test]
fn layer_in_memory_may_be_larger_than_the_memory_of_a_job() {
    const SIZE: u64 = 300 << 20;
    let directory = tempfile::tempdir().unwrap();
    let mounted = directory.path().join("mounted");
    std::fs::create_dir(&mounted).unwrap();
    nix::mount::mount(Some("none"), &mounted, Some("tmpfs"), nix::mount::MsFlags::empty(), None::<&str>).unwrap();
    let slice = format!("podstead-memory-{}.slice", std::process::id());
    let bench = Bench::at(&mounted, directory, Some(slice.clone()));
    let content = io::repeat(b'x').take(SIZE);
    let blob = header(b"f", tar_core::EntryType::Regular, SIZE);
    let source = (&blob[..]).chain(content).chain(io::repeat(0).take(1024));
    let layer = bench.stage(source, Expected { blob: None, diff_id: None });
    nix::mount::umount2(&mounted, nix::mount::MntFlags::MNT_DETACH).unwrap();
    Cgroups::detect(&slice).and_then(|groups| groups.remove(&Path::new("/").join(&slice), Duration::from_secs(10))).unwrap();
    assert_eq!(layer.unwrap().unpacked.bytes, SIZE);
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn plain_gzip_and_zstd_layers_have_the_same_diff_id() {
    let plain = archive();
    let bench = Bench::new();
    for blob in [plain.clone(), gzip(&plain), zstd::encode_all(&plain[..], 3).unwrap()] {
        let expected = Expected { blob: Some(Digest::of(&blob)), diff_id: Some(Digest::of(&plain)) };
        let layer = bench.stage(&blob[..], expected).unwrap();
        assert_eq!((layer.blob_size, layer.unpacked.entries), (blob.len() as u64, 1));
        assert!(layer.directory.tree().join("d").is_dir());
    }
    assert_eq!(bench.staged(), 0, "a layer that is not published is removed");
}

#[test]
fn a_damaged_layer_is_reported_by_its_digest_whatever_else_is_wrong_with_it() {
    let bench = Bench::new();
    let blob = gzip(&archive());
    let expected = Expected { blob: Some(Digest::of(&blob)), diff_id: None };
    for position in [3, blob.len() / 2, blob.len() - 1] {
        let mut damaged = blob.clone();
        damaged[position] ^= 0x55;
        let error = bench.stage(&damaged[..], expected).unwrap_err();
        assert!(matches!(error, LayerError::BlobDigest { .. }), "{position}: {error:?}");
    }
    let longer = [blob.clone(), vec![0; 10]].concat();
    assert!(matches!(bench.stage(&longer[..], expected), Err(LayerError::BlobDigest { .. })));
    assert!(matches!(bench.stage(&blob[..blob.len() - 5], expected), Err(LayerError::BlobDigest { .. })));
    let wrong = Expected { blob: None, diff_id: Some(Digest::of(b"other")) };
    assert!(matches!(bench.stage(&blob[..], wrong), Err(LayerError::DiffId { .. })));
}

#[test]
fn an_error_of_the_source_is_told_as_one() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("cable"))
        }
    }
    let bench = Bench::new();
    let blob = gzip(&archive());
    let expected = Expected { blob: Some(Digest::of(b"")), diff_id: None };
    let error = bench.stage((&blob[..20]).chain(Broken), expected).unwrap_err();
    assert!(matches!(error, LayerError::Read(_)), "{error:?}");
    assert_eq!(bench.staged(), 0);
}
