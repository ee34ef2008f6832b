//! Armour around packets (RFC 9580, 6.2): base64 between lines of dashes. The checksum is not looked at: what is inside is signed.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

const DASHES: &[u8] = b"-----";
const BEGIN: &[u8] = b"-----BEGIN PGP ";

/// The packets in all blocks of `text`, one block after the other, each of the kind `kind` (`SIGNATURE`, `PUBLIC KEY BLOCK`). Outside of
/// blocks only empty lines and comments after `#` may stand: a damaged first line would otherwise hide a block.
pub(super) fn removed(text: &[u8], kind: &str) -> Result<Vec<Vec<u8>>, &'static str> {
    let mut lines = text.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii_end);
    let mut blocks = Vec::new();
    while let Some(line) = lines.next() {
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let Some(found) = line.strip_prefix(BEGIN).and_then(|rest| rest.strip_suffix(DASHES)) else {
            return Err("it contains something other than OpenPGP armour");
        };
        if found == b"PRIVATE KEY BLOCK" {
            return Err(SECRET);
        }
        if found != kind.as_bytes() {
            return Err("it contains OpenPGP armour of another type");
        }
        blocks.push(block(&mut lines, kind)?);
    }
    Ok(blocks)
}

/// Error for a keyring with private keys.
pub(super) const SECRET: &str =
    "it contains private keys, which must not be on this host; export the public keys with gpg --export";

/// Decodes the lines between the first and the last one.
fn block<'a>(lines: &mut impl Iterator<Item = &'a [u8]>, kind: &str) -> Result<Vec<u8>, &'static str> {
    let end = format!("-----END PGP {kind}-----");
    let mut encoded = Vec::new();
    let (mut in_headers, mut is_at_checksum) = (true, false);
    for line in lines {
        if line == end.as_bytes() {
            return STANDARD.decode(encoded).map_err(|_| "its armour is not base64");
        }
        if in_headers {
            // Headers such as `Comment: x` end with an empty line, which some writers leave out where there are none.
            in_headers = line.contains(&b':');
            if in_headers || line.is_empty() {
                continue;
            }
        }
        match line.strip_prefix(b"=") {
            _ if is_at_checksum => return Err("its armour has data after the checksum"),
            Some(_) => is_at_checksum = true,
            None => encoded.extend_from_slice(line),
        }
    }
    Err("its armour has no end line")
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: &str = "SIGNATURE";

    fn text(inner: &str) -> String {
        format!("-----BEGIN PGP SIGNATURE-----\n{inner}-----END PGP SIGNATURE-----\n")
    }

    #[test]
    fn blocks_may_have_headers_and_a_checksum_and_follow_each_other() {
        for inner in ["\nQUJD\n=abcd\n", "QUJD\n", "Version: x\r\nComment: y\r\n\r\nQU\r\nJD\r\n", "\nQUJD\n\n"] {
            assert_eq!(removed(text(inner).as_bytes(), KIND).unwrap(), [b"ABC"], "{inner:?}");
        }
        let two = format!("# ann\n{}\n{}", text("\nQUJD\n"), text("\nREVG\n"));
        assert_eq!(removed(two.as_bytes(), KIND).unwrap(), [b"ABC", b"DEF"]);
    }

    #[test]
    fn what_is_not_wholly_armour_is_refused() {
        let good = text("\nQUJD\n");
        for (bad, word) in [
            (good.replace("-----END PGP SIGNATURE-----\n", ""), "has no end line"),
            (good.replace("-----BEGIN", "----BEGIN"), "something other"),
            (format!("{good}x\n"), "something other"),
            (good.replace("QUJD", "QU*D"), "base64"),
            (good.replace("QUJD", "QUJD\n=abcd\nQUJD"), "after the checksum"),
            (good.replace("SIGNATURE", "MESSAGE"), "another type"),
            (good.replace("SIGNATURE", "PRIVATE KEY BLOCK"), "private keys"),
        ] {
            let problem = removed(bad.as_bytes(), KIND).unwrap_err();
            assert!(problem.contains(word), "{problem}: {bad}");
        }
    }
}
