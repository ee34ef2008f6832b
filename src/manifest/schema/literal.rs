//! Strings with a syntax of their own: quantities, times, base64. Each check answers with what is wrong and what to write.

/// Problem of a literal, and a remedy if there is one.
pub(super) type Objection = (String, Option<String>);

/// Suffixes of quantities.
const SUFFIXES: &[&str] = &["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// A Kubernetes quantity: `100m`, `0.5`, `64Mi`, `1e3`.
pub(super) fn quantity(text: &str) -> Result<(), Objection> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let number = &unsigned[..unsigned.bytes().take_while(|byte| byte.is_ascii_digit() || *byte == b'.').count()];
    let suffix = &unsigned[number.len()..];
    let is_number = number.bytes().any(|byte| byte.is_ascii_digit()) && number.matches('.').count() <= 1;
    if is_number && (SUFFIXES.contains(&suffix) || is_exponent(suffix)) {
        return Ok(());
    }
    let hint = (is_number && !text.starts_with('-')).then(|| corrected_suffix(suffix)).flatten();
    let hint = hint.map(|suffixes| suffixes.iter().map(|suffix| format!("{number}{suffix}")).collect::<Vec<_>>().join(" or "));
    let hint = hint.unwrap_or_else(|| "write a number with one of n u m k M G T P E Ki Mi Gi Ti Pi Ei, without a blank".to_owned());
    Err((format!("{} is not a quantity", crate::fault::quoted(text)), Some(hint)))
}

fn is_exponent(suffix: &str) -> bool {
    let Some(digits) = suffix.strip_prefix(['e', 'E']) else { return false };
    let digits = digits.strip_prefix(['+', '-']).unwrap_or(digits);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the suffixes that a misspelt one may stand for.
fn corrected_suffix(suffix: &str) -> Option<&'static [&'static str]> {
    let suffix = suffix.trim().to_ascii_lowercase();
    match suffix.strip_suffix('b').or(suffix.strip_suffix("byte")).or(suffix.strip_suffix("bytes")).unwrap_or(&suffix) {
        "" => Some(&[""]),
        "k" => Some(&["k", "Ki"]),
        "ki" => Some(&["Ki"]),
        "m" => Some(&["M", "Mi"]),
        "mi" => Some(&["Mi"]),
        "g" => Some(&["G", "Gi"]),
        "gi" => Some(&["Gi"]),
        "t" => Some(&["T", "Ti"]),
        "ti" => Some(&["Ti"]),
        _ => None,
    }
}

/// An RFC 3339 time.
pub(super) fn time(text: &str) -> Result<(), Objection> {
    let bytes = text.as_bytes();
    let separators = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':')];
    let shape = separators.iter().all(|(at, separator)| bytes.get(*at) == Some(separator))
        && (text.ends_with('Z') || bytes.len() > 6 && matches!(bytes[bytes.len() - 6], b'+' | b'-'));
    if shape && text.parse::<jiff::Timestamp>().is_ok() {
        return Ok(());
    }
    let message = format!("{} is not a time", crate::fault::quoted(text));
    Err((message, Some("write it as 2006-01-02T15:04:05Z".to_owned())))
}

/// Standard base64 with padding. Line breaks do not count.
pub(super) fn base64(text: &str) -> Result<(), Objection> {
    let objection = |reason: String| Err((format!("not base64: {reason}"), Some("put plain text into stringData".to_owned())));
    let (mut length, mut padding, mut last) = (0_usize, 0_usize, 0);
    for character in text.chars() {
        let value = match character {
            '\n' | '\r' => continue,
            'A'..='Z' => u32::from(character) - u32::from('A'),
            'a'..='z' => u32::from(character) - u32::from('a') + 26,
            '0'..='9' => u32::from(character) - u32::from('0') + 52,
            '+' => 62,
            '/' => 63,
            '=' => {
                padding += 1;
                continue;
            }
            other => return objection(format!("invalid character {other:?}")),
        };
        if padding > 0 {
            return objection("there is text after the padding".to_owned());
        }
        (length, last) = (length + 1, value);
    }
    let (expected_padding, unused_bits) = match length % 4 {
        0 => (0, 0),
        2 => (2, 0b1111),
        3 => (1, 0b11),
        _ => return objection("its length is not possible".to_owned()),
    };
    if padding != expected_padding {
        return objection(format!("it ends with {padding} `=` instead of {expected_padding}"));
    }
    if last & unused_bits != 0 {
        return objection("its last character has unused bits set".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_numbers_with_a_known_suffix() {
        for good in ["0", "1", "100m", "0.5", ".5", "5.", "64Mi", "1e3", "1E-3", "+1", "-2Gi", "12E", "3n", "0.1u", "12e+3"] {
            assert_eq!(quantity(good), Ok(()), "{good}");
        }
        for bad in ["", "-", ".", "1.2.3", "1 Gi", "64mb", "0,5", "1e", "1Kib", "Mi", "--1", "1mi", "1K", "ten", "1e3Mi"] {
            assert!(quantity(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_wrong_suffix_is_answered_with_the_right_ones() {
        assert_eq!(quantity("512MB").unwrap_err().1.unwrap(), "512M or 512Mi");
        assert_eq!(quantity("1 gib").unwrap_err().1.unwrap(), "1Gi");
        assert_eq!(quantity("10K").unwrap_err().1.unwrap(), "10k or 10Ki");
        assert!(quantity("ten").unwrap_err().1.unwrap().starts_with("write a number with one of"));
    }

    #[test]
    fn times_are_rfc_3339() {
        for good in ["2024-05-01T12:00:00Z", "2024-05-01T12:00:00.123456Z", "2024-05-01T12:00:00+02:00"] {
            assert_eq!(time(good), Ok(()), "{good}");
        }
        for bad in ["", "2024-05-01", "2024-05-01 12:00:00Z", "2024-13-01T12:00:00Z", "2024-05-01T12:00:00", "yesterday"] {
            assert!(time(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn base64_is_padded_and_canonical() {
        for good in ["", "YQ==", "YWI=", "YWJj", "YWJj\nYWJj", "+/+/"] {
            assert_eq!(base64(good), Ok(()), "{good}");
        }
        for bad in ["Y", "YQ", "YQ=", "YQ===", "YR==", "Y Q=", "YQ==YQ==", "password!", "YW-_"] {
            assert!(base64(bad).is_err(), "{bad}");
        }
    }
}
