//! Signatures of bundles.

use super::made::{Made, sign, written};
use super::{Bench, Following, pod};
use crate::support::run;
use podstead::artifact::SourceReport;
use podstead::source::SignatureRequirement;
use podstead::source::bundle::write::BundleParts;
use podstead::source::bundle::{BUNDLE_NAMESPACE, BundleOptions};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Keys of `ann`, who may sign, and of `eve`, who may not.
struct Keys(tempfile::TempDir);

impl Keys {
    fn new() -> Self {
        let keys = Self(tempfile::tempdir().unwrap());
        for name in ["ann", "eve"] {
            run(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(keys.at(name)));
        }
        keys.allow("ann");
        keys
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn allow(&self, name: &str) {
        let key = std::fs::read_to_string(self.at(&format!("{name}.pub"))).unwrap();
        std::fs::write(self.at("allowed"), format!("{name}@example.org {key}")).unwrap();
    }

    fn required(&self) -> Option<SignatureRequirement> {
        let allowed_signers_file = Some(self.at("allowed"));
        Some(SignatureRequirement { allowed_signers_file, openpgp_keyring_file: None, namespace: BUNDLE_NAMESPACE.into() })
    }
}

fn made(serial: u64) -> Made {
    let image = format!("localhost/app:{serial}");
    Made::new(serial, &[("web.yaml", &pod("web", &image))]).image(&image, &["base"])
}

fn resigned(made: &Made, key: &Path, change: impl Fn(&mut BundleParts)) -> Vec<u8> {
    let mut parts = made.parts();
    parts.signature = Some(sign(&parts.bytes, key, BUNDLE_NAMESPACE));
    change(&mut parts);
    written(&parts)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_bundles_of_allowed_signers_are_taken() {
    let (bench, keys) = (Bench::new(), Keys::new());
    let (ann, eve) = (keys.at("ann"), keys.at("eve"));
    let mut source = Following::start(BundleOptions { signature: keys.required(), ..bench.options() });
    source.artifact().await;
    let in_force = made(1);
    bench.put("good.bundle", &in_force.signed(&ann, BUNDLE_NAMESPACE));
    let artifact = source.artifact().await;
    assert_eq!(artifact.revision.0, in_force.revision());
    assert!(artifact.commit.unwrap().author.starts_with("ann@example.org (SHA256:"));
    let next = made(7);
    let of_another_document = sign(&made(8).parts().bytes, &ann, BUNDLE_NAMESPACE);
    let cases = [
        ("unsigned", next.bytes(), "is not signed"),
        ("stranger", next.signed(&eve, BUNDLE_NAMESPACE), "refused"),
        ("purpose", next.signed(&ann, "podstead"), "namespace"),
        ("document", resigned(&next, &ann, |parts| parts.signature = Some(of_another_document.clone())), "refused"),
        ("garbage", resigned(&next, &ann, |parts| parts.signature = Some(b"-----BEGIN".to_vec())), "refused"),
        ("flipped", resigned(&next, &ann, |parts| flip(&mut parts.bytes)), "refused"),
    ];
    for (name, bytes, word) in cases {
        let file = format!("{name}.bundle");
        bench.put(&file, &bytes);
        let told = source.failure().await;
        assert!(told.contains(&file) && told.contains(word), "{name}: {told}");
        bench.remove(&file);
    }
    assert_eq!(bench.references().await, ["localhost/app:1"], "nothing of them was read");
    // A bad one beside it does not hide a good one, whatever its serial says.
    bench.put("bad.bundle", &made(u64::MAX).bytes());
    bench.put("next.bundle", &next.signed(&ann, BUNDLE_NAMESPACE));
    loop {
        match source.next().await {
            SourceReport::Artifact(artifact) => break assert_eq!(artifact.revision.0, next.revision()),
            // Of the moment with one of them.
            SourceReport::Failed(_) | SourceReport::Recovered => {}
            other => panic!("{other:?}"),
        }
    }
}

/// Changes the serial of a document, which stays one.
fn flip(document: &mut Vec<u8>) {
    let text = String::from_utf8(std::mem::take(document)).unwrap();
    *document = text.replacen("\"serial\":7", "\"serial\":9", 1).into_bytes();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn signer_who_is_gone_signs_no_more_after_a_restart() {
    let (bench, keys) = (Bench::new(), Keys::new());
    let options = || BundleOptions { signature: keys.required(), ..bench.options() };
    bench.put("a.bundle", &made(3).signed(&keys.at("ann"), BUNDLE_NAMESPACE));
    let mut source = Following::start(options());
    source.artifact().await;
    drop(source);
    keys.allow("eve");
    bench.remove("a.bundle");
    let mut source = Following::start(BundleOptions { has_last_good: true, ..options() });
    let told = source.failure().await;
    assert!(told.contains("not signed by any of the signers"), "{told}");
    bench.put("b.bundle", &made(2).signed(&keys.at("eve"), BUNDLE_NAMESPACE));
    let told = source.failure().await;
    assert!(told.contains("lower than 3"), "its serial counts: {told}");
    bench.put("c.bundle", &made(4).signed(&keys.at("eve"), BUNDLE_NAMESPACE));
    assert_eq!(source.artifact().await.revision.0, made(4).revision());
}
