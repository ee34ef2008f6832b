//! Verification of what is stored: documents by their digests, layers by their lists.

use super::super::document::{Configuration, ImageManifest, Manifest};
use super::super::explain::explain;
use super::super::layout::{LAYER_RECORD, LayerRecord, Layout};
use super::list::{FILES, compare, digest_of};
use podstead_container::digest::Digest;

/// State of a layer on disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum LayerState {
    /// As it was made; bytes of content.
    Whole(u64),
    /// Made by an earlier version, without a list of files.
    Unlisted,
    /// Damaged; the files, for people.
    Damaged(Vec<String>),
}

/// Reads a layer from the disk. Blocks.
pub(in super::super) fn layer(layout: &Layout, name: Digest) -> LayerState {
    let directory = layout.layer(name);
    let damaged = |what: String| LayerState::Damaged(vec![what]);
    let record = match std::fs::read(directory.join(LAYER_RECORD)) {
        Ok(text) => serde_json::from_slice::<LayerRecord>(&text).map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    let promised = match record {
        Ok(record) => record.files,
        Err(error) => return damaged(format!("its record {LAYER_RECORD}: {error}")),
    };
    let Some(promised) = promised else { return LayerState::Unlisted };
    let list = directory.join(FILES);
    match digest_of(&list) {
        Ok(digest) if digest == promised => {}
        Ok(_) => return damaged("its list of files: has another content".to_owned()),
        Err(error) => return damaged(format!("its list of files: {error}")),
    }
    match compare(&list, &layout.tree(name)) {
        Err(error) => damaged(format!("/: {error}")),
        Ok(differences) => {
            let bytes = differences.bytes;
            let told = differences.told();
            if told.is_empty() { LayerState::Whole(bytes) } else { LayerState::Damaged(told) }
        }
    }
}

/// The documents of an image; an error says which of them is damaged. Blocks.
pub(in super::super) fn documents(layout: &Layout, manifest: Digest) -> Result<(ImageManifest, Configuration), String> {
    let read = |digest: Digest, what: &str| match std::fs::read(layout.blob(digest)) {
        Ok(content) if Digest::of(&content) == digest => Ok(content),
        Ok(_) => Err(format!("its {what} {digest} has another content")),
        Err(error) => Err(format!("its {what} {digest}: {error}")),
    };
    let parsed = match Manifest::parse(&read(manifest, "manifest")?) {
        Ok(Manifest::Image(parsed)) => parsed,
        Ok(Manifest::Index(_)) => return Err(format!("its manifest {manifest} is an index")),
        Err(error) => return Err(explain(&error)),
    };
    let configuration = Configuration::parse(&read(parsed.config.digest, "configuration")?, parsed.layers.len());
    Ok((*parsed, configuration.map_err(|error| explain(&error))?))
}
