//! Sizes in bytes, written as Kubernetes writes them: `10Mi`, `1G`, `65536`.

/// Bytes of a written size; `None` when it is not one. Binary suffixes Ki, Mi, Gi and decimal ones k, M, G; no fractions.
pub fn parse(text: &str) -> Option<u64> {
    const SUFFIXES: [(&str, u64); 6] =
        [("Ki", 1 << 10), ("Mi", 1 << 20), ("Gi", 1 << 30), ("k", 1_000), ("M", 1_000_000), ("G", 1_000_000_000)];
    let (digits, factor) =
        SUFFIXES.iter().find_map(|(suffix, factor)| text.strip_suffix(suffix).map(|digits| (digits, *factor))).unwrap_or((text, 1));
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// The shortest writing that [`parse`] reads as `bytes`, with binary suffixes.
pub fn format(bytes: u64) -> String {
    for (suffix, factor) in [("Gi", 1u64 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)] {
        if bytes != 0 && bytes.is_multiple_of(factor) {
            return format!("{}{suffix}", bytes / factor);
        }
    }
    bytes.to_string()
}

/// `512B`, `1.5KiB`, `23.4MiB`, `1.2GiB`.
pub fn human(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    match UNITS.iter().find(|(_, factor)| bytes >= *factor) {
        // Tenths in integers: u128 so that the multiplication cannot overflow.
        Some((unit, factor)) => {
            let tenths = u128::from(bytes) * 10 / u128::from(*factor);
            format!("{}.{}{unit}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_and_without_suffix() {
        let cases = [("10Mi", 10 << 20), ("1G", 1_000_000_000), ("4k", 4000), ("2Ki", 2048), ("65536", 65536), ("0", 0)];
        for (text, bytes) in cases {
            assert_eq!(parse(text), Some(bytes), "{text}");
        }
        for text in ["", "Mi", "10MB", "-1", "1.5Gi", "99999999999Gi", " 1", "+1"] {
            assert_eq!(parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_formatted_size_is_read_back() {
        for bytes in [0, 1, 1024, 10 << 20, 3 << 30, 1_000_000] {
            assert_eq!(parse(&format(bytes)), Some(bytes));
        }
        assert_eq!(format(10 << 20), "10Mi");
    }
}
