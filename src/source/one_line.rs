//! Texts of others for one cell of a table. **Pure**.

/// Characters that are kept.
const MAX: usize = 200;

/// The text in one line: bounded, without control characters, which could drive a terminal.
pub(crate) fn one_line(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.trim().chars().map(|c| if c.is_control() { ' ' } else { c }).take(MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_has_no_control_characters() {
        assert_eq!(one_line(b" a\nb\x1b[31m\xff "), "a b [31m\u{fffd}");
        assert_eq!(one_line("x".repeat(300).as_bytes()).len(), MAX);
    }
}
