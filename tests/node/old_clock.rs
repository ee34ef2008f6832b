//! The first start of a host whose clock is behind every certificate, as after power on without a battery: certificates that begin long after today are
//! to this machine what those of today are in 1970.

use crate::support::registry::Registry;
use crate::support::{TestHost, eventually, image_archive};
use std::fs;
use std::path::Path;

/// Debian's docker-registry over TLS.
struct SecureRegistry {
    place: String,
    directory: tempfile::TempDir,
    _registry: Registry,
}

/// Writes an authority, and a certificate by it for 127.0.0.1 with its key. All begin in the year 4000.
fn write_certificates(directory: &Path) {
    let begin = rcgen::date_time_ymd(4000, 1, 1);
    let (ca_key, key) = (rcgen::KeyPair::generate().unwrap(), rcgen::KeyPair::generate().unwrap());
    let mut ca = rcgen::CertificateParams::new(Vec::new()).unwrap();
    (ca.is_ca, ca.not_before) = (rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained), begin);
    let ca_certificate = ca.self_signed(&ca_key).unwrap();
    let mut leaf = rcgen::CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    leaf.not_before = begin;
    let certificate = leaf.signed_by(&key, &rcgen::Issuer::new(ca, ca_key)).unwrap();
    for (name, text) in [("ca.pem", ca_certificate.pem()), ("cert.pem", certificate.pem()), ("key.pem", key.serialize_pem())] {
        fs::write(directory.join(name), text).unwrap();
    }
}

impl SecureRegistry {
    /// With the test image as `shop/till:1`.
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        write_certificates(directory.path());
        let at = |name: &str| directory.path().join(name).display().to_string();
        let http = format!("http: {{addr: '127.0.0.1:0', tls: {{certificate: {}, key: {}}}}}\n", at("cert.pem"), at("key.pem"));
        let registry = Registry::serve(directory.path(), &http);
        registry.push(image_archive(), "shop/till:1");
        Self { place: registry.host.clone(), directory, _registry: registry }
    }
}

fn wait_for_answer(host: &TestHost) {
    host.wait_running("till");
    eventually("the container to answer", || {
        let out = host.cli(&["exec", "till", "--", "echo", "here"]);
        if out.stdout == b"here\n" { Ok(()) } else { Err(String::from_utf8_lossy(&out.stderr).into_owned()) }
    });
}

/// F24.
#[test]
fn first_start_at_a_clock_before_every_certificate() {
    let registry = SecureRegistry::start();
    let ca = registry.directory.path().join("ca.pem");
    let mut host = TestHost::prepare(&format!("registries:\n  - {{host: '{}', caFile: {}}}\n", registry.place, ca.display()));
    // Nothing is here.
    fs::remove_file(host.path("preload/busybox.tar")).unwrap();
    let pod = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: till}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n    \
         - {{name: main, image: '{}/shop/till:1', command: [sleep, '1000000']}}\n",
        registry.place
    );
    host.write_manifest("till.yaml", &pod);
    host.start_daemon();
    wait_for_answer(&host);
    // And again, with nobody to ask.
    drop(registry);
    host.lose_power();
    host.start_daemon();
    wait_for_answer(&host);
}
