//! Artifacts as `flux push artifact` makes them.

use super::signing::{Artifact, descriptor};
use crate::support::run;
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::Write;
use std::process::Command;

const CONTENT: &str = "application/vnd.cncf.flux.content.v1.tar+gzip";
const CONFIG: &str = "application/vnd.cncf.flux.config.v1+json";

/// A gzipped archive of these files, by GNU tar.
pub(super) fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in files {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    let archive = tempfile::NamedTempFile::new().unwrap();
    run(Command::new("tar").arg("-C").arg(directory.path()).arg("-czf").arg(archive.path()).arg("."));
    std::fs::read(archive.path()).unwrap()
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// An entry of an archive, whatever it may be.
pub(super) fn entry(kind: u8, path: &str, link: &str, content: &[u8]) -> Vec<u8> {
    let mut header = [0_u8; 512];
    let mut put = |offset: usize, text: &str| header[offset..offset + text.len()].copy_from_slice(text.as_bytes());
    put(0, path);
    put(100, "0000644");
    put(108, "0000000");
    put(116, "0000000");
    put(124, &format!("{:011o}", content.len()));
    put(136, "00000000000");
    put(157, link);
    put(257, "ustar");
    put(263, "00");
    header[156] = kind;
    header[148..156].fill(b' ');
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
    let mut bytes = [&header, content].concat();
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

/// The artifact with a layer.
pub(super) fn flux(layer: Vec<u8>, annotations: &Value) -> Artifact {
    let config = b"{}".to_vec();
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": descriptor(CONFIG, &config),
        "layers": [descriptor(CONTENT, &layer)],
        "annotations": annotations,
    });
    Artifact { manifest: manifest.to_string(), blobs: vec![config, layer] }
}

/// The artifact with these files.
pub(super) fn of(files: &[(&str, &str)]) -> Artifact {
    flux(archive(files), &json!({}))
}

/// The artifact with these files, pushed at that time.
pub(super) fn created(files: &[(&str, &str)], at: &str) -> Artifact {
    flux(archive(files), &json!({"org.opencontainers.image.created": at}))
}
