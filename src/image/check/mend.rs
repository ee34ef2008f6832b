//! Verification of images, and repair: of what is damaged, documents are fetched by their digests, and layers are made anew from an archive of the
//! preload directory or from the registry.

use super::super::ask::Ask;
use super::super::collect::{Collector, PreloadedImages};
use super::super::commit::CommitError;
use super::super::disk::{Disk, NamedImage};
use super::super::document::{Configuration, DocumentError, ImageManifest, Manifest};
use super::super::explain::explain;
use super::super::fetch::{FetchError, Fetcher, WantedLayer};
use super::super::layer::Bounds;
use super::super::names::NamedLayer;
use super::super::policy::Gate;
use super::super::pulls::Pulls;
use super::super::registry::{Caller, HostLogin, Need, RegistryError, Who};
use super::super::room::{self, Part, RoomError};
use super::super::transfer::Source;
use super::verify::{self, LayerState};
use podstead_container::digest::Digest;
use podstead_container::reference::Reference;
use podstead_runtime::{Repair, VerifiedImage, VerifyReport};
use podstead_telemetry::events::{EventRecorder, EventType, Subject};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Instant;
use tokio::task::JoinError;
use tokio_util::sync::CancellationToken;

/// Reason why a registry was of no help.
#[derive(Debug, thiserror::Error)]
enum MendError {
    #[error(transparent)]
    Registry(#[from] RegistryError),
    #[error(transparent)]
    Document(#[from] DocumentError),
    #[error(transparent)]
    Room(#[from] RoomError),
    #[error("layer {digest}")]
    Layer {
        digest: Digest,
        #[source]
        source: FetchError,
    },
    #[error("store the image")]
    Commit(#[from] CommitError),
    #[error("interrupted")]
    Interrupted(#[from] JoinError),
}

/// States of layers that were read already: images share layers.
pub(in super::super) type States = BTreeMap<Digest, LayerState>;

/// Verifies images, and mends them.
#[derive(Debug)]
pub(in super::super) struct Mender {
    pub(in super::super) disk: Arc<Disk>,
    pub(in super::super) fetcher: Fetcher,
    pub(in super::super) gate: Arc<Gate>,
    /// The preload directory, and what its archives brought.
    pub(in super::super) preload: Option<PathBuf>,
    pub(in super::super) preloaded: PreloadedImages,
    pub(in super::super) collector: Arc<Collector>,
    pub(in super::super) shown: Pulls,
    pub(in super::super) events: Arc<dyn EventRecorder>,
}

/// Damage of an image.
#[derive(Debug, Default)]
struct Damage {
    documents: Option<String>,
    layers: BTreeMap<Digest, Vec<String>>,
    unlisted: usize,
}

impl Damage {
    fn is_none(&self) -> bool {
        self.documents.is_none() && self.layers.is_empty()
    }

    /// One line for each part, for people.
    fn told(&self) -> Vec<String> {
        let layer = |(name, what): (&Digest, &Vec<String>)| format!("layer {}: {}", &name.hex()[..12], what.join(", "));
        self.documents.iter().cloned().chain(self.layers.iter().map(layer)).collect()
    }
}

impl Mender {
    /// Verifies images one after the other.
    pub(in super::super) async fn verify(&self, images: Vec<NamedImage>, repair: bool) -> VerifyReport {
        let (mut states, mut report) = (States::new(), VerifyReport::default());
        for image in images {
            report.images.push(self.image(&image, repair, &mut states).await);
        }
        let bytes = |state: &LayerState| if let LayerState::Whole(bytes) = state { *bytes } else { 0 };
        report.read_bytes = states.values().map(bytes).sum();
        report
    }

    /// Verifies, once, the layers of an earlier boot, and mends them.
    pub(in super::super) async fn verify_earlier(&self) {
        let disk = Arc::clone(&self.disk);
        let Ok(due) = tokio::task::spawn_blocking(move || disk.unverified()).await else { return };
        let (mut states, mut noted) = (States::new(), BTreeSet::new());
        let images = self.disk.images_of(&[]);
        for image in images.into_iter().filter(|image| image.layers.iter().any(|layer| due.contains(layer))) {
            self.image(&image, true, &mut states).await;
            // After each image: a daemon that ends meanwhile goes on with the next one.
            let is_whole = |layer: &&Digest| due.contains(layer) && matches!(states.get(layer), Some(LayerState::Whole(_)));
            let whole: Vec<Digest> = image.layers.iter().filter(is_whole).copied().filter(|layer| noted.insert(*layer)).collect();
            let disk = Arc::clone(&self.disk);
            let noting = tokio::task::spawn_blocking(move || whole.into_iter().try_for_each(|layer| disk.verified(layer)));
            if let Ok(Err(error)) = noting.await {
                tracing::warn!(%error, "cannot record that a layer was verified");
            }
        }
    }

    async fn image(&self, image: &NamedImage, repair: bool, states: &mut States) -> VerifiedImage {
        let damage = self.damage(image, states).await;
        let mut verified = VerifiedImage {
            references: image.references.clone(),
            digest: image.digest.to_string(),
            damage: damage.told(),
            unlisted_layers: damage.unlisted,
            repair: None,
        };
        if damage.is_none() {
            return verified;
        }
        let name = image.references.first().cloned().unwrap_or_else(|| image.digest.to_string());
        let needed = self.needed(image).await.map(|needed| format!(" (needed by {needed})")).unwrap_or_default();
        let told = verified.damage.join("; ");
        if repair {
            let result = self.mend(image, damage, states).await;
            verified.repair = Some(match result {
                Ok(from) => {
                    let message = format!("image {name}{needed} was damaged and has been repaired from {from}: {told}");
                    tracing::warn!("{message}; containers that run keep the damaged files until they are started again");
                    self.events.record(&Subject::Node, EventType::Normal, "ImageRepaired", &message);
                    return VerifiedImage { repair: Some(Repair::Done { from }), ..verified };
                }
                Err(reason) => Repair::Failed { reason },
            });
        }
        let message = match &verified.repair {
            Some(Repair::Failed { reason }) => format!("image {name}{needed} is damaged: {told}; it cannot be repaired: {reason}"),
            Some(Repair::Done { .. }) | None => {
                format!("image {name}{needed} is damaged: {told}; podstead image verify --repair {name} repairs it")
            }
        };
        tracing::error!("{message}");
        self.events.record(&Subject::Node, EventType::Warning, "ImageDamaged", &message);
        verified
    }

    /// Those who need an image, for people.
    async fn needed(&self, image: &NamedImage) -> Option<String> {
        for reference in image.references.iter().filter_map(|reference| reference.parse().ok()) {
            if let Ok(Some(reason)) = self.collector.mark_of(&reference).await {
                return Some(reason);
            }
        }
        None
    }

    async fn damage(&self, image: &NamedImage, states: &mut States) -> Damage {
        let mut damage = Damage::default();
        let (disk, digest) = (Arc::clone(&self.disk), image.digest);
        let documents = tokio::task::spawn_blocking(move || verify::documents(disk.layout(), digest).map(drop)).await;
        damage.documents = documents.unwrap_or_else(|error| Err(error.to_string())).err();
        for layer in image.layers.iter().copied() {
            let state = match states.get(&layer) {
                Some(state) => state.clone(),
                None => {
                    let disk = Arc::clone(&self.disk);
                    let begun = Instant::now();
                    let state = tokio::task::spawn_blocking(move || verify::layer(disk.layout(), layer)).await;
                    let state = state.unwrap_or_else(|error| LayerState::Damaged(vec![error.to_string()]));
                    // Containers have the disk for half of the time.
                    tokio::time::sleep(begun.elapsed()).await;
                    states.insert(layer, state.clone());
                    state
                }
            };
            match state {
                LayerState::Whole(_) => {}
                LayerState::Unlisted => damage.unlisted += 1,
                LayerState::Damaged(what) => drop(damage.layers.insert(layer, what)),
            }
        }
        damage
    }

    /// Mends an image; returns what it was mended from, or what was tried in vain.
    async fn mend(&self, image: &NamedImage, damage: Damage, states: &mut States) -> Result<String, String> {
        let damaged: BTreeSet<Digest> = damage.layers.keys().copied().collect();
        let mut tried = Vec::new();
        for archive in self.archives(image) {
            let (disk, gate, path, layers) = (Arc::clone(&self.disk), Arc::clone(&self.gate), archive.clone(), damaged.clone());
            let made = tokio::task::spawn_blocking(move || disk.mend_from(&path, &gate, layers).map_err(|error| explain(&error)));
            match made.await.unwrap_or_else(|error| Err(error.to_string())) {
                Ok(()) if self.is_mended(image, &damaged, states).await => return Ok(archive.display().to_string()),
                Ok(()) => tried.push(format!("{} has another image", archive.display())),
                Err(error) => tried.push(format!("{}: {error}", archive.display())),
            }
        }
        for reference in image.references.iter().filter_map(|reference| reference.parse::<Reference>().ok()) {
            let reference = reference.at(image.digest);
            let of_host = self.fetcher.registry.host_logins(&reference).await;
            for login in of_host.logins.into_iter().chain([HostLogin::Nobody]) {
                let caller = Caller { who: Who::Host(login), of_host: true, session: self.fetcher.registry.session() };
                match self.fetch(&reference, &caller, &damaged).await {
                    Ok(host) if self.is_mended(image, &damaged, states).await => return Ok(host),
                    Ok(host) => tried.push(format!("{host} delivered it, but the disk damaged it again")),
                    Err(error) => tried.push(explain(&error)),
                }
            }
        }
        tried.dedup();
        Err(format!("it needs its registry, or an archive of it in the preload directory: {}", tried.join("; ")))
    }

    /// Archives that have brought the image.
    fn archives(&self, image: &NamedImage) -> Vec<PathBuf> {
        let Some(directory) = &self.preload else { return Vec::new() };
        let preloaded = self.preloaded.lock().unwrap_or_else(PoisonError::into_inner);
        let brings = |references: &[String]| references.iter().any(|reference| image.references.contains(reference));
        let archives = preloaded.iter().flatten().filter(|(_, references)| brings(references));
        archives.map(|(name, _)| directory.join(name)).collect()
    }

    async fn is_mended(&self, image: &NamedImage, damaged: &BTreeSet<Digest>, states: &mut States) -> bool {
        states.retain(|layer, _| !damaged.contains(layer));
        self.damage(image, states).await.is_none()
    }

    /// Fetches damaged layers, and documents if they are damaged; returns the host that had them.
    async fn fetch(&self, reference: &Reference, caller: &Caller, damaged: &BTreeSet<Digest>) -> Result<String, MendError> {
        let (manifest, configuration) = self.documents(reference, caller).await?;
        let layers = self.disk.layout().layers_of(&manifest, &configuration);
        if damaged.is_empty() {
            return Ok(reference.host().to_owned());
        }
        let bounds = self.bounds(&manifest, &layers, damaged)?;
        let routes = self.fetcher.registry.routes(reference, caller, Need::Content).await?;
        let sources: Vec<Source> = routes.into_iter().map(|route| Source { reference: reference.clone(), route }).collect();
        let pull = Arc::new(self.shown.begin(reference, reference.to_string()));
        let wanted: Vec<_> = layers.iter().zip(&manifest.layers).filter(|(layer, _)| damaged.contains(&layer.name)).collect();
        pull.downloading(wanted.iter().map(|(_, descriptor)| *descriptor));
        let (order, stop) = (self.fetcher.transfers.order(), CancellationToken::new());
        let (mut staged, mut blobs, mut hosts) = (BTreeMap::new(), Vec::new(), BTreeSet::new());
        for (layer, descriptor) in wanted {
            let wanted = WantedLayer {
                sources: sources.clone(),
                pull: Arc::clone(&pull),
                layer: descriptor.clone(),
                diff_id: layer.diff_id,
                chain: layer.name,
                order,
                bounds: bounds.clone(),
            };
            let fetched = self.fetcher.layer(&wanted, &stop).await;
            let fetched = fetched.map_err(|source| MendError::Layer { digest: descriptor.digest, source })?;
            hosts.insert(fetched.blob.shown().host.unwrap_or_else(|| reference.host().to_owned()));
            staged.insert(layer.name, fetched.staged);
            blobs.push(fetched.blob);
        }
        let disk = Arc::clone(&self.disk);
        tokio::task::spawn_blocking(move || disk.exchange(&layers, staged)).await??;
        for blob in blobs {
            blob.finish().await;
        }
        Ok(hosts.into_iter().collect::<Vec<_>>().join(", "))
    }

    /// The documents of the image with the digest of the reference: from the disk, or where they are damaged from the registry.
    async fn documents(&self, reference: &Reference, caller: &Caller) -> Result<(ImageManifest, Configuration), MendError> {
        let (disk, digest) = (Arc::clone(&self.disk), reference.digest());
        let stored = move || digest.and_then(|digest| verify::documents(disk.layout(), digest).ok());
        if let Some(documents) = tokio::task::spawn_blocking(stored).await? {
            return Ok(documents);
        }
        let ask = Ask { registry: &*self.fetcher.registry, caller };
        let (bytes, _) = ask.manifest(reference).await?;
        let Manifest::Image(manifest) = Manifest::parse(&bytes)? else {
            return Err(DocumentError::NotAnImage("an index".to_owned()).into());
        };
        let config = ask.configuration(reference, &manifest.config).await?;
        let configuration = Configuration::parse(&config, manifest.layers.len())?;
        let disk = Arc::clone(&self.disk);
        tokio::task::spawn_blocking(move || disk.write_documents([&bytes, &config])).await??;
        Ok((*manifest, configuration))
    }

    fn bounds(&self, manifest: &ImageManifest, layers: &[NamedLayer], damaged: &BTreeSet<Digest>) -> Result<Bounds, RoomError> {
        let part = |(layer, size): (&NamedLayer, u64)| match damaged.contains(&layer.name) {
            true => Part::Missing(size),
            false => Part::Present(self.disk.layer_record(layer.name)),
        };
        let sizes = manifest.layers.iter().map(|layer| layer.size);
        let parts: Vec<Part> = layers.iter().zip(sizes.clone()).map(part).collect();
        let compressed = sizes.fold(0, u64::saturating_add);
        let (limits, space) = (self.fetcher.limits.get(), self.disk.space().clone());
        let image = room::budget(&limits, &space, compressed, &parts)?;
        Ok(Bounds { limits, image: Arc::new(image), space })
    }
}
