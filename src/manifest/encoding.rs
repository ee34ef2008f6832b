//! Encoding checks of a file, and of each of its documents.

use super::Limits;
use super::fault::{Fault, code};

/// Refuses a file that is too large or not text at all.
pub(super) fn check_file(bytes: &[u8], limits: &Limits) -> Result<(), Fault> {
    if bytes.len() > limits.max_bytes.min(u32::MAX as usize) {
        let message = format!("the file has {} bytes; a manifest may have at most {}", bytes.len(), limits.max_bytes);
        return Err(Fault::of_file(code::FILE_TOO_LARGE, message).hint("split it into several files"));
    }
    if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
        return Err(Fault::of_file(code::ENCODING, "the file is UTF-16 text").hint("save it as UTF-8"));
    }
    match bytes.iter().position(|byte| *byte == 0) {
        Some(at) => {
            Err(Fault::of_file(code::BINARY_FILE, format!("the file is binary (a zero byte at offset {at}), not YAML or JSON"))
                .hint("keep other files out of the manifest directory, or begin their names with a dot"))
        }
        None => Ok(()),
    }
}

/// The text of one document, which begins at byte `start` of the file.
pub(super) fn check_document(bytes: &[u8], start: usize) -> Result<&str, Fault> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = start + error.valid_up_to();
        let byte = bytes[error.valid_up_to()];
        Fault::at(code::ENCODING, at as u32, format!("not UTF-8: byte 0x{byte:02x} at offset {at} of the file"))
            .hint("save the file as UTF-8")
    })?;
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~' | b'\n' | b'\r' | b'\t')) {
        return Ok(text);
    }
    match text.char_indices().find(|(_, character)| !is_printable(*character)) {
        Some((at, character)) => {
            let message = format!("the control character U+{:04X} is not allowed", u32::from(character));
            Err(Fault::at(code::ENCODING, (start + at) as u32, message)
                .hint("remove it, or write it as an escape like \"\\x1b\" in double quotes"))
        }
        None => Ok(text),
    }
}

/// Reports whether YAML 1.1 allows the character in a file.
pub(super) fn is_printable(character: char) -> bool {
    matches!(
        character,
        '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}'
            | '\u{10000}'..='\u{10ffff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_zero_bytes_and_utf_16_refuse_the_file() {
        let limits = Limits { max_bytes: 10, ..Limits::default() };
        assert_eq!(check_file(b"0123456789", &limits), Ok(()));
        assert_eq!(check_file(b"0123456789a", &limits).unwrap_err().code, code::FILE_TOO_LARGE);
        assert_eq!(check_file(b"\x7fELF\x00", &limits).unwrap_err().code, code::BINARY_FILE);
        assert_eq!(check_file(b"\xff\xfea\x00", &limits).unwrap_err().message, "the file is UTF-16 text");
    }

    #[test]
    fn a_byte_that_is_not_utf_8_is_named_with_its_offset_in_the_file() {
        let fault = check_document(b"a: b\xe9", 100).unwrap_err();
        assert_eq!((fault.at, fault.message.as_str()), (Some(104), "not UTF-8: byte 0xe9 at offset 104 of the file"));
        let truncated = check_document("a: ü".as_bytes().split_last().unwrap().1, 0).unwrap_err();
        assert_eq!(truncated.at, Some(3));
    }

    #[test]
    fn control_characters_are_found_and_other_scripts_let_through() {
        assert_eq!(check_document(b"a: \x1b[31m", 7).unwrap_err().at, Some(10));
        assert_eq!(check_document("a: b\u{feff}".as_bytes(), 0).unwrap_err().at, Some(4));
        assert!(check_document("name: Grüße 你好 𝄞\t\r\n".as_bytes(), 0).is_ok());
    }
}
