//! Keys and signatures that no program makes, put together by hand.

use super::Keyring;
use crate::TrustError;
use jiff::Timestamp;
use ring::digest::{SHA1_FOR_LEGACY_USE_ONLY, SHA256, digest};
use ring::signature::{Ed25519KeyPair, KeyPair};

const BORN: u32 = 1_700_000_000;
const TEXT: &[u8] = b"kind: Pod\n";

/// A key pair and the body of its packet.
struct Key(Ed25519KeyPair, Vec<u8>);

/// Content of a signature in addition to its creation time.
#[derive(Clone, Copy)]
struct Made<'a> {
    kind: u8,
    hash: u8,
    at: u32,
    /// Whole subpackets that are hashed.
    hashed: &'a [&'a [u8]],
}

const CERTIFICATION: Made<'_> = Made { kind: 0x13, hash: 8, at: BORN, hashed: &[] };
const DOCUMENT: Made<'_> = Made { kind: 0, hash: 8, at: BORN + 10, hashed: &[] };
const MAY_SIGN: &[u8] = &[2, 27, 2];

fn key(seed: u8) -> Key {
    let pair = Ed25519KeyPair::from_seed_unchecked(&[seed; 32]).unwrap();
    let body = [&[4][..], &BORN.to_be_bytes(), &[27], pair.public_key().as_ref()].concat();
    Key(pair, body)
}

fn framed(key: &Key) -> Vec<u8> {
    [&[0x99, 0, u8::try_from(key.1.len()).unwrap()][..], &key.1].concat()
}

fn packet(tag: u8, body: &[u8]) -> Vec<u8> {
    [&[0xc0 | tag, 255][..], &u32::try_from(body.len()).unwrap().to_be_bytes(), body].concat()
}

/// The body of a signature by `key` over these bytes, with `unhashed` subpackets beside its fingerprint.
fn signature(key: &Key, made: Made<'_>, over: &[&[u8]], unhashed: &[u8]) -> Vec<u8> {
    let fingerprint = digest(&SHA1_FOR_LEGACY_USE_ONLY, &framed(key));
    let own = [&[5, 2][..], &made.at.to_be_bytes(), &[22, 33, 4], fingerprint.as_ref(), &made.hashed.concat()].concat();
    let length = |bytes: &[u8]| u16::try_from(bytes.len()).unwrap().to_be_bytes();
    let hashed = [&[4, made.kind, 27, made.hash][..], &length(&own), &own].concat();
    let trailer = u32::try_from(hashed.len()).unwrap().to_be_bytes();
    let message = [&over.concat()[..], &hashed, &[4, 0xff], &trailer].concat();
    let value = key.0.sign(digest(&SHA256, &message).as_ref());
    [&hashed[..], &length(unhashed), unhashed, &[0, 0], value.as_ref()].concat()
}

fn user(name: &str) -> Vec<u8> {
    [&[0xb4][..], &u32::try_from(name.len()).unwrap().to_be_bytes(), name.as_bytes()].concat()
}

/// A key with one user that is certified like this, and more packets.
fn certificate(key: &Key, made: Made<'_>, more: &[Vec<u8>]) -> Vec<u8> {
    let certification = signature(key, made, &[&framed(key), &user("Ann")], &[]);
    [packet(6, &key.1), packet(13, b"Ann"), packet(2, &certification), more.concat()].concat()
}

fn plain(key: &Key) -> Vec<u8> {
    certificate(key, CERTIFICATION, &[])
}

/// A subkey that `primary` binds with these subpackets that are not hashed.
fn subkey(primary: &Key, subkey: &Key, hashed: &[u8], unhashed: &[u8]) -> Vec<u8> {
    let made = Made { kind: 0x18, hashed: &[hashed], ..CERTIFICATION };
    let binding = signature(primary, made, &[&framed(primary), &framed(subkey)], unhashed);
    [packet(14, &subkey.1), packet(2, &binding)].concat()
}

/// The subpacket with a back signature, as `of` makes it.
fn back(primary: &Key, of: &Key) -> Vec<u8> {
    let body = signature(of, Made { kind: 0x19, ..CERTIFICATION }, &[&framed(primary), &framed(of)], &[]);
    [&[u8::try_from(body.len() + 1).unwrap(), 32][..], &body].concat()
}

fn judge_at(ring: &[u8], body: &[u8], at: i64) -> Result<String, TrustError> {
    let verdict = Keyring::parse(ring).unwrap().verify(TEXT, &packet(2, body), Timestamp::from_second(at).unwrap());
    verdict.map(|signer| signer.principal)
}

fn judge(ring: &[u8], body: &[u8]) -> Result<String, TrustError> {
    judge_at(ring, body, i64::from(BORN) + 20)
}

fn document(key: &Key) -> Vec<u8> {
    signature(key, DOCUMENT, &[TEXT], &[])
}

#[test]
fn a_key_that_its_owner_speaks_for_signs_and_another_text_does_not_match() {
    let ann = key(1);
    assert_eq!(judge(&plain(&ann), &document(&ann)).unwrap(), "Ann");
    let other = judge(&plain(&ann), &signature(&ann, DOCUMENT, &[b"kind: Pid\n"], &[]));
    assert!(matches!(other, Err(TrustError::Mismatch { .. })), "{other:?}");
    let stranger = judge(&plain(&ann), &document(&key(2)));
    assert!(matches!(stranger, Err(TrustError::NotInKeyring { .. })), "{stranger:?}");
}

#[test]
fn a_key_without_a_valid_word_of_its_owner_is_of_no_use() {
    let (ann, eve) = (key(1), key(2));
    let by_eve = signature(&eve, CERTIFICATION, &[&framed(&ann), &user("Ann")], &[]);
    let forged = signature(&ann, CERTIFICATION, &[&framed(&ann), &user("Bob")], &[]);
    let weak = signature(&ann, Made { hash: 2, ..CERTIFICATION }, &[&framed(&ann), &user("Ann")], &[]);
    for (statement, word) in [(by_eve, "no valid self-signature"), (forged, "no valid self-signature"), (weak, "SHA-256 or better")]
    {
        let ring = [packet(6, &ann.1), packet(13, b"Ann"), packet(2, &statement)].concat();
        let error = judge(&ring, &document(&ann)).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
}

#[test]
fn weak_hashes_text_mode_and_unknown_demands_are_refused() {
    let ann = key(1);
    for (made, word) in [
        (Made { hash: 1, ..DOCUMENT }, "MD5"),
        (Made { hash: 2, ..DOCUMENT }, "SHA-1"),
        (Made { hash: 3, ..DOCUMENT }, "RIPEMD-160"),
        (Made { kind: 1, ..DOCUMENT }, "text mode"),
        (Made { hashed: &[&[2, 0x80 | 20, 0]], ..DOCUMENT }, "critical"),
        (Made { hashed: &[&[5, 3, 0, 0, 0, 5]], ..DOCUMENT }, "the signature expired at"),
        (Made { at: BORN - 1, ..DOCUMENT }, "created after"),
    ] {
        let error = judge(&plain(&ann), &signature(&ann, made, &[TEXT], &[])).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    assert!(judge(&plain(&ann), &signature(&ann, Made { hashed: &[&[2, 20, 0]], ..DOCUMENT }, &[TEXT], &[])).is_ok());
}

#[test]
fn the_newest_word_about_the_end_counts_and_time_that_a_signature_states_has_passed() {
    let ann = key(1);
    let ends = Made { hashed: &[&[5, 9, 0, 0, 0, 100]], ..CERTIFICATION };
    let renewed = signature(&ann, Made { at: BORN + 50, ..CERTIFICATION }, &[&framed(&ann), &user("Ann")], &[]);
    let renewed = certificate(&ann, ends, &[packet(2, &renewed)]);
    let ring = certificate(&ann, ends, &[]);
    let born = i64::from(BORN);
    assert!(judge_at(&ring, &document(&ann), born + 99).is_ok());
    assert!(matches!(judge_at(&ring, &document(&ann), born + 100), Err(TrustError::Expired { .. })));
    assert!(judge_at(&renewed, &document(&ann), born + 100).is_ok());
    assert!(judge_at(&ring, &document(&ann), 0).is_ok(), "a clock of 1970 harms no key that has not ended");
    let late = signature(&ann, Made { at: BORN + 100, ..DOCUMENT }, &[TEXT], &[]);
    assert!(matches!(judge_at(&ring, &late, 0), Err(TrustError::Expired { .. })), "nor does it bring one back");
}

#[test]
fn a_revocation_counts_wherever_it_stands_and_also_where_it_cannot_be_verified() {
    let ann = key(1);
    let made = |hash| Made { kind: 0x20, hash, ..CERTIFICATION };
    let revocation = packet(2, &signature(&ann, made(8), &[&framed(&ann)], &[]));
    let weak = packet(2, &signature(&ann, made(2), &[&framed(&ann)], &[]));
    let old = packet(2, &[3, 5, 0x20, 0, 0, 0, 0]);
    let again = [plain(&ann), packet(6, &ann.1), revocation.clone()].concat();
    let rings = [
        [packet(6, &ann.1), revocation.clone(), plain(&ann)].concat(),
        certificate(&ann, CERTIFICATION, std::slice::from_ref(&revocation)),
        [revocation, plain(&ann)].concat(),
        again,
        certificate(&ann, CERTIFICATION, &[weak]),
        certificate(&ann, CERTIFICATION, &[old]),
    ];
    for (number, ring) in rings.iter().enumerate() {
        let verdict = judge(ring, &document(&ann));
        assert!(matches!(verdict, Err(TrustError::Revoked { .. })), "{number}: {verdict:?}");
    }
    let forged = packet(2, &signature(&ann, made(8), &[b"something else"], &[]));
    assert!(judge(&certificate(&ann, CERTIFICATION, &[forged]), &document(&ann)).is_ok());
}

#[test]
fn another_key_revokes_only_where_the_owner_said_so() {
    let (ann, bob) = (key(1), key(2));
    let fingerprint = digest(&SHA1_FOR_LEGACY_USE_ONLY, &framed(&bob));
    let revoker = [&[23, 12, 0x80, 22][..], fingerprint.as_ref()].concat();
    let named =
        packet(2, &signature(&ann, Made { kind: 0x1f, at: BORN + 1, hashed: &[&revoker], ..CERTIFICATION }, &[&framed(&ann)], &[]));
    let by_bob = packet(2, &signature(&bob, Made { kind: 0x20, ..CERTIFICATION }, &[&framed(&ann)], &[]));
    let ring = |more: &[&[u8]]| [&packet(6, &ann.1)[..], &more.concat(), &plain(&ann)[packet(6, &ann.1).len()..]].concat();
    assert!(judge(&ring(&[&by_bob]), &document(&ann)).is_ok());
    assert!(judge(&ring(&[&named]), &document(&ann)).is_ok());
    assert!(matches!(judge(&ring(&[&named, &by_bob]), &document(&ann)), Err(TrustError::Revoked { .. })));
}

#[test]
fn a_subkey_must_be_bound_for_signing_and_agree_to_it() {
    let (ann, sub) = (key(1), key(3));
    let ring = |subkey: Vec<u8>| certificate(&ann, CERTIFICATION, &[subkey]);
    let good = subkey(&ann, &sub, MAY_SIGN, &back(&ann, &sub));
    assert_eq!(judge(&ring(good.clone()), &document(&sub)).unwrap(), "Ann");
    for (subkey, word) in [
        (subkey(&ann, &sub, MAY_SIGN, &[]), "without a signature that binds it"),
        (subkey(&ann, &sub, MAY_SIGN, &back(&ann, &key(4))), "without a signature that binds it"),
        (subkey(&ann, &sub, &[2, 27, 12], &back(&ann, &sub)), "not for signing"),
        (subkey(&ann, &sub, &[2, 30, 1], &back(&ann, &sub)), "not for signing"),
        (subkey(&key(5), &sub, MAY_SIGN, &back(&ann, &sub)), "no valid self-signature"),
    ] {
        let error = judge(&ring(subkey), &document(&sub)).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    let made = Made { kind: 0x28, ..CERTIFICATION };
    let revocation = signature(&ann, made, &[&framed(&ann), &framed(&sub)], &[]);
    let revoked = ring([good, packet(2, &revocation)].concat());
    assert!(matches!(judge(&revoked, &document(&sub)), Err(TrustError::Revoked { .. })));
    assert!(judge(&revoked, &document(&ann)).is_ok(), "the key itself goes on");
}

#[test]
fn a_key_that_only_certifies_signs_nothing() {
    let ann = key(1);
    let ring = certificate(&ann, Made { hashed: &[&[2, 27, 1]], ..CERTIFICATION }, &[]);
    assert!(judge(&ring, &document(&ann)).unwrap_err().to_string().contains("not for signing"));
}

#[test]
fn what_is_no_keyring_says_what_it_is() {
    let ann = key(1);
    for (bytes, word) in [
        (Vec::new(), "no key"),
        (b"# nobody\n".to_vec(), "no key"),
        (b"ann@example.org ssh-ed25519 AAAA\n".to_vec(), "something other"),
        (packet(5, &ann.1), "private keys"),
        (packet(13, b"Ann"), "does not start with a key"),
        ([plain(&ann), packet(8, b"x")].concat(), "something other than keys"),
        (packet(6, &[6]), "a version other than 4"),
        (packet(6, &[4, 0, 0, 0, 0]), "truncated"),
        (plain(&ann)[..60].to_vec(), "truncated"),
        (b"\0\0\0\x20\x01\x01\0\x02KBXf".to_vec(), "gpg --export"),
        (vec![0x99; (4 << 20) + 1], "larger"),
    ] {
        let problem = Keyring::parse(&bytes).unwrap_err().to_string();
        assert!(problem.contains(word), "{problem}: {word}");
    }
}

#[test]
fn what_is_not_one_signature_is_refused() {
    let ann = key(1);
    let one = packet(2, &document(&ann));
    let ring = Keyring::parse(&plain(&ann)).unwrap();
    for (bytes, word) in [
        ([one.clone(), one.clone()].concat(), "exactly one"),
        (packet(6, &ann.1), "exactly one"),
        (one[..one.len() - 1].to_vec(), "truncated"),
        (packet(2, &[3; 20]), "its version is not 4"),
        (vec![0x88; (16 << 10) + 1], "larger"),
        (b"-----BEGIN PGP MESSAGE-----\n".to_vec(), "another type"),
    ] {
        let error = ring.verify(TEXT, &bytes, Timestamp::UNIX_EPOCH).unwrap_err().to_string();
        assert!(error.contains(word), "{error}: {word}");
    }
}
