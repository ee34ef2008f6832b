//! An image store for one test: in the test's process, or a daemon's whose memory is measured.

use super::archive::{Image, Layer};
use crate::events::Recorded;
use crate::support::TestHost;
use podstead::{
    image::{ImageStore, ImageStoreConfig, JobSettings},
    runtime::ImageService,
};
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::{Arc, OnceLock};

pub(super) const NAME: &str = "localhost/hostile:1";

/// More than what the daemon needs for any honest layer, far less than what the layers here would like.
const MEMORY: u64 = 64 << 20;

/// A store in this process, with a bystander outside of it.
pub(super) struct Store {
    directory: tempfile::TempDir,
    store: Arc<ImageStore>,
    events: Arc<Recorded>,
}

impl Store {
    pub(super) fn new() -> Self {
        Self::with(ImageStoreConfig::default())
    }

    pub(super) fn with(config: ImageStoreConfig) -> Self {
        Self::at(tempfile::tempdir().unwrap(), config)
    }

    /// A store in a directory that has something mounted on `images`.
    pub(super) fn at(directory: tempfile::TempDir, config: ImageStoreConfig) -> Self {
        let jobs = JobSettings { program: crate::support::binary("podstead"), ..config.jobs };
        Self::made(directory, ImageStoreConfig { jobs, ..config })
    }

    /// A store whose jobs are the program of `config`.
    pub(super) fn with_program(config: ImageStoreConfig) -> Self {
        Self::made(tempfile::tempdir().unwrap(), config)
    }

    fn made(directory: tempfile::TempDir, config: ImageStoreConfig) -> Self {
        fs::create_dir(directory.path().join("outside")).unwrap();
        fs::write(directory.path().join("outside/bystander"), "untouched").unwrap();
        let events = Arc::<Recorded>::default();
        let store = ImageStore::open(&directory.path().join("images"), config, Arc::<Recorded>::clone(&events)).unwrap();
        Self { directory, store, events }
    }

    pub(super) fn path(&self, below: &str) -> PathBuf {
        self.directory.path().join(below)
    }

    /// The directory that no image may touch.
    pub(super) fn outside(&self) -> String {
        self.path("outside").to_str().unwrap().to_owned()
    }

    /// Imports an image of these layers; its trees, lowest first, or why not. Whatever the image tried: outside is as it was, and staging empty.
    pub(super) fn import(&self, layers: &[Layer]) -> Result<Vec<PathBuf>, String> {
        self.import_as(NAME, layers)
    }

    /// As [`Store::import`], under a name of its own.
    pub(super) fn import_as(&self, name: &str, layers: &[Layer]) -> Result<Vec<PathBuf>, String> {
        let archive = self.path("hostile.tar");
        Image::of(layers).write(&archive, name);
        self.import_archive(name, archive)
    }

    /// As [`Store::import`], with one layer in an archive as `docker save` writes it.
    pub(super) fn import_docker(&self, name: &str, layer: &Layer) -> Result<Vec<PathBuf>, String> {
        let archive = self.path("docker.tar");
        Image::of(std::slice::from_ref(layer)).write_docker(&archive, name, &layer.bytes);
        self.import_archive(name, archive)
    }

    fn import_archive(&self, name: &str, archive: PathBuf) -> Result<Vec<PathBuf>, String> {
        let imported = wait(self.store.import(archive));
        let names: Vec<_> = fs::read_dir(self.outside()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["bystander"]);
        let bystander = self.path("outside/bystander");
        assert_eq!(fs::read(&bystander).unwrap(), b"untouched");
        assert_eq!(std::os::unix::fs::MetadataExt::nlink(&fs::metadata(&bystander).unwrap()), 1);
        assert_eq!(entries(&self.path("images/staging")), 0, "staging is empty");
        imported.map_err(|error| error.to_string())?;
        let policy = podstead::pod::containers::PullPolicy::Never;
        let image = wait(self.store.ensure(name, policy, &podstead::runtime::PullSecrets::none())).unwrap();
        Ok(image.layers)
    }

    /// Pulls the image of a registry; its trees, lowest first, or why not.
    pub(super) fn pull(&self, registry: &Registry) -> Result<Vec<PathBuf>, String> {
        let policy = podstead::pod::containers::PullPolicy::Always;
        let pulled = wait(self.store.ensure(&registry.image(), policy, &podstead::runtime::PullSecrets::none()));
        pulled.map(|image| image.layers).map_err(|error| error.to_string())
    }

    /// Removes the image of a registry, if it is here.
    pub(super) fn forget(&self, registry: &Registry) {
        wait(self.store.remove(&registry.image(), false)).ok();
    }

    /// Reasons of the events so far.
    pub(super) fn reasons(&self) -> Vec<String> {
        self.events.0.lock().unwrap().clone()
    }

    /// The reason for the refusal of an image of these layers. Nothing of it stays.
    pub(super) fn refused(&self, layers: &[Layer]) -> String {
        let reason = self.import(layers).expect_err("the image is refused");
        assert_eq!(entries(&self.path("images/layers")), 0, "no layer of a refused image stays");
        reason
    }

    /// The reason for the refusal of an archive of these bytes. Nothing of it stays.
    pub(super) fn refused_archive(&self, archive: &[u8]) -> String {
        let path = self.path("hostile.tar");
        fs::write(&path, archive).unwrap();
        let reason = self.import_archive(NAME, path).expect_err("the archive is refused");
        assert_eq!(entries(&self.path("images/layers")), 0, "no layer of a refused archive stays");
        reason
    }

    /// The reason for the refusal of a pull of an image of these layers. Nothing of it stays.
    pub(super) fn pull_refused(&self, registry: &Registry) -> String {
        let policy = podstead::pod::containers::PullPolicy::Always;
        let pulled = wait(self.store.ensure(&registry.image(), policy, &podstead::runtime::PullSecrets::none()));
        assert_eq!(entries(&self.path("images/staging")), 0, "staging is empty");
        assert_eq!(entries(&self.path("images/layers")), 0, "no layer of a refused image stays");
        pulled.expect_err("the image is refused").to_string()
    }
}

fn wait<T>(future: impl Future<Output = T>) -> T {
    // One for all, as in the daemon: a task of a pull that failed ends after the pull, and the next pull waits for it.
    static RUNTIME: OnceLock<tokio::runtime::Runtime> = OnceLock::new();
    let runtime = || tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    RUNTIME.get_or_init(runtime).block_on(future)
}

/// Number of names in a directory; 0 if it is not there.
pub(super) fn entries(directory: &Path) -> usize {
    fs::read_dir(directory).map_or(0, Iterator::count)
}

/// A registry that has one image under every name and tag.
pub(super) struct Registry {
    port: u16,
}

impl Registry {
    pub(super) fn of(image: Image) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // Who is refused hangs up.
                drop(answer(stream, &image));
            }
        });
        Self { port }
    }

    pub(super) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub(super) fn image(&self) -> String {
        format!("{}/hostile:1", self.host())
    }
}

fn answer(mut stream: std::net::TcpStream, image: &Image) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut words = head.split(' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let asked = path.rsplit('/').next().unwrap_or_default();
    let digest = asked.parse().unwrap_or(image.manifest);
    let (status, body) = match image.blobs.get(&digest) {
        Some(body) if path != "/v2/" => ("200 OK", &body[..]),
        Some(_) | None => ("404 Not Found", &b""[..]),
    };
    let kind = "application/vnd.oci.image.manifest.v1+json";
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nDocker-Content-Digest: {digest}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    )?;
    if method == "HEAD" { Ok(()) } else { stream.write_all(body) }
}

/// A daemon that is given hostile images.
pub(super) struct Victim {
    host: TestHost,
}

impl Victim {
    pub(super) fn new() -> Self {
        Self::with("")
    }

    pub(super) fn with(config: &str) -> Self {
        let host = TestHost::start_with(config);
        crate::support::eventually("the test image to be imported", || {
            if host.cli_ok(&["image", "ls"]).contains("busybox") { Ok(()) } else { Err(host.daemon_log()) }
        });
        Self { host }
    }

    /// Has the daemon run `command`, and asserts that this took little memory and left nothing in staging.
    fn bounded(&self, command: &[&str]) -> Output {
        let pid = self.host.daemon_pid();
        // The peak counts anew (proc(5), clear_refs).
        fs::write(format!("/proc/{pid}/clear_refs"), "5").unwrap();
        let before = peak(pid);
        let out = self.host.cli(command);
        let grown = peak(pid).saturating_sub(before);
        assert!(grown < MEMORY, "the daemon took {grown} bytes more: {}", String::from_utf8_lossy(&out.stderr));
        assert_eq!(entries(&self.host.path("state/images/staging")), 0, "staging is empty");
        out
    }

    fn archive(&self, layers: &[Layer]) -> String {
        let archive = self.host.path("hostile.tar");
        Image::of(layers).write(&archive, NAME);
        archive.to_str().unwrap().to_owned()
    }

    /// The daemon's message about an image of these layers, which it has to refuse. Nothing of it stays.
    pub(super) fn refuses(&self, layers: &[Layer]) -> String {
        self.refuses_archive(&self.archive(layers))
    }

    pub(super) fn refuses_archive(&self, archive: &str) -> String {
        let before = entries(&self.host.path("state/images/layers"));
        let out = self.bounded(&["image", "import", archive]);
        assert!(!out.status.success(), "the image is refused");
        assert_eq!(entries(&self.host.path("state/images/layers")), before, "no layer of a refused image stays");
        String::from_utf8_lossy(&out.stderr).into_owned()
    }

    /// The daemon's message about an image that it pulls and has to refuse.
    pub(super) fn refuses_pull(&self, registry: &Registry) -> String {
        let before = entries(&self.host.path("state/images/layers"));
        let out = self.bounded(&["image", "pull", &registry.image()]);
        assert!(!out.status.success(), "the image is refused");
        assert_eq!(entries(&self.host.path("state/images/layers")), before, "no layer of a refused image stays");
        String::from_utf8_lossy(&out.stderr).into_owned()
    }

    /// Imports an image that is odd and harmless.
    pub(super) fn takes(&self, layers: &[Layer]) {
        let out = self.bounded(&["image", "import", &self.archive(layers)]);
        assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    }

    pub(super) fn host(&self) -> &TestHost {
        &self.host
    }
}

fn peak(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}
