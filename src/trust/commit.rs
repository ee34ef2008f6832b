//! Signed payload and signature of the raw bytes of a git commit or annotated tag.
//!
//! Git signs a commit without its `gpgsig` header, and a tag without the signature at its end. Where git is lenient (several signatures,
//! headers of another hash), this refuses: what is verified and what is read must be the same bytes without doubt.

use super::TrustError;
use super::{openpgp, sshsig};
use jiff::Timestamp;

/// Bytes of a commit or tag object; message and signature included.
const MAX_OBJECT: usize = 1 << 20;
/// First lines of supported signatures.
const FORMATS: &[&[u8]] = &[sshsig::BEGIN, openpgp::BEGIN];
/// First lines of signatures in other formats.
const OTHER_FORMATS: &[(&[u8], &str)] =
    &[(b"-----BEGIN PGP MESSAGE-----", "an OpenPGP message"), (b"-----BEGIN SIGNED MESSAGE-----", "an X.509 signature")];

/// Kind of a signed object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ObjectKind {
    /// A commit.
    Commit,
    /// An annotated tag. A signature over a tag vouches for nothing unless these two were compared with what was asked for: otherwise the
    /// tag of an old release would pass under the name of a new one.
    Tag {
        /// The name that was signed, without `refs/tags/`.
        name: String,
        /// The object that the tag points at, in hexadecimal digits.
        target: String,
    },
}

/// A signed object, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedParts {
    /// Kind of the object.
    pub kind: ObjectKind,
    /// The bytes that were signed.
    pub payload: Vec<u8>,
    /// The armoured signature over them.
    pub signature: Vec<u8>,
    /// Time that the committer or tagger states. Covered by the signature.
    pub stated_at: Timestamp,
}

/// Splits a raw object (without git's own `commit 123\0` in front). The signature is one of SSH or OpenPGP; whether it
/// matches is for [`super::Trusted`].
pub fn signed_parts(raw: &[u8]) -> Result<SignedParts, TrustError> {
    if raw.len() > MAX_OBJECT {
        return Err(TrustError::TooLarge { what: "the object", limit: MAX_OBJECT });
    }
    match raw {
        _ if raw.starts_with(b"tree ") => commit(raw),
        _ if raw.starts_with(b"object ") => tag(raw),
        _ => Err(TrustError::MalformedObject { what: "object", fault: "it is neither a commit nor a tag" }),
    }
}

fn commit(raw: &[u8]) -> Result<SignedParts, TrustError> {
    let malformed = |fault| TrustError::MalformedObject { what: "commit", fault };
    let (mut payload, mut signature, mut stated_at) = (Vec::with_capacity(raw.len()), None::<Vec<u8>>, None);
    let mut in_signature = false;
    let mut rest = raw;
    loop {
        let (line, after) = split_line(rest).ok_or_else(|| malformed("its headers do not end"))?;
        if line == b"\n" {
            payload.extend_from_slice(rest);
            break;
        }
        rest = after;
        match (line.strip_prefix(b" "), &mut signature) {
            (Some(more), Some(signature)) if in_signature => {
                signature.extend_from_slice(more);
                continue;
            }
            _ => in_signature = false,
        }
        if let Some(first) = line.strip_prefix(b"gpgsig ") {
            if signature.replace(first.to_vec()).is_some() {
                return Err(malformed("it has more than one signature"));
            }
            in_signature = true;
        } else if line.starts_with(b"gpgsig") {
            return Err(malformed("it has a signature for SHA-256 repositories, which are not supported"));
        } else {
            if let Some(person) = line.strip_prefix(b"committer ") {
                let time = time_of(person).ok_or_else(|| malformed("its committer has no time"))?;
                if stated_at.replace(time).is_some() {
                    return Err(malformed("it has more than one committer"));
                }
            }
            payload.extend_from_slice(line);
        }
    }
    let signature = taken(signature.ok_or(TrustError::Unsigned)?)?;
    let stated_at = stated_at.ok_or_else(|| malformed("it has no committer"))?;
    Ok(SignedParts { kind: ObjectKind::Commit, payload, signature, stated_at })
}

fn tag(raw: &[u8]) -> Result<SignedParts, TrustError> {
    let malformed = |fault| TrustError::MalformedObject { what: "tag", fault };
    let (mut target, mut name, mut stated_at) = (None, None, None);
    let mut rest = raw;
    loop {
        let (line, after) = split_line(rest).ok_or_else(|| malformed("its headers do not end"))?;
        rest = after;
        let header = line.strip_suffix(b"\n").unwrap_or(line);
        let repeated = match header {
            b"" => break,
            _ if header.starts_with(b"gpgsig") => {
                return Err(malformed("it has a signature for SHA-256 repositories, which are not supported"));
            }
            [b'o', b'b', b'j', b'e', b'c', b't', b' ', hex @ ..] => target.replace(text(hex)).is_some(),
            [b't', b'a', b'g', b' ', tag @ ..] => name.replace(text(tag)).is_some(),
            [b't', b'a', b'g', b'g', b'e', b'r', b' ', person @ ..] => {
                let time = time_of(person).ok_or_else(|| malformed("its tagger has no time"))?;
                stated_at.replace(time).is_some()
            }
            _ => false,
        };
        if repeated {
            return Err(malformed("it has a duplicate header"));
        }
    }
    let message = raw.len() - rest.len();
    let start = message + signature_start(rest).ok_or(TrustError::Unsigned)?;
    let (payload, signature) = raw.split_at(start);
    let signature = taken(signature.to_vec())?;
    let missing = || malformed("it lacks its object, name or tagger");
    let kind = ObjectKind::Tag { name: name.flatten().ok_or_else(missing)?, target: target.flatten().ok_or_else(missing)? };
    Ok(SignedParts { kind, payload: payload.to_vec(), signature, stated_at: stated_at.ok_or_else(missing)? })
}

/// The first line with its end, and the rest; `None` where no line ends.
fn split_line(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    bytes.iter().position(|byte| *byte == b'\n').map(|end| bytes.split_at(end + 1))
}

fn text(bytes: &[u8]) -> Option<String> {
    std::str::from_utf8(bytes).ok().map(str::to_owned)
}

/// Offset of the last signature in a tag's message, as git finds it.
fn signature_start(message: &[u8]) -> Option<usize> {
    let is_start = |line: &[u8]| {
        FORMATS.iter().copied().chain(OTHER_FORMATS.iter().map(|(begin, _)| *begin)).any(|begin| line.starts_with(begin))
    };
    let (mut at, mut found) = (0, None);
    for line in message.split_inclusive(|byte| *byte == b'\n') {
        if is_start(line) {
            found = Some(at);
        }
        at += line.len();
    }
    found
}

fn taken(signature: Vec<u8>) -> Result<Vec<u8>, TrustError> {
    match OTHER_FORMATS.iter().find(|(begin, _)| signature.starts_with(begin)) {
        Some((_, format)) => Err(TrustError::OtherFormat { format }),
        None if FORMATS.iter().any(|begin| signature.starts_with(begin)) => Ok(signature),
        None => Err(TrustError::OtherFormat { format: "a signature of an unknown format" }),
    }
}

/// The time in `Name <address> 1700000000 +0100`.
fn time_of(person: &[u8]) -> Option<Timestamp> {
    let after_address = person.rsplit(|byte| *byte == b'>').next()?;
    let seconds = std::str::from_utf8(after_address).ok()?.split_ascii_whitespace().next()?;
    // Git's own times are not negative.
    Timestamp::from_second(i64::from(seconds.parse::<u32>().ok()?)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIGNATURE: &str = "-----BEGIN SSH SIGNATURE-----\nQUJD\n-----END SSH SIGNATURE-----\n";
    const HEADERS: &str = "tree 1\nparent 2\nauthor A <a@b> 1 +0000\ncommitter C <c@d> 1700000000 +0100\n";
    const TAG: &str = "object 12ab\ntype commit\ntag v1\ntagger C <c@d> 1700000000 +0100\n\nmessage\n";

    fn folded(header: &str, signature: &str) -> String {
        format!("{header} {}\n", signature.trim_end().replace('\n', "\n "))
    }

    fn commit_with(more: &str) -> String {
        format!("{HEADERS}{more}encoding x\n y\n\nsubject\n\n gpgsig no header\n")
    }

    #[test]
    fn the_signature_is_taken_out_of_a_commit_and_nothing_else_is() {
        let parts = signed_parts(commit_with(&folded("gpgsig", SIGNATURE)).as_bytes()).unwrap();
        assert_eq!(parts.kind, ObjectKind::Commit);
        assert_eq!(String::from_utf8(parts.payload).unwrap(), commit_with(""));
        assert_eq!(String::from_utf8(parts.signature).unwrap(), SIGNATURE);
        assert_eq!(parts.stated_at.as_second(), 1_700_000_000);
    }

    #[test]
    fn the_signature_at_the_end_of_a_tag_is_the_last_one() {
        let parts = signed_parts(format!("{TAG}{SIGNATURE}{SIGNATURE}").as_bytes()).unwrap();
        assert_eq!(parts.kind, ObjectKind::Tag { name: "v1".into(), target: "12ab".into() });
        assert_eq!(String::from_utf8(parts.payload).unwrap(), format!("{TAG}{SIGNATURE}"));
        assert_eq!(String::from_utf8(parts.signature).unwrap(), SIGNATURE);
        assert_eq!(parts.stated_at.as_second(), 1_700_000_000);
    }

    #[test]
    fn what_is_not_signed_says_so() {
        for unsigned in [commit_with(""), TAG.to_owned(), format!("{TAG} {SIGNATURE}")] {
            assert_eq!(signed_parts(unsigned.as_bytes()), Err(TrustError::Unsigned), "{unsigned}");
        }
    }

    #[test]
    fn other_formats_are_recognised() {
        let pgp = SIGNATURE.replace("SSH", "PGP");
        for other in [commit_with(&folded("gpgsig", &pgp)), format!("{TAG}{pgp}")] {
            assert_eq!(String::from_utf8(signed_parts(other.as_bytes()).unwrap().signature).unwrap(), pgp);
        }
        let x509 = commit_with("gpgsig -----BEGIN SIGNED MESSAGE-----\n");
        assert_eq!(signed_parts(x509.as_bytes()), Err(TrustError::OtherFormat { format: "an X.509 signature" }));
    }

    #[test]
    fn doubtful_objects_are_refused() {
        let one = folded("gpgsig", SIGNATURE);
        for (raw, word) in [
            (commit_with(&format!("{one}{one}")), "more than one signature"),
            (commit_with(&format!("{one}{}", folded("gpgsig-sha256", SIGNATURE))), "SHA-256"),
            (commit_with(&folded("gpgsig-sha256", SIGNATURE)), "SHA-256"),
            (
                format!("gpgsig-sha256 x\n{TAG}").replacen("gpgsig-sha256 x\nobject 12ab\n", "object 12ab\ngpgsig-sha256 x\n", 1),
                "SHA-256",
            ),
            (format!("{HEADERS}{one}"), "headers do not end"),
            (format!("tree 1\n{one}\nx\n"), "no committer"),
            (format!("tree 1\ncommitter C <c@d> x\n{one}\nx\n"), "no time"),
            (format!("{HEADERS}committer D <c@d> 1 +0000\n{one}\nx\n"), "more than one committer"),
            (TAG.replace("tag v1\n", "") + SIGNATURE, "lacks"),
            (TAG.replace("tag v1\n", "tag v1\ntag v2\n") + SIGNATURE, "duplicate header"),
            ("blob".to_owned(), "neither"),
        ] {
            let error = signed_parts(raw.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(word), "{error}: {raw}");
        }
        assert!(matches!(signed_parts(&vec![b' '; MAX_OBJECT + 1]), Err(TrustError::TooLarge { .. })));
    }

    #[test]
    fn a_signed_tag_inside_a_merge_is_no_signature_of_the_commit() {
        let merged = folded("mergetag", &format!("{TAG}gpgsig x\n{SIGNATURE}"));
        assert_eq!(signed_parts(commit_with(&merged).as_bytes()), Err(TrustError::Unsigned));
    }
}
