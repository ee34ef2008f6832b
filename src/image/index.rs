//! Content of the store, in memory: references and the complete images that they name, read from disk once and kept in step.

use super::access::Access;
use super::collect::BY_HAND;
use super::collect::plan::{Amount, Candidate};
use super::commit::CommitError;
use super::document::{Configuration, DocumentError, Manifest};
use super::layout::{LAYER_RECORD, LayerRecord, Layout, RefRecord, VERSION};
use super::lease::Leases;
use super::names::NamedLayer;
use jiff::Timestamp;
use podstead_container::digest::Digest;
use podstead_container::reference::Reference;
use podstead_container::{ImageConfig, ResolvedImage};
use podstead_runtime::ImageRecord;
use podstead_sys::atomic_file;
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Reason why an image on disk is not whole.
#[derive(Debug, thiserror::Error)]
pub(super) enum LoadError {
    /// A file of it.
    #[error("read {path:?}")]
    Read {
        /// The file.
        path: PathBuf,
        /// The error of the disk.
        #[source]
        source: io::Error,
    },
    /// A document of it has another content than its name says.
    #[error("{path:?} is damaged")]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// A record is not JSON of its shape.
    #[error("parse {path:?}")]
    Record {
        /// The file.
        path: PathBuf,
        /// The parse error, with its position.
        #[source]
        source: serde_json::Error,
    },
    /// Made by a newer podstead.
    #[error("{path:?} has the unsupported version {version}")]
    Version {
        /// The file.
        path: PathBuf,
        /// Its version.
        version: u32,
    },
    /// A document of it says something impossible.
    #[error(transparent)]
    Document(#[from] DocumentError),
    /// A layer is not the one that the configuration names.
    #[error("layer {blob} has diff ID {actual} instead of {expected}: the image is damaged")]
    DiffId {
        /// Digest of the layer's bytes.
        blob: Digest,
        /// In the configuration.
        expected: Digest,
        /// Of the layer.
        actual: Digest,
    },
}

impl LoadError {
    /// The file concerned, if it is about one.
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::Read { path, .. } | Self::Damaged { path } | Self::Record { path, .. } | Self::Version { path, .. } => Some(path),
            Self::Document(_) | Self::DiffId { .. } => None,
        }
    }
}

/// A whole image.
#[derive(Clone, Debug)]
pub(super) struct StoredImage {
    pub(super) digest: Digest,
    config_digest: Digest,
    config: ImageConfig,
    /// Digests of all layers as they were fetched, lowest first.
    blobs: Vec<Digest>,
    /// Names of all layers, lowest first.
    chains: Vec<Digest>,
    /// Those that show, lowest first.
    layers: Vec<PathBuf>,
    bytes: u64,
    /// Space of each layer.
    sizes: Vec<Amount>,
}

impl StoredImage {
    /// Reads the image with this manifest.
    fn load(layout: &Layout, digest: Digest) -> Result<Self, LoadError> {
        let manifest = match Manifest::parse(&read_blob(layout, digest)?)? {
            Manifest::Image(manifest) => manifest,
            Manifest::Index(_) => return Err(DocumentError::NotAnImage("an index".into()).into()),
        };
        let configuration = Configuration::parse(&read_blob(layout, manifest.config.digest)?, manifest.layers.len())?;
        let named = layout.layers_of(&manifest, &configuration);
        let mut layers = Vec::new();
        let mut bytes = 0;
        let mut sizes = Vec::new();
        for NamedLayer { name, is_old: _, blob, diff_id } in &named {
            let record: LayerRecord = read_record(&layout.layer(*name).join(LAYER_RECORD), |record: &LayerRecord| record.version)?;
            if record.diff_id != *diff_id {
                return Err(LoadError::DiffId { blob: *blob, expected: *diff_id, actual: record.diff_id });
            }
            bytes += record.bytes;
            sizes.push(record.amount());
            if record.opaque_root {
                layers.clear();
            }
            layers.push(layout.tree(*name));
        }
        let (chains, blobs) = named.into_iter().map(|layer| (layer.name, layer.blob)).unzip();
        let (config_digest, config) = (manifest.config.digest, configuration.process);
        Ok(Self { digest, config_digest, config, blobs, chains, layers, bytes, sizes })
    }

    /// With a lease on its layers.
    pub(super) fn resolved(&self, leases: &Leases) -> ResolvedImage {
        let lease = leases.give(self.chains.clone());
        ResolvedImage { digest: self.digest.to_string(), layers: self.layers.clone(), config: self.config.clone(), lease }
    }

    fn layer_sizes(&self) -> impl Iterator<Item = (Digest, Amount)> {
        self.chains.iter().copied().zip(self.sizes.iter().copied())
    }

    fn is_whole(&self) -> bool {
        self.layers.iter().all(|layer| layer.is_dir())
    }
}

/// Target of a reference to be named.
#[derive(Debug)]
pub(super) struct Named {
    /// An index or a manifest.
    pub(super) target: Digest,
    /// The manifest of this platform.
    pub(super) manifest: Digest,
    /// Access to it.
    pub(super) access: Access,
}

/// References and images.
#[derive(Debug, Default)]
pub(super) struct Index {
    refs: BTreeMap<String, RefRecord>,
    images: BTreeMap<Digest, StoredImage>,
}

impl Index {
    /// Reads the store. What cannot be used is returned beside: each with its file, which is left alone.
    pub(super) fn load(layout: &Layout) -> io::Result<(Self, Vec<(PathBuf, LoadError)>)> {
        let mut index = Self::default();
        let mut broken = Vec::new();
        for entry in std::fs::read_dir(layout.refs())? {
            let path = entry?.path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            match read_record(&path, |record: &RefRecord| record.version).and_then(|record| index.insert(layout, record)) {
                Ok(()) => {}
                Err(error) => broken.push((path, error)),
            }
        }
        Ok((index, broken))
    }

    fn insert(&mut self, layout: &Layout, record: RefRecord) -> Result<(), LoadError> {
        self.load_image(layout, record.manifest)?;
        self.refs.insert(record.reference.clone(), record);
        Ok(())
    }

    fn load_image(&mut self, layout: &Layout, manifest: Digest) -> Result<(), LoadError> {
        if let Entry::Vacant(vacant) = self.images.entry(manifest) {
            vacant.insert(StoredImage::load(layout, manifest)?);
        }
        Ok(())
    }

    /// Makes `reference` name a committed image, durably. Of one that it names already, access only grows.
    pub(super) fn name(&mut self, layout: &Layout, reference: &Reference, named: Named) -> Result<(), NameError> {
        let Named { target, manifest, access } = named;
        let reference = reference.to_string();
        let known = self.refs.get(&reference).filter(|known| known.target == target && known.manifest == manifest);
        let record = match known {
            Some(known) => {
                let mut record = known.clone();
                if !record.access.widen(&access) {
                    return Ok(());
                }
                record
            }
            None => {
                // A pin is on the name: it stays when the tag moves.
                let pinned = self.refs.get(&reference).is_some_and(|known| known.pinned);
                let created_at = Timestamp::now();
                RefRecord { version: VERSION, reference, target, manifest, created_at, pinned, by_hand_at: None, access }
            }
        };
        // An image that cannot be read back must not get a name.
        self.load_image(layout, manifest)?;
        self.write(layout, record)?;
        self.forget_unnamed();
        Ok(())
    }

    /// Widens access to what `reference` names, if that is still `target`; durably.
    pub(super) fn allow(
        &mut self,
        layout: &Layout,
        reference: &Reference,
        target: Digest,
        access: &Access,
    ) -> Result<(), NameError> {
        let known = self.refs.get(&reference.to_string()).filter(|known| known.target == target);
        let Some(mut record) = known.cloned() else { return Ok(()) };
        if record.access.widen(access) {
            self.write(layout, record)?;
        }
        Ok(())
    }

    /// Keeps what `reference` names, or ends that; durably. `false` if it is not known.
    pub(super) fn pin(&mut self, layout: &Layout, reference: &Reference, pinned: bool) -> Result<bool, NameError> {
        let Some(mut record) = self.records(reference).next().cloned() else { return Ok(false) };
        if record.pinned != pinned {
            record.pinned = pinned;
            self.write(layout, record)?;
        }
        Ok(true)
    }

    /// Takes note, durably, that `reference` was asked for by hand.
    pub(super) fn fetched_by_hand(&mut self, layout: &Layout, reference: &Reference) -> Result<(), NameError> {
        let Some(mut record) = self.records(reference).next().cloned() else { return Ok(()) };
        record.by_hand_at = Some(Timestamp::now());
        self.write(layout, record)
    }

    fn write(&mut self, layout: &Layout, record: RefRecord) -> Result<(), NameError> {
        let text = serde_json::to_vec(&record).map_err(|error| NameError::Write(error.into()))?;
        atomic_file::write_durable(&layout.reference(&record.reference), &text, 0o600).map_err(NameError::Write)?;
        self.refs.insert(record.reference.clone(), record);
        Ok(())
    }

    /// The records that `reference` may mean: its own, with a digest any that names that content.
    pub(super) fn records(&self, reference: &Reference) -> impl Iterator<Item = &RefRecord> {
        let own = match reference.digest() {
            None => self.refs.get(&reference.to_string()),
            Some(_) => None,
        };
        let digest = reference.digest();
        let by_content =
            move |record: &&RefRecord| digest.is_some_and(|digest| record.target == digest || record.manifest == digest);
        own.into_iter().chain(self.refs.values().filter(by_content))
    }

    /// The whole image that `reference` names, with its record. With a digest any reference to that content will do.
    pub(super) fn find(&self, reference: &Reference) -> Option<(&RefRecord, &StoredImage)> {
        let record = self.records(reference).next()?;
        let image = self.images.get(&record.manifest)?;
        image.is_whole().then_some((record, image))
    }

    /// Returns true if there is a complete image with this manifest.
    pub(super) fn is_whole(&self, manifest: Digest) -> bool {
        self.images.get(&manifest).is_some_and(StoredImage::is_whole)
    }

    /// Forgets a reference, durably. `false` if it is not known.
    pub(super) fn remove(&mut self, layout: &Layout, reference: &str) -> io::Result<bool> {
        if !self.refs.contains_key(reference) {
            return Ok(false);
        }
        atomic_file::remove_durable(&layout.reference(reference))?;
        self.refs.remove(reference);
        self.forget_unnamed();
        Ok(true)
    }

    fn forget_unnamed(&mut self) {
        let named: BTreeSet<Digest> = self.refs.values().map(|record| record.manifest).collect();
        self.images.retain(|digest, _| named.contains(digest));
    }

    /// All whole images.
    pub(super) fn list(&self) -> Vec<ImageRecord> {
        let whole = self.images.values().filter(|image| image.is_whole());
        let record = |image: &StoredImage| {
            let refs: Vec<&RefRecord> = self.refs.values().filter(|record| record.manifest == image.digest).collect();
            ImageRecord {
                references: refs.iter().map(|record| record.reference.clone()).collect(),
                digest: image.digest.to_string(),
                size_bytes: image.sizes.iter().fold(0, |sum, size| sum.saturating_add(size.bytes)),
                unique_bytes: self.unique_bytes(image),
                layers: image.blobs.iter().map(Digest::to_string).collect(),
                pinned: refs.iter().any(|record| record.pinned),
                content_bytes: image.bytes,
                created_at: refs.iter().map(|record| record.created_at).min().unwrap_or_default(),
            }
        };
        whole.map(record).collect()
    }

    /// Layers of images that have one of these names, or that are pinned.
    pub(super) fn pinned_layers(&self, names: &[String]) -> BTreeSet<Digest> {
        let is_pinned = |record: &&RefRecord| record.pinned || names.contains(&record.reference);
        let pinned: BTreeSet<Digest> = self.refs.values().filter(is_pinned).map(|record| record.manifest).collect();
        let images = self.images.values().filter(|image| pinned.contains(&image.digest));
        images.flat_map(|image| image.chains.iter().copied()).collect()
    }

    /// Space that only this image takes.
    fn unique_bytes(&self, image: &StoredImage) -> u64 {
        let is_shared =
            |chain: &Digest| self.images.values().any(|other| other.digest != image.digest && other.chains.contains(chain));
        let own = image.layer_sizes().filter(|(chain, _)| !is_shared(chain));
        own.fold(0, |sum, (_, size)| sum.saturating_add(size.bytes))
    }

    /// The layers of all images with their sizes.
    pub(super) fn layer_sizes(&self) -> BTreeMap<Digest, Amount> {
        self.images.values().flat_map(StoredImage::layer_sizes).collect()
    }

    /// All images, for collection, with the marks that the store itself has. `idle` tells how long an image was not used.
    pub(super) fn candidates(&self, idle: impl Fn(Digest, Timestamp) -> Duration, now: Timestamp) -> Vec<Candidate> {
        let by_hand = |record: &RefRecord| {
            let age = record.by_hand_at.map(|at| Duration::try_from(now.duration_since(at)).unwrap_or_default());
            age.is_some_and(|age| age < BY_HAND)
        };
        let candidate = |image: &StoredImage| {
            let refs: Vec<&RefRecord> = self.refs.values().filter(|record| record.manifest == image.digest).collect();
            let pinned = refs.iter().any(|record| record.pinned).then(|| "pinned".to_owned());
            let by_hand = pinned.is_none() && refs.iter().any(|record| by_hand(record));
            let newest = refs.iter().map(|record| record.created_at).max().unwrap_or_default();
            Candidate {
                digest: image.digest,
                references: refs.iter().map(|record| record.reference.clone()).collect(),
                chains: image.chains.clone(),
                idle: idle(image.digest, newest),
                replaceable: false,
                by_hand,
                mark: pinned.or_else(|| by_hand.then(|| "fetched by hand within 24 hours".to_owned())),
            }
        };
        self.images.values().map(candidate).collect()
    }

    /// The manifests that `reference` may mean.
    pub(super) fn manifests(&self, reference: &Reference) -> Vec<Digest> {
        self.records(reference).map(|record| record.manifest).collect()
    }

    /// The names of an image.
    pub(super) fn references(&self, manifest: Digest) -> Vec<String> {
        self.refs.values().filter(|record| record.manifest == manifest).map(|record| record.reference.clone()).collect()
    }

    /// Layers of an image, lowest first.
    pub(super) fn layers_of(&self, manifest: Digest) -> Vec<Digest> {
        self.images.get(&manifest).map(|image| image.chains.clone()).unwrap_or_default()
    }

    /// Layers that some reference needs.
    pub(super) fn chains(&self) -> BTreeSet<Digest> {
        self.images.values().flat_map(|image| image.chains.iter().copied()).collect()
    }

    /// Manifests of all images.
    pub(super) fn images(&self) -> BTreeSet<Digest> {
        self.images.keys().copied().collect()
    }

    /// Blobs that some reference needs.
    pub(super) fn blobs(&self) -> BTreeSet<Digest> {
        self.images.values().flat_map(|image| [image.digest, image.config_digest]).collect()
    }
}

/// Reason why a reference cannot be written.
#[derive(Debug, thiserror::Error)]
pub(super) enum NameError {
    /// The image cannot be read back.
    #[error("read the image back")]
    Load(#[from] LoadError),
    /// The reference's file.
    #[error("write the reference")]
    Write(#[source] io::Error),
}

impl From<NameError> for CommitError {
    fn from(error: NameError) -> Self {
        match error {
            NameError::Write(source) => Self::Io { operation: "write the reference", source },
            NameError::Load(error) => Self::Io { operation: "read the image back", source: io::Error::other(error) },
        }
    }
}

fn read_blob(layout: &Layout, digest: Digest) -> Result<Vec<u8>, LoadError> {
    let path = layout.blob(digest);
    match std::fs::read(&path) {
        Ok(content) if Digest::of(&content) == digest => Ok(content),
        Ok(_) => Err(LoadError::Damaged { path }),
        Err(source) => Err(LoadError::Read { path, source }),
    }
}

fn read_record<T: serde::de::DeserializeOwned>(path: &Path, version: impl FnOnce(&T) -> u32) -> Result<T, LoadError> {
    let content = std::fs::read(path).map_err(|source| LoadError::Read { path: path.to_owned(), source })?;
    let record: T = serde_json::from_slice(&content).map_err(|source| LoadError::Record { path: path.to_owned(), source })?;
    match version(&record) {
        VERSION => Ok(record),
        version => Err(LoadError::Version { path: path.to_owned(), version }),
    }
}
