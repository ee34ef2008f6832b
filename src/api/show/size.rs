//! Sizes and digests, short enough for a column.

pub use podstead_settings::size::human as human_size;

/// The first twelve digits of a digest, without `sha256:`.
pub fn short_digest(digest: &str) -> &str {
    let digits = digest.split_once(':').map_or(digest, |(_, digits)| digits);
    digits.get(..12).unwrap_or(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_one_decimal_and_a_binary_unit() {
        let cases =
            [(0, "0B"), (1023, "1023B"), (1024, "1.0KiB"), (1536, "1.5KiB"), (24_536_680, "23.4MiB"), (u64::MAX, "16777215.9TiB")];
        for (bytes, expected) in cases {
            assert_eq!(human_size(bytes), expected);
        }
    }

    #[test]
    fn a_digest_is_cut_to_what_tells_images_apart() {
        assert_eq!(short_digest("sha256:0123456789abcdef"), "0123456789ab");
        assert_eq!(short_digest("odd"), "odd");
    }
}
