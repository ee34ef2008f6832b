//! Signatures that the real `gpg` makes, judged by `podstead::trust`.

use crate::gnupg::Gnupg;
use jiff::Timestamp;
use podstead::trust::{Keyring, Signer, TrustError};
use std::process::Command;

const TEXT: &[u8] = b"kind: Pod\n";
/// Options that make gpg believe that it is this time, and do as told.
const IN_2025: &[&str] = &["--faked-system-time", "20250110T000000!"];

fn now() -> Timestamp {
    Timestamp::now()
}

fn time(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn judge_at(keyring: &[u8], signature: &[u8], at: Timestamp) -> Result<Signer, TrustError> {
    Keyring::parse(keyring).unwrap().verify(TEXT, signature, at)
}

fn judge(keyring: &[u8], signature: &[u8]) -> Result<Signer, TrustError> {
    judge_at(keyring, signature, now())
}

#[test]
fn keys_of_every_supported_kind_sign_in_armour_and_binary_and_a_changed_text_does_not_pass() {
    let gnupg = Gnupg::new();
    for algorithm in ["ed25519", "rsa2048", "rsa3072", "nistp256", "nistp384"] {
        let user = format!("{algorithm} <{algorithm}@example.org>");
        let fingerprint = gnupg.key(&user, algorithm, &[]);
        for (keyring, armour) in
            [(gnupg.exported(&[&fingerprint]), &["--armor"][..]), (gnupg.gpg(&["--export", &fingerprint]), &[])]
        {
            let signature = gnupg.sign(&fingerprint, TEXT, armour);
            let signer = judge(&keyring, &signature).unwrap_or_else(|error| panic!("{algorithm}: {error}"));
            assert_eq!((signer.principal.as_str(), signer.key.to_string()), (user.as_str(), fingerprint.clone()));
            let changed = Keyring::parse(&keyring).unwrap().verify(b"kind: Pid\n", &signature, now());
            assert!(matches!(changed, Err(TrustError::Mismatch { .. })), "{algorithm}: {changed:?}");
        }
    }
}

#[test]
fn a_changed_or_cut_signature_makes_nobody_else_a_signer() {
    let gnupg = Gnupg::new();
    let ann = gnupg.key("Ann <ann@example.org>", "ed25519", &[]);
    let (keyring, signature) = (Keyring::parse(&gnupg.exported(&[&ann])).unwrap(), gnupg.sign(&ann, TEXT, &[]));
    let signer = keyring.verify(TEXT, &signature, now()).unwrap();
    let mut accepted = 0;
    for at in 0..signature.len() {
        let mut changed = signature.clone();
        changed[at] ^= 1;
        // What is not hashed (the short identity of the key, the first bytes of the hash) may be changed and changes nothing.
        if let Ok(other) = keyring.verify(TEXT, &changed, now()) {
            assert_eq!(other, signer);
            accepted += 1;
        }
        assert!(keyring.verify(b"kind: Pid\n", &changed, now()).is_err());
        assert!(keyring.verify(TEXT, &signature[..at], now()).is_err(), "cut at {at}");
    }
    assert!(accepted < 16, "{accepted} bytes do not count");
}

#[test]
fn strangers_are_refused_and_a_ring_of_several_keys_tells_them_apart() {
    let gnupg = Gnupg::new();
    let [ann, bob, eve] = ["ann", "bob", "eve"].map(|name| gnupg.key(&format!("{name} <{name}@example.org>"), "ed25519", &[]));
    let both = gnupg.exported(&[&ann, &bob]);
    let blocks = [b"# people\n".to_vec(), gnupg.exported(&[&ann]), gnupg.exported(&[&bob])].concat();
    for keyring in [both, blocks] {
        assert_eq!(judge(&keyring, &gnupg.sign(&ann, TEXT, &[])).unwrap().principal, "ann <ann@example.org>");
        assert_eq!(judge(&keyring, &gnupg.sign(&bob, TEXT, &["--armor"])).unwrap().principal, "bob <bob@example.org>");
        let error = judge(&keyring, &gnupg.sign(&eve, TEXT, &[])).unwrap_err().to_string();
        assert_eq!(error, format!("the signing key {eve} is not in the keyring"));
    }
}

#[test]
fn a_key_whose_end_is_over_signs_nothing_new_whatever_the_clock_says_until_its_end_is_moved() {
    let gnupg = Gnupg::new();
    let user = "Ann <ann@example.org>";
    gnupg.gpg(
        &[&["--faked-system-time", "20250101T000000!"], &["--quick-generate-key", user, "ed25519", "sign", "30d"][..]].concat(),
    );
    let keyring = gnupg.exported(&[user]);
    let signature = gnupg.sign(user, TEXT, IN_2025);
    assert!(judge_at(&keyring, &signature, time("2025-01-15T00:00:00Z")).is_ok());
    assert!(judge_at(&keyring, &signature, Timestamp::UNIX_EPOCH).is_ok(), "a host that boots in 1970");
    let error = judge(&keyring, &signature).unwrap_err();
    assert!(matches!(error, TrustError::Expired { .. }), "{error}");
    assert!(error.to_string().contains("expired at 2025-01-31T00:00:00Z"), "{error}");
    gnupg.gpg(&["--quick-set-expire", &gnupg.fingerprint(user), "10y"]);
    assert!(judge(&gnupg.exported(&[user]), &signature).is_ok(), "its owner moved the end");
}

#[test]
fn a_revoked_key_signs_nothing_whether_the_revocation_is_in_the_key_or_lies_beside_it() {
    let gnupg = Gnupg::new();
    let ann = gnupg.key("Ann <ann@example.org>", "ed25519", &[]);
    let (before, signature) = (gnupg.exported(&[&ann]), gnupg.sign(&ann, TEXT, &[]));
    assert!(judge(&before, &signature).is_ok());
    let revocation = gnupg.revocation(&ann);
    let beside = [before.clone(), revocation.clone().into_bytes()].concat();
    std::fs::write(gnupg.path("revocation"), revocation).unwrap();
    gnupg.gpg(&["--import", gnupg.path("revocation").to_str().unwrap()]);
    for keyring in [gnupg.exported(&[&ann]), beside] {
        let error = judge(&keyring, &signature).unwrap_err();
        assert!(matches!(error, TrustError::Revoked { .. }), "{error}");
    }
}

#[test]
fn a_signing_subkey_speaks_for_its_key_until_it_ends_or_is_revoked() {
    let gnupg = Gnupg::new();
    let user = "Ann <ann@example.org>";
    gnupg.gpg(&["--quick-generate-key", user, "ed25519", "cert"]);
    let ann = gnupg.fingerprint(user);
    gnupg.gpg(&["--quick-add-key", &ann, "cv25519", "encr"]);
    gnupg.gpg(&["--quick-add-key", &ann, "ed25519", "sign", "1y"]);
    let subkey = gnupg.fingerprints(user).remove(2);
    let signature = gnupg.sign(&format!("{subkey}!"), TEXT, &["--armor"]);
    let keyring = gnupg.exported(&[&ann]);
    assert_eq!(judge(&keyring, &signature).unwrap().to_string(), format!("{user} ({ann})"));
    let in_two_years = now() + jiff::SignedDuration::from_hours(24 * 730);
    assert!(matches!(judge_at(&keyring, &signature, in_two_years), Err(TrustError::Expired { .. })));
    gnupg.gpg_told("key 2\nrevkey\ny\n0\n\ny\nsave\n", &["--command-fd", "0", "--no-batch", "--edit-key", &ann]);
    let error = judge(&gnupg.exported(&[&ann]), &signature).unwrap_err();
    assert_eq!(error.to_string(), format!("the key {subkey} of {user} is revoked"));
}

#[test]
fn weak_hashes_and_signatures_that_end_are_refused_also_where_gpg_makes_them() {
    let gnupg = Gnupg::new();
    let ann = gnupg.key("Ann <ann@example.org>", "rsa2048", &[]);
    let keyring = gnupg.exported(&[&ann]);
    let error = judge(&keyring, &gnupg.sign(&ann, TEXT, &["--digest-algo", "SHA1"])).unwrap_err().to_string();
    assert!(error.contains("hash \"SHA-1\""), "{error}");
    let ended = gnupg.sign(&ann, TEXT, &["--default-sig-expire", "1d"]);
    assert!(judge(&keyring, &ended).is_ok());
    let error = judge_at(&keyring, &ended, now() + jiff::SignedDuration::from_hours(48)).unwrap_err();
    assert!(matches!(error, TrustError::SignatureExpired { .. }), "{error}");
    let error = judge(&keyring, &gnupg.sign(&ann, TEXT, &["--textmode"])).unwrap_err().to_string();
    assert!(error.contains("text mode"), "{error}");
    let old = gnupg.key("Old <old@example.org>", "rsa2048", &["--cert-digest-algo", "SHA1"]);
    let error = judge(&gnupg.exported(&[&old]), &gnupg.sign(&old, TEXT, &[])).unwrap_err().to_string();
    assert!(error.contains("no self-signature with SHA-256 or better"), "{error}");
}

#[test]
fn keys_that_cannot_be_verified_with_and_private_ones_say_so() {
    let gnupg = Gnupg::new();
    for (algorithm, word) in [("dsa2048", "DSA"), ("brainpoolP256r1", "curve"), ("rsa1024", "2048 to 8192")] {
        let key = gnupg.key(algorithm, algorithm, &[]);
        let error = judge(&gnupg.exported(&[&key]), &gnupg.sign(&key, TEXT, &[])).unwrap_err().to_string();
        assert!(error.contains(word), "{algorithm}: {error}");
    }
    for armour in [&["--armor"][..], &[]] {
        let private = gnupg.gpg(&[armour, &["--export-secret-keys"]].concat());
        assert!(Keyring::parse(&private).unwrap_err().to_string().contains("private keys"));
    }
    let keybox = std::fs::read(gnupg.path("pubring.kbx")).unwrap();
    assert!(Keyring::parse(&keybox).unwrap_err().to_string().contains("gpg --export"));
}

/// A control of the tests, no verdict on podstead: gpg judges the same signatures of the same keys alike.
#[test]
fn gpg_itself_agrees_about_good_and_bad() {
    let gnupg = Gnupg::new();
    let ann = gnupg.key("Ann <ann@example.org>", "ed25519", &[]);
    let (keyring, signature) = (gnupg.exported(&[&ann]), gnupg.sign(&ann, TEXT, &[]));
    std::fs::write(gnupg.path("text.sig"), &signature).unwrap();
    for text in [TEXT, b"kind: Pid\n"] {
        std::fs::write(gnupg.path("text"), text).unwrap();
        let mut command = Command::new("gpg");
        command.args(["--batch", "--quiet", "--verify"]).args([gnupg.path("text.sig"), gnupg.path("text")]);
        let verdict = command.env("GNUPGHOME", gnupg.home()).output().unwrap().status.success();
        assert_eq!(Keyring::parse(&keyring).unwrap().verify(text, &signature, now()).is_ok(), verdict);
        assert_eq!(verdict, text == TEXT);
    }
}
