//! `$(NAME)` references, as Kubernetes expands them.

/// Replaces every `$(NAME)` for which `lookup` has a value. `$$` stands for `$`, so `$$(NAME)` becomes `$(NAME)`. A reference
/// without a value and one that is not closed stay as they are written.
pub fn expand(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        expanded.push_str(&rest[..dollar]);
        let after = &rest[dollar + 1..];
        if let Some(escaped) = after.strip_prefix('$') {
            expanded.push('$');
            rest = escaped;
        } else if let Some((name, behind)) = after.strip_prefix('(').and_then(|reference| reference.split_once(')')) {
            match lookup(name) {
                Some(value) => expanded.push_str(&value),
                None => expanded.extend(["$(", name, ")"]),
            }
            rest = behind;
        } else {
            expanded.push('$');
            rest = after;
        }
    }
    expanded.push_str(rest);
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lookup(name: &str) -> Option<String> {
        match name {
            "VAR_A" => Some("A".to_owned()),
            "VAR_B" => Some("B".to_owned()),
            "VAR_C" => Some("C".to_owned()),
            "VAR_REF" => Some("$(VAR_A)".to_owned()),
            "VAR_EMPTY" => Some(String::new()),
            _ => None,
        }
    }

    #[test]
    fn references_are_replaced_and_everything_else_is_kept() {
        for (text, expected) in [
            ("", ""),
            ("plain", "plain"),
            ("$(VAR_A)", "A"),
            ("___$(VAR_B)___", "___B___"),
            ("___$(VAR_C)", "___C"),
            ("$(VAR_A)=$(VAR_A)", "A=A"),
            ("$(VAR_A)_$(VAR_B)_$(VAR_C)", "A_B_C"),
            ("-$(VAR_EMPTY)-", "--"),
            ("not again: $(VAR_REF)", "not again: $(VAR_A)"),
            // Escapes.
            ("$$(VAR_A)", "$(VAR_A)"),
            ("$$$(VAR_A)", "$A"),
            ("$$$$(VAR_A)", "$$(VAR_A)"),
            ("$$$$$(VAR_A)", "$$A"),
            ("$$", "$"),
            ("$$$", "$$"),
            ("f000-$$VAR_A", "f000-$VAR_A"),
            ("foo\\$(VAR_C)bar", "foo\\Cbar"),
            ("foo\\\\$(VAR_C)bar", "foo\\\\Cbar"),
            ("foo$$(VAR_A)$(VAR_B)", "foo$(VAR_A)B"),
            // Not references.
            ("$VAR_A", "$VAR_A"),
            ("$?_boo$!", "$?_boo$!"),
            ("$ (VAR_A)", "$ (VAR_A)"),
            ("${VAR_A}", "${VAR_A}"),
            ("$(NONE)", "$(NONE)"),
            ("$()", "$()"),
            ("$(VAR_A )", "$(VAR_A )"),
            // Not closed.
            ("$", "$"),
            ("ends with $", "ends with $"),
            ("$(", "$("),
            ("$(VAR_A", "$(VAR_A"),
            ("$(VAR_B)_______$(A", "B_______$(A"),
            ("$(VAR_C)_______$(", "C_______$("),
            ("$(VAR_A)foobarzab$(VAR_B)_____$", "AfoobarzabB_____$"),
            // A name reaches to the first closing parenthesis.
            ("$(foo$$var)", "$(foo$$var)"),
            ("$(A$(VAR_B)", "$(A$(VAR_B)"),
            ("$((VAR_A))", "$((VAR_A))"),
            // Text beyond ASCII.
            ("$ü$(VAR_A)ß", "$üAß"),
        ] {
            assert_eq!(expand(text, &lookup), expected, "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn escaping_every_dollar_gives_the_text_back(text in ".{0,40}") {
            proptest::prop_assert_eq!(expand(&text.replace('$', "$$"), &lookup), text);
        }

        #[test]
        fn text_without_known_names_changes_only_in_its_escapes(text in "[$()a-z]{0,20}") {
            proptest::prop_assume!(!text.contains("$$"));
            proptest::prop_assert_eq!(expand(&text, &|_| None), text);
        }
    }
}
