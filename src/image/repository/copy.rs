//! Copies of images: the documents of an image for some platforms, its signatures, and its layers as files.
//!
//! Whatever has a digest is verified. A layer goes on where an earlier attempt ended, also one of an earlier process.

use super::{Attempts, Repositories, RepositoryError};
use crate::compression::Decoder;
use crate::document::{Descriptor, Manifest, Platform};
use crate::explain::explain;
use crate::limits::Limits;
use crate::platform;
use crate::policy::artifact;
use crate::pull::NESTING;
use crate::registry::{Need, RegistryError, Route};
use crate::tar::{Streamed, TarError, TarReader};
use crate::transfer::{chance, pause};
use bytes::Bytes;
use futures_util::StreamExt as _;
use podstead_container::digest::{Digest, Hasher};
use podstead_container::reference::Reference;
use podstead_trust::image::DOCUMENT_MAX;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;
use std::time::Duration;

/// Largest configuration of an image.
const CONFIG_MAX: u64 = 8 << 20;
/// Time limit of a document.
const DOCUMENT_TIMEOUT: Duration = Duration::from_secs(120);
/// Attempts in a row at a layer that bring no byte.
const ATTEMPTS: u32 = 5;
/// Bytes that are read at once to verify a layer.
const CHUNK: usize = 256 << 10;

/// The documents of an image, and its layers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageCopy {
    /// The target of the reference: an index or a manifest.
    pub target: Descriptor,
    /// All documents by digest, those of signatures among them.
    pub documents: BTreeMap<Digest, Bytes>,
    /// Manifests of signatures.
    pub signatures: BTreeSet<Digest>,
    /// The layers for all chosen platforms, by digest.
    pub layers: BTreeMap<Digest, Descriptor>,
}

/// Content of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerContent {
    /// Bytes of its files.
    pub bytes: u64,
    /// Number of its entries.
    pub entries: u64,
}

/// Reason why a layer cannot be copied.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// The registry.
    #[error(transparent)]
    Repository(#[from] RepositoryError),
    /// The file.
    #[error("write the layer")]
    File(#[source] io::Error),
    /// Its content.
    #[error("read the layer")]
    Layer(#[from] TarError),
}

impl Repositories {
    /// The documents of an image for each of the platforms, with its signatures.
    pub async fn image(&self, reference: &Reference, platforms: &[Platform]) -> Result<ImageCopy, RepositoryError> {
        let bytes = self.manifest(reference).await?;
        let (digest, size) = (Digest::of(&bytes), bytes.len() as u64);
        let (artifact_type, platform, annotations) = (String::new(), None, BTreeMap::new());
        let target = Descriptor { media_type: media_type(&bytes), digest, size, artifact_type, platform, annotations };
        let (documents, signatures, layers) = (BTreeMap::from([(digest, bytes.clone())]), BTreeSet::new(), BTreeMap::new());
        let mut copy = ImageCopy { target, documents, signatures, layers };
        match parse(&bytes, reference)? {
            Manifest::Image(_) => self.add_manifest(reference, &bytes, Some(platforms), &mut copy).await?,
            Manifest::Index(entries) => {
                for wanted in platforms {
                    self.add_entry(reference, &entries, wanted, &mut copy).await?;
                }
            }
        }
        let subjects: Vec<Digest> =
            copy.documents.iter().filter(|(_, bytes)| is_manifest(bytes)).map(|(digest, _)| *digest).collect();
        for subject in subjects {
            self.add_signatures(reference, subject, &mut copy).await?;
        }
        Ok(copy)
    }

    /// A layer as a file at `path`, which may have its first bytes already. Durable when this returns.
    pub async fn layer(&self, repository: &Reference, layer: &Descriptor, path: &Path) -> Result<(), CopyError> {
        let mut attempts = self.attempts(repository).await;
        loop {
            match append_all(&attempts, repository, layer, path).await {
                Ok(()) => break,
                Err(Stopped::Registry(error)) => attempts.failed(&error)?,
                Err(Stopped::File(error)) => return Err(CopyError::File(error)),
            }
        }
        let mut file = File::open(path).map_err(CopyError::File)?;
        let actual = digest_of(&mut file).map_err(CopyError::File)?;
        if actual != layer.digest {
            std::fs::remove_file(path).map_err(CopyError::File)?;
            let reason = format!("layer {} of {repository} has the digest {actual}: fetch it again", layer.digest);
            return Err(RepositoryError::Registry { reason, retry_after: None }.into());
        }
        file.sync_all().map_err(CopyError::File)
    }

    /// Adds the image of an index for a platform, with the indexes that lead to it: as a pull chooses it there.
    async fn add_entry(
        &self,
        reference: &Reference,
        entries: &[Descriptor],
        wanted: &Platform,
        copy: &mut ImageCopy,
    ) -> Result<(), RepositoryError> {
        let choose = |entries: &[Descriptor]| match platform::choose(entries, wanted) {
            Ok(entry) => Ok(entry.digest),
            Err(error) => Err(failed(reference, &error)),
        };
        let mut digest = choose(entries)?;
        for _ in 1..NESTING {
            let at = reference.at(digest);
            let known = copy.documents.get(&digest).cloned();
            let is_new = known.is_none();
            let bytes = match known {
                Some(bytes) => bytes,
                None => self.manifest(&at).await?,
            };
            copy.documents.insert(digest, bytes.clone());
            match parse(&bytes, &at)? {
                Manifest::Index(entries) => digest = choose(&entries)?,
                Manifest::Image(_) if is_new => return self.add_manifest(&at, &bytes, None, copy).await,
                Manifest::Image(_) => return Ok(()),
            }
        }
        Err(refused(reference, "an index nested more than three levels deep"))
    }

    async fn add_manifest(
        &self,
        reference: &Reference,
        bytes: &Bytes,
        platforms: Option<&[Platform]>,
        copy: &mut ImageCopy,
    ) -> Result<(), RepositoryError> {
        let Manifest::Image(manifest) = parse(bytes, reference)? else { return Ok(()) };
        manifest.check().map_err(|error| failed(reference, &error))?;
        let config = self.blob(reference, &manifest.config, "image configuration", CONFIG_MAX, DOCUMENT_TIMEOUT).await?;
        let configuration = crate::document::Configuration::parse(&config, manifest.layers.len());
        let configuration = configuration.map_err(|error| failed(reference, &error))?;
        let unfit = platforms.into_iter().flatten().find(|wanted| !platform::runs_on(&configuration.platform, wanted));
        if let Some(wanted) = unfit {
            let (offered, wanted) = (platform::spell(&configuration.platform), platform::spell(wanted));
            return Err(refused(reference, &format!("it is for {offered}, not for {wanted}")));
        }
        copy.documents.insert(manifest.config.digest, config);
        copy.layers.extend(manifest.layers.into_iter().map(|layer| (layer.digest, layer)));
        Ok(())
    }

    /// Adds signatures of cosign of a manifest, in all places where it puts them. Nothing is verified: the host of the bundle does that.
    async fn add_signatures(&self, reference: &Reference, subject: Digest, copy: &mut ImageCopy) -> Result<(), RepositoryError> {
        let attempts = self.attempts(reference).await;
        let ask = attempts.ask();
        let mut manifests = Vec::new();
        let tag = reference.tagged(&format!("sha256-{}.sig", subject.hex()));
        manifests.extend(tolerated(ask.signatures(&tag).await, reference)?);
        let at = reference.at(subject);
        let list = match tolerated(ask.referrers(&at).await, reference)?.flatten() {
            Some(list) => Some(list),
            None => tolerated(ask.signatures(&reference.tagged(&format!("sha256-{}", subject.hex()))).await, reference)?,
        };
        let (referrers, _) = list.and_then(|list| artifact::referrers(&list).ok()).unwrap_or_default();
        for referrer in referrers {
            manifests.extend(tolerated(ask.manifest(&reference.at(referrer)).await, reference)?.map(|(manifest, _)| manifest));
        }
        for manifest in manifests {
            let Ok(layers) = artifact::signatures(&manifest) else { continue };
            for layer in layers {
                let descriptor = layer.descriptor;
                let fetched = ask.blob(reference, &descriptor, "signature", DOCUMENT_MAX as u64, DOCUMENT_TIMEOUT).await;
                if let Some(content) = tolerated(fetched, reference)? {
                    copy.documents.insert(descriptor.digest, content);
                }
            }
            let digest = Digest::of(&manifest);
            copy.signatures.insert(digest);
            copy.documents.insert(digest, manifest);
        }
        Ok(())
    }
}

/// Measures a layer in a file. Blocks.
pub fn measure(path: &Path) -> Result<LayerContent, CopyError> {
    let file = File::open(path).map_err(CopyError::File)?;
    // Read, not kept: who makes a bundle trusts the images in it.
    let limits = Limits { ratio: u64::MAX, ..Limits::default() };
    let decoder = Decoder::new(BufReader::with_capacity(CHUNK, file), &limits).map_err(CopyError::File)?;
    let mut reader = TarReader::new(Streamed(decoder));
    let mut content = LayerContent { bytes: 0, entries: 0 };
    while let Some(entry) = reader.next_entry()? {
        content.bytes = content.bytes.saturating_add(entry.size);
        content.entries += 1;
    }
    Ok(content)
}

/// Reason why a layer does not go on.
enum Stopped {
    Registry(RegistryError),
    File(io::Error),
}

impl From<RegistryError> for Stopped {
    fn from(error: RegistryError) -> Self {
        Self::Registry(error)
    }
}

/// Fetches the rest of a layer, from one host after the other, as long as bytes come.
async fn append_all(attempts: &Attempts<'_>, repository: &Reference, layer: &Descriptor, path: &Path) -> Result<(), Stopped> {
    let mut in_vain = 0;
    loop {
        let before = length(path).map_err(Stopped::File)?;
        if before == layer.size {
            return Ok(());
        }
        let mut failures = Vec::new();
        for route in attempts.registry.routes(repository, &attempts.caller, Need::Content).await? {
            match append(attempts, repository, &route, layer, path).await {
                Ok(()) => return Ok(()),
                Err(Stopped::Registry(error)) => failures.push((!route.is_mirror(), error)),
                Err(stopped @ Stopped::File(_)) => return Err(stopped),
            }
        }
        in_vain = if length(path).map_err(Stopped::File)? > before { 0 } else { in_vain + 1 };
        let none = || RegistryError::NoHost { registry: repository.host().to_owned(), need: "content" };
        let error = RegistryError::of_all(failures).unwrap_or_else(none);
        match error.is_transient() {
            Some(wanted) if in_vain < ATTEMPTS => tokio::time::sleep(pause(in_vain + 1, wanted, chance())).await,
            Some(_) | None => return Err(error.into()),
        }
    }
}

/// Fetches the rest of a layer from one host.
async fn append(
    attempts: &Attempts<'_>,
    repository: &Reference,
    route: &Route,
    layer: &Descriptor,
    path: &Path,
) -> Result<(), Stopped> {
    let mut file = File::options().create(true).append(true).open(path).map_err(Stopped::File)?;
    let mut had = file.metadata().map_err(Stopped::File)?.len();
    let mut stream = attempts.registry.blob(repository, route, layer.digest, had).await?;
    if stream.offset != had {
        file.set_len(stream.offset).map_err(Stopped::File)?;
        had = stream.offset;
    }
    while let Some(chunk) = stream.chunks.next().await {
        let chunk = chunk?;
        had = had.saturating_add(chunk.len() as u64);
        if had > layer.size {
            return Err(RegistryError::TooLarge { host: route.host().to_owned(), limit: layer.size }.into());
        }
        file.write_all(&chunk).map_err(Stopped::File)?;
    }
    if had < layer.size {
        let reason = format!("{had} of {} bytes", layer.size);
        return Err(RegistryError::Broken { host: route.host().to_owned(), reason }.into());
    }
    Ok(())
}

fn length(path: &Path) -> io::Result<u64> {
    match std::fs::metadata(path) {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

fn digest_of(file: &mut File) -> io::Result<Digest> {
    let (mut hasher, mut buffer) = (Hasher::default(), vec![0; CHUNK]);
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hasher.finish()),
            count => hasher.update(&buffer[..count]),
        }
    }
}

fn parse(bytes: &[u8], reference: &Reference) -> Result<Manifest, RepositoryError> {
    Manifest::parse(bytes).map_err(|error| failed(reference, &error))
}

fn is_manifest(bytes: &[u8]) -> bool {
    // A configuration has no schema version.
    Manifest::parse(bytes).is_ok()
}

fn media_type(bytes: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Typed {
        media_type: Option<String>,
    }
    let stated = serde_json::from_slice::<Typed>(bytes).ok().and_then(|typed| typed.media_type);
    stated.unwrap_or_else(|| match Manifest::parse(bytes) {
        Ok(Manifest::Index(_)) => crate::document::OCI_INDEX.to_owned(),
        Ok(Manifest::Image(_)) | Err(_) => crate::document::OCI_MANIFEST.to_owned(),
    })
}

fn failed(reference: &Reference, error: &(dyn std::error::Error + 'static)) -> RepositoryError {
    RepositoryError::Registry { reason: format!("{reference}: {}", explain(error)), retry_after: None }
}

fn refused(reference: &Reference, reason: &str) -> RepositoryError {
    RepositoryError::Registry { reason: format!("{reference}: {reason}"), retry_after: None }
}

/// The answer; `None` for what is not there or not given.
fn tolerated<T>(answer: Result<T, RegistryError>, reference: &Reference) -> Result<Option<T>, RepositoryError> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if error.is_absence() || error.is_denial() => Ok(None),
        Err(error) => Err(failed(reference, &error)),
    }
}
