//! A real kube-apiserver with its etcd on loopback, as an administrator sets it up: Node authorizer, NodeRestriction, client certificates.

use crate::support::{TestHost, eventually, process_exists};
use podstead::upstream::client::HttpCluster;
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, date_time_ymd};
use serde_json::{Value, json};
use std::fs::{self, File};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use tempfile::TempDir;

/// The variable with the path of the binary.
const VARIABLE: &str = "PODSTEAD_KUBE_APISERVER";

/// Lifetimes of a certificate.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lasts {
    /// For as long as anybody tests.
    Long,
    /// It has ended.
    NoMore,
}

/// One cluster without any controller; dropping it ends it.
pub(crate) struct RealCluster {
    directory: TempDir,
    issuer: Issuer<'static, KeyPair>,
    etcd: Child,
    etcd_port: u16,
    apiserver: Option<Child>,
    pub(crate) port: u16,
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

impl RealCluster {
    /// Starts both and waits until the namespaces are there.
    pub(crate) fn start() -> Self {
        let directory = tempfile::Builder::new().prefix("kube").tempdir().unwrap();
        let mut authority = CertificateParams::new(Vec::new()).unwrap();
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        fs::write(directory.path().join("ca.pem"), authority.self_signed(&key).unwrap().pem()).unwrap();
        let tokens = KeyPair::generate().unwrap();
        fs::write(directory.path().join("tokens.key"), tokens.serialize_pem()).unwrap();
        fs::write(directory.path().join("tokens.pub"), tokens.public_key_pem()).unwrap();
        let etcd_port = free_port();
        let (client, peer) = (format!("http://127.0.0.1:{etcd_port}"), format!("http://127.0.0.1:{}", free_port()));
        let log = File::create(directory.path().join("etcd.log")).unwrap();
        let etcd = Command::new("etcd")
            .arg("--data-dir")
            .arg(directory.path().join("etcd"))
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client, "--listen-peer-urls", &peer])
            .args(["--initial-advertise-peer-urls", &peer, "--initial-cluster", &format!("default={peer}"), "--unsafe-no-fsync"])
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .expect("etcd is in Debian's etcd-server");
        let issuer = Issuer::new(authority, key);
        let mut cluster = Self { directory, issuer, etcd, etcd_port, apiserver: None, port: free_port() };
        fs::write(cluster.path("server.pem"), cluster.certificate("kube-apiserver", "", Lasts::Long)).unwrap();
        fs::write(cluster.path("admin.pem"), cluster.certificate("admin", "system:masters", Lasts::Long)).unwrap();
        fs::write(
            cluster.path("admin"),
            cluster.kubeconfig(&json!({"client-certificate": "admin.pem", "client-key": "admin.pem"})),
        )
        .unwrap();
        cluster.start_apiserver();
        cluster
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A certificate with its key, PEM, for a user in a group.
    pub(crate) fn certificate(&self, user: &str, group: &str, lasts: Lasts) -> String {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.distinguished_name.push(DnType::CommonName, user);
        if !group.is_empty() {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth, ExtendedKeyUsagePurpose::ServerAuth];
        let end = match lasts {
            Lasts::Long => 2100,
            Lasts::NoMore => 2021,
        };
        (params.not_before, params.not_after) = (date_time_ymd(2020, 1, 1), date_time_ymd(end, 1, 1));
        format!("{}{}", params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }

    /// A kubeconfig beside `ca.pem`.
    pub(crate) fn kubeconfig(&self, user: &Value) -> String {
        let server = format!("https://127.0.0.1:{}", self.port);
        json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": server, "certificate-authority": "ca.pem"}}],
            "users": [{"name": "u", "user": user}],
        })
        .to_string()
    }

    /// Starts it on the same port and the same data.
    pub(crate) fn start_apiserver(&mut self) {
        let binary = std::env::var_os(VARIABLE).unwrap_or_else(|| panic!("{VARIABLE} names no kube-apiserver: make cluster"));
        let log = File::options().create(true).append(true).open(self.path("apiserver.log")).unwrap();
        let file = |flag: &str, name: &str| format!("--{flag}={}", self.path(name).display());
        let child = Command::new(binary)
            .arg(format!("--etcd-servers=http://127.0.0.1:{}", self.etcd_port))
            .arg(format!("--secure-port={}", self.port))
            // No endpoint may be on loopback; nobody connects to this one.
            .args(["--bind-address=127.0.0.1", "--advertise-address=192.0.2.1", "--service-cluster-ip-range=10.96.0.0/24"])
            .args([
                file("tls-cert-file", "server.pem"),
                file("tls-private-key-file", "server.pem"),
                file("client-ca-file", "ca.pem"),
            ])
            .args([file("service-account-key-file", "tokens.pub"), file("service-account-signing-key-file", "tokens.key")])
            .args(["--service-account-issuer=https://kubernetes.default.svc", "--authorization-mode=Node,RBAC"])
            .args(["--enable-admission-plugins=NodeRestriction", "--watch-cache=true"])
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn();
        let apiserver = self.apiserver.insert(child.unwrap());
        let pid = apiserver.id();
        eventually("the API server to be ready", || {
            assert!(process_exists(pid), "the API server ended");
            self.kubectl(&["get", "--raw", "/readyz"])?;
            self.kubectl(&["get", "namespace", "default", "kube-node-lease"]).map(drop)
        });
    }

    /// As if its host lost its power.
    pub(crate) fn kill_apiserver(&mut self) {
        let mut child = self.apiserver.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// An administrator's command.
    pub(crate) fn kubectl(&self, words: &[&str]) -> Result<String, String> {
        // Nothing is kept in the home directory of whoever tests.
        let out = Command::new("kubectl")
            .arg("--kubeconfig")
            .arg(self.path("admin"))
            .arg("--cache-dir")
            .arg(self.path("cache"))
            .args(["--request-timeout", "30s"])
            .args(words)
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if out.status.success() { Ok(said(&out.stdout)) } else { Err(format!("{words:?}: {}", said(&out.stderr))) }
    }

    /// One that has to succeed.
    pub(crate) fn ok(&self, words: &[&str]) -> String {
        self.kubectl(words).unwrap_or_else(|error| panic!("{error}"))
    }

    /// An object that an administrator creates.
    pub(crate) fn create(&self, object: &Value) {
        let path = self.path("object.json");
        fs::write(&path, object.to_string()).unwrap();
        self.ok(&["create", "-f", &path.display().to_string()]);
    }

    /// Puts an object in the place of one.
    pub(crate) fn replace_raw(&self, path: &str, object: &Value) {
        let file = self.path("object.json");
        fs::write(&file, object.to_string()).unwrap();
        self.ok(&["replace", "--raw", path, "-f", &file.display().to_string()]);
    }

    /// A client that is this user.
    pub(crate) fn client(&self, user: &str, group: &str) -> HttpCluster {
        fs::write(self.path("client.pem"), self.certificate(user, group, Lasts::Long)).unwrap();
        fs::write(self.path("client"), self.kubeconfig(&json!({"client-certificate": "client.pem"}))).unwrap();
        HttpCluster::new(&self.path("client"), None)
    }

    /// An object, or `None`.
    pub(crate) fn get(&self, kind: &str, namespace: &str, name: &str) -> Option<Value> {
        let found = self.kubectl(&["get", kind, "--namespace", namespace, name, "--output", "json"]).ok()?;
        serde_json::from_str(&found).ok()
    }

    /// Has the host speak to this cluster as this user.
    pub(crate) fn join(&self, host: &TestHost, more: &str, user: &Value) {
        let path = host.path("kubeconfig");
        let config = fs::read_to_string(host.path("config.yaml")).unwrap();
        fs::write(host.path("config.yaml"), format!("{config}upstream: {{kubeconfig: {}{more}}}\n", path.display())).unwrap();
        fs::copy(self.path("ca.pem"), host.path("ca.pem")).unwrap();
        fs::write(path, self.kubeconfig(user)).unwrap();
    }
}

impl Drop for RealCluster {
    fn drop(&mut self) {
        for child in self.apiserver.iter_mut().chain([&mut self.etcd]) {
            let _gone = child.kill();
            let _status = child.wait();
        }
        if std::thread::panicking() {
            let log = fs::read_to_string(self.path("apiserver.log")).unwrap_or_default();
            let last: Vec<&str> = log.lines().rev().take(30).collect();
            eprintln!("the API server said, latest first:\n{}", last.join("\n"));
        }
    }
}
