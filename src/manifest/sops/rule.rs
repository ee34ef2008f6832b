//! Rules that select the encrypted values of a document, by the names of their keys.

use super::SopsError;

/// Limit for the bytes of an expression; longer ones are not written in practice.
#[cfg(feature = "sops")]
const MAX_EXPRESSION: usize = 1 << 10;

/// The ways in which a document says what is encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleKind {
    /// `unencrypted_suffix`.
    UnencryptedSuffix,
    /// `encrypted_suffix`.
    EncryptedSuffix,
    /// `unencrypted_regex`.
    UnencryptedRegex,
    /// `encrypted_regex`.
    EncryptedRegex,
    /// `encrypted_comment_regex` or `unencrypted_comment_regex`.
    Comments,
}

/// Rule that selects the encrypted values.
#[derive(Clone, Debug)]
pub struct Rule(Inner);

#[derive(Clone, Debug)]
enum Inner {
    /// A key that ends so, or is below one, says that a value is encrypted, or that it is not.
    Suffix { suffix: String, encrypts: bool },
    #[cfg(feature = "sops")]
    Expression { expression: regex_lite::Regex, encrypts: bool },
    /// Comments say it, and those are not read: what looks sealed is.
    BySight,
}

impl Rule {
    /// The default rule of SOPS.
    pub fn usual() -> Self {
        Self(Inner::Suffix { suffix: "_unencrypted".to_owned(), encrypts: false })
    }

    /// As it is written.
    pub fn new(kind: RuleKind, text: &str) -> Result<Self, SopsError> {
        let suffix = |encrypts| Ok(Self(Inner::Suffix { suffix: text.to_owned(), encrypts }));
        match kind {
            RuleKind::UnencryptedSuffix => suffix(false),
            RuleKind::EncryptedSuffix => suffix(true),
            RuleKind::UnencryptedRegex => expression(text, false),
            RuleKind::EncryptedRegex => expression(text, true),
            RuleKind::Comments => Ok(Self(Inner::BySight)),
        }
    }

    /// Reports whether a key of that name matches the rule.
    pub fn is_named(&self, key: &str) -> bool {
        match &self.0 {
            Inner::Suffix { suffix, .. } => key.ends_with(suffix),
            #[cfg(feature = "sops")]
            Inner::Expression { expression, .. } => expression.is_match(key),
            Inner::BySight => false,
        }
    }

    /// Reports whether a value is encrypted; `is_named` when it is below a key that decides.
    pub fn encrypts(&self, is_named: bool, looks_sealed: bool) -> bool {
        match &self.0 {
            Inner::Suffix { encrypts, .. } => is_named == *encrypts,
            #[cfg(feature = "sops")]
            Inner::Expression { encrypts, .. } => is_named == *encrypts,
            Inner::BySight => looks_sealed,
        }
    }
}

#[cfg(feature = "sops")]
fn expression(text: &str, encrypts: bool) -> Result<Rule, SopsError> {
    let fault = SopsError::Metadata("invalid regular expression");
    if text.len() > MAX_EXPRESSION {
        return Err(fault);
    }
    let built = regex_lite::RegexBuilder::new(text).size_limit(1 << 20).build();
    built.map(|expression| Rule(Inner::Expression { expression, encrypts })).map_err(|_| fault)
}

#[cfg(not(feature = "sops"))]
fn expression(_: &str, _: bool) -> Result<Rule, SopsError> {
    Ok(Rule(Inner::BySight))
}

#[cfg(test)]
#[cfg(feature = "sops")]
mod tests {
    use super::*;

    #[test]
    fn each_kind_of_rule_decides_as_sops_does() {
        for (kind, text, key, encrypted) in [
            (RuleKind::UnencryptedSuffix, "_plain", "a_plain", false),
            (RuleKind::UnencryptedSuffix, "_plain", "a", true),
            (RuleKind::EncryptedSuffix, "_secret", "a_secret", true),
            (RuleKind::EncryptedSuffix, "_secret", "a", false),
            (RuleKind::EncryptedRegex, "^(data|stringData)$", "data", true),
            (RuleKind::EncryptedRegex, "^(data|stringData)$", "metadata", false),
            // An expression without anchors may stand anywhere.
            (RuleKind::EncryptedRegex, "data", "metadata", true),
            (RuleKind::UnencryptedRegex, "(?i)^META", "metadata", false),
            (RuleKind::UnencryptedRegex, "^meta", "data", true),
        ] {
            let rule = Rule::new(kind, text).unwrap();
            assert_eq!(rule.encrypts(rule.is_named(key), false), encrypted, "{kind:?} {text} {key}");
        }
        let usual = Rule::usual();
        assert!(usual.encrypts(usual.is_named("a"), false) && !usual.encrypts(usual.is_named("a_unencrypted"), false));
        let by_sight = Rule::new(RuleKind::Comments, "enc").unwrap();
        assert!(by_sight.encrypts(false, true) && !by_sight.encrypts(false, false));
    }

    #[test]
    fn an_expression_that_cannot_be_read_is_refused() {
        for text in ["(", &"a".repeat(2000), "((a{1,1000}){1,1000}){1,1000}"] {
            assert!(Rule::new(RuleKind::EncryptedRegex, text).is_err());
        }
    }
}
