//! Text in the width of a terminal, without cut words. **Pure** but for [`terminal_width`].

use rustix::termios::tcgetwinsize;
use std::borrow::Cow;
use std::io;
use std::sync::OnceLock;

/// Narrower than this, lines are left as they are.
const MIN_WIDTH: usize = 40;
/// Characters that a word may be broken after, if it has something before them.
const BREAKS: [char; 4] = ['/', ',', '@', '('];
/// Length of what stands before a break in a word.
const MIN_PIECE: usize = 4;

static WIDTH: OnceLock<Option<usize>> = OnceLock::new();

/// Reads the width of the output once: `COLUMNS`, or that of the terminal. Without either, lines may have any length, as scripts want them.
pub(super) fn read_terminal_width() {
    WIDTH.get_or_init(|| {
        let written = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
        let of_terminal = || tcgetwinsize(io::stdout()).ok().map(|size| usize::from(size.ws_col));
        written.or_else(of_terminal).filter(|width| *width >= MIN_WIDTH)
    });
}

/// Width of the output; `None` if lines may have any length.
pub(super) fn terminal_width() -> Option<usize> {
    WIDTH.get().copied().flatten()
}

/// Number of characters that are seen: colours are not.
fn visible_width(text: &str) -> usize {
    let mut width = 0;
    let mut in_escape = false;
    for character in text.chars() {
        match (in_escape, character) {
            (false, '\x1b') => in_escape = true,
            (false, _) => width += 1,
            (true, character) => in_escape = !character.is_ascii_alphabetic(),
        }
    }
    width
}

/// Words of a text, each with the space after it, and long words in pieces.
fn pieces(text: &str) -> Vec<&str> {
    let mut pieces = Vec::new();
    for word in text.split_inclusive(' ') {
        let mut start = 0;
        for (index, character) in word.char_indices() {
            let end = index + character.len_utf8();
            let is_break = BREAKS.contains(&character) && end - start > MIN_PIECE && !word[end..].trim_end().is_empty();
            if is_break {
                pieces.push(&word[start..end]);
                start = end;
            }
        }
        pieces.push(&word[start..]);
    }
    pieces
}

/// Length of the longest part that cannot be broken.
pub(super) fn longest_piece(text: &str) -> usize {
    let rest = text.trim_start_matches(' ');
    let longest = pieces(rest).iter().map(|piece| visible_width(piece.trim_end())).max().unwrap_or_default();
    // Blanks in front stay with each line.
    if longest == 0 { 0 } else { text.len() - rest.len() + longest }
}

/// Lines of at most `width` characters, unless a word is longer. All have the blanks in front of the first one.
pub(super) fn wrap(text: &str, width: usize) -> Vec<String> {
    let rest = text.trim_start_matches(' ');
    let (indent, width) = (&text[..text.len() - rest.len()], width.saturating_sub(text.len() - rest.len()));
    wrap_from(rest, width, width).into_iter().map(|line| format!("{indent}{line}").trim_end().to_owned()).collect()
}

/// Lines of at most `width` characters, the first one of at most `first`.
fn wrap_from(text: &str, first: usize, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    for piece in pieces(text) {
        let room = if lines.is_empty() { first } else { width };
        if used > 0 && used + visible_width(piece.trim_end()) > room {
            lines.push(std::mem::take(&mut line));
            used = 0;
        }
        line.push_str(piece);
        used += visible_width(piece);
    }
    lines.push(line);
    lines.iter().map(|line| line.trim_end().to_owned()).collect()
}

/// Folds the lines of a text that are longer than the output. What continues a line stands below its value, or is indented.
pub(super) fn fold(text: &str, width: Option<usize>) -> Cow<'_, str> {
    let Some(width) = width.filter(|width| text.lines().any(|line| visible_width(line) > *width)) else {
        return Cow::Borrowed(text);
    };
    let mut folded = String::new();
    for line in text.lines() {
        let indent = line.len() - line.trim_start_matches(' ').len();
        let hang = hanging_indent(&line[indent..]).map_or(indent + 2, |value| indent + value);
        let hang = if hang > width / 2 { indent + 2 } else { hang };
        if visible_width(line) <= width || hang > width / 2 {
            folded.push_str(line);
        } else {
            let parts = wrap_from(&line[indent..], width - indent, width - hang);
            for (index, part) in parts.iter().enumerate() {
                let margin = if index == 0 { indent } else { hang };
                folded.extend(std::iter::repeat_n(' ', margin));
                folded.push_str(part);
                folded.push_str(if index + 1 < parts.len() { "\n" } else { "" });
            }
        }
        folded.push('\n');
    }
    Cow::Owned(folded)
}

/// Column of the value in `Name:   value`.
fn hanging_indent(line: &str) -> Option<usize> {
    let (name, rest) = line.split_once(":  ")?;
    let spaces = rest.len() - rest.trim_start_matches(' ').len();
    Some(name.chars().count() + 3 + spaces)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_never_cut() {
        assert_eq!(wrap("back-off 40s restarting failed container", 20), ["back-off 40s", "restarting failed", "container"]);
        assert_eq!(wrap("registry.example.com/team/app:1.2", 20), ["registry.example.com/", "team/app:1.2"]);
        assert_eq!(wrap("", 20), [""]);
        assert_eq!(wrap("  20s (x2 over 10s)", 9), ["  20s (x2", "  over", "  10s)"]);
        assert_eq!(wrap("web-edge-1_default(8f9c637e)", 20), ["web-edge-1_default(", "8f9c637e)"]);
        assert_eq!((longest_piece("  20s (x2"), longest_piece("  ")), (5, 0));
        assert_eq!(longest_piece("ten/eleven at once"), 10);
    }

    #[test]
    fn values_continue_below_values() {
        let text = "Message:    one two three four five six seven eight\n  -> podstead describe deployment/web with words\nshort\n";
        let expected = "Message:    one two three four five six\n            seven eight\n  -> podstead describe deployment/web\n    with words\nshort\n";
        assert_eq!(fold(text, Some(40)), expected);
        assert_eq!(fold(text, None), text);
    }

    #[test]
    fn colours_take_no_room() {
        let text = "\x1b[31maaaa bbbb cccc dddd eeee ffff gggg hhhh\x1b[0m\n";
        assert_eq!(fold(text, Some(40)), text);
    }
}
