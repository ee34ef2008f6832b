//! Names of layers in the store. **Pure**.
//!
//! A name says what a layer is and what lies below it, for directories without an entry of their own look as below. It is made of digests that the
//! daemon computed itself: neither of what an image's configuration says nor of what a job that unpacked a layer says. Whoever could choose the
//! name of his layer could choose that of somebody else's base layer, and his would be used for the other image, too.
//!
//! Stores of earlier versions name a layer by its chain id, which is made of the diff ids in the configuration. Those layers were verified by the
//! daemon itself, and are used where they are. No layer gets such a name any more.

use super::document::{Configuration, ImageManifest};
use podstead_container::digest::Digest;

/// A layer of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NamedLayer {
    /// Its name in the store.
    pub(super) name: Digest,
    /// It is in the store under a name of earlier versions, which no new layer may get.
    pub(super) is_old: bool,
    /// Digest of its bytes, as the manifest says.
    pub(super) blob: Digest,
    /// Digest of the archive inside, as the configuration says.
    pub(super) diff_id: Digest,
}

/// The layers of an image, lowest first. `is_old` tells whether the store has a layer of an earlier version with this chain id.
pub(super) fn of(manifest: &ImageManifest, configuration: &Configuration, is_old: impl Fn(Digest) -> bool) -> Vec<NamedLayer> {
    let mut below = None;
    let diff_ids = configuration.diff_ids.iter().zip(configuration.chain_ids());
    let named = |(layer, (diff_id, chain)): (&super::document::Descriptor, (&Digest, Digest))| {
        let is_old = is_old(chain);
        let name = if is_old { chain } else { name(below, layer.digest) };
        below = Some(name);
        NamedLayer { name, is_old, blob: layer.digest, diff_id: *diff_id }
    };
    manifest.layers.iter().zip(diff_ids).map(named).collect()
}

/// Not the form of a chain id, so that no layer ever gets the name of one of an earlier version.
fn name(below: Option<Digest>, blob: Digest) -> Digest {
    let below = below.map_or_else(|| "nothing".to_owned(), |below| below.to_string());
    Digest::of(format!("layer {blob} on {below}").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::super::document::Manifest;
    use super::*;

    fn digest(word: &str) -> Digest {
        Digest::of(word.as_bytes())
    }

    fn image(blobs: &[&str], diff_ids: &[&str]) -> (ImageManifest, Configuration) {
        let layers: Vec<String> = blobs.iter().map(|blob| format!(r#"{{"digest":"{}","size":1}}"#, digest(blob))).collect();
        let diff_ids: Vec<String> = diff_ids.iter().map(|diff_id| format!("{:?}", digest(diff_id).to_string())).collect();
        let zero = digest("config");
        let manifest = format!(r#"{{"schemaVersion":2,"config":{{"digest":"{zero}","size":1}},"layers":[{}]}}"#, layers.join(","));
        let Manifest::Image(manifest) = Manifest::parse(manifest.as_bytes()).unwrap() else { panic!("an index") };
        let configuration = format!(r#"{{"os":"linux","architecture":"amd64","rootfs":{{"diff_ids":[{}]}}}}"#, diff_ids.join(","));
        (*manifest, Configuration::parse(configuration.as_bytes(), blobs.len()).unwrap())
    }

    fn names(blobs: &[&str], diff_ids: &[&str], old: &[Digest]) -> Vec<Digest> {
        let (manifest, configuration) = image(blobs, diff_ids);
        of(&manifest, &configuration, |chain| old.contains(&chain)).into_iter().map(|layer| layer.name).collect()
    }

    #[test]
    fn claimed_diff_ids_do_not_change_a_name() {
        assert_eq!(names(&["a", "b"], &["x", "y"], &[]), names(&["a", "b"], &["z", "x"], &[]));
        assert_ne!(names(&["a", "b"], &["x", "y"], &[])[1], names(&["c", "b"], &["x", "y"], &[])[1], "what is below counts");
        assert_ne!(names(&["a"], &["a"], &[])[0], digest("a"), "no name is a chain id");
    }

    #[test]
    fn layers_of_earlier_versions_are_found_by_their_chain() {
        let (_, configuration) = image(&["a", "b"], &["x", "y"]);
        let chains = configuration.chain_ids();
        assert_eq!(names(&["a", "b"], &["x", "y"], &chains), chains);
        let mixed = names(&["a", "b"], &["x", "y"], &chains[..1]);
        assert_eq!(mixed[0], chains[0]);
        // A layer that was completed by what an old one has is no layer on a new one.
        assert_ne!(mixed[1], names(&["a", "b"], &["x", "y"], &[])[1]);
    }
}
