//! Content of a bundle: the archive of manifests, and images from their registries.

use super::create::Earlier;
use crate::context::Context;
use crate::tree::read_tree;
use anyhow::{Context as _, bail};
use bytes::Bytes;
use podstead_config::Config;
use podstead_container::digest::Digest;
use podstead_container::reference::Reference;
use podstead_image::document::{Descriptor, Manifest, Platform};
use podstead_image::{ImageCopy, Repositories, default_auth_files, measure};
use podstead_source::bundle::document::{BundleBlob, BundleImage};
use podstead_source::bundle::write::{BlobSource, write_tar};
use podstead_telemetry::events::{EventRecorder, EventType, Subject};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Images that were fetched.
#[derive(Debug, Default)]
pub(super) struct FetchedImages {
    pub(super) images: Vec<BundleImage>,
    pub(super) signatures: BTreeSet<Digest>,
    /// Documents for other readers of the layout.
    pub(super) index: Vec<Descriptor>,
    documents: BTreeMap<Digest, Vec<u8>>,
    layers: BTreeMap<Digest, (BundleBlob, Option<PathBuf>)>,
}

/// The files of the manifests as a tar archive.
pub(super) fn manifests(path: &Path) -> anyhow::Result<Vec<u8>> {
    let artifact = read_tree(path)?;
    let mut files = BTreeMap::new();
    for (name, content) in &artifact.files {
        match content {
            Ok(bytes) => files.insert(name.as_str(), bytes.read()),
            Err(reason) => bail!("{name} {reason}"),
        };
    }
    // Those that cannot be read are missing where a kustomization wants them, as they are here.
    files.extend(artifact.beside.iter().filter_map(|(name, content)| Some((name.as_str(), content.as_ref().ok()?.read()))));
    let mut archive = Vec::new();
    write_tar(&mut archive, files.iter().map(|(name, bytes)| (*name, bytes.as_slice())))
        .context("write the archive of manifests")?;
    Ok(archive)
}

/// Registries as this machine reaches them: with its configuration, if it has one, and the usual auth files of root and of this user.
pub(super) fn repositories(context: &Context) -> Repositories {
    let config = context.load_config().ok();
    let of_config = |part: fn(&Config) -> PathBuf| config.as_ref().map(part);
    let mut auth_files = default_auth_files();
    if let Some(home) = std::env::var_os("HOME").map(PathBuf::from) {
        auth_files.extend([home.join(".config/containers/auth.json"), home.join(".docker/config.json")]);
    }
    let hosts = of_config(|config| config.registries_directory.clone());
    let registries = config.as_ref().map(|config| config.registries.clone()).unwrap_or_default();
    Repositories::of_host(&registries, &auth_files, hosts, Arc::new(Events))
}

/// Events of the client of registries.
#[derive(Debug)]
struct Events;

impl EventRecorder for Events {
    fn record(&self, _: &Subject, _: EventType, _: &str, message: &str) {
        // A closed stderr is not an error.
        writeln!(io::stderr(), "{message}").ok();
    }
}

/// The layers of an image, for any platform, that hosts do not have.
fn needed(documents: &BTreeMap<Digest, Bytes>, since: &Earlier) -> BTreeSet<Digest> {
    let mut needed = BTreeSet::new();
    for document in documents.values() {
        let Ok(Manifest::Image(manifest)) = Manifest::parse(document) else { continue };
        let layers: Vec<Digest> = manifest.layers.iter().map(|layer| layer.digest).collect();
        needed.extend((1..=layers.len()).filter(|count| !since.has(&layers[..*count])).map(|count| layers[count - 1]));
    }
    needed
}

impl FetchedImages {
    /// Fetches an image; layers go into `directory`, except those that are left out.
    pub(super) async fn fetch(
        &mut self,
        repositories: &Repositories,
        reference: &Reference,
        platforms: &[Platform],
        since: &Earlier,
        directory: &Path,
    ) -> anyhow::Result<()> {
        let ImageCopy { target, documents, signatures, layers } = repositories.image(reference, platforms).await?;
        let mut needed = needed(&documents, since);
        // Signatures are manifests, too.
        needed.retain(|digest| layers.contains_key(digest));
        let is_there = |fetched: &Self, digest: &Digest| {
            fetched.layers.get(digest).is_some_and(|(blob, _)| !blob.left_out || !needed.contains(digest))
        };
        let to_fetch = needed.iter().filter(|digest| !is_there(self, digest)).count();
        writeln!(io::stderr(), "{reference}: {to_fetch} of {} layers to fetch", layers.len())?;
        for (digest, layer) in layers {
            if is_there(self, &digest) {
                continue;
            }
            let mut blob = BundleBlob { digest, size: layer.size, unpacked_bytes: None, entries: None, left_out: true };
            let mut path = None;
            if needed.contains(&digest) {
                let file = directory.join(digest.hex());
                let fetched = repositories.layer(reference, &layer, &file).await;
                fetched.with_context(|| format!("fetch layer {digest} of {reference}"))?;
                let content = measure(&file).with_context(|| format!("read layer {digest} of {reference}"))?;
                (blob.unpacked_bytes, blob.entries, blob.left_out) = (Some(content.bytes), Some(content.entries), false);
                path = Some(file);
            }
            self.layers.insert(digest, (blob, path));
        }
        self.images.push(BundleImage { reference: reference.to_string(), digest: target.digest });
        let name =
            [("io.containerd.image.name", reference.to_string()), ("org.opencontainers.image.ref.name", reference.to_string())];
        let annotations = name.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        self.index.push(Descriptor { annotations, ..target });
        self.signatures.extend(signatures);
        self.documents.extend(documents.into_iter().map(|(digest, bytes)| (digest, bytes.to_vec())));
        Ok(())
    }

    /// The blobs for the document, and where their content is: documents, then `manifests`, then layers.
    pub(super) fn blobs(&self, manifests: Vec<u8>) -> (Vec<BundleBlob>, Vec<(Digest, BlobSource)>) {
        let small = |digest: Digest, size: u64| BundleBlob { digest, size, unpacked_bytes: None, entries: None, left_out: false };
        let (mut blobs, mut sources) = (Vec::new(), Vec::new());
        let documents = self.documents.iter().map(|(digest, bytes)| (*digest, bytes.clone()));
        for (digest, bytes) in documents.chain([(Digest::of(&manifests), manifests)]) {
            blobs.push(small(digest, bytes.len() as u64));
            sources.push((digest, BlobSource::Bytes(bytes)));
        }
        for (digest, (blob, path)) in &self.layers {
            blobs.push(blob.clone());
            sources.extend(path.iter().map(|path| (*digest, BlobSource::File(path.clone()))));
        }
        (blobs, sources)
    }
}
