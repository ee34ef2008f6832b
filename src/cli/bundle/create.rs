//! `podstead bundle create`.

use super::contents::{FetchedImages, manifests, repositories};
use super::inventory::Inventory;
use super::sign::sign;
use crate::EXIT_FAILED;
use crate::context::Context;
use crate::render::{ReadAs, RenderTarget, Rendered, render};
use anyhow::{Context as _, bail};
use clap::Args;
use jiff::Timestamp;
use podstead_api::show::human_size;
use podstead_container::digest::Digest;
use podstead_container::reference::Reference;
use podstead_image::document::Platform;
use podstead_image::list_job::Here;
use podstead_image::platform;
use podstead_pod::Severity;
use podstead_source::bundle::archive::{Head, read_head};
use podstead_source::bundle::document::{API_VERSION, BundleDocument, KIND};
use podstead_source::bundle::write::{BundleParts, write_bundle};
use podstead_source::git::work_tree::WorkTree;
use podstead_store::images_of_object;
use podstead_telemetry::counted;
use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

// One type because it mirrors the command line.
/// Arguments.
#[derive(Debug, Args)]
pub(super) struct CreateArgs {
    /// Manifest file or directory
    #[arg(value_name = "PATH")]
    path: String,
    /// File to write
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Name of a host that the bundle is for; may be repeated [default: any host]
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,
    /// Name of the bundle: a source takes bundles of one name
    #[arg(long, value_name = "NAME", default_value = "bundle")]
    name: String,
    /// Serial of the bundle; a host takes only a higher one than the last [default: seconds since 1970]
    #[arg(long, value_name = "NUMBER")]
    serial: Option<u64>,
    /// Leave out layers of images that this bundle has, which the hosts must have applied (a file, or the revision of a file *.bundle beside the one to
    /// write), or that the hosts have (a file of podstead bundle inventory; repeat it for several hosts)
    #[arg(long, value_name = "BUNDLE|REVISION|INVENTORY")]
    since: Vec<String>,
    /// SSH key to sign with, as for ssh-keygen -Y sign -f [default: the bundle is not signed]
    #[arg(long, value_name = "FILE")]
    sign_key: Option<PathBuf>,
    /// Platform of the hosts, such as linux/arm64; may be repeated [default: that of this machine]
    #[arg(long = "platform", value_name = "OS/ARCH")]
    platforms: Vec<String>,
    /// Further image to include; may be repeated
    #[arg(long = "image", value_name = "IMAGE")]
    images: Vec<String>,
    /// Labels of the hosts
    #[arg(long, value_name = "KEY=VALUE,...", value_delimiter = ',')]
    labels: Vec<String>,
    /// Variable of the hosts; may be repeated
    #[arg(long = "set", value_name = "NAME=VALUE")]
    variables: Vec<String>,
    /// Configured source with the restrictions, variables and layers to apply [default: none; variables of the host are replaced]
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Layers of the hosts, as for podstead render
    #[arg(long, value_name = "PATH,...", value_delimiter = ',', conflicts_with = "source")]
    layers: Vec<String>,
}

pub(super) fn run(args: &CreateArgs, context: &Context) -> anyhow::Result<ExitCode> {
    if args.path.contains("${") {
        bail!("{}: a bundle has the same files for all hosts: use --layers for paths with variables", args.path);
    }
    let platforms = args.platforms.iter().map(|text| parse_platform(text)).collect::<anyhow::Result<Vec<_>>>()?;
    let platforms = if platforms.is_empty() { vec![platform::host()] } else { platforms };
    let mut references = args.images.iter().map(|image| parse(image)).collect::<anyhow::Result<BTreeSet<_>>>()?;
    let Some(of_manifests) = images_of_manifests(args, context)? else { return Ok(ExitCode::from(EXIT_FAILED)) };
    references.extend(of_manifests);
    let since = earlier(&args.since, &args.output)?;
    let work = beside(&args.output, ".partial");
    std::fs::create_dir_all(&work).with_context(|| format!("create {}", work.display()))?;
    let mut fetched = FetchedImages::default();
    context.block_on(async {
        let repositories = repositories(context);
        for reference in &references {
            let fetch = fetched.fetch(&repositories, reference, &platforms, &since, &work);
            fetch.await.with_context(|| format!("fetch image {reference}"))?;
        }
        anyhow::Ok(())
    })?;
    let path = Path::new(&args.path);
    let serial = args.serial.unwrap_or_else(|| default_serial(Timestamp::now(), since.serial));
    let parts = parts(args, serial, manifests(path)?, &fetched, WorkTree::containing(path).and_then(|clone| clone.revision()))?;
    write(&args.output, &parts).with_context(|| format!("write {}", args.output.display()))?;
    std::fs::remove_dir_all(&work).with_context(|| format!("remove {}", work.display()))?;
    let BundleDocument { name, serial, images, blobs, .. } = &parts.document;
    let omitted = blobs.iter().filter(|blob| blob.left_out).count();
    let omitted = if omitted == 0 { String::new() } else { format!(", {} left out", counted(omitted, "layer")) };
    let size = human_size(std::fs::metadata(&args.output)?.len());
    let mut out = io::stdout().lock();
    writeln!(out, "{}: {name} {serial}, {}, {size}{omitted}", args.output.display(), counted(images.len(), "image"))?;
    writeln!(out, "revision {}", Digest::of(&parts.bytes))?;
    Ok(ExitCode::SUCCESS)
}

/// The images of all hosts; `None` if manifests are refused, which is told.
fn images_of_manifests(args: &CreateArgs, context: &Context) -> anyhow::Result<Option<BTreeSet<Reference>>> {
    let hosts: Vec<Option<String>> =
        if args.hosts.is_empty() { vec![None] } else { args.hosts.iter().cloned().map(Some).collect() };
    let (mut references, mut is_refused) = (BTreeSet::new(), false);
    for host in hosts {
        let (path, labels, variables) = (args.path.clone(), args.labels.clone(), args.variables.clone());
        let (source, layers) = (args.source.clone(), args.layers.clone());
        let target = RenderTarget { path, host: host.clone(), labels, variables, source, layers };
        let Rendered { store, problems, .. } = render(&target, ReadAs::Tree, context)?;
        let of_host = host.map(|host| format!("{host}: ")).unwrap_or_default();
        for problem in problems.iter().filter(|problem| problem.severity == Severity::Error) {
            writeln!(io::stderr(), "{of_host}{problem}")?;
            is_refused = true;
        }
        for image in store.objects().into_iter().flat_map(|object| images_of_object(&object.object)) {
            references.insert(parse(image)?);
        }
    }
    Ok((!is_refused).then_some(references))
}

fn parse(image: &str) -> anyhow::Result<Reference> {
    image.parse().map_err(|reason: String| anyhow::anyhow!("image {image:?}: {reason}"))
}

fn parse_platform(text: &str) -> anyhow::Result<Platform> {
    let parts: Vec<&str> = text.split('/').collect();
    match parts[..] {
        [os, architecture] | [os, architecture, ""] if !os.is_empty() && !architecture.is_empty() => {
            // As on a host of this architecture.
            let variant = if architecture == "arm64" { "v8" } else { "" };
            Ok(Platform { os: os.into(), architecture: architecture.into(), variant: variant.into() })
        }
        [os, architecture, variant] if !os.is_empty() && !architecture.is_empty() => {
            Ok(Platform { os: os.into(), architecture: architecture.into(), variant: variant.into() })
        }
        _ => bail!("--platform {text}: expected OS/ARCH, such as linux/arm64 or linux/arm/v7"),
    }
}

/// Layers that hosts have.
#[derive(Debug, Default)]
pub(super) struct Earlier {
    serial: u64,
    /// Hosts have all of it once they have applied the bundle.
    content: BTreeSet<Digest>,
    /// Layers with those below them, of each host.
    hosts: Vec<BTreeSet<Vec<Digest>>>,
}

impl Earlier {
    /// Returns true if all hosts have the last one of these layers, above the others.
    pub(super) fn has(&self, layers: &[Digest]) -> bool {
        let of_bundle = layers.last().is_some_and(|layer| self.content.contains(layer));
        of_bundle || (!self.hosts.is_empty() && self.hosts.iter().all(|stacks| stacks.contains(layers)))
    }
}

/// Seconds since 1970; more than the serial of the earlier bundle in any case.
fn default_serial(now: Timestamp, earlier: u64) -> u64 {
    u64::try_from(now.as_second()).unwrap_or_default().max(earlier.saturating_add(1))
}

fn earlier(since: &[String], output: &Path) -> anyhow::Result<Earlier> {
    let mut earlier = Earlier::default();
    for since in since {
        let is_file = Path::new(since).try_exists().unwrap_or(false);
        let inventory = if is_file { Inventory::read(Path::new(since)).with_context(|| format!("--since {since}"))? } else { None };
        match inventory {
            Some(inventory) => earlier.hosts.push(inventory.stacks()),
            None => {
                let document = earlier_bundle(since, output)?.document;
                earlier.serial = earlier.serial.max(document.serial);
                earlier.content.extend(document.blobs.iter().map(|blob| blob.digest));
            }
        }
    }
    Ok(earlier)
}

fn earlier_bundle(since: &str, output: &Path) -> anyhow::Result<Head> {
    let failed = || format!("--since {since}");
    match File::open(since) {
        Ok(bundle) => read_head(&bundle, &Here).with_context(failed),
        Err(error) if error.kind() == io::ErrorKind::NotFound && is_revision(since) => {
            let parent = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
            match of_revision(since, parent).with_context(failed)? {
                Some(head) => Ok(head),
                None => bail!("--since {since}: no file *.bundle in {} has this revision", parent.display()),
            }
        }
        Err(error) => Err(error).with_context(failed),
    }
}

/// Returns true for what may be a revision: a digest, or at least seven digits of a commit.
fn is_revision(text: &str) -> bool {
    let digits = text.strip_prefix("sha256:").unwrap_or(text);
    digits.len() >= 7 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The newest bundle in a directory that has this revision, or manifests of it.
fn of_revision(revision: &str, directory: &Path) -> io::Result<Option<Head>> {
    let mut found: Option<Head> = None;
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.extension().is_none_or(|ending| ending != "bundle") {
            continue;
        }
        // What is no bundle has no revision.
        let Some(head) = File::open(&path).ok().and_then(|file| read_head(&file, &Here).ok()) else { continue };
        let is_it = head.digest().to_string().starts_with(revision) || head.document.revision.starts_with(revision);
        if is_it && found.as_ref().is_none_or(|known| known.document.serial < head.document.serial) {
            found = Some(head);
        }
    }
    Ok(found)
}

fn parts(
    args: &CreateArgs,
    serial: u64,
    manifests: Vec<u8>,
    fetched: &FetchedImages,
    revision: Option<String>,
) -> anyhow::Result<BundleParts> {
    let archive = Digest::of(&manifests);
    let (blobs, sources) = fetched.blobs(manifests);
    let document = BundleDocument {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        name: args.name.clone(),
        serial,
        created: Timestamp::now(),
        hosts: args.hosts.iter().map(|host| host.to_lowercase()).collect(),
        revision: revision.unwrap_or_default(),
        manifests: archive,
        images: fetched.images.clone(),
        signatures: fetched.signatures.iter().copied().collect(),
        blobs,
    };
    document.check()?;
    let mut bytes = serde_json::to_vec_pretty(&document)?;
    bytes.push(b'\n');
    let signature = args.sign_key.as_deref().map(|key| sign(&bytes, key)).transpose()?;
    Ok(BundleParts { document, bytes, signature, index: fetched.index.clone(), blobs: sources })
}

/// Writes the file beside its place first, so that nobody reads half of it.
fn write(path: &Path, parts: &BundleParts) -> io::Result<()> {
    let unfinished = beside(path, ".new");
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&unfinished)?);
    write_bundle(&mut out, parts)?;
    out.into_inner()?.sync_all()?;
    std::fs::rename(unfinished, path)
}

/// A path in the same directory.
fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(ending);
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_source::bundle::document::BundleBlob;
    use podstead_source::bundle::write::BlobSource;

    #[test]
    fn serial_is_above_that_of_the_earlier_bundle() {
        let now = Timestamp::from_second(1_000).unwrap();
        assert_eq!(default_serial(now, 0), 1_000);
        assert_eq!(default_serial(now, 1_000), 1_001);
        assert_eq!(default_serial(Timestamp::from_second(-5).unwrap(), 7), 8);
    }

    #[test]
    fn revisions_are_digests_and_commits() {
        for text in ["0123abc", "sha256:0123abcd"] {
            assert!(is_revision(text), "{text}");
        }
        for text in ["0123ab", "sha256:0123ab", "old.bundle", "bundles/abcdef0", ""] {
            assert!(!is_revision(text), "{text}");
        }
    }

    #[test]
    fn newest_bundle_of_a_revision_is_found() {
        let directory = tempfile::tempdir().unwrap();
        let mut digests = Vec::new();
        for (name, serial) in [("a.bundle", 1), ("b.bundle", 3), ("c.bundle", 2), ("d.tar", 4)] {
            let document = BundleDocument {
                api_version: API_VERSION.into(),
                kind: KIND.into(),
                name: "fleet".into(),
                serial,
                created: Timestamp::UNIX_EPOCH,
                hosts: Vec::new(),
                revision: "0123456789abcdef".into(),
                manifests: Digest::of(b""),
                images: Vec::new(),
                signatures: Vec::new(),
                blobs: vec![BundleBlob { digest: Digest::of(b""), size: 0, unpacked_bytes: None, entries: None, left_out: false }],
            };
            let bytes = serde_json::to_vec(&document).unwrap();
            digests.push(Digest::of(&bytes));
            let blobs = vec![(Digest::of(b""), BlobSource::Bytes(Vec::new()))];
            let parts = BundleParts { document, bytes, signature: None, index: Vec::new(), blobs };
            write_bundle(&mut File::create(directory.path().join(name)).unwrap(), &parts).unwrap();
        }
        std::fs::write(directory.path().join("e.bundle"), "something else").unwrap();
        let serial = |revision: &str| of_revision(revision, directory.path()).unwrap().map(|head| head.document.serial);
        assert_eq!((serial("0123456"), serial(&digests[0].to_string())), (Some(3), Some(1)));
        assert_eq!((serial("fedcba9"), serial(&digests[3].to_string())), (None, None), "not a bundle by its name");
        let output = directory.path().join("new.bundle");
        let earlier = |since: &str| earlier(&[since.to_owned()], &output);
        assert_eq!(earlier("0123456789ab").unwrap().serial, 3);
        let told = earlier("fedcba98").unwrap_err().to_string();
        assert!(told.contains("no file *.bundle in "), "{told}");
        assert!(earlier("absent.bundle").is_err());
    }

    #[test]
    fn layers_that_all_hosts_have_are_left_out() {
        let [a, b, c] = ["a", "b", "c"].map(|layer| Digest::of(layer.as_bytes()));
        let mut earlier = Earlier::default();
        assert!(!earlier.has(&[a]));
        earlier.hosts.push(BTreeSet::from([vec![a], vec![a, b]]));
        assert!(earlier.has(&[a, b]) && !earlier.has(&[c, b]), "above the same layers only");
        earlier.hosts.push(BTreeSet::from([vec![a]]));
        assert!(earlier.has(&[a]) && !earlier.has(&[a, b]));
        earlier.content.insert(c);
        assert!(earlier.has(&[b, c]));
    }

    #[test]
    fn platforms_are_written_as_go_does() {
        let shown = |text: &str| parse_platform(text).map(|found| platform::spell(&found)).map_err(|error| error.to_string());
        assert_eq!(shown("linux/amd64"), Ok("linux/amd64".into()));
        assert_eq!(shown("linux/arm64"), Ok("linux/arm64/v8".into()));
        assert_eq!(shown("linux/arm/v7"), Ok("linux/arm/v7".into()));
        for text in ["amd64", "/amd64", "linux/", "a/b/c/d", ""] {
            assert!(shown(text).unwrap_err().contains("expected OS/ARCH"), "{text}");
        }
    }
}
