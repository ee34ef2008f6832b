//! Paths of the image store, and the content of its plain files.
//!
//! ```text
//! version           the layout's version
//! lock              held while the store is open
//! blobs/<digest>    manifests and configurations, as they came
//! layers/<name>/    fs/, layer.json, and files, a list of what is in fs/
//! layers/<name>.exchanged.<n>/  a damaged layer that was replaced, as long as a container has it mounted
//! refs/<hash>.json  what a reference names
//! signatures/<hex>  signatures of the image with this manifest
//! staging/          what is being made; emptied at start
//! spool/            layers that are being fetched; what was fetched stays
//! preloaded.json    which archives were imported
//! preload/          archives put here are imported, unless the configuration names another directory
//! ```

use super::access::Access;
use super::collect::plan::Amount;
use super::document::{Configuration, ImageManifest};
use super::names::{self, NamedLayer};
use super::staging::TREE;
use jiff::Timestamp;
use podstead_container::digest::Digest;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The only version so far.
pub(super) const VERSION: u32 = 1;

/// Paths below the store's root.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    root: PathBuf,
    boot_id: Arc<str>,
    /// Layers that are damaged and being made anew: they count as missing.
    damaged: Arc<BTreeSet<Digest>>,
}

impl Layout {
    pub(super) fn new(root: &Path, boot_id: &str) -> Self {
        Self { root: root.to_owned(), boot_id: boot_id.into(), damaged: Arc::default() }
    }

    /// The same store, in which these layers count as missing. What is published under their names takes their place.
    pub(super) fn without(&self, damaged: BTreeSet<Digest>) -> Self {
        Self { damaged: Arc::new(damaged), ..self.clone() }
    }

    /// ID of the boot in which this process runs.
    pub(super) fn boot_id(&self) -> &str {
        &self.boot_id
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn version(&self) -> PathBuf {
        self.root.join("version")
    }

    pub(super) fn lock(&self) -> PathBuf {
        self.root.join("lock")
    }

    pub(super) fn blobs(&self) -> PathBuf {
        self.root.join("blobs")
    }

    pub(super) fn blob(&self, digest: Digest) -> PathBuf {
        self.blobs().join(digest.hex())
    }

    pub(super) fn signatures(&self) -> PathBuf {
        self.root.join("signatures")
    }

    /// Signatures of the image with this manifest.
    pub(super) fn signatures_of(&self, manifest: Digest) -> PathBuf {
        self.signatures().join(manifest.hex())
    }

    pub(super) fn layers(&self) -> PathBuf {
        self.root.join("layers")
    }

    pub(super) fn layer(&self, chain: Digest) -> PathBuf {
        self.layers().join(chain.hex())
    }

    /// Returns true if the layer is present and need not be made.
    pub(super) fn has_layer(&self, chain: Digest) -> bool {
        !self.is_replaced(chain) && self.layer(chain).is_dir()
    }

    /// Returns true if the layer is damaged and being made anew.
    pub(super) fn is_replaced(&self, chain: Digest) -> bool {
        self.damaged.contains(&chain)
    }

    /// A place for a layer that another one replaces, which nothing has.
    pub(super) fn exchanged(&self, chain: Digest) -> PathBuf {
        let place = |number: u32| self.layers().join(format!("{}{EXCHANGED}{number}", chain.hex()));
        (0..).map(place).find(|place| std::fs::symlink_metadata(place).is_err()).unwrap_or_else(|| place(0))
    }

    /// The layers of an image, lowest first. What is leased or named keeps its name.
    pub(super) fn layers_of(&self, manifest: &ImageManifest, configuration: &Configuration) -> Vec<NamedLayer> {
        names::of(manifest, configuration, |chain| self.layer(chain).is_dir())
    }

    pub(super) fn tree(&self, chain: Digest) -> PathBuf {
        self.layer(chain).join(TREE)
    }

    pub(super) fn refs(&self) -> PathBuf {
        self.root.join("refs")
    }

    /// A reference may be longer than a file name, and has slashes: the file is named by its hash and says it inside.
    pub(super) fn reference(&self, reference: &str) -> PathBuf {
        self.refs().join(format!("{}.json", &Digest::of(reference.as_bytes()).hex()[..32]))
    }

    /// File in which the preload task saves its memory.
    pub(super) fn preloaded(&self) -> PathBuf {
        self.root.join("preloaded.json")
    }

    /// Layers that are being fetched.
    pub(super) fn spool(&self) -> PathBuf {
        self.root.join("spool")
    }

    pub(super) fn staging(&self) -> PathBuf {
        self.root.join("staging")
    }
}

/// Between the name of a layer and a number, in the name of a directory that it was exchanged with.
pub(super) const EXCHANGED: &str = ".exchanged.";

/// Name of the record in a layer's directory.
pub(super) const LAYER_RECORD: &str = "layer.json";

/// Record of a layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LayerRecord {
    /// Of this record.
    pub(super) version: u32,
    /// Digest of the archive that it was unpacked from, as the job said that unpacked it.
    pub(super) diff_id: Digest,
    /// Digest of the bytes that came.
    pub(super) blob: Digest,
    /// Bytes of content of all files.
    pub(super) bytes: u64,
    /// Files and directories; 0 in records of earlier versions, which did not count them.
    #[serde(default)]
    pub(super) entries: u64,
    /// Bytes that the layer takes on disk; 0 in records of earlier versions.
    #[serde(default)]
    pub(super) disk_bytes: u64,
    /// Nothing below this layer shows.
    pub(super) opaque_root: bool,
    /// Published before its image was complete, for the next attempt.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) ahead: bool,
    /// Digest of the list of its files; none in layers of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) files: Option<Digest>,
    /// The boot in which it was published. It is taken away when the layer was verified in a later one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) boot_id: Option<String>,
}

impl LayerRecord {
    /// Space that the layer takes; of one that was not measured, a block for each entry is taken for lost.
    pub(super) fn amount(&self) -> Amount {
        let bytes = match self.disk_bytes {
            0 => self.bytes.saturating_add(self.entries.saturating_mul(4096)),
            bytes => bytes,
        };
        Amount { bytes, inodes: self.entries.saturating_add(2) }
    }
}

/// Record of a reference.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct RefRecord {
    /// Of this record.
    pub(super) version: u32,
    /// Fully qualified.
    pub(super) reference: String,
    /// Target of the reference at the registry: an index or a manifest. Another answer means that the tag has moved.
    pub(super) target: Digest,
    /// The manifest of this platform.
    pub(super) manifest: Digest,
    /// The time at which the image became whole under this reference.
    pub(super) created_at: Timestamp,
    /// Kept by `podstead image pin`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) pinned: bool,
    /// The time at which somebody asked for it by hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) by_hand_at: Option<Timestamp>,
    /// Access of pods without asking the registry.
    #[serde(flatten)]
    pub(super) access: Access,
}
