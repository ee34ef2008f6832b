//! From the documents of an archive to the images in it. **Pure**.

use super::super::document::{Configuration, Descriptor, DocumentError, ImageManifest, Manifest, Platform, parse_saved};
use super::super::names::NamedLayer;
use super::super::platform;
use super::super::policy::archive::{Found, is_signature};
use super::archive::Documents;
use podstead_container::digest::Digest;
use podstead_container::reference::Reference;
use std::collections::{BTreeMap, BTreeSet};

/// An image of the archive.
#[derive(Debug)]
pub(super) struct PlannedImage {
    pub(super) references: Vec<Reference>,
    /// Target of the references according to the archive; `None`: the manifest.
    pub(super) target: Option<Digest>,
    /// Indexes of the archive that lead to the manifest, the outermost first.
    pub(super) indexes: Vec<Vec<u8>>,
    /// As in the archive, or made for an image without one.
    pub(super) manifest: Vec<u8>,
    pub(super) config: Vec<u8>,
    pub(super) layers: Vec<PlannedLayer>,
}

/// A layer of an image, lowest first.
#[derive(Debug)]
pub(super) struct PlannedLayer {
    /// In the archive.
    pub(super) path: String,
    /// Its name in the store.
    pub(super) chain: Digest,
    /// Promised digest of the file.
    pub(super) blob: Digest,
    /// Of the file.
    pub(super) size: u64,
}

/// Reason why no image can be taken from an archive.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PlanError {
    /// Neither of the known tables of contents.
    #[error("it is neither an OCI layout (index.json) nor a docker archive (manifest.json)")]
    NoImage,
    /// No reference that a pod could use.
    #[error("it contains no image name: {0}")]
    NoName(String),
    /// A reference in it is none.
    #[error("its image name {name:?} is not a valid image reference: {reason}")]
    BadName {
        /// As written.
        name: String,
        /// The reason.
        reason: String,
    },
    /// A reference that names other content.
    #[error("its image {name} has the digest {found}, not the one in its name")]
    OtherDigest {
        /// The reference.
        name: String,
        /// The digest in the archive.
        found: String,
    },
    /// A document is not there.
    #[error("the file {0:?} is missing from it")]
    Missing(String),
    /// A document has another content than its name says.
    #[error("its file {0:?} is damaged: its digest does not match its name")]
    Damaged(String),
    /// A document.
    #[error("its file {path:?}")]
    Document {
        /// In the archive.
        path: String,
        /// The error of the document.
        #[source]
        source: DocumentError,
    },
    /// The manifest of an image that has none.
    #[error("write a manifest")]
    Manifest(#[source] serde_json::Error),
    /// Not for this host.
    #[error("its image {name} is for {offered}, but this host is {host}")]
    Platform {
        /// The reference.
        name: String,
        /// The image's.
        offered: String,
        /// This host's.
        host: String,
    },
}

/// Names of the layers of an image in the store.
pub(super) type Names<'a> = &'a dyn Fn(&ImageManifest, &Configuration) -> Vec<NamedLayer>;

/// Finds the images for `host`.
pub(super) fn plan(documents: &Documents, host: &Platform, names: Names<'_>) -> Result<Vec<PlannedImage>, PlanError> {
    let layout = documents.files.get("index.json").map(|index| from_layout(documents, index, host, names));
    // Newer versions of docker write both; either may be the one with the names.
    match (layout, documents.files.get("manifest.json")) {
        (Some(Ok(images)), _) => Ok(images),
        (Some(Err(PlanError::NoName(_))) | None, Some(saved)) => from_saved(documents, saved, host, names),
        (Some(Err(error)), _) => Err(error),
        (None, None) => Err(PlanError::NoImage),
    }
}

/// All signature documents of the archive.
pub(super) fn signatures(documents: &Documents) -> Found {
    let mut found = Found::default();
    let index = documents.files.get("index.json").map(|index| Manifest::parse(index));
    if let Some(Ok(Manifest::Index(entries))) = index {
        found.add_layout(&entries, |digest| blob(documents, digest).ok());
    }
    found
}

/// The signature documents that these manifests name.
pub(super) fn signatures_among(documents: &Documents, manifests: &BTreeSet<Digest>) -> Found {
    let mut found = Found::default();
    let entries: Vec<Descriptor> = manifests.iter().map(|digest| bare(*digest)).collect();
    found.add_layout(&entries, |digest| blob(documents, digest).ok());
    found
}

/// The images that have these digests, each under its reference, for `host`.
pub(super) fn of_bundle(
    documents: &Documents,
    images: &BTreeMap<Reference, Digest>,
    host: &Platform,
    names: Names<'_>,
) -> Result<Vec<PlannedImage>, PlanError> {
    let image = |(reference, digest): (&Reference, &Digest)| {
        if reference.digest().is_some_and(|named| named != *digest) {
            return Err(PlanError::OtherDigest { name: reference.to_string(), found: digest.to_string() });
        }
        layout_image(documents, reference.clone(), &[bare(*digest)], host, names)
    };
    images.iter().map(image).collect()
}

/// A descriptor of which only the digest counts.
fn bare(digest: Digest) -> Descriptor {
    Descriptor {
        media_type: String::new(),
        digest,
        size: 0,
        artifact_type: String::new(),
        platform: None,
        annotations: BTreeMap::new(),
    }
}

fn from_layout(documents: &Documents, index: &[u8], host: &Platform, names: Names<'_>) -> Result<Vec<PlannedImage>, PlanError> {
    let document = |source| PlanError::Document { path: "index.json".into(), source };
    let Manifest::Index(entries) = Manifest::parse(index).map_err(document)? else {
        return Err(document(DocumentError::NotAnImage("an index.json without manifests".into())));
    };
    let mut by_name: BTreeMap<Reference, Vec<Descriptor>> = BTreeMap::new();
    let mut useless = Vec::new();
    // Beside its image, a signature may have a name of its own.
    let is_image = |entry: &Descriptor| !blob(documents, entry.digest).is_ok_and(is_signature);
    for entry in entries.into_iter().filter(is_image) {
        match name_of(&entry)? {
            Ok(reference) => by_name.entry(reference).or_default().push(entry),
            Err(name) => useless.extend(name),
        }
    }
    if by_name.is_empty() {
        let hint = "index.json needs the annotation io.containerd.image.name or org.opencontainers.image.ref.name with a full image reference";
        let found = useless.first().map(|name| format!(", and {name:?} is a tag without a repository")).unwrap_or_default();
        return Err(PlanError::NoName(format!("{hint}{found}")));
    }
    by_name.into_iter().map(|(reference, entries)| layout_image(documents, reference, &entries, host, names)).collect()
}

/// The reference of an index entry; `Err` with what is there instead.
fn name_of(entry: &Descriptor) -> Result<Result<Reference, Option<String>>, PlanError> {
    let annotation = |key: &str| entry.annotations.get(key).filter(|name| !name.is_empty());
    let name = match (annotation("io.containerd.image.name"), annotation("org.opencontainers.image.ref.name")) {
        (Some(name), _) => name,
        // By its specification this annotation may be a bare tag.
        (None, Some(name)) if name.contains(['/', ':']) => name,
        (None, other) => return Ok(Err(other.cloned())),
    };
    name.parse().map(Ok).map_err(|reason| PlanError::BadName { name: name.clone(), reason })
}

fn layout_image(
    documents: &Documents,
    reference: Reference,
    entries: &[Descriptor],
    host: &Platform,
    names: Names<'_>,
) -> Result<PlannedImage, PlanError> {
    let index = |source| PlanError::Document { path: "index.json".into(), source };
    let named = match entries {
        [only] => only,
        several => platform::choose(several, host).map_err(index)?,
    };
    let mut bytes = blob(documents, named.digest)?;
    let mut digest = named.digest;
    let mut indexes = Vec::new();
    let document = |digest: Digest| move |source| PlanError::Document { path: blob_path(digest), source };
    // Indexes in indexes: no deeper than anybody nests them.
    for _ in 0..4 {
        match Manifest::parse(bytes).map_err(document(digest))? {
            Manifest::Index(entries) => {
                indexes.push(bytes.to_vec());
                digest = platform::choose(&entries, host).map_err(document(digest))?.digest;
                bytes = blob(documents, digest)?;
            }
            Manifest::Image(manifest) => {
                manifest.check().map_err(document(digest))?;
                let config = blob(documents, manifest.config.digest)?;
                let configuration =
                    Configuration::parse(config, manifest.layers.len()).map_err(document(manifest.config.digest))?;
                check_platform(&reference, &configuration, host)?;
                let in_store = names(&manifest, &configuration);
                let layers = manifest.layers.iter().zip(in_store).map(|(layer, in_store)| PlannedLayer {
                    path: follow(documents, &blob_path(layer.digest)),
                    chain: in_store.name,
                    blob: layer.digest,
                    size: layer.size,
                });
                let (manifest, config) = (bytes.to_vec(), config.to_vec());
                return Ok(PlannedImage {
                    references: vec![reference],
                    target: Some(named.digest),
                    indexes,
                    manifest,
                    config,
                    layers: layers.collect(),
                });
            }
        }
    }
    Err(document(digest)(DocumentError::NotAnImage("an index nested more than three levels deep".into())))
}

fn from_saved(documents: &Documents, saved: &[u8], host: &Platform, names: Names<'_>) -> Result<Vec<PlannedImage>, PlanError> {
    let document = |path: &str| {
        let path = path.to_owned();
        move |source| PlanError::Document { path, source }
    };
    let mut images = Vec::new();
    for image in parse_saved(saved).map_err(document("manifest.json"))? {
        let parse = |name: &String| name.parse().map_err(|reason| PlanError::BadName { name: name.clone(), reason });
        let references: Vec<Reference> = image.repo_tags.iter().map(parse).collect::<Result<_, _>>()?;
        let Some(name) = references.first() else { continue };
        let path = follow(documents, &image.config);
        let config = documents.files.get(&path).ok_or_else(|| PlanError::Missing(path.clone()))?;
        let configuration = Configuration::parse(config, image.layers.len()).map_err(document(&path))?;
        check_platform(name, &configuration, host)?;
        let file = |(path, diff_id): (&String, &Digest)| {
            let path = follow(documents, path);
            let size = *documents.sizes.get(&path).ok_or_else(|| PlanError::Missing(path.clone()))?;
            // A file that is not compressed is the archive itself.
            let blob = documents.digests.get(&path).copied().unwrap_or(*diff_id);
            Ok((path, blob, size))
        };
        let files = image.layers.iter().zip(&configuration.diff_ids).map(file).collect::<Result<Vec<_>, PlanError>>()?;
        let blobs: Vec<(Digest, u64)> = files.iter().map(|(_, blob, size)| (*blob, *size)).collect();
        let made = ImageManifest::of_saved(config, &blobs);
        let manifest = serde_json::to_vec(&made).map_err(PlanError::Manifest)?;
        let layers = files.into_iter().zip(names(&made, &configuration)).map(|((path, blob, size), named)| PlannedLayer {
            path,
            chain: named.name,
            blob,
            size,
        });
        let layers = layers.collect();
        images.push(PlannedImage { references, target: None, indexes: Vec::new(), manifest, config: config.clone(), layers });
    }
    match images.is_empty() {
        true => Err(PlanError::NoName("manifest.json has no RepoTags; save it by name, not by ID".into())),
        false => Ok(images),
    }
}

fn check_platform(reference: &Reference, configuration: &Configuration, host: &Platform) -> Result<(), PlanError> {
    match platform::runs_on(&configuration.platform, host) {
        true => Ok(()),
        false => Err(PlanError::Platform {
            name: reference.to_string(),
            offered: platform::spell(&configuration.platform),
            host: platform::spell(host),
        }),
    }
}

fn blob_path(digest: Digest) -> String {
    format!("blobs/sha256/{}", digest.hex())
}

fn blob(documents: &Documents, digest: Digest) -> Result<&[u8], PlanError> {
    let path = blob_path(digest);
    let content = documents.files.get(&follow(documents, &path)).ok_or_else(|| PlanError::Missing(path.clone()))?;
    match Digest::of(content) == digest {
        true => Ok(content),
        false => Err(PlanError::Damaged(path)),
    }
}

/// Resolves links.
fn follow(documents: &Documents, path: &str) -> String {
    let mut path = path.strip_prefix("./").unwrap_or(path);
    for _ in 0..8 {
        match documents.links.get(path) {
            Some(target) => path = target,
            None => break,
        }
    }
    path.to_owned()
}

#[cfg(test)]
mod tests {
    use super::super::super::names;
    use super::*;

    fn named_anew(manifest: &ImageManifest, configuration: &Configuration) -> Vec<NamedLayer> {
        names::of(manifest, configuration, |_| false)
    }

    fn host() -> Platform {
        Platform { os: "linux".into(), architecture: "amd64".into(), variant: String::new() }
    }

    #[derive(Default)]
    struct Layout(Documents);

    impl Layout {
        fn blob(&mut self, content: String) -> String {
            let digest = Digest::of(content.as_bytes());
            self.0.files.insert(blob_path(digest), content.clone().into_bytes());
            format!(r#""digest":"{digest}","size":{}"#, content.len())
        }

        /// A one-layer image; returns digest and size of its manifest.
        fn image(&mut self, architecture: &str) -> String {
            let layer = Digest::of(architecture.as_bytes());
            let config =
                self.blob(format!(r#"{{"os":"linux","architecture":"{architecture}","rootfs":{{"diff_ids":["{layer}"]}}}}"#));
            self.blob(format!(r#"{{"schemaVersion":2,"config":{{{config}}},"layers":[{{"digest":"{layer}","size":1}}]}}"#))
        }

        fn index(mut self, entries: &[String]) -> Result<Vec<PlannedImage>, PlanError> {
            let index = format!(r#"{{"schemaVersion":2,"manifests":[{}]}}"#, entries.join(","));
            self.0.files.insert("index.json".into(), index.into_bytes());
            plan(&self.0, &host(), &named_anew)
        }
    }

    fn named(descriptor: &str, key: &str, name: &str) -> String {
        format!(r#"{{{descriptor},"annotations":{{"{key}":"{name}"}}}}"#)
    }

    const CONTAINERD: &str = "io.containerd.image.name";
    const OCI: &str = "org.opencontainers.image.ref.name";

    #[test]
    fn names_come_from_either_annotation_and_a_bare_tag_is_no_name() {
        for (key, name, wanted) in [(CONTAINERD, "nginx", "docker.io/library/nginx:latest"), (OCI, "a.b/c:1", "a.b/c:1")] {
            let mut layout = Layout::default();
            let image = layout.image("amd64");
            let images = layout.index(&[named(&image, key, name)]).unwrap();
            assert_eq!(images[0].references[0].to_string(), wanted);
        }
        let mut layout = Layout::default();
        let image = layout.image("amd64");
        let error = layout.index(&[named(&image, OCI, "1.27")]).unwrap_err().to_string();
        assert!(error.contains("\"1.27\" is a tag without a repository"), "{error}");
    }

    #[test]
    fn the_variant_for_this_host_is_taken_from_an_index_in_the_index() {
        let mut layout = Layout::default();
        let entries = ["arm64", "amd64"].map(|architecture| {
            let image = layout.image(architecture);
            format!(r#"{{{image},"platform":{{"os":"linux","architecture":"{architecture}"}}}}"#)
        });
        let inner = layout.blob(format!(r#"{{"schemaVersion":2,"manifests":[{}]}}"#, entries.join(",")));
        let images = layout.index(&[named(&inner, CONTAINERD, "x/y:1")]).unwrap();
        assert_eq!(images[0].layers[0].blob, Digest::of(b"amd64"));
        assert_ne!(images[0].target, Some(Digest::of(&images[0].manifest)), "the target is the index");
    }

    #[test]
    fn an_image_for_another_machine_is_refused_by_name() {
        let mut layout = Layout::default();
        let image = layout.image("s390x");
        let error = layout.index(&[named(&image, CONTAINERD, "x/y:1")]).unwrap_err();
        assert_eq!(error.to_string(), "its image docker.io/x/y:1 is for linux/s390x, but this host is linux/amd64");
    }

    #[test]
    fn damage_and_absence_are_told_apart() {
        let mut layout = Layout::default();
        let image = layout.image("amd64");
        let path = layout.0.files.keys().next().unwrap().clone();
        layout.0.files.get_mut(&path).unwrap().push(b' ');
        assert!(matches!(layout.index(&[named(&image, CONTAINERD, "x:1")]), Err(PlanError::Damaged(damaged)) if damaged == path));
        let mut layout = Layout::default();
        let image = layout.image("amd64");
        layout.0.files.clear();
        assert!(matches!(layout.index(&[named(&image, CONTAINERD, "x:1")]), Err(PlanError::Missing(_))));
        assert!(matches!(plan(&Documents::default(), &host(), &named_anew), Err(PlanError::NoImage)));
    }

    #[test]
    fn a_docker_archive_gives_names_paths_and_links() {
        let layer = Digest::of(b"layer");
        let mut documents = Documents::default();
        let config = format!(r#"{{"os":"linux","architecture":"amd64","rootfs":{{"diff_ids":["{layer}","{layer}"]}}}}"#);
        documents.files.insert("c.json".into(), config.into());
        let saved = r#"[{"Config":"c.json","RepoTags":["a:1","b:2"],"Layers":["x/layer.tar","y/layer.tar"]},{"Config":"gone","RepoTags":null,"Layers":[]}]"#;
        documents.files.insert("manifest.json".into(), saved.into());
        documents.links.insert("y/layer.tar".into(), "x/layer.tar".into());
        documents.sizes.insert("x/layer.tar".into(), 7);
        let images = plan(&documents, &host(), &named_anew).unwrap();
        assert_eq!(images.len(), 1);
        assert_eq!(
            images[0].references.iter().map(Reference::to_string).collect::<Vec<_>>(),
            ["docker.io/library/a:1", "docker.io/library/b:2"]
        );
        assert_eq!(
            images[0].layers.iter().map(|layer| (layer.path.as_str(), layer.size)).collect::<Vec<_>>(),
            [("x/layer.tar", 7); 2]
        );
        assert_ne!(images[0].layers[0].chain, images[0].layers[1].chain);
        documents.sizes.clear();
        assert!(matches!(plan(&documents, &host(), &named_anew), Err(PlanError::Missing(_))));
    }
}
