//! Text that a job says: nobody vouches for it.

use std::fmt;

/// Longest text of a job that is shown, in bytes.
const LONGEST: usize = 1024;

/// Text of a job, cut and without control characters. It is shown in quotes: the reader is to see whose words they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Told(String);

impl Told {
    /// The part of `text` that is shown.
    pub fn new(text: &str) -> Self {
        Self(Self::cleaned(text))
    }

    /// The same without quotes, for words that the job took over from the host, such as those of an error.
    pub fn cleaned(text: &str) -> String {
        let shown = |c: char| if c.is_control() || is_invisible(c) { '\u{fffd}' } else { c };
        let mut kept = String::new();
        for c in text.chars().map(shown) {
            if kept.len() + c.len_utf8() > LONGEST {
                kept.push('…');
                break;
            }
            kept.push(c);
        }
        kept
    }
}

/// Marks that turn text around or hide it.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Texts have names in double quotes.
        write!(f, "'{}'", self.0)
    }
}

impl std::error::Error for Told {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_and_has_no_control_characters() {
        assert_eq!(Told::new("a \"b\"").to_string(), "'a \"b\"'");
        assert_eq!(Told::new("a\x1b[2J\n\u{202e}b").to_string(), "'a\u{fffd}[2J\u{fffd}\u{fffd}b'");
        let long = Told::new(&"ä".repeat(4096)).to_string();
        assert!(long.len() <= LONGEST + 8 && long.ends_with("…'"), "{}", long.len());
    }
}
