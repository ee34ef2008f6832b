//! The HTTP source against a real web server: TLS of a private authority, client certificates, passwords, conditional requests.

use crate::follower::DEADLINE;
use crate::following::Following;
use crate::git::servers::{Authority, Counter, HTPASSWD, Process, nginx};
use crate::http_server::{options, pod};
use podstead::artifact::wake::Waker;
use podstead::pod::SourceId;
use podstead::source::credentials::{AuthFiles, CredentialFiles, Username};
use podstead::source::http::{HttpOptions, HttpSource};
use podstead::{artifact::SourceReport, source::PodSource};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;

/// nginx with a directory of files. It asks for a password below `/password/` and for a client certificate below `/certificate/`.
struct Site {
    port: u16,
    authority: Authority,
    directory: tempfile::TempDir,
    _nginx: Process,
}

impl Site {
    fn start() -> Self {
        let (authority, directory) = (Authority::new(), tempfile::tempdir().unwrap());
        let here = directory.path().display().to_string();
        fs::write(directory.path().join("htpasswd"), HTPASSWD).unwrap();
        for folder in ["", "password", "certificate"] {
            fs::create_dir_all(directory.path().join("www").join(folder)).unwrap();
        }
        let (certificate, key, ca) = (authority.certificate.display(), authority.key.display(), authority.ca.display());
        let (port, nginx) = nginx(directory.path(), |port| {
            format!(
                "daemon off; master_process off; user root; worker_processes 1; pid {here}/nginx.pid;
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path {here}/body; proxy_temp_path {here}/proxy; fastcgi_temp_path {here}/fastcgi;
  uwsgi_temp_path {here}/uwsgi; scgi_temp_path {here}/scgi;
  gzip on; gzip_types *; gzip_min_length 1;
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_client_certificate {ca}; ssl_verify_client optional;
    root {here}/www;
    location /password/ {{ auth_basic site; auth_basic_user_file {here}/htpasswd; }}
    location /certificate/ {{ if ($ssl_client_verify != SUCCESS) {{ return 403; }} }}
  }}
}}
"
            )
        });
        Self { port, authority, directory, _nginx: nginx }
    }

    /// Puts a file in place that was last changed long enough ago for its time stamp to be believed.
    fn write(&self, name: &str, body: &[u8], seconds_ago: u64) {
        let path = self.directory.path().join("www").join(name);
        fs::write(&path, body).unwrap();
        let modified = SystemTime::now() - Duration::from_secs(seconds_ago);
        fs::File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
    }

    fn options(&self, port: u16, name: &str) -> HttpOptions {
        let url = format!("https://127.0.0.1:{port}/{name}");
        let mut options = options(&url, &self.directory.path().join("state").join(name));
        options.access.ca_file = Some(self.authority.ca.clone());
        options
    }

    fn secret(&self, name: &str, text: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, text).unwrap();
        path
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_is_followed_over_tls_of_a_private_authority() {
    let site = Site::start();
    site.write("edge.yaml", &pod("one"), 100);
    let mut source = Following::start(site.options(site.port, "edge.yaml"));
    assert!(source.body().await.contains("one"));
    site.write("edge.yaml", &pod("two"), 50);
    assert!(source.body().await.contains("two"));
    fs::remove_file(site.directory.path().join("www/edge.yaml")).unwrap();
    assert!(source.failure().await.contains("404"));
    site.write("edge.yaml", &pod("two"), 50);
    source.recovered().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_the_configured_authority_does_not_vouch_for_is_not_believed_until_the_file_is_right() {
    let (site, other) = (Site::start(), Authority::new());
    site.write("edge.yaml", &pod("one"), 100);
    let mut options = site.options(site.port, "edge.yaml");
    let ca = site.secret("ca.pem", &fs::read_to_string(&other.ca).unwrap());
    options.access.ca_file = Some(ca.clone());
    let mut source = Following::start(options);
    let failure = source.failure().await;
    assert!(failure.contains("signed by an unknown authority"), "{failure}");
    fs::write(&ca, fs::read(&site.authority.ca).unwrap()).unwrap();
    assert!(source.body().await.contains("one"), "the client is made anew when its file changes");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_password_is_sent_and_a_wrong_one_is_told() {
    let site = Site::start();
    site.write("password/edge.yaml", &pod("one"), 100);
    let password_file = site.secret("password", "wrong\n");
    let mut options = site.options(site.port, "password/edge.yaml");
    let username = Username::Written("me".into());
    options.access.credentials = CredentialFiles {
        auth: Some(AuthFiles::Password { username, password_file: password_file.clone() }),
        ..Default::default()
    };
    let mut source = Following::start(options);
    let failure = source.failure().await;
    assert!(failure.contains("401") && failure.contains("wrong or expired"), "{failure}");
    fs::write(&password_file, "open sesame\n").unwrap();
    assert!(source.body().await.contains("one"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_certificate_opens_what_is_closed_without_it() {
    let site = Site::start();
    site.write("certificate/edge.yaml", &pod("one"), 100);
    let mut without = Following::start(site.options(site.port, "certificate/edge.yaml"));
    assert!(without.failure().await.contains("403"));
    let mut options = site.options(site.port, "certificate/edge.yaml");
    options.access.client_certificate = Some((site.authority.client_certificate.clone(), site.authority.client_key.clone()));
    let mut source = Following::start(options);
    assert!(source.body().await.contains("one"));
}

async fn next(reports: &mut mpsc::Receiver<(SourceId, SourceReport)>) -> SourceReport {
    tokio::time::timeout(DEADLINE, reports.recv()).await.expect("no report in time").unwrap().1
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unchanged_poll_moves_little() {
    let site = Site::start();
    site.write("edge.yaml", &[pod("one"), b"#".repeat(1 << 20)].concat(), 100);
    let counter = Counter::before(site.port);
    let options = HttpOptions { interval: Duration::from_secs(3600), ..site.options(counter.port, "edge.yaml") };
    let start = || {
        let ((waker, wishes), (sender, reports)) = (Waker::new(), mpsc::channel(1));
        let source = Box::new(HttpSource::new(SourceId::new("web"), options.clone()));
        (waker, reports, tokio::spawn(source.run(sender, wishes)))
    };
    let (waker, mut reports, task) = start();
    assert!(matches!(next(&mut reports).await, SourceReport::Artifact(_)));

    let (before, connections) = counter.count();
    let asking = tokio::spawn(async move { waker.sync().await });
    let report = next(&mut reports).await;
    assert!(matches!(report, SourceReport::Inquiry(_)), "{report:?}");
    let (after, connections_after) = counter.count();
    assert_eq!(connections_after, connections, "the connection is kept");
    assert!(after - before < 700, "{} bytes", after - before);
    println!("unchanged poll: {} bytes", after - before);
    task.abort();
    asking.abort();

    // The most expensive one: the first of a daemon, with a whole handshake.
    let (before, _) = counter.count();
    let (_waker, mut reports, task) = start();
    assert!(matches!(next(&mut reports).await, SourceReport::Artifact(_)));
    let first = counter.count().0 - before;
    task.abort();
    println!("first unchanged poll of a daemon: {first} bytes");
    assert!(first < 2048, "{first}");
}
