//! Lists of patterns as ssh_config(5) has them: `git,deploy-?,!deploy-x`.

/// Reports whether `text` matches one pattern of the list and none that is negated by `!`.
pub(super) fn list_matches(list: &str, text: &str) -> bool {
    let mut found = false;
    for pattern in list.split(',') {
        match pattern.strip_prefix('!') {
            Some(negated) if matches(negated, text) => return false,
            Some(_) => {}
            None => found |= matches(pattern, text),
        }
    }
    found
}

/// `*` stands for any characters, `?` for one. Linear in memory and at most quadratic in time: only the last `*` is gone back to.
fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut read) = (0, 0);
    let mut star = None;
    while read < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, read));
                at += 1;
            }
            Some(c) if *c == '?' || *c == text[read] => {
                at += 1;
                read += 1;
            }
            Some(_) | None => match star {
                Some((star_at, matched)) => {
                    star = Some((star_at, matched + 1));
                    (at, read) = (star_at + 1, matched + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_for_any_text_and_for_one_character() {
        for (pattern, text) in [("git", "git"), ("*", ""), ("g*t", "gt"), ("g*t*", "gattat"), ("?i?", "git"), ("*a*b", "xaaab")] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("git", "gi"), ("gi", "git"), ("?", ""), ("g*t", "gitx"), ("*a*b", "ba")] {
            assert!(!matches(pattern, text), "{pattern} {text}");
        }
    }

    #[test]
    fn a_negated_pattern_wins_over_all_others() {
        assert!(list_matches("a*,!ab", "ac"));
        assert!(!list_matches("a*,!ab", "ab"));
        assert!(!list_matches("!ab,a*", "ab"));
        assert!(!list_matches("!ab", "ac"), "a list of exclusions includes nothing");
    }
}
