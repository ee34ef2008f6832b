//! Text of manifests, commits and containers, as it stands in HTML. **Pure**.

/// Characters of a text that are shown.
const MAX_CHARACTERS: usize = 300;

/// The text with nothing that has a meaning in HTML, in a tag or between tags; cut if it is long. Control characters, and those that turn the
/// direction of writing, are shown as U+FFFD.
pub(super) fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for (index, character) in text.chars().enumerate() {
        if index == MAX_CHARACTERS {
            safe.push('…');
            break;
        }
        match character {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            '\'' => safe.push_str("&#39;"),
            '\n' | '\t' => safe.push(' '),
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => safe.push('\u{fffd}'),
            _ if character.is_control() => safe.push('\u{fffd}'),
            _ => safe.push(character),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_a_text_has_a_meaning() {
        let hostile = "<script>alert('x')</script> \"&amp;\" \u{1b}[31m\u{202e}a\nb";
        let safe = escape(hostile);
        assert_eq!(safe, "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; &quot;&amp;amp;&quot; \u{fffd}[31m\u{fffd}a b");
        assert_eq!(escape(&"é".repeat(1000)).chars().count(), MAX_CHARACTERS + 1);
    }
}
