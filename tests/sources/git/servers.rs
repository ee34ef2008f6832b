//! Real servers on loopback, ended with the test that started them.

use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Serves each connection by a program that has it as standard input and output, as inetd does: the kernel chooses the port.
pub(super) struct Inetd {
    pub(super) port: u16,
    ended: Arc<AtomicBool>,
}

impl Inetd {
    pub(super) fn start(program: &str, arguments: Vec<String>, environment: Vec<(&'static str, &'static str)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let ended = Arc::new(AtomicBool::new(false));
        let (stop, program) = (ended.clone(), program.to_owned());
        std::thread::spawn(move || {
            let mut children: Vec<Child> = Vec::new();
            for stream in listener.incoming() {
                if stop.load(Ordering::SeqCst) {
                    break;
                }
                let stream = stream.unwrap();
                let output: OwnedFd = stream.try_clone().unwrap().into();
                let mut command = Command::new(&program);
                command.args(&arguments).envs(environment.iter().copied()).stderr(Stdio::null());
                children.push(command.stdin(OwnedFd::from(stream)).stdout(output).spawn().unwrap());
            }
            for mut child in children {
                child.kill().ok();
                child.wait().ok();
            }
        });
        Self { port, ended }
    }
}

impl Drop for Inetd {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        // Wakes the thread.
        TcpStream::connect_timeout(&([127, 0, 0, 1], self.port).into(), Duration::from_secs(1)).ok();
    }
}

/// `git daemon` for the repositories below `root`.
pub(super) fn git_daemon(root: &Path) -> Inetd {
    // Not through `git`, which would leave it behind when it is killed.
    let program = format!("{}/git-daemon", super::repository::run(Command::new("git").arg("--exec-path")));
    let arguments = ["--inetd", "--verbose", &format!("--base-path={}", root.display()), &root.display().to_string()];
    Inetd::start(&program, arguments.map(str::to_owned).into(), vec![("GIT_CONFIG_GLOBAL", "/dev/null")])
}

/// A private authority, and certificates of it for 127.0.0.1 and for a client.
pub(crate) struct Authority {
    pub(crate) ca: PathBuf,
    pub(crate) client_certificate: PathBuf,
    pub(crate) client_key: PathBuf,
    pub(crate) certificate: PathBuf,
    pub(crate) key: PathBuf,
    _directory: tempfile::TempDir,
}

impl Authority {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: String| {
            let path = directory.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let ca_key = rcgen::KeyPair::generate().unwrap();
        let mut ca = rcgen::CertificateParams::new(Vec::new()).unwrap();
        // Two authorities of one name would be taken for each other, and a certificate of its issuer's name for its issuer.
        ca.distinguished_name.push(rcgen::DnType::CommonName, format!("authority of {}", directory.path().display()));
        ca.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        let ca_certificate = ca.self_signed(&ca_key).unwrap();
        let issuer = rcgen::Issuer::new(ca, ca_key);
        let leaf = |name: &str| {
            let key = rcgen::KeyPair::generate().unwrap();
            let mut parameters = rcgen::CertificateParams::new(vec![name.to_owned()]).unwrap();
            parameters.distinguished_name.push(rcgen::DnType::CommonName, name);
            (parameters.signed_by(&key, &issuer).unwrap().pem(), key.serialize_pem())
        };
        let ((certificate, key), (client_certificate, client_key)) = (leaf("127.0.0.1"), leaf("edge-1"));
        Self {
            ca: write("ca.pem", ca_certificate.pem()),
            certificate: write("server.pem", certificate),
            key: write("server.key", key),
            client_certificate: write("client.pem", client_certificate),
            client_key: write("client.key", client_key),
            _directory: directory,
        }
    }
}

/// Credentials that nginx asks for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Door {
    Open,
    /// User `me`, password `open sesame`.
    Password,
    Certificate,
    /// Closes every connection after one request.
    Closing,
    /// Whoever does not speak version 2 of the protocol is answered all the same.
    OldProtocol,
}

/// nginx over TLS, with `git http-backend` behind it.
pub(super) struct WebServer {
    pub(super) port: u16,
    _nginx: Process,
    _fcgiwrap: Process,
    _directory: tempfile::TempDir,
}

impl WebServer {
    /// Serves the repositories below `root`.
    pub(super) fn start(root: &Path, authority: &Authority, door: Door) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("fcgi.sock");
        let mut fcgiwrap = Command::new("fcgiwrap");
        fcgiwrap.arg("-s").arg(format!("unix:{}", socket.display())).stdout(Stdio::null()).stderr(Stdio::null());
        let fcgiwrap = Process(fcgiwrap.spawn().unwrap());
        wait("fcgiwrap to listen", || std::os::unix::net::UnixStream::connect(&socket).is_ok());
        std::fs::write(directory.path().join("htpasswd"), HTPASSWD).unwrap();
        let (port, nginx) =
            nginx(directory.path(), |port| nginx_configuration(directory.path(), &socket, root, authority, door, port));
        Self { port, _nginx: nginx, _fcgiwrap: fcgiwrap, _directory: directory }
    }

    pub(super) fn url(&self) -> String {
        format!("https://127.0.0.1:{}/fleet.git", self.port)
    }
}

/// nginx with what `configure` makes of its port.
pub(crate) fn nginx(directory: &Path, configure: impl Fn(u16) -> String) -> (u16, Process) {
    // nginx cannot tell which port the kernel chose, so one is chosen for it. Somebody else may take it in between.
    for _ in 0..5 {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let configuration = directory.join("nginx.conf");
        std::fs::write(&configuration, configure(port)).unwrap();
        let mut nginx = Command::new("nginx");
        nginx.arg("-p").arg(directory).arg("-c").arg(&configuration).arg("-e").arg(directory.join("error.log"));
        let mut nginx = Process(nginx.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
        let mut listens = false;
        wait("nginx to listen or to end", || {
            listens = TcpStream::connect(("127.0.0.1", port)).is_ok();
            listens || nginx.0.try_wait().unwrap().is_some()
        });
        if listens && nginx.0.try_wait().unwrap().is_none() {
            return (port, nginx);
        }
    }
    panic!("nginx does not start: {}", std::fs::read_to_string(directory.join("error.log")).unwrap_or_default());
}

/// Ends when dropped.
pub(crate) struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// As nginx reads it: not hashed.
pub(crate) const HTPASSWD: &str = "me:{PLAIN}open sesame\n";

fn nginx_configuration(directory: &Path, socket: &Path, root: &Path, authority: &Authority, door: Door, port: u16) -> String {
    let (here, socket, root) = (directory.display(), socket.display(), root.display());
    let (certificate, key, ca) = (authority.certificate.display(), authority.key.display(), authority.ca.display());
    let door = match door {
        Door::Open => "fastcgi_param GIT_PROTOCOL $http_git_protocol;".to_owned(),
        Door::Closing => "fastcgi_param GIT_PROTOCOL $http_git_protocol; keepalive_timeout 0;".to_owned(),
        Door::OldProtocol => String::new(),
        Door::Password => {
            format!("fastcgi_param GIT_PROTOCOL $http_git_protocol; auth_basic fleet; auth_basic_user_file {here}/htpasswd;")
        }
        Door::Certificate => {
            "fastcgi_param GIT_PROTOCOL $http_git_protocol; if ($ssl_client_verify != SUCCESS) { return 403; }".to_owned()
        }
    };
    format!(
        "daemon off; master_process off; user root; worker_processes 1; pid {here}/nginx.pid;
events {{ worker_connections 64; }}
http {{
  access_log off; client_body_temp_path {here}/body; proxy_temp_path {here}/proxy; fastcgi_temp_path {here}/fastcgi;
  uwsgi_temp_path {here}/uwsgi; scgi_temp_path {here}/scgi;
  server {{
    listen 127.0.0.1:{port} ssl;
    ssl_certificate {certificate}; ssl_certificate_key {key}; ssl_client_certificate {ca}; ssl_verify_client optional;
    location /moved/ {{ rewrite ^/moved(/.*)$ $1 redirect; }}
    location / {{
      fastcgi_pass unix:{socket};
      fastcgi_param SCRIPT_FILENAME /usr/lib/git-core/git-http-backend;
      fastcgi_param GIT_PROJECT_ROOT {root}; fastcgi_param GIT_HTTP_EXPORT_ALL 1; fastcgi_param GIT_CONFIG_GLOBAL /dev/null;
      fastcgi_param PATH_INFO $uri; fastcgi_param QUERY_STRING $query_string; fastcgi_param REQUEST_METHOD $request_method;
      fastcgi_param CONTENT_TYPE $content_type; fastcgi_param CONTENT_LENGTH $content_length; fastcgi_param REMOTE_ADDR $remote_addr;
      fastcgi_param REMOTE_USER $remote_user; fastcgi_param HTTP_CONTENT_ENCODING $http_content_encoding;
      {door}
    }}
  }}
}}
"
    )
}

/// Passes connections on and counts what goes through them.
pub(crate) struct Counter {
    pub(crate) port: u16,
    /// To the server.
    bytes: Arc<AtomicU64>,
    from_server: Arc<AtomicU64>,
    connections: Arc<AtomicU64>,
}

impl Counter {
    /// Bytes that the server sent so far.
    pub(super) fn server_bytes(&self) -> u64 {
        self.from_server.load(Ordering::SeqCst)
    }

    pub(crate) fn before(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let counter = Self {
            port: listener.local_addr().unwrap().port(),
            bytes: Arc::default(),
            from_server: Arc::default(),
            connections: Arc::default(),
        };
        let (bytes, from_server, connections) = (counter.bytes.clone(), counter.from_server.clone(), counter.connections.clone());
        std::thread::spawn(move || {
            for client in listener.incoming() {
                let (client, server) = (client.unwrap(), TcpStream::connect(("127.0.0.1", port)).unwrap());
                connections.fetch_add(1, Ordering::SeqCst);
                let upwards = (client.try_clone().unwrap(), server.try_clone().unwrap(), bytes.clone());
                for (mut from, mut to, counted) in [upwards, (server, client, from_server.clone())] {
                    std::thread::spawn(move || {
                        let mut buffer = [0; 16 << 10];
                        while let Ok(length @ 1..) = std::io::Read::read(&mut from, &mut buffer) {
                            counted.fetch_add(length as u64, Ordering::SeqCst);
                            if std::io::Write::write_all(&mut to, &buffer[..length]).is_err() {
                                break;
                            }
                        }
                        to.shutdown(std::net::Shutdown::Write).ok();
                    });
                }
            }
        });
        counter
    }

    /// Bytes of both directions and connections so far.
    pub(crate) fn count(&self) -> (u64, u64) {
        (self.bytes.load(Ordering::SeqCst) + self.server_bytes(), self.connections.load(Ordering::SeqCst))
    }
}

/// Ways in which a connection stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// It ends.
    Close,
    /// Nothing comes any more.
    Stall,
    /// The network of this thread's namespace is gone.
    Link,
}

/// Passes connections on until so many bytes came from the server.
pub(super) fn cut_off(port: u16, after: Arc<AtomicU64>, cut: Cut) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for client in listener.incoming() {
            let (client, server) = (client.unwrap(), TcpStream::connect(("127.0.0.1", port)).unwrap());
            let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || std::io::copy(&mut from_client, &mut to_server).ok());
            let (mut from_server, mut to_client, after) = (server, client, after.clone());
            std::thread::spawn(move || {
                let mut byte = [0; 64];
                while let Ok(length @ 1..) = std::io::Read::read(&mut from_server, &mut byte) {
                    let left = after
                        .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| Some(left.saturating_sub(length as u64)))
                        .unwrap();
                    if left == 0 {
                        match cut {
                            Cut::Close => {
                                to_client.shutdown(std::net::Shutdown::Both).ok();
                                return;
                            }
                            Cut::Stall => {
                                std::thread::park_timeout(Duration::from_secs(60));
                                return;
                            }
                            Cut::Link => link("down"),
                        }
                    }
                    if std::io::Write::write_all(&mut to_client, &byte[..length]).is_err() {
                        return;
                    }
                }
            });
        }
    });
    own
}

/// Sets the loopback interface of this thread's network namespace `up` or `down`.
pub(super) fn link(state: &str) {
    let done = Command::new("ip").args(["link", "set", "lo", state]).status().unwrap();
    assert!(done.success());
}

pub(super) fn wait(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
