//! Signatures made on the spot, and all the ways in which they must not count.

use super::*;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::rand::SystemRandom;
use ring::signature::{
    ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, EcdsaSigningAlgorithm, Ed25519KeyPair, KeyPair,
};
use serde_json::{Value, json};

/// DER in front of a point on P-256, of one on P-384, and of an Ed25519 key.
const P256: &str = "3059301306072a8648ce3d020106082a8648ce3d030107034200";
const P384: &str = "3076301006072a8648ce3d020106052b81040022036200";
const ED25519: &str = "302a300506032b6570032100";

const MANIFEST: &[u8] = br#"{"schemaVersion":2}"#;

fn pem(prefix: &str, public: &[u8]) -> String {
    let der = [hex::decode(prefix).unwrap(), public.to_vec()].concat();
    format!("-----BEGIN PUBLIC KEY-----\n{}\n-----END PUBLIC KEY-----\n", STANDARD.encode(der))
}

/// A pair of keys on one of the curves.
struct Pair {
    pair: EcdsaKeyPair,
    pem: String,
}

impl Pair {
    fn new() -> Self {
        Self::of(&ECDSA_P256_SHA256_ASN1_SIGNING, P256)
    }

    fn of(algorithm: &'static EcdsaSigningAlgorithm, prefix: &str) -> Self {
        let random = SystemRandom::new();
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref(), &random).unwrap();
        Self { pem: pem(prefix, pair.public_key().as_ref()), pair }
    }

    fn sign(&self, message: &[u8]) -> String {
        STANDARD.encode(self.pair.sign(&SystemRandom::new(), message).unwrap())
    }

    fn keys(&self) -> Vec<ImageKey> {
        ImageKey::parse_file(self.pem.as_bytes()).unwrap()
    }

    fn simple(&self, payload: &Value) -> Result<SimpleSigning, SignatureFault> {
        let payload = payload.to_string();
        SimpleSigning::parse(payload.as_bytes(), &self.sign(payload.as_bytes()))
    }

    fn bundle(&self, statement: &Value) -> Value {
        let payload = statement.to_string();
        let signed = format!("DSSEv1 28 application/vnd.in-toto+json {} {payload}", payload.len());
        json!({
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": {"publicKey": {"hint": "x"}, "tlogEntries": []},
            "dsseEnvelope": {
                "payload": STANDARD.encode(&payload), "payloadType": "application/vnd.in-toto+json",
                "signatures": [{"sig": self.sign(signed.as_bytes()), "keyid": ""}],
            },
        })
    }
}

fn payload(digest: &str) -> Value {
    json!({
        "critical": {
            "identity": {"docker-reference": "registry.lan/app"}, "image": {"docker-manifest-digest": digest},
            "type": "cosign container image signature",
        },
        "optional": null,
    })
}

fn statement(digest: &str, predicate_type: &str) -> Value {
    let hex = digest.trim_start_matches("sha256:");
    json!({
        "_type": "https://in-toto.io/Statement/v1", "subject": [{"name": "", "digest": {"sha256": hex}}],
        "predicateType": predicate_type, "predicate": {},
    })
}

fn parsed(bundle: &Value) -> Result<Bundle, SignatureFault> {
    Bundle::parse(bundle.to_string().as_bytes())
}

#[test]
fn both_formats_are_verified() {
    let (pair, subject) = (Pair::new(), Subject::of(MANIFEST));
    let digest = subject.digest();
    let other = Pair::new().keys();
    let keys = [other.clone(), pair.keys()].concat();
    let simple = pair.simple(&payload(&digest)).unwrap();
    assert_eq!(simple.verify(&keys, &subject), Ok(Signed { key: 1, name: Some("registry.lan/app".into()) }));
    assert_eq!(simple.verify(&other, &subject), Err(SignatureFault::OtherKey));
    let bundle = parsed(&pair.bundle(&statement(&digest, COSIGN_SIGN))).unwrap();
    assert_eq!(bundle.verify(&keys, &subject, &[]), Ok(Signed { key: 1, name: None }));
    assert_eq!(bundle.verify(&other, &subject, &[]), Err(SignatureFault::OtherKey));
    let message = json!({
        "mediaType": "application/vnd.dev.sigstore.bundle+json;version=0.3",
        "messageSignature": {"messageDigest": {"algorithm": "SHA2_256", "digest": ""}, "signature": pair.sign(MANIFEST)},
    });
    let message = parsed(&message).unwrap();
    assert_eq!(message.verify(&keys, &subject, &[]), Ok(Signed { key: 1, name: None }));
    assert_eq!(message.verify(&keys, &Subject::of(b"other"), &[]), Err(SignatureFault::OtherKey));
}

#[test]
fn other_algorithms_are_verified() {
    let subject = Subject::of(MANIFEST);
    let p384 = Pair::of(&ECDSA_P384_SHA384_ASN1_SIGNING, P384);
    p384.simple(&payload(&subject.digest())).unwrap().verify(&p384.keys(), &subject).unwrap();
    let pair = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
    let keys = ImageKey::parse_file(pem(ED25519, pair.public_key().as_ref()).as_bytes()).unwrap();
    let payload = payload(&subject.digest()).to_string();
    let signed = SimpleSigning::parse(payload.as_bytes(), &STANDARD.encode(pair.sign(payload.as_bytes()))).unwrap();
    signed.verify(&keys, &subject).unwrap();
    assert_eq!(signed.verify(&p384.keys(), &subject), Err(SignatureFault::OtherKey));
}

#[test]
fn signatures_of_other_content_do_not_count() {
    let (pair, subject) = (Pair::new(), Subject::of(MANIFEST));
    let other = Subject::of(b"other").digest();
    let error = pair.simple(&payload(&other)).unwrap().verify(&pair.keys(), &subject).unwrap_err();
    assert!(matches!(&error, SignatureFault::OtherContent { found, .. } if *found == other), "{error}");
    let error = parsed(&pair.bundle(&statement(&other, COSIGN_SIGN))).unwrap().verify(&pair.keys(), &subject, &[]).unwrap_err();
    assert!(matches!(&error, SignatureFault::OtherContent { found, .. } if *found == other), "{error}");
    // The payload of one signature with the signature of another.
    let (good, bad) = (payload(&subject.digest()).to_string(), payload(&other).to_string());
    let swapped = SimpleSigning::parse(good.as_bytes(), &pair.sign(bad.as_bytes())).unwrap();
    assert_eq!(swapped.verify(&pair.keys(), &subject), Err(SignatureFault::OtherKey));
    let mut swapped = pair.bundle(&statement(&other, COSIGN_SIGN));
    swapped["dsseEnvelope"]["payload"] = json!(STANDARD.encode(statement(&subject.digest(), COSIGN_SIGN).to_string()));
    assert_eq!(parsed(&swapped).unwrap().verify(&pair.keys(), &subject, &[]), Err(SignatureFault::OtherKey));
}

#[test]
fn attestations_count_only_when_asked_for() {
    const SBOM: &str = "https://spdx.dev/Document";
    let (pair, subject) = (Pair::new(), Subject::of(MANIFEST));
    let bundle = |predicate_type| parsed(&pair.bundle(&statement(&subject.digest(), predicate_type))).unwrap();
    let error = bundle(SBOM).verify(&pair.keys(), &subject, &[]).unwrap_err();
    assert!(matches!(&error, SignatureFault::OtherPredicate { found, .. } if found == SBOM), "{error}");
    bundle(SBOM).verify(&pair.keys(), &subject, &[SBOM.to_owned()]).unwrap();
    assert!(bundle(COSIGN_SIGN).verify(&pair.keys(), &subject, &[SBOM.to_owned()]).is_err());
}

#[test]
fn keyless_bundles_say_so() {
    let (pair, subject) = (Pair::new(), Subject::of(MANIFEST));
    let mut bundle = Pair::new().bundle(&statement(&subject.digest(), COSIGN_SIGN));
    bundle["verificationMaterial"] = json!({"certificate": {"rawBytes": "AA=="}});
    assert_eq!(parsed(&bundle).unwrap().verify(&pair.keys(), &subject, &[]), Err(SignatureFault::Keyless));
}

#[test]
fn doubtful_payloads_are_refused() {
    let pair = Pair::new();
    let digest = Subject::of(MANIFEST).digest();
    let changed = |change: fn(&mut Value)| {
        let mut payload = payload(&digest);
        change(&mut payload);
        pair.simple(&payload).unwrap_err().to_string()
    };
    for (error, word) in [
        (changed(|payload| payload["critical"]["type"] = json!("atomic container signature")), "another type"),
        (changed(|payload| payload["critical"]["more"] = json!(1)), "not one of simple signing"),
        (changed(|payload| payload["critical"]["image"]["Docker-manifest-digest"] = json!("sha256:0")), "two digests"),
        (changed(|payload| payload["critical"]["image"] = json!({})), "no digest"),
        (changed(|payload| payload["critical"] = json!(null)), "not one of simple signing"),
    ] {
        assert!(error.contains(word), "{error}");
    }
    let twice = payload(&digest).to_string().replace("\"docker-reference\":", "\"docker-reference\":\"x\",\"docker-reference\":");
    assert!(SimpleSigning::parse(twice.as_bytes(), "").is_err(), "{twice}");
    assert!(matches!(SimpleSigning::parse(b"{}", "*"), Err(SignatureFault::Malformed(_))));
    assert_eq!(SimpleSigning::parse(&vec![b' '; DOCUMENT_MAX + 1], ""), Err(SignatureFault::TooLarge));
    assert_eq!(SimpleSigning::parse(b"{}", &"A".repeat(2000)), Err(SignatureFault::TooLarge));
}

#[test]
fn doubtful_bundles_are_refused() {
    let pair = Pair::new();
    let good = pair.bundle(&statement(&Subject::of(MANIFEST).digest(), COSIGN_SIGN));
    let changed = |pointer: &str, value: Value| {
        let mut bundle = good.clone();
        *bundle.pointer_mut(pointer).unwrap() = value;
        parsed(&bundle).unwrap_err().to_string()
    };
    let one = good["dsseEnvelope"]["signatures"][0].clone();
    let nested = format!("{{\"mediaType\":{}", "[".repeat(100_000));
    for (error, word) in [
        (changed("/mediaType", json!("application/vnd.dev.sigstore.bundle+json;version=0.1")), "another version"),
        (changed("/dsseEnvelope/signatures", json!([one.clone(), one])), "exactly one signature"),
        (changed("/dsseEnvelope/signatures", json!([])), "exactly one signature"),
        (changed("/dsseEnvelope/payloadType", json!("text/plain")), "other than an in-toto"),
        (changed("/dsseEnvelope/payload", json!("*")), "not base64"),
        (changed("/dsseEnvelope/payload", json!("e30=")), "no in-toto statement"),
        (changed("/dsseEnvelope", json!(null)), "no content"),
        (Bundle::parse(nested.as_bytes()).unwrap_err().to_string(), "not a bundle"),
        (Bundle::parse(&vec![b' '; DOCUMENT_MAX + 1]).unwrap_err().to_string(), "larger than"),
    ] {
        assert!(error.contains(word), "{error}");
    }
    let mut both = good.clone();
    both["messageSignature"] = json!({"signature": ""});
    assert!(parsed(&both).unwrap_err().to_string().contains("two contents"));
}

#[test]
fn key_files_may_have_several_keys() {
    let [one, other] = [Pair::new(), Pair::new()].map(|pair| pair.pem);
    let keys = ImageKey::parse_file(format!("# release\n{one}\n\n# build\r\n{other}").as_bytes()).unwrap();
    assert_eq!(keys.len(), 2);
    assert_ne!(keys[0].fingerprint(), keys[1].fingerprint());
    let many = one.repeat(KEYS_PER_FILE + 1);
    assert!(ImageKey::parse_file(many.as_bytes()).unwrap_err().to_string().contains("more than 16"));
}

#[test]
fn unusable_keys_are_refused_with_the_reason() {
    let good = Pair::new().pem;
    let point = hex::decode("04").unwrap();
    let short_rsa = format!("30819f300d06092a864886f70d010101050003818d0030818902818100{}0203010001", "c1".repeat(128));
    for (bad, word) in [
        (String::new(), "no key"),
        ("hello\n".to_owned(), "line 1: it is not PEM"),
        (good.replace("BEGIN PUBLIC", "BEGIN ENCRYPTED COSIGN PRIVATE"), "private key"),
        (good.replace("BEGIN PUBLIC KEY", "BEGIN CERTIFICATE"), "openssl x509"),
        (good.replace("BEGIN PUBLIC KEY", "BEGIN RSA PUBLIC KEY"), "PKCS #1"),
        (good.replace("-----END PUBLIC KEY-----\n", ""), "no end line"),
        (format!("\n{}", good.replace('\n', "*\n").replace("-----*", "-----")), "line 2: the key is not base64"),
        (pem("30", &[]), "not an X.509 public key"),
        (pem(&P256.replace("030107", "030106"), &[4; 65]), "other than P-256"),
        (pem(P256, &[2; 65]), "not an uncompressed point"),
        (pem("3018301306072a8648ce3d020106082a8648ce3d030107030100", &[]), "not an uncompressed point"),
        (pem("300b300506032b6570030200", &point), "32 bytes"),
        (pem(&short_rsa, &[]), "2048 to 8192"),
        ("x".repeat(70_000), "larger than"),
    ] {
        let problem = ImageKey::parse_file(bad.as_bytes()).unwrap_err().to_string();
        assert!(problem.contains(word), "{problem}: {}", &bad[..bad.len().min(200)]);
    }
    assert!(ImageKey::parse_file(&[0xff]).is_err());
}
