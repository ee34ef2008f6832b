//! Signatures that are kept, and those of them that count.

use super::artifact::LayerFormat;
use super::record::{Evidence, SignatureRecord, Subject};
use podstead_container::digest::Digest;
use serde_json::json;

const MANIFEST: &[u8] = br#"{"schemaVersion":2,"config":null}"#;

fn index(entries: &[Digest]) -> Vec<u8> {
    let entries: Vec<_> = entries.iter().map(|digest| json!({"digest": digest, "size": 1})).collect();
    json!({"schemaVersion": 2, "manifests": entries}).to_string().into_bytes()
}

/// A document that nobody has signed.
fn evidence(place: &str, subject: &[u8], size: usize) -> Evidence {
    let payload = json!({
        "critical": {
            "identity": {}, "image": {"docker-manifest-digest": Digest::of(subject)}, "type": "cosign container image signature",
        },
        "optional": {"place": place, "filling": " ".repeat(size)},
    });
    let format = LayerFormat::Simple("AAAA".into());
    Evidence::read(place.to_owned(), &format, payload.to_string().as_bytes()).unwrap()
}

fn signed(content: &[u8], places: &[&str]) -> Subject {
    let mut subject = Subject::new(content.to_vec());
    subject.add(places.iter().map(|place| evidence(place, content, 0)));
    subject
}

fn places(subjects: &[Subject]) -> Vec<&str> {
    subjects.iter().flat_map(|subject| &subject.evidence).map(|evidence| evidence.place.as_str()).collect()
}

#[test]
fn kept_signatures_are_merged_and_read_back() {
    let manifest = Digest::of(MANIFEST);
    let outer = index(&[manifest]);
    let older = vec![signed(&outer, &["a"]), signed(MANIFEST, &["b"])];
    let record = SignatureRecord::merged(&[signed(MANIFEST, &["b", "c"])], older).unwrap();
    let bytes = serde_json::to_vec(&record).unwrap();
    let subjects = SignatureRecord::subjects(&bytes, manifest);
    assert_eq!(places(&subjects), ["b", "c", "a"]);
    assert_eq!(SignatureRecord::merged(&[Subject::new(MANIFEST.to_vec())], Vec::new()), None, "there is none");
    assert_eq!(SignatureRecord::subjects(b"{}", manifest), []);
    let newer = String::from_utf8(bytes).unwrap().replace("\"version\":1", "\"version\":2");
    assert_eq!(SignatureRecord::subjects(newer.as_bytes(), manifest), []);
}

#[test]
fn only_indexes_that_lead_to_the_image_count() {
    let manifest = Digest::of(MANIFEST);
    let inner = index(&[manifest]);
    let (outer, other) = (index(&[Digest::of(&inner)]), index(&[Digest::of(b"other")]));
    let all = [signed(&outer, &["outer"]), signed(&inner, &["inner"]), signed(&other, &["other"]), signed(b"{}", &["none"])];
    let bytes = serde_json::to_vec(&SignatureRecord::merged(&all, Vec::new()).unwrap()).unwrap();
    assert_eq!(places(&SignatureRecord::subjects(&bytes, manifest)), ["outer", "inner"]);
    let without_inner = [signed(&outer, &["outer"])];
    let bytes = serde_json::to_vec(&SignatureRecord::merged(&without_inner, Vec::new()).unwrap()).unwrap();
    assert_eq!(SignatureRecord::subjects(&bytes, manifest), []);
}

#[test]
fn kept_signatures_are_limited() {
    let mut subject = Subject::new(MANIFEST.to_vec());
    subject.add((0..100).map(|number| evidence(&number.to_string(), MANIFEST, 0)));
    assert_eq!(subject.evidence.len(), 32);
    let mut subject = Subject::new(MANIFEST.to_vec());
    subject.add((0..100).map(|number| evidence(&number.to_string(), MANIFEST, 200_000)));
    assert_eq!(subject.evidence.len(), 5);
    let many: Vec<Subject> = (0..20).map(|number: u8| signed(&[number], &["x"])).collect();
    let bytes = serde_json::to_vec(&SignatureRecord::merged(&[], many).unwrap()).unwrap();
    let kept: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
    assert_eq!(kept["subjects"].as_array().unwrap().len(), 8);
}
