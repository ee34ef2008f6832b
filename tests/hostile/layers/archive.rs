//! Archives with content that no tool makes.

use podstead::container::digest::Digest;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;

/// Types of entries.
pub(super) const FILE: u8 = b'0';
pub(super) const HARD_LINK: u8 = b'1';
pub(super) const SYMLINK: u8 = b'2';
pub(super) const CHAR_DEVICE: u8 = b'3';
pub(super) const BLOCK_DEVICE: u8 = b'4';
pub(super) const DIRECTORY: u8 = b'5';
const PAX: u8 = b'x';

/// One header, with a size that needs not be its content's.
pub(super) struct Header<'a> {
    pub(super) kind: u8,
    pub(super) path: &'a str,
    pub(super) link: &'a str,
    pub(super) mode: u32,
    pub(super) size: u64,
    pub(super) device: (u32, u32),
}

impl Default for Header<'_> {
    fn default() -> Self {
        Self { kind: FILE, path: "", link: "", mode: 0o755, size: 0, device: (0, 0) }
    }
}

impl Header<'_> {
    pub(super) fn bytes(&self) -> Vec<u8> {
        let mut header = [0_u8; 512];
        let mut put = |offset: usize, text: &str| header[offset..offset + text.len()].copy_from_slice(text.as_bytes());
        put(0, self.path);
        put(100, &format!("{:07o}", self.mode));
        put(108, "0000000");
        put(116, "0000000");
        put(124, &format!("{:011o}", self.size));
        put(136, "00000000000");
        put(157, self.link);
        put(257, "ustar");
        put(263, "00");
        put(329, &format!("{:07o}", self.device.0));
        put(337, &format!("{:07o}", self.device.1));
        header[156] = self.kind;
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..155].copy_from_slice(format!("{sum:06o}\0").as_bytes());
        header.to_vec()
    }
}

fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

pub(super) fn file(path: &str, content: &[u8]) -> Vec<u8> {
    let header = Header { path, size: content.len() as u64, ..Header::default() }.bytes();
    padded([&header, content].concat())
}

pub(super) fn link(kind: u8, path: &str, target: &str) -> Vec<u8> {
    Header { kind, path, link: target, ..Header::default() }.bytes()
}

pub(super) fn directory(path: &str) -> Vec<u8> {
    Header { kind: DIRECTORY, path, ..Header::default() }.bytes()
}

/// PAX records for the entry that follows.
pub(super) fn pax(records: &[(&str, &[u8])]) -> Vec<u8> {
    let mut content = Vec::new();
    for (key, value) in records {
        let rest = key.len() + value.len() + 3;
        let mut length = rest + 1;
        while length != rest + length.to_string().len() {
            length += 1;
        }
        content.extend_from_slice(format!("{length} {key}=").as_bytes());
        content.extend_from_slice(value);
        content.push(b'\n');
    }
    let header = Header { kind: PAX, path: "pax", size: content.len() as u64, ..Header::default() }.bytes();
    padded([header, content].concat())
}

/// An entry with a path of any length.
pub(super) fn with_path(path: &str, entry: &[u8]) -> Vec<u8> {
    [&pax(&[("path", path.as_bytes())]), entry].concat()
}

/// An archive of these entries.
pub(super) fn tar(entries: &[Vec<u8>]) -> Vec<u8> {
    [entries.concat(), vec![0; 1024]].concat()
}

pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

pub(super) fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

/// Bytes that do not compress, the same each time.
pub(super) fn noise(count: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state.to_le_bytes()
    };
    (0..count.div_ceil(8)).flat_map(|_| next()).take(count).collect()
}

/// A layer: the bytes that are fetched, and the digest that the image's configuration has for it.
pub(super) struct Layer {
    pub(super) bytes: Vec<u8>,
    pub(super) diff_id: Digest,
}

impl Layer {
    /// One whose archive comes as gzip.
    pub(super) fn of(entries: &[Vec<u8>]) -> Self {
        let archive = tar(entries);
        Self { bytes: gzip(&archive), diff_id: Digest::of(&archive) }
    }

    /// One that is refused before anybody asks for its diff id.
    pub(super) fn raw(bytes: Vec<u8>) -> Self {
        Self { bytes, diff_id: Digest::of(b"never compared") }
    }
}

/// An image of such layers.
pub(super) struct Image {
    /// By digest.
    pub(super) blobs: BTreeMap<Digest, Vec<u8>>,
    pub(super) manifest: Digest,
}

impl Image {
    pub(super) fn of(layers: &[Layer]) -> Self {
        let mut image = Self { blobs: BTreeMap::new(), manifest: Digest::of(b"") };
        let diff_ids: Vec<String> = layers.iter().map(|layer| format!("{:?}", layer.diff_id.to_string())).collect();
        let architecture = match std::env::consts::ARCH {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        let config = format!(
            r#"{{"os":"linux","architecture":"{architecture}","config":{{"Cmd":["/bin/sh"]}},"rootfs":{{"type":"layers","diff_ids":[{}]}}}}"#,
            diff_ids.join(",")
        );
        let config = image.add(config.into_bytes(), "application/vnd.oci.image.config.v1+json");
        let layers: Vec<String> =
            layers.iter().map(|layer| image.add(layer.bytes.clone(), "application/vnd.oci.image.layer.v1.tar+gzip")).collect();
        let manifest = format!(
            r#"{{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{config},"layers":[{}]}}"#,
            layers.join(",")
        );
        image.manifest = Digest::of(manifest.as_bytes());
        image.blobs.insert(image.manifest, manifest.into_bytes());
        image
    }

    fn add(&mut self, content: Vec<u8>, media_type: &str) -> String {
        let digest = Digest::of(&content);
        let descriptor = format!(r#"{{"mediaType":"{media_type}","digest":"{digest}","size":{}}}"#, content.len());
        self.blobs.insert(digest, content);
        descriptor
    }

    /// Writes an image with this one layer as `docker save` does.
    pub(super) fn write_docker(&self, path: &Path, name: &str, layer: &[u8]) {
        let config = self.blobs.values().find(|content| content.starts_with(br#"{"os""#)).unwrap();
        let manifest = format!(r#"[{{"Config":"config.json","RepoTags":["{name}"],"Layers":["0/layer.tar"]}}]"#);
        let entries = [file("config.json", config), file("0/layer.tar", layer), file("manifest.json", manifest.as_bytes())];
        std::fs::write(path, tar(&entries)).unwrap();
    }

    /// Writes an OCI layout that gives the image a name.
    pub(super) fn write(&self, path: &Path, name: &str) {
        let size = self.blobs[&self.manifest].len();
        let index = format!(
            r#"{{"schemaVersion":2,"manifests":[{{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"{}","size":{size},"annotations":{{"io.containerd.image.name":"{name}"}}}}]}}"#,
            self.manifest
        );
        let mut entries = vec![file("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#), file("index.json", index.as_bytes())];
        entries.extend(self.blobs.iter().map(|(digest, content)| file(&format!("blobs/sha256/{}", digest.hex()), content)));
        let archive = tar(&entries);
        let compressed = path.extension().is_some_and(|extension| extension == "gz");
        std::fs::write(path, if compressed { gzip(&archive) } else { archive }).unwrap();
    }
}
