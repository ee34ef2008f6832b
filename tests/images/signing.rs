//! Keys and signatures made by openssl, in the documents that cosign writes, and their way into a registry.

use crate::support::run;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use podstead::container::digest::Digest;
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const SIMPLE_SIGNING: &str = "application/vnd.dev.cosign.simplesigning.v1+json";
pub(crate) const BUNDLE: &str = "application/vnd.dev.sigstore.bundle.v0.3+json";
pub(crate) const COSIGN_ARTIFACT: &str = "application/vnd.dev.cosign.artifact.sig.v1+json";
const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
const INDEX: &str = "application/vnd.oci.image.index.v1+json";

/// An algorithm of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    P256,
    P384,
    Ed25519,
    Rsa,
}

/// A pair of keys in files.
pub(crate) struct Signer {
    algorithm: Algorithm,
    directory: tempfile::TempDir,
}

impl Signer {
    pub(crate) fn new() -> Self {
        Self::of(Algorithm::P256)
    }

    pub(crate) fn of(algorithm: Algorithm) -> Self {
        let signer = Self { algorithm, directory: tempfile::tempdir().unwrap() };
        let mut openssl = Command::new("openssl");
        match algorithm {
            Algorithm::P256 => openssl.args(["ecparam", "-genkey", "-noout", "-name", "prime256v1"]),
            Algorithm::P384 => openssl.args(["ecparam", "-genkey", "-noout", "-name", "secp384r1"]),
            Algorithm::Ed25519 => openssl.args(["genpkey", "-algorithm", "ed25519"]),
            Algorithm::Rsa => openssl.args(["genpkey", "-quiet", "-algorithm", "rsa", "-pkeyopt", "rsa_keygen_bits:2048"]),
        };
        run(openssl.arg("-out").arg(signer.path("key")));
        run(Command::new("openssl").args(["pkey", "-pubout", "-in"]).arg(signer.path("key")).arg("-out").arg(signer.public()));
        signer
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// File of the public key.
    pub(crate) fn public(&self) -> PathBuf {
        self.path("cosign.pub")
    }

    /// The signature in base64.
    pub(crate) fn sign(&self, message: &[u8]) -> String {
        std::fs::write(self.path("message"), message).unwrap();
        let mut openssl = Command::new("openssl");
        match self.algorithm {
            Algorithm::Ed25519 => openssl.args(["pkeyutl", "-sign", "-rawin", "-inkey"]).arg(self.path("key")).arg("-in"),
            Algorithm::P256 | Algorithm::P384 | Algorithm::Rsa => {
                openssl.args(["dgst", "-sha256", "-sign"]).arg(self.path("key")).arg("-out").arg(self.path("signature"))
            }
        };
        openssl.arg(self.path("message"));
        if self.algorithm == Algorithm::Ed25519 {
            openssl.arg("-out").arg(self.path("signature"));
        }
        run(&mut openssl);
        STANDARD.encode(std::fs::read(self.path("signature")).unwrap())
    }

    /// A payload of simple signing about an image, and its signature.
    pub(crate) fn simple(&self, name: &str, digest: &str) -> Simple {
        let payload = payload(name, digest);
        Simple { signature: self.sign(payload.as_bytes()), payload }
    }

    /// A bundle of `cosign sign` about a digest.
    pub(crate) fn bundle(&self, digest: &str) -> String {
        self.attestation(digest, "https://sigstore.dev/cosign/sign/v1")
    }

    /// A bundle with a statement of another type.
    pub(crate) fn attestation(&self, digest: &str, predicate_type: &str) -> String {
        let statement = json!({
            "_type": "https://in-toto.io/Statement/v1",
            "subject": [{"name": "", "digest": {"sha256": digest.trim_start_matches("sha256:")}}],
            "predicateType": predicate_type, "predicate": {},
        });
        let (statement, kind) = (statement.to_string(), "application/vnd.in-toto+json");
        let signed = format!("DSSEv1 {} {kind} {} {statement}", kind.len(), statement.len());
        let envelope = json!({
            "payload": STANDARD.encode(&statement), "payloadType": kind, "signatures": [{"sig": self.sign(signed.as_bytes())}],
        });
        json!({
            "mediaType": BUNDLE, "verificationMaterial": {"publicKey": {"hint": ""}, "tlogEntries": []}, "dsseEnvelope": envelope,
        })
        .to_string()
    }
}

pub(crate) fn payload(name: &str, digest: &str) -> String {
    json!({
        "critical": {
            "identity": {"docker-reference": name}, "image": {"docker-manifest-digest": digest},
            "type": "cosign container image signature",
        },
        "optional": {"creator": "a test"},
    })
    .to_string()
}

/// A payload with its signature.
#[derive(Clone)]
pub(crate) struct Simple {
    pub(crate) payload: String,
    pub(crate) signature: String,
}

/// A descriptor of some content.
pub(crate) fn descriptor(kind: &str, content: &[u8]) -> Value {
    json!({"mediaType": kind, "digest": Digest::of(content), "size": content.len()})
}

/// A manifest and all blobs that it names.
pub(crate) struct Artifact {
    pub(crate) manifest: String,
    pub(crate) blobs: Vec<Vec<u8>>,
}

impl Artifact {
    /// Content of the tag `.sig`.
    pub(crate) fn simple(signatures: &[Simple]) -> Self {
        let config = b"{}".to_vec();
        let layers: Vec<Value> = signatures
            .iter()
            .map(|signed| {
                let mut layer = descriptor(SIMPLE_SIGNING, signed.payload.as_bytes());
                layer["annotations"] = json!({"dev.cosignproject.cosign/signature": signed.signature});
                layer
            })
            .collect();
        let config_descriptor = descriptor("application/vnd.oci.image.config.v1+json", &config);
        let manifest = json!({"schemaVersion": 2, "mediaType": MANIFEST, "config": config_descriptor, "layers": layers});
        let blobs = signatures.iter().map(|signed| signed.payload.clone().into_bytes()).chain([config]).collect();
        Self { manifest: manifest.to_string(), blobs }
    }

    /// The same as a referrer of `subject`.
    pub(crate) fn referring(self, subject: &str) -> Self {
        let mut manifest: Value = serde_json::from_str(&self.manifest).unwrap();
        manifest["artifactType"] = json!(COSIGN_ARTIFACT);
        manifest["subject"] = json!({"mediaType": MANIFEST, "digest": subject, "size": 1});
        Self { manifest: manifest.to_string(), ..self }
    }

    /// A referrer with a bundle.
    pub(crate) fn bundle(bundle: &str, subject: &str) -> Self {
        let config = b"{}".to_vec();
        let manifest = json!({
            "schemaVersion": 2, "mediaType": MANIFEST, "artifactType": BUNDLE,
            "config": descriptor("application/vnd.oci.empty.v1+json", &config),
            "layers": [descriptor(BUNDLE, bundle.as_bytes())],
            "subject": {"mediaType": MANIFEST, "digest": subject, "size": 1},
        });
        Self { manifest: manifest.to_string(), blobs: vec![bundle.as_bytes().to_vec(), config] }
    }

    pub(crate) fn digest(&self) -> String {
        Digest::of(self.manifest.as_bytes()).to_string()
    }

    /// Pushes it to a registry under a tag or its digest.
    pub(crate) fn push(&self, host: &str, repository: &str, tag: &str) {
        for blob in &self.blobs {
            let answer = request(host, "POST", &format!("/v2/{repository}/blobs/uploads/"), "text/plain", b"");
            let place = answer.lines().find_map(|line| line.strip_prefix("Location: ")).unwrap_or_else(|| panic!("{answer}"));
            let path = place.trim().split_once(host).unwrap().1;
            let digest = Digest::of(blob).to_string().replace(':', "%3A");
            let answer = request(host, "PUT", &format!("{path}&digest={digest}"), "application/octet-stream", blob);
            assert!(answer.contains("201 Created"), "{answer}");
        }
        put_manifest(host, repository, tag, MANIFEST, &self.manifest);
    }
}

/// A list of referrers.
pub(crate) fn referrers(artifacts: &[(&Artifact, &str)]) -> String {
    let entries: Vec<Value> = artifacts
        .iter()
        .map(|(artifact, kind)| {
            let mut entry = descriptor(MANIFEST, artifact.manifest.as_bytes());
            entry["artifactType"] = json!(kind);
            entry
        })
        .collect();
    json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": entries}).to_string()
}

/// Pushes an index.
pub(crate) fn put_index(host: &str, repository: &str, tag: &str, index: &str) {
    put_manifest(host, repository, tag, INDEX, index);
}

fn put_manifest(host: &str, repository: &str, tag: &str, kind: &str, manifest: &str) {
    let answer = request(host, "PUT", &format!("/v2/{repository}/manifests/{tag}"), kind, manifest.as_bytes());
    assert!(answer.contains("201 Created"), "{answer}");
}

fn request(host: &str, method: &str, path: &str, kind: &str, body: &[u8]) -> String {
    let mut stream = std::net::TcpStream::connect(host).unwrap();
    let head = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\nConnection: close\r\n");
    write!(stream, "{head}Content-Length: {}\r\n\r\n", body.len()).unwrap();
    stream.write_all(body).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

/// The tag with the signatures of a digest.
pub(crate) fn signature_tag(digest: &str) -> String {
    format!("{}.sig", digest.replace(':', "-"))
}

/// Adds documents to the OCI layout in an archive: `entries` of its index and blobs.
pub(crate) fn add_to_layout(archive: &Path, artifacts: &[&Artifact]) {
    let directory = tempfile::tempdir().unwrap();
    run(Command::new("tar").arg("-C").arg(directory.path()).arg("-xf").arg(archive));
    let index = directory.path().join("index.json");
    let mut content: Value = serde_json::from_slice(&std::fs::read(&index).unwrap()).unwrap();
    for artifact in artifacts {
        let blobs = artifact.blobs.iter().map(Vec::as_slice).chain([artifact.manifest.as_bytes()]);
        for blob in blobs {
            std::fs::write(directory.path().join("blobs/sha256").join(Digest::of(blob).hex()), blob).unwrap();
        }
        let mut entry = descriptor(MANIFEST, artifact.manifest.as_bytes());
        // As `cosign save` writes it.
        entry["annotations"] = json!({"kind": "dev.cosignproject.cosign/sigs"});
        content["manifests"].as_array_mut().unwrap().push(entry);
    }
    std::fs::write(&index, content.to_string()).unwrap();
    run(Command::new("tar").arg("-C").arg(directory.path()).arg("-cf").arg(archive).arg("."));
}
