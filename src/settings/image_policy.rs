//! `imagePolicy`: which images may run, by the beginnings of their names. Pure.
//!
//! Without it, any image. The most exact rule for an image counts and no other; an image without a rule is judged by `default`.

use crate::ConfigError;
use crate::check::Check;
use crate::images::{Exactness, ImagePatterns};
use podstead_container::reference::Reference;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;
use std::path::PathBuf;

/// Most key files of a rule.
const KEYS_MAX: usize = 16;

/// `imagePolicy`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenImagePolicy {
    /// Images without a rule: `allow` for any image, `digest` for images that the pod names with a digest, `refuse` for none. Default: allow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<DefaultDemand>,
    /// Rules for images by name. For an image, only the rule with its repository or, without one, with the longest beginning counts. Default:
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<WrittenImageRule>,
}

/// `imagePolicy.rules[]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenImageRule {
    /// Images: an entry that ends in `/` is a prefix of image names, any other entry is one repository, without tag or digest. Names are compared
    /// in full: `nginx` is `docker.io/library/nginx`.
    pub images: Vec<String>,
    /// `digest`: the pod names the image with a digest. `signature`: the image is signed by `keys`. Default: none, any image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub require: Vec<Requirement>,
    /// No image of these names may run. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub refuse: bool,
    /// Files with the public keys that may sign, in PEM: ECDSA P-256 or P-384, Ed25519, or RSA. They belong to root, and are read for each image.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<PathBuf>,
    /// Number of different keys that must have signed the image, 1 to 16. Default: 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threshold: Option<usize>,
    /// Image names that a signature must state, in the form of `images`. Signatures in the format of cosign 3 state none. Default: not
    /// checked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub signed_as: Vec<String>,
    /// Predicate types of attestations that count as signatures. Default: only `https://sigstore.dev/cosign/sign/v1`, which `cosign sign`
    /// writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub predicate_types: Vec<String>,
}

/// `imagePolicy.rules[].require[]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Requirement {
    /// The pod names the image with a digest.
    Digest,
    /// The image is signed.
    Signature,
}

/// `imagePolicy.default`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DefaultDemand {
    /// Any image.
    #[default]
    Allow,
    /// Images that are named with a digest.
    Digest,
    /// No image.
    Refuse,
}

/// The policy, resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImagePolicy {
    default: DefaultDemand,
    rules: Vec<ImageRule>,
    /// Place of the policy; `default` has the same file.
    origin: RuleOrigin,
}

/// A rule, resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ImageRule {
    images: ImagePatterns,
    demand: Demand,
    origin: RuleOrigin,
    written: WrittenImageRule,
}

/// Place of a rule in the configuration, for messages. All are equal: a rule that moves in its file is the same rule.
#[derive(Clone, Debug, Default)]
pub struct RuleOrigin {
    file: PathBuf,
    field: String,
    /// From 1; `None` if it is not known.
    line: Option<u32>,
}

impl PartialEq for RuleOrigin {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for RuleOrigin {}

impl fmt::Display for RuleOrigin {
    /// `imagePolicy.rules[0] (/etc/podstead/config.yaml:12)`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = self.line.map(|line| format!(":{line}")).unwrap_or_default();
        write!(f, "{} ({}{line})", self.field, self.file.display())
    }
}

/// Demand on an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Demand {
    /// No image.
    Refuse,
    /// Images that meet all of this.
    Accept {
        /// Its name has a digest.
        digest: bool,
        /// It is signed.
        signature: Option<SignatureDemand>,
    },
}

/// Signatures that an image must have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SignatureDemand {
    /// Files of public keys.
    pub keys: Vec<PathBuf>,
    /// Number of different keys that must have signed; at least 1.
    pub threshold: usize,
    /// Names that signatures must state; `None` if that is not checked.
    signed_as: Option<ImagePatterns>,
    /// Predicate types that count in addition to that of `cosign sign`; with any, that one counts only if it is here.
    pub predicate_types: Vec<String>,
}

impl SignatureDemand {
    /// A demand for a signature by any of these keys.
    pub fn by_any_of(keys: Vec<PathBuf>) -> Self {
        Self { keys, threshold: 1, ..Self::default() }
    }

    /// Reports whether signatures must state the name of the image.
    pub fn wants_name(&self) -> bool {
        self.signed_as.is_some()
    }

    /// Reports whether a signature that states `name` counts.
    pub fn allows_name(&self, name: &str) -> bool {
        let Some(patterns) = &self.signed_as else { return true };
        // What is no image name matches every pattern of manifests, which are validated elsewhere.
        name.parse::<Reference>().is_ok() && patterns.match_image(name)
    }
}

/// The demand on an image, and the rule that makes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Demanded<'a> {
    /// The demand.
    pub demand: Demand,
    /// The rule.
    pub origin: &'a RuleOrigin,
}

impl ImagePolicy {
    /// The demand on an image: that of the most exact rule.
    pub fn demand(&self, image: &Reference) -> Demanded<'_> {
        let matching = self.rules.iter().filter_map(|rule| Some((rule.images.exactness(image)?, rule)));
        match matching.max_by(|(one, _), (other, _)| one.cmp(other)) {
            Some((_, rule)) => Demanded { demand: rule.demand.clone(), origin: &rule.origin },
            None => Demanded { demand: self.default.demand(), origin: &self.origin },
        }
    }

    /// Takes note of where the rules are written; `line` finds the line of a field.
    pub fn locate(&mut self, line: impl Fn(&str) -> Option<u32>) {
        self.origin.line = line(&self.origin.field);
        for rule in &mut self.rules {
            rule.origin.line = line(&rule.origin.field);
        }
    }

    /// The policy as written, with every default.
    pub fn to_written(&self) -> WrittenImagePolicy {
        let Self { default, rules, origin: _ } = self;
        WrittenImagePolicy { default: Some(*default), rules: rules.iter().map(|rule| rule.written.clone()).collect() }
    }
}

impl DefaultDemand {
    const fn demand(self) -> Demand {
        match self {
            Self::Allow => Demand::Accept { digest: false, signature: None },
            Self::Digest => Demand::Accept { digest: true, signature: None },
            Self::Refuse => Demand::Refuse,
        }
    }
}

impl WrittenImagePolicy {
    /// Checks every rule.
    pub fn resolve(&self, check: &Check<'_>) -> Result<ImagePolicy, ConfigError> {
        let Self { default, rules } = self;
        let origin = |field: String| RuleOrigin { file: check.path.to_owned(), field, line: None };
        let mut resolved: Vec<ImageRule> = Vec::new();
        let mut seen: BTreeSet<Exactness> = BTreeSet::new();
        for (index, rule) in rules.iter().enumerate() {
            let field = format!("imagePolicy.rules[{index}]");
            let (images, demand) = rule.resolve(check, &field)?;
            for (position, pattern) in images.names().enumerate() {
                if !seen.insert(pattern) {
                    let message = format!("{:?} is in another rule already", rule.images.get(position).map_or("", String::as_str));
                    return Err(check.invalid(&format!("{field}.images[{position}]"), message));
                }
            }
            resolved.push(ImageRule { images, demand, origin: origin(field), written: rule.clone() });
        }
        Ok(ImagePolicy { default: default.unwrap_or_default(), rules: resolved, origin: origin("imagePolicy.default".to_owned()) })
    }
}

impl WrittenImageRule {
    fn resolve(&self, check: &Check<'_>, field: &str) -> Result<(ImagePatterns, Demand), ConfigError> {
        let Self { images, require, refuse, keys, threshold, signed_as, predicate_types } = self;
        let at = |name: &str| format!("{field}.{name}");
        if images.is_empty() {
            return Err(check.invalid(&at("images"), "must not be empty".to_owned()));
        }
        let patterns = named(check, &at("images"), images)?;
        let (digest, signature) = (require.contains(&Requirement::Digest), require.contains(&Requirement::Signature));
        if *refuse && !require.is_empty() {
            return Err(check.invalid(&at("require"), "has no effect with refuse".to_owned()));
        }
        let of_signatures = [
            ("keys", !keys.is_empty()),
            ("threshold", threshold.is_some()),
            ("signedAs", !signed_as.is_empty()),
            ("predicateTypes", !predicate_types.is_empty()),
        ];
        if let Some((name, _)) = of_signatures.iter().find(|(_, written)| *written && !signature) {
            return Err(check.invalid(&at(name), "has no effect without signature in require".to_owned()));
        }
        if *refuse {
            return Ok((patterns, Demand::Refuse));
        }
        if !signature {
            return Ok((patterns, Demand::Accept { digest, signature: None }));
        }
        if keys.is_empty() {
            return Err(check.invalid(&at("require"), "signature needs keys".to_owned()));
        }
        check.range(&at("keys"), keys.len(), 1, KEYS_MAX)?;
        let files = keys.iter().enumerate().map(|(index, path)| check.file(&at(&format!("keys[{index}]")), path));
        let signature = SignatureDemand {
            keys: files.collect::<Result<_, _>>()?,
            threshold: check.range(&at("threshold"), threshold.unwrap_or(1), 1, KEYS_MAX)?,
            signed_as: match signed_as.is_empty() {
                true => None,
                false => Some(named(check, &at("signedAs"), signed_as)?),
            },
            predicate_types: predicate_types.clone(),
        };
        Ok((patterns, Demand::Accept { digest, signature: Some(signature) }))
    }
}

/// Patterns of names alone: a rule for a tag would not count for a pod that names the same image by its digest.
fn named(check: &Check<'_>, field: &str, written: &[String]) -> Result<ImagePatterns, ConfigError> {
    let patterns = ImagePatterns::resolve(check, field, written)?;
    match patterns.with_selector() {
        None => Ok(patterns),
        Some(index) => Err(check.invalid(&format!("{field}[{index}]"), "must not have a tag or a digest".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn policy(text: &str) -> Result<ImagePolicy, String> {
        let written: WrittenImagePolicy = serde_yaml::from_str(text).map_err(|error| error.to_string())?;
        written.resolve(&Check { path: Path::new("/c") }).map_err(|error| error.to_string())
    }

    fn rule_for(policy: &ImagePolicy, image: &str) -> String {
        policy.demand(&image.parse().unwrap()).origin.field.clone()
    }

    #[test]
    fn most_exact_rule_counts() {
        let policy = policy(
            "{default: refuse, rules: [{images: [registry.lan/]}, {images: [registry.lan/apps/, quay.io/a/]}, \
             {images: [registry.lan/apps/web], refuse: true}, {images: [nginx], require: [digest]}]}",
        )
        .unwrap();
        for (image, field) in [
            ("registry.lan/x:1", "imagePolicy.rules[0]"),
            ("registry.lan/apps/api", "imagePolicy.rules[1]"),
            ("registry.lan/apps/web:1", "imagePolicy.rules[2]"),
            ("registry.lan/apps/web/sub:1", "imagePolicy.rules[1]"),
            ("nginx:1", "imagePolicy.rules[3]"),
            ("docker.io/library/nginx:1", "imagePolicy.rules[3]"),
            ("redis", "imagePolicy.default"),
            ("registry.lan.evil.org/x", "imagePolicy.default"),
        ] {
            assert_eq!(rule_for(&policy, image), field, "{image}");
        }
        assert_eq!(policy.demand(&"redis".parse().unwrap()).demand, Demand::Refuse);
        let nginx = policy.demand(&"nginx".parse().unwrap()).demand;
        assert_eq!(nginx, Demand::Accept { digest: true, signature: None });
    }

    #[test]
    fn empty_policy_allows_everything() {
        let policy = policy("{}").unwrap();
        assert_eq!(policy.demand(&"x".parse().unwrap()).demand, Demand::Accept { digest: false, signature: None });
    }

    #[test]
    fn rules_without_sense_are_refused() {
        for (text, expected) in [
            ("{rules: [{images: []}]}", "rules[0].images: must not be empty"),
            ("{rules: [{images: ['nginx:1']}]}", "rules[0].images[0]: must not have a tag or a digest"),
            ("{rules: [{images: [a], keys: [/k]}]}", "rules[0].keys: has no effect without signature"),
            ("{rules: [{images: [a], require: [digest], threshold: 2}]}", "rules[0].threshold: has no effect"),
            ("{rules: [{images: [a], require: [signature]}]}", "rules[0].require: signature needs keys"),
            ("{rules: [{images: [a], require: [signature], keys: [k]}]}", "rules[0].keys[0]: \"k\" is not an absolute path"),
            ("{rules: [{images: [a], require: [signature], keys: [/k], threshold: 17}]}", "must be at most 16"),
            ("{rules: [{images: [a], refuse: true, require: [digest]}]}", "rules[0].require: has no effect with refuse"),
            ("{rules: [{images: [nginx]}, {images: [b, docker.io/library/nginx]}]}", "rules[1].images[1]: \"docker.io/"),
            ("{rules: [{images: [a], require: [signatures]}]}", "unknown variant"),
            ("{rules: [{images: [a], identities: []}]}", "unknown field"),
            ("{default: deny}", "unknown variant"),
        ] {
            let error = policy(text).unwrap_err();
            assert!(error.contains(expected), "{text}\n  got: {error}");
        }
    }

    #[test]
    fn stated_names_are_image_names() {
        let policy = policy("{rules: [{images: [a], require: [signature], keys: [/k], signedAs: [registry.lan/apps/]}]}").unwrap();
        let Demand::Accept { signature: Some(demand), .. } = policy.demand(&"a".parse().unwrap()).demand else { panic!() };
        assert!(demand.wants_name() && demand.allows_name("registry.lan/apps/web:1"));
        assert!(!demand.allows_name("registry.lan/other/web:1") && !demand.allows_name("") && !demand.allows_name("A B"));
        assert!(SignatureDemand::by_any_of(Vec::new()).allows_name(""));
    }

    #[test]
    fn origin_names_file_and_line() {
        let mut policy = policy("{rules: [{images: [a]}]}").unwrap();
        policy.locate(|field| (field == "imagePolicy.rules[0]").then_some(7));
        assert_eq!(policy.demand(&"a".parse().unwrap()).origin.to_string(), "imagePolicy.rules[0] (/c:7)");
        assert_eq!(policy.demand(&"b".parse().unwrap()).origin.to_string(), "imagePolicy.default (/c)");
    }
}
