//! Bundles made on the spot.

use podstead::container::digest::Digest;
use podstead::image::platform;
use podstead::source::bundle::document::{API_VERSION, BundleBlob, BundleDocument, BundleImage, KIND};
use podstead::source::bundle::write::{BlobSource, BundleParts, write_bundle, write_tar};
use serde_json::json;
use std::path::Path;
use std::process::{Command, Stdio};

/// A bundle before it is written.
#[derive(Clone, Debug)]
pub(super) struct Made {
    pub(super) document: BundleDocument,
    pub(super) blobs: Vec<(Digest, BlobSource)>,
}

impl Made {
    /// With these manifests.
    pub(super) fn new(serial: u64, files: &[(&str, &str)]) -> Self {
        let mut archive = Vec::new();
        write_tar(&mut archive, files.iter().map(|(name, text)| (*name, text.as_bytes()))).unwrap();
        Self::with_archive(serial, archive)
    }

    /// With this archive of manifests.
    pub(super) fn with_archive(serial: u64, archive: Vec<u8>) -> Self {
        let document = BundleDocument {
            api_version: API_VERSION.into(),
            kind: KIND.into(),
            name: "fleet".into(),
            serial,
            created: "2026-11-29T12:00:00Z".parse().unwrap(),
            hosts: vec!["edge-1".into()],
            revision: String::new(),
            manifests: Digest::of(&archive),
            images: Vec::new(),
            signatures: Vec::new(),
            blobs: Vec::new(),
        };
        let mut made = Self { document, blobs: Vec::new() };
        made.blob(archive);
        made
    }

    /// Adds content, once.
    pub(super) fn blob(&mut self, bytes: Vec<u8>) -> Digest {
        let digest = Digest::of(&bytes);
        if self.document.blobs.iter().all(|blob| blob.digest != digest) {
            let size = bytes.len() as u64;
            self.document.blobs.push(BundleBlob { digest, size, unpacked_bytes: None, entries: None, left_out: false });
            self.blobs.push((digest, BlobSource::Bytes(bytes)));
        }
        digest
    }

    /// Adds an image whose layers have a file each, called as its content.
    pub(super) fn image(self, reference: &str, layers: &[&str]) -> Self {
        let archive = |text: &&str| {
            let mut layer = Vec::new();
            write_tar(&mut layer, [(*text, text.as_bytes())]).unwrap();
            layer
        };
        let layers: Vec<Vec<u8>> = layers.iter().map(archive).collect();
        self.image_of(reference, layers)
    }

    /// Adds an image with these layers, uncompressed.
    pub(super) fn image_of(mut self, reference: &str, layers: Vec<Vec<u8>>) -> Self {
        let diff_ids: Vec<Digest> = layers.iter().map(|layer| Digest::of(layer)).collect();
        let sizes: Vec<usize> = layers.iter().map(Vec::len).collect();
        let host = platform::host();
        let config = json!({
            "os": host.os, "architecture": host.architecture, "config": {}, "rootfs": {"type": "layers", "diff_ids": diff_ids},
        });
        let config = config.to_string().into_bytes();
        let descriptor =
            |digest: &Digest, size: usize| json!({"mediaType": "application/octet-stream", "digest": digest, "size": size});
        let manifest = json!({
            "schemaVersion": 2, "config": descriptor(&Digest::of(&config), config.len()),
            "layers": diff_ids.iter().zip(&sizes).map(|(digest, size)| descriptor(digest, *size)).collect::<Vec<_>>(),
        });
        let digest = self.blob(manifest.to_string().into_bytes());
        self.blob(config);
        for layer in layers {
            self.blob(layer);
        }
        self.document.images.push(BundleImage { reference: reference.to_owned(), digest });
        self
    }

    /// Leaves content out.
    pub(super) fn without(mut self, digest: Digest) -> Self {
        self.blobs.retain(|(known, _)| *known != digest);
        self.document.blobs.iter_mut().filter(|blob| blob.digest == digest).for_each(|blob| blob.left_out = true);
        self
    }

    pub(super) fn parts(&self) -> BundleParts {
        let bytes = serde_json::to_vec(&self.document).unwrap();
        BundleParts { document: self.document.clone(), bytes, signature: None, index: Vec::new(), blobs: self.blobs.clone() }
    }

    pub(super) fn revision(&self) -> String {
        Digest::of(&self.parts().bytes).to_string()
    }

    /// The file.
    pub(super) fn bytes(&self) -> Vec<u8> {
        written(&self.parts())
    }

    /// The file with a signature by the key in a file.
    pub(super) fn signed(&self, key: &Path, namespace: &str) -> Vec<u8> {
        let parts = self.parts();
        let signature = Some(sign(&parts.bytes, key, namespace));
        written(&BundleParts { signature, ..parts })
    }
}

pub(super) fn written(parts: &BundleParts) -> Vec<u8> {
    let mut file = Vec::new();
    write_bundle(&mut file, parts).unwrap();
    file
}

/// The digest of a layer with a file that is called as its content.
pub(super) fn layer(text: &str) -> Digest {
    let mut layer = Vec::new();
    write_tar(&mut layer, [(text, text.as_bytes())]).unwrap();
    Digest::of(&layer)
}

pub(super) fn sign(document: &[u8], key: &Path, namespace: &str) -> Vec<u8> {
    use std::io::Write as _;
    let mut command = Command::new("ssh-keygen");
    command
        .args(["-q", "-Y", "sign", "-n", namespace, "-f"])
        .arg(key)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(document).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    output.stdout
}
