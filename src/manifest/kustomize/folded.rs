//! Folded block scalars (`>`). Upstream writes each of them once more, and reads it again, before it prints an object. Its writer adds an
//! empty line before lines that are indented further, so the text changes on the way.

/// The text of a folded scalar after it was written and read again.
pub(super) fn again(text: &str) -> String {
    read(&written(text), Chomping::of(text))
}

/// Line breaks at the end, as a header states them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chomping {
    Strip,
    Clip,
    Keep,
}

impl Chomping {
    fn of(text: &str) -> Self {
        match text.strip_suffix('\n') {
            None => Self::Strip,
            Some("") => Self::Keep,
            Some(rest) if rest.ends_with('\n') => Self::Keep,
            Some(_) => Self::Clip,
        }
    }
}

fn is_blank(character: Option<char>) -> bool {
    matches!(character, Some(' ' | '\t'))
}

/// The lines below the header, without their indentation.
fn written(text: &str) -> String {
    // The writer looks at the beginning of the text instead of what follows the break.
    let doubles = text.trim_start_matches('\n').chars().next().is_some_and(|first| !is_blank(Some(first)));
    let mut lines = String::with_capacity(text.len());
    let (mut breaks, mut indented) = (true, true);
    for character in text.chars() {
        if character == '\n' {
            if !breaks && !indented && doubles {
                lines.push('\n');
            }
            breaks = true;
        } else {
            if breaks {
                indented = is_blank(Some(character));
            }
            breaks = false;
        }
        lines.push(character);
    }
    lines
}

/// The text of lines below a header.
fn read(lines: &str, chomping: Chomping) -> String {
    let mut text = String::with_capacity(lines.len());
    let mut was_indented = false;
    // Breaks since the last line with content: that of the line itself, and those of empty lines.
    let (mut own, mut empty) = (false, 0);
    for line in lines.split_inclusive('\n') {
        let content = line.strip_suffix('\n').unwrap_or(line);
        if content.is_empty() {
            empty += 1;
            continue;
        }
        let is_indented = is_blank(content.chars().next());
        if own && !was_indented && !is_indented {
            if empty == 0 {
                text.push(' ');
            }
        } else if own {
            text.push('\n');
        }
        text.extend(std::iter::repeat_n('\n', empty));
        text.push_str(content);
        (own, empty, was_indented) = (line.ends_with('\n'), 0, is_indented);
    }
    if chomping != Chomping::Strip && own {
        text.push('\n');
    }
    if chomping == Chomping::Keep {
        text.extend(std::iter::repeat_n('\n', empty));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::again;

    #[test]
    fn an_empty_line_is_added_before_indented_ones() {
        assert_eq!(again("a(c,\n  b\n)"), "a(c,\n\n  b\n)");
        assert_eq!(again("a\n\n  b\n  c\nd\n"), "a\n\n\n  b\n  c\nd\n");
    }

    #[test]
    fn other_texts_stay() {
        for text in ["a", "a\n", "a b\nc\n\nd\n", "", "a\nb"] {
            assert_eq!(again(text), text);
        }
    }
}
