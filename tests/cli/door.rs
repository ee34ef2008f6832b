//! The TLS port: tokens, roles, the real kubectl with a kubeconfig of podstead, and clients that nobody wants.

use crate::host::{Host, NODE, eventually, text};
use crate::kubectl::Kubectl;
use podstead::settings::{Account, ApiConfig, Role, api::WrittenRole};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A port that is free now.
fn free_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

/// A host with a TLS port.
struct Door {
    host: Host,
    port: u16,
}

impl Door {
    fn open(roles: Vec<WrittenRole>) -> Self {
        let port = free_port();
        let host = Host::start_with(&ApiConfig { tls_port: Some(port), roles });
        eventually("the port is open", || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok());
        Self { host, port }
    }

    /// A kubeconfig in a file.
    fn kubeconfig(&self, options: &[&str]) -> PathBuf {
        let text = self.host.run(&[&["kubeconfig"], options].concat());
        let file = self.host.root.path().join(format!("kubeconfig{}", options.concat().replace(['/', '='], "")));
        std::fs::write(&file, text).unwrap();
        file
    }

    fn token(&self, options: &[&str]) -> String {
        let credential: Value = serde_json::from_str(&self.host.run(&[&["credential"], options].concat())).unwrap();
        assert_eq!(credential["apiVersion"], "client.authentication.k8s.io/v1beta1");
        credential["status"]["token"].as_str().unwrap().to_owned()
    }

    /// A connection that trusts the pinned certificate and nothing else.
    fn connect(&self) -> rustls::StreamOwned<rustls::ClientConnection, TcpStream> {
        let access = self.host.get("/apis/podstead.dev/v1alpha1/access");
        let pem = access["tls"]["certificate"].as_str().unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let config = builder.with_root_certificates(roots).with_no_client_auth();
        let name = ServerName::try_from(format!("{NODE}.podstead")).unwrap();
        let client = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
        let tcp = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)).unwrap();
        tcp.set_read_timeout(Some(crate::host::PATIENCE)).unwrap();
        rustls::StreamOwned::new(client, tcp)
    }

    /// Sends a request with these lines of a head; returns the answer's code and body.
    fn ask(&self, request: &str, head: &[&str]) -> (u16, String) {
        self.send(request, head, "")
    }

    /// As [`Door::ask`], with a body, of which the head has the length.
    fn send(&self, request: &str, head: &[&str], body: &str) -> (u16, String) {
        let mut stream = self.connect();
        let head = head.iter().map(|line| format!("{line}\r\n")).collect::<String>();
        write!(stream, "{request} HTTP/1.1\r\nConnection: close\r\n{head}\r\n{body}").unwrap();
        let mut answer = Vec::new();
        // The end of the stream may be an unclean one.
        stream.read_to_end(&mut answer).ok();
        let answer = text(&answer);
        let code = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or_default();
        (code, answer.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
    }
}

#[test]
fn kubectl_works_with_printed_kubeconfig() {
    let door = Door::open(Vec::new());
    door.host.publish_running("default", "web");
    let config = door.kubeconfig(&[]);
    let content = std::fs::read_to_string(&config).unwrap();
    assert!(!content.contains("token") && !content.contains("PRIVATE"), "{content}");
    let Some(kubectl) = Kubectl::with_config(&door.host, &config) else { return };
    assert_eq!(kubectl.run(&["get", "pods"]), door.host.run(&["get", "pods"]));
    assert_eq!(kubectl.run(&["auth", "can-i", "create", "pods/exec"]).trim(), "yes");
    let reading = Kubectl::with_config(&door.host, &door.kubeconfig(&["--role=view"])).unwrap();
    assert_eq!(reading.run(&["get", "pods", "-o", "name"]), "pod/web-edge\n");
    let may_not = reading.output(&["auth", "can-i", "create", "pods"]);
    assert_eq!((may_not.status.code(), text(&may_not.stdout).lines().next()), (Some(1), Some("no - it needs role edit")));
    let refused = reading.output(&["exec", "web-edge", "--", "echo", "hello"]);
    assert!(text(&refused.stderr).contains("it needs role edit"), "{}", text(&refused.stderr));
    assert!(reading.run(&["auth", "can-i", "--list"]).contains("[get list watch]"));
}

#[test]
fn nothing_is_answered_without_valid_token() {
    let door = Door::open(Vec::new());
    let host = format!("Host: 127.0.0.1:{}", door.port);
    let (token, other) = (door.token(&[]), Door::open(Vec::new()).token(&[]));
    let forged = format!("{}{}", if token.starts_with('0') { "1" } else { "0" }, &token[1..]);
    for path in ["/version", "/healthz", "/api", "/metrics", "/api/v1/pods", "/apis/podstead.dev/v1alpha1/access", "/nowhere"] {
        for authorization in [
            "Accept: */*".to_owned(),
            "Authorization: Bearer".to_owned(),
            "Authorization: Basic cm9vdDpyb290".to_owned(),
            format!("Authorization: Bearer {other}"),
            format!("Authorization: Bearer {forged}"),
            format!("Authorization: Bearer {}", "a".repeat(60_000)),
        ] {
            let (code, body) = door.ask(&format!("GET {path}"), &[&host, &authorization]);
            assert_eq!(code, 401, "{path}: {body}");
        }
    }
    let authorization = format!("Authorization: Bearer {token}");
    assert_eq!(door.ask("GET /version", &[&host, &authorization]).0, 200);
    // kr8s asks in this way who it is. The token is in no answer.
    let owner = format!("user:{}", nix::unistd::User::from_uid(nix::unistd::getuid()).unwrap().unwrap().name);
    for (asked, expected) in [(&token, Ok(owner)), (&other, Err("not one of this daemon"))] {
        let review = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": asked}}).to_string();
        let length = format!("Content-Length: {}", review.len());
        let head = [host.as_str(), &authorization, "Content-Type: application/json", &length];
        let answer = door.send("POST /apis/authentication.k8s.io/v1/tokenreviews", &head, &review);
        assert!(answer.0 == 201 && !answer.1.contains(asked.as_str()), "{answer:?}");
        let answer: Value = serde_json::from_str(&answer.1).unwrap();
        let status = &answer["status"];
        match expected {
            Ok(owner) => assert_eq!((&status["authenticated"], &status["user"]["username"]), (&json!(true), &json!(owner))),
            Err(words) => {
                assert!(status["authenticated"] == false && status["error"].as_str().unwrap().contains(words), "{status}")
            }
        }
    }
    // A token does not make tokens.
    let body = ["Content-Type: application/json", "Content-Length: 0"];
    let request = "POST /apis/podstead.dev/v1alpha1/credentials";
    assert_eq!(door.ask(request, &[&[host.as_str(), &authorization][..], &body].concat()).0, 403);
}

#[test]
fn pages_of_others_are_refused() {
    let door = Door::open(Vec::new());
    let authorization = format!("Authorization: Bearer {}", door.token(&[]));
    let own = format!("127.0.0.1:{}", door.port);
    for (host, origin, code) in [
        (own.as_str(), None, 200),
        (&own, Some(format!("https://{own}")), 200),
        (&own, Some("https://evil.example".to_owned()), 403),
        (&own, Some("null".to_owned()), 403),
        ("evil.example", None, 403),
        ("edge.podstead", None, 200),
    ] {
        let lines = [format!("Host: {host}"), origin.map_or_else(String::new, |origin| format!("Origin: {origin}"))];
        let mut head: Vec<&str> = lines.iter().map(String::as_str).filter(|line| !line.is_empty()).collect();
        head.push(&authorization);
        assert_eq!(door.ask("GET /version", &head).0, code, "{head:?}");
    }
    // Also on the socket, which ssh makes a port of a laptop.
    let (code, body) = door.host.send_with("GET", "/version", &[("host", "evil.example")]);
    assert_eq!((code, &body["reason"]), (403, &json!("Forbidden")));
}

#[test]
fn user_without_role_is_told_owner() {
    let group = WrittenRole { role: Role::View, groups: vec![Account::Id(4_000_000)], users: Vec::new(), namespaces: Vec::new() };
    let door = Door::open(vec![group]);
    door.host.publish_running("default", "web");
    std::fs::set_permissions(door.host.root.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let as_nobody = |gid: u32| {
        let mut command = door.host.command(&["get", "pods", "-o", "name"]);
        command.uid(65_534).gid(gid);
        command.output().unwrap()
    };
    let refused = text(&as_nobody(65_534).stderr);
    assert!(refused.contains("has no role at this host (api.roles: view for group 4000000)"), "{refused}");
    assert_eq!(text(&as_nobody(4_000_000).stdout), "pod/web-edge\n", "a member of the group");
}

/// kubectl shows what the plugin says.
#[test]
fn plugin_of_user_without_role_tells_why() {
    let group = WrittenRole { role: Role::View, groups: vec![Account::Id(4_000_000)], users: Vec::new(), namespaces: Vec::new() };
    let door = Door::open(vec![group]);
    std::fs::set_permissions(door.host.root.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let Some(kubectl) = Kubectl::with_config(&door.host, &door.kubeconfig(&[])) else { return };
    let refused = kubectl.command(&["get", "pods"]).uid(65_534).gid(65_534).output().unwrap();
    let told = text(&refused.stderr);
    assert!(!refused.status.success() && told.contains("has no role at this host (api.roles: view for group 4000000)"), "{told}");
    assert!(told.contains("getting credentials"), "{told}");
}

#[test]
fn edit_enters_no_pod_with_access_to_host() {
    let door = Door::open(Vec::new());
    door.host.publish_running("default", "web");
    door.host.publish_on_host("plant", json!({"hostNetwork": true}));
    let Some(kubectl) = Kubectl::with_config(&door.host, &door.kubeconfig(&["--role=edit"])) else { return };
    assert_eq!(kubectl.run(&["exec", "web-edge", "--", "echo", "hello"]), "hello in main-0\n");
    let refused = kubectl.output(&["exec", "plant-edge", "--", "echo", "hello"]);
    let told = text(&refused.stderr);
    assert!(!refused.status.success() && told.contains("exec into a pod with access to the host needs role admin"), "{told}");
}

/// Lets this process have as many open files as it may: the server of these tests is in it, beside its clients.
fn more_descriptors() {
    use nix::sys::resource::{Resource, getrlimit, setrlimit};
    let (_, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, hard, hard).unwrap();
}

#[test]
fn crowd_without_tokens_keeps_nobody_away() {
    let door = Door::open(Vec::new());
    let (host, authorization) = (format!("Host: 127.0.0.1:{}", door.port), format!("Authorization: Bearer {}", door.token(&[])));
    // Whoever has shown a token goes on: a watch sees what happens while the crowd is there.
    let mut watch = door.connect();
    write!(watch, "GET /api/v1/pods?watch=true HTTP/1.1\r\n{host}\r\n{authorization}\r\n\r\n").unwrap();
    watch.read_exact(&mut [0; 15]).unwrap();
    // They say nothing, or not enough.
    more_descriptors();
    let crowd: Vec<TcpStream> = (0..1000).map(|_| TcpStream::connect((Ipv4Addr::LOCALHOST, door.port)).unwrap()).collect();
    for mut stream in crowd.iter().step_by(3) {
        // Some are closed already.
        stream.write_all(b"\x16\x03\x01\x02\x00").ok();
    }
    door.host.publish_running("default", "web");
    let mut seen = Vec::new();
    while !text(&seen).contains("web-edge") {
        let mut piece = [0; 4096];
        let length = watch.read(&mut piece).unwrap();
        assert_ne!(length, 0, "the watch ended");
        seen.extend(&piece[..length]);
    }
    // A new client waits for those before it, but not until their time is up: that would take five minutes.
    let start = Instant::now();
    assert_eq!(door.ask("GET /version", &[&host, &authorization]).0, 200);
    assert!(start.elapsed() < Duration::from_secs(60), "{:?}", start.elapsed());
    drop(crowd);
}

#[test]
fn one_user_cannot_take_all_connections() {
    let nobody = WrittenRole { role: Role::View, groups: Vec::new(), users: vec![Account::Id(65_534)], namespaces: Vec::new() };
    let door = Door::open(vec![nobody]);
    std::fs::set_permissions(door.host.root.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let mut credential = door.host.command(&["credential"]);
    let credential = credential.uid(65_534).gid(65_534).output().unwrap();
    let credential: Value = serde_json::from_slice(&credential.stdout).unwrap();
    let host = format!("Host: 127.0.0.1:{}", door.port);
    let of_nobody = format!("Authorization: Bearer {}", credential["status"]["token"].as_str().unwrap());
    // They ask, and read no more than that they are answered.
    let watch = || {
        let mut stream = door.connect();
        write!(stream, "GET /api/v1/pods?watch=true HTTP/1.1\r\n{host}\r\n{of_nobody}\r\n\r\n").unwrap();
        let mut code = [0; 15];
        stream.read_exact(&mut code).unwrap();
        (text(&code).contains(" 200 ").then_some(()), stream)
    };
    let held: Vec<_> = std::iter::repeat_with(watch).take_while(|(answered, _)| answered.is_some()).take(100).collect();
    assert_eq!(held.len(), 32, "half of what is not kept for root");
    let (code, refusal) = door.ask("GET /api/v1/pods", &[&host, &of_nobody]);
    assert!(code == 429 && refusal.contains("has 32 connections, and the others are kept for other users"), "{code} {refusal}");
    let of_root = format!("Authorization: Bearer {}", door.token(&[]));
    assert_eq!(door.ask("GET /version", &[&host, &of_root]).0, 200);
    drop(held);
    eventually("room again", || (door.ask("GET /version", &[&host, &of_nobody]).0 == 200).then_some(()));
}

#[test]
fn one_user_cannot_take_whole_socket() {
    let nobody = WrittenRole { role: Role::View, groups: Vec::new(), users: vec![Account::Id(65_534)], namespaces: Vec::new() };
    let host = Host::start_with(&ApiConfig { tls_port: None, roles: vec![nobody] });
    std::fs::set_permissions(host.root.path(), PermissionsExt::from_mode(0o755)).unwrap();
    // A process of that user that opens connections, says nothing, and tells when it has them all.
    let script = "import resource,socket,sys\nhard=resource.getrlimit(resource.RLIMIT_NOFILE)[1]\nresource.setrlimit(resource.RLIMIT_NOFILE,(hard,hard))\nheld=[]\nfor _ in range(1000):\n s=socket.socket(socket.AF_UNIX)\n s.connect(sys.argv[1])\n held.append(s)\nprint('held',flush=True)\nsys.stdin.read()";
    more_descriptors();
    let mut crowd = std::process::Command::new("python3");
    crowd.args(["-c", script]).arg(host.socket()).uid(65_534).gid(65_534);
    crowd.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let Ok(mut crowd) = crowd.spawn() else { return };
    crowd.stdout.take().unwrap().read_exact(&mut [0; 5]).unwrap();
    let start = Instant::now();
    host.run(&["get", "pods"]);
    assert!(start.elapsed() < Duration::from_secs(20), "root waits for nobody: {:?}", start.elapsed());
    drop(crowd.stdin.take());
    crowd.wait().unwrap();
}

/// Processes that end with the test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// OpenSSH's server with the logins `box` (root) and `guest` (nobody), as the configuration of the client calls them.
struct Ssh {
    /// Programs before those of the machine: `ssh` with that configuration, and `podstead`.
    path: String,
    _server: Running,
}

impl Ssh {
    /// `None` where there is no server.
    fn start(directory: &Path) -> Option<Self> {
        if !Path::new("/usr/sbin/sshd").is_file() {
            std::io::stderr().write_all(b"no sshd: skipped\n").unwrap();
            return None;
        }
        let at = |name: &str| directory.join(name).display().to_string();
        std::fs::create_dir(at("bin")).unwrap();
        for name in ["host", "login"] {
            let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f", &at(name)]).status().unwrap();
            assert!(made.success());
        }
        std::fs::copy(at("login.pub"), at("authorized_keys")).unwrap();
        std::fs::set_permissions(at("authorized_keys"), PermissionsExt::from_mode(0o644)).unwrap();
        // sshd does not start without the directory of its unprivileged part.
        std::fs::create_dir_all("/run/sshd").unwrap();
        let port = free_port();
        let path = format!("{}:/usr/bin:/bin", at("bin"));
        let server = format!(
            "ListenAddress 127.0.0.1\nPort {port}\nPidFile none\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\n\
             PermitRootLogin yes\nPasswordAuthentication no\nSetEnv PATH={path}\n",
            at("host"),
            at("authorized_keys")
        );
        std::fs::write(at("sshd_config"), server).unwrap();
        let client = format!(
            "Host box\n  User root\nHost guest\n  User nobody\nHost *\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {}\n  \
             IdentitiesOnly yes\n  StrictHostKeyChecking no\n  UserKnownHostsFile /dev/null\n  LogLevel ERROR\n",
            at("login")
        );
        std::fs::write(at("ssh_config"), client).unwrap();
        std::fs::write(at("bin/ssh"), format!("#!/bin/sh\nexec /usr/bin/ssh -F {} \"$@\"\n", at("ssh_config"))).unwrap();
        std::fs::set_permissions(at("bin/ssh"), PermissionsExt::from_mode(0o755)).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_podstead"), at("bin/podstead")).unwrap();
        let mut command = Command::new("/usr/sbin/sshd");
        command.args(["-D", "-e", "-f", &at("sshd_config")]).stdin(Stdio::null()).stderr(Stdio::null());
        let server = Running(command.spawn().unwrap());
        eventually("sshd listens", || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok());
        Some(Self { path, _server: server })
    }

    /// Runs the command that the kubeconfig names in its first line, until it is dropped.
    fn forward(&self, kubeconfig: &Path, port: u16) -> Running {
        let text = std::fs::read_to_string(kubeconfig).unwrap();
        let line = text.lines().next().and_then(|line| line.strip_prefix("# First: ")).unwrap().to_owned();
        let mut command = Command::new("sh");
        command.args(["-c", &format!("exec {line}")]).env("PATH", &self.path).stdin(Stdio::null());
        let running = Running(command.spawn().unwrap());
        eventually(&line, || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).ok());
        running
    }
}

#[test]
fn kubectl_goes_through_ssh() {
    let guest = WrittenRole { role: Role::View, groups: Vec::new(), users: vec![Account::Id(65_534)], namespaces: Vec::new() };
    let door = Door::open(vec![guest]);
    std::fs::set_permissions(door.host.root.path(), PermissionsExt::from_mode(0o755)).unwrap();
    door.host.publish_running("default", "web");
    let directory = tempfile::tempdir().unwrap();
    // The server reads the keys of a login as that user.
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let Some(ssh) = Ssh::start(directory.path()) else { return };
    for (login, more) in [("box", &[][..]), ("guest", &[]), ("box", &["--tls"])] {
        let port = free_port();
        let (host, local) = (format!("--ssh={login}"), format!("--port={port}"));
        let config = door.kubeconfig(&[&[host.as_str(), &local], more].concat());
        let _forward = ssh.forward(&config, port);
        let Some(kubectl) = Kubectl::with_config(&door.host, &config) else { return };
        let run = |arguments: &[&str]| kubectl.command(arguments).env("PATH", &ssh.path).output().unwrap();
        let listed = run(&["get", "pods", "-o", "name"]);
        assert_eq!(text(&listed.stdout), "pod/web-edge\n", "{login} {more:?}: {}", text(&listed.stderr));
        // The login is the user.
        let may = run(&["auth", "can-i", "delete", "pods"]);
        assert_eq!(text(&may.stdout).starts_with("yes"), login == "box", "{login} {more:?}: {}", text(&may.stdout));
        if login == "guest" {
            let told = text(&run(&["delete", "pod", "web-edge"]).stderr);
            assert!(told.contains(r#"User "nobody" cannot delete"#) && told.contains("it needs role edit"), "{told}");
        }
    }
}
