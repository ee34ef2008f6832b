//! Images made in memory, and what a registry answers for them.

use super::server::{Asked, Reply};
use podstead::container::digest::Digest;

/// Repository of every image of these cases.
pub(super) const REPOSITORY: &str = "app";

/// An image with tag `1`, whose layers are tar archives with one file each.
#[derive(Clone)]
pub(super) struct Image {
    manifest: Vec<u8>,
    config: Vec<u8>,
    pub(super) layers: Vec<Vec<u8>>,
}

impl Image {
    /// `count` layers of about `size` bytes. Images of other seeds have other layers.
    pub(super) fn new(seed: &str, count: usize, size: usize) -> Self {
        let layers: Vec<Vec<u8>> = (0..count).map(|number| archive(&format!("{seed}-{number}"), size)).collect();
        let diff_ids: Vec<Digest> = layers.iter().map(|layer| Digest::of(layer)).collect();
        Self::claiming(&diff_ids, layers)
    }

    /// An image whose configuration says that these are the layers' diff ids.
    pub(super) fn claiming(diff_ids: &[Digest], layers: Vec<Vec<u8>>) -> Self {
        let host = podstead::image::platform::host();
        let quoted: Vec<String> = diff_ids.iter().map(|digest| format!("\"{digest}\"")).collect();
        let config = format!(
            r#"{{"os":"{}","architecture":"{}","config":{{}},"rootfs":{{"type":"layers","diff_ids":[{}]}}}}"#,
            host.os,
            host.architecture,
            quoted.join(",")
        )
        .into_bytes();
        let descriptor = |kind: &str, content: &[u8]| {
            let (digest, size) = (Digest::of(content), content.len());
            format!(r#"{{"mediaType":"application/vnd.oci.image.{kind}","digest":"{digest}","size":{size}}}"#)
        };
        let listed: Vec<String> = layers.iter().map(|layer| descriptor("layer.v1.tar", layer)).collect();
        let manifest = format!(
            r#"{{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":{},"layers":[{}]}}"#,
            descriptor("config.v1+json", &config),
            listed.join(",")
        );
        Self { manifest: manifest.into_bytes(), config, layers }
    }

    pub(super) fn diff_ids(&self) -> Vec<Digest> {
        self.layers.iter().map(|layer| Digest::of(layer)).collect()
    }

    /// The layer that a request is for.
    pub(super) fn layer(&self, asked: &Asked) -> Option<&[u8]> {
        let layer = self.layers.iter().find(|layer| asked.target.ends_with(&format!("/blobs/{}", Digest::of(layer))));
        layer.map(Vec::as_slice)
    }

    /// The answer of an honest registry.
    pub(super) fn serve(&self, asked: &Asked) -> Reply {
        let base = format!("/v2/{REPOSITORY}");
        let manifest = Digest::of(&self.manifest);
        let by_name = [format!("{base}/manifests/1"), format!("{base}/manifests/{manifest}")];
        if by_name.contains(&asked.target) {
            return Reply::Whole(200, vec![format!("Docker-Content-Digest: {manifest}")], self.manifest.clone());
        }
        if asked.target == format!("{base}/blobs/{}", Digest::of(&self.config)) {
            return Reply::Whole(200, Vec::new(), self.config.clone());
        }
        match self.layer(asked) {
            Some(layer) => part(layer, asked.offset()),
            None => Reply::status(404),
        }
    }
}

/// The content from `offset` on.
pub(super) fn part(content: &[u8], offset: usize) -> Reply {
    match offset {
        0 => Reply::Whole(200, Vec::new(), content.to_vec()),
        _ => {
            let range = format!("Content-Range: bytes {offset}-{}/{}", content.len() - 1, content.len());
            Reply::Whole(206, vec![range], content[offset..].to_vec())
        }
    }
}

/// A tar archive with one file.
fn archive(name: &str, size: usize) -> Vec<u8> {
    let mut header = [0_u8; 512];
    let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000644\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{size:011o}\0"));
    put(136, "00000000000\0");
    put(148, "        ");
    put(156, "0");
    put(257, "ustar\x0000");
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    let mut archive = header.to_vec();
    archive.extend(name.bytes().cycle().take(size));
    archive.resize(archive.len().next_multiple_of(512) + 1024, 0);
    archive
}
