//! Debian's docker-registry, filled by skopeo.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// The part of a configuration with a port that the kernel chooses.
pub(crate) const HTTP: &str = "http: {addr: '127.0.0.1:0'}\n";
/// Password of all users.
pub(crate) const PASSWORD: &str = "open sesame";
/// bcrypt of it.
const HASH: &str = "$2y$05$uq2PYQKkcY9IDGP4vMobYeuxhj7Zue3O9y8scQLuPHtPf8r4VC7Qu";

/// A registry on a port that the kernel chose; gone with this.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(crate) process: Child,
    /// Address and port.
    pub(crate) host: String,
    /// Options of skopeo that a push needs.
    push_options: Vec<String>,
    /// Its storage, if nobody else keeps it.
    _directory: Option<tempfile::TempDir>,
}

impl Registry {
    /// An empty one for anybody.
    pub(crate) fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut registry = Self::serve(directory.path(), HTTP);
        registry._directory = Some(directory);
        registry
    }

    /// With its storage and its configuration in a directory that outlives it. `more` is the configuration but for log and storage, and names port 0.
    pub(crate) fn serve(directory: &Path, more: &str) -> Self {
        let config = format!(
            "version: 0.1\nlog: {{level: info, accesslog: {{disabled: true}}}}\n\
             storage: {{filesystem: {{rootdirectory: {}}}, delete: {{enabled: true}}}}\n{more}",
            directory.join("data").display()
        );
        let path = directory.join("config.yml");
        std::fs::write(&path, config).unwrap();
        let (process, port) = start(&path);
        Self { process, host: format!("127.0.0.1:{port}"), push_options: Vec::new(), _directory: None }
    }

    /// As [`Registry::serve`], for `me` and `you` with [`PASSWORD`].
    pub(crate) fn serve_private(directory: &Path, more: &str) -> Self {
        let htpasswd = directory.join("htpasswd");
        std::fs::write(&htpasswd, format!("me:{HASH}\nyou:{HASH}\n")).unwrap();
        let auth = format!("{more}auth: {{htpasswd: {{realm: private, path: {}}}}}\n", htpasswd.display());
        let mut registry = Self::serve(directory, &auth);
        registry.push_options.push(format!("--dest-creds=me:{PASSWORD}"));
        registry
    }

    /// `host/name`
    pub(crate) fn image(&self, name: &str) -> String {
        format!("{}/{name}", self.host)
    }

    /// Pushes an archive of an image, and returns its reference.
    pub(crate) fn push(&self, archive: &Path, name: &str) -> String {
        self.push_from(&format!("oci-archive:{}", archive.display()), name, &[])
    }

    /// Pushes what skopeo finds at such a place.
    pub(crate) fn push_from(&self, from: &str, name: &str, options: &[&str]) -> String {
        let image = self.image(name);
        let mut skopeo = Command::new("skopeo");
        skopeo.args(["copy", "--quiet", "--insecure-policy", "--dest-tls-verify=false"]).args(&self.push_options).args(options);
        let out = skopeo.arg(from).arg(format!("docker://{image}")).output().unwrap();
        assert!(out.status.success(), "{skopeo:?}: {}", String::from_utf8_lossy(&out.stderr));
        image
    }

    /// Nobody listens any more.
    pub(crate) fn stop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        drop(self.process.kill());
        drop(self.process.wait());
    }
}

/// Starts the program, and waits for the port that the kernel chose.
fn start(config: &Path) -> (Child, u16) {
    let mut command = Command::new("docker-registry");
    let mut process = command.arg("serve").arg(config).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut log = BufReader::new(process.stderr.take().unwrap());
    let mut said = String::new();
    let port = loop {
        let mut line = String::new();
        assert_ne!(log.read_line(&mut line).unwrap(), 0, "the registry ended: {said}");
        said += &line;
        if let Some((_, rest)) = line.split_once("listening on 127.0.0.1:") {
            let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
            break digits.parse().unwrap();
        }
    };
    // It stops when nobody takes its log.
    std::thread::spawn(move || drop(std::io::copy(&mut log, &mut std::io::sink())));
    (process, port)
}
