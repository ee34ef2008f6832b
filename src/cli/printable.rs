//! Text that comes from containers, manifests and servers, as it may be put on a terminal. **Pure**.

/// Without line breaks and without what would steer the terminal: each control character is a space.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_spaces_and_all_else_stays() {
        assert_eq!(printable("a\u{1b}[31mé\tb\r\n\u{9b}c"), "a [31mé b   c");
    }
}
