//! Files that no `podstead bundle create` writes.

use super::made::{Made, written};
use super::{Bench, Following, pod};
use podstead::image::list_job::Here;
use podstead::source::bundle::archive::{ArchiveError, read_head, verify_content};
use podstead::source::bundle::write::{BlobSource, BundleParts};
use std::fs::File;
use std::path::Path;
use std::process::Command;

fn made() -> Made {
    let image = "localhost/app:1";
    Made::new(1, &[("web.yaml", &pod("web", image))]).image(image, &["base", "app"])
}

/// The source refuses each of the files with its word, and nothing of them is used.
async fn refused(files: Vec<(String, Vec<u8>, &str)>) {
    let bench = Bench::new();
    let mut source = bench.start().await;
    for (name, bytes, word) in files {
        let file = format!("{name}.bundle");
        bench.put(&file, &bytes);
        let told = source.failure().await;
        assert!(told.contains(&file) && told.contains(word), "{name}: {told}");
        assert!(told.len() < 2000, "{name}: {} bytes", told.len());
        assert!(bench.references().await.is_empty(), "{name}");
        bench.remove(&file);
    }
    let good = made();
    bench.put("good.bundle", &good.bytes());
    assert_eq!(source.artifact().await.revision.0, good.revision());
    let staged = std::fs::read_dir(bench.path("images/staging")).unwrap().count();
    assert_eq!(staged, 0, "nothing is left of them");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damaged_bundles_are_refused() {
    let (good, bytes) = (made(), made().bytes());
    let mut files = Vec::new();
    // In the document, in the manifests, in documents, in layers: one block after the other.
    for end in (0..bytes.len() - 1024).step_by(512) {
        files.push((format!("cut-{end}"), bytes[..end].to_vec(), ""));
    }
    for (digest, source) in &good.blobs {
        let mut parts = good.parts();
        let BlobSource::Bytes(content) = source else { panic!() };
        let mut changed = content.clone();
        let last = changed.len() - 1;
        changed[last.min(600)] ^= 0x20;
        parts
            .blobs
            .iter_mut()
            .filter(|(known, _)| known == digest)
            .for_each(|(_, bytes)| *bytes = BlobSource::Bytes(changed.clone()));
        files.push((format!("flipped-{}", digest.hex()), written(&parts), ""));
    }
    refused(files).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_files_are_refused() {
    let good = made();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut gzip, &good.bytes()).unwrap();
    let with = |change: &dyn Fn(&mut BundleParts)| {
        let mut parts = good.parts();
        change(&mut parts);
        written(&parts)
    };
    let text = |from: &'static str, to: String| {
        with(&move |parts| {
            let text = String::from_utf8(parts.bytes.clone()).unwrap();
            assert!(text.contains(from));
            parts.bytes = text.replacen(from, &to, 1).into_bytes();
        })
    };
    let not_an_image = Made::new(1, &[("web.yaml", "x")]);
    let mut text_as_image = not_an_image.clone();
    let digest = text_as_image.blob(b"hello".to_vec());
    text_as_image.document.images.push(serde_json::from_value(serde_json::json!({"reference": "a:1", "digest": digest})).unwrap());
    refused(vec![
        ("empty".into(), Vec::new(), "not a bundle"),
        ("zeros".into(), vec![0; 10 << 10], "not a bundle"),
        ("noise".into(), b"podstead".repeat(1000), "not a bundle"),
        ("compressed".into(), gzip.finish().unwrap(), "it is compressed"),
        ("no-json".into(), with(&|parts| parts.bytes = b"{".to_vec()), "its document cannot be read"),
        ("huge-document".into(), with(&|parts| parts.bytes = vec![b' '; 5 << 20]), "its document has more than"),
        ("huge-signature".into(), with(&|parts| parts.signature = Some(vec![b'x'; 1 << 20])), "its signature has more than"),
        ("newer".into(), text("\"name\"", "\"newer\":1,\"name\"".into()), "unknown field"),
        ("huge-name".into(), text("fleet", "x".repeat(1 << 20)), "invalid name"),
        ("huge-reference".into(), text("localhost/app:1", "y".repeat(1 << 20)), "images[0].reference"),
        ("out".into(), text("localhost/app:1", "../../etc/passwd".into()), "images[0].reference"),
        ("no-manifests".into(), with(&|parts| parts.blobs.clear()), "is missing from it"),
        ("no-layer".into(), with(&|parts| drop(parts.blobs.pop())), "leaves out layers"),
        ("text".into(), text_as_image.bytes(), "is missing from it"),
        ("empty-manifests".into(), Made::with_archive(1, vec![0; 1024]).bytes(), "is empty"),
    ])
    .await;
}

/// An archive that GNU tar makes of files in a directory.
fn tar(arguments: &[&str], prepare: impl Fn(&Path)) -> Vec<u8> {
    let directory = tempfile::tempdir().unwrap();
    prepare(directory.path());
    let output = Command::new("tar").arg("-C").arg(directory.path()).args(["-P", "-c"]).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    output.stdout
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn manifests_and_layers_lead_nowhere_else() {
    let file = |root: &Path| std::fs::write(root.join("a.yaml"), "x").unwrap();
    let of = |archive: Vec<u8>| Made::with_archive(1, archive).bytes();
    let image = |layer: Vec<u8>| Made::new(1, &[("a.yaml", "x")]).image_of("localhost/evil:1", vec![layer]).bytes();
    let out = tar(&["--transform=s,^,../../,", "a.yaml"], file);
    refused(
        vec![
            ("path-out".into(), of(out.clone()), "leads out of the artifact"),
            ("absolute".into(), of(tar(&["--transform=s,^,/etc/,", "a.yaml"], file)), "absolute path"),
            (
                "fifo".into(),
                of(tar(&["f"], |root| {
                    rustix::fs::mknodat(rustix::fs::CWD, root.join("f"), rustix::fs::FileType::Fifo, rustix::fs::Mode::RWXU, 0)
                        .unwrap()
                })),
                "named pipe",
            ),
            ("layer-out".into(), image(out), "evil"),
        ]
        .into_iter()
        // The message of a layer names the file of the archive.
        .map(|(name, bytes, word): (String, Vec<u8>, &'static str)| (name, bytes, if word == "evil" { "" } else { word }))
        .collect(),
    )
    .await;
    // A symlink is an error of the file that it stands for, as in a commit.
    let bench = Bench::new();
    bench.put("a.bundle", &of(tar(&["a.yaml"], |root| std::os::unix::fs::symlink("/etc/passwd", root.join("a.yaml")).unwrap())));
    let mut source = Following::start(bench.options());
    let artifact = source.artifact().await;
    assert!(artifact.files["a.yaml"].as_ref().unwrap_err().contains("symlink"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bombs_are_refused() {
    let mut archive = Vec::new();
    let zeros = vec![0; 9 << 20];
    podstead::source::bundle::write::write_tar(&mut archive, [("zeros", &zeros[..])]).unwrap();
    // Many times the same compressed block: 300 MiB of zeros in some 300 KiB.
    let bomb = {
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
        for _ in 0..34 {
            std::io::Write::write_all(&mut gzip, &archive[..archive.len() - 1024]).unwrap();
        }
        gzip.finish().unwrap()
    };
    let manifests = Made::with_archive(1, bomb.clone()).bytes();
    let layer = Made::new(1, &[("a.yaml", "x")]).image_of("localhost/bomb:1", vec![bomb]).bytes();
    let large = Made::with_archive(1, vec![1; 33 << 20]);
    refused(vec![
        ("manifests".into(), manifests, ""),
        ("layer".into(), layer, "expands more than 200 times"),
        ("large".into(), large.bytes(), "more than 33554432 bytes"),
    ])
    .await;
}

#[test]
fn check_reads_all_content() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.bundle");
    let check = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        let file = File::open(&path).unwrap();
        let head = read_head(&file, &Here).unwrap();
        verify_content(&file, &Here, &head.document)
    };
    let good = made();
    check(&good.bytes()).unwrap();
    let mut parts = good.parts();
    let (digest, _) = parts.blobs.pop().unwrap();
    assert!(matches!(check(&written(&parts)), Err(ArchiveError::Missing(missing)) if missing == digest));
    let mut bytes = good.bytes();
    let end = bytes.len() - 1024 - 512;
    bytes[end] ^= 1;
    assert!(matches!(check(&bytes), Err(ArchiveError::Damaged(_) | ArchiveError::List(_))));
    check(&made().without(digest).bytes()).unwrap();
}
