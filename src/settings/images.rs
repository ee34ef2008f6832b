//! Patterns of image names. Pure.

use crate::ConfigError;
use crate::check::Check;
use podstead_container::reference::Reference;

/// Images by the beginning of their names, or by repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ImagePatterns(Vec<ImagePattern>);

#[derive(Clone, Debug, PartialEq, Eq)]
enum ImagePattern {
    /// Of host and repository.
    Beginning(String),
    /// One repository, and what of it.
    Repository { name: String, selector: Option<String> },
}

impl ImagePatterns {
    /// Reads every pattern of the list at `field`.
    pub(crate) fn resolve(check: &Check<'_>, field: &str, written: &[String]) -> Result<Self, ConfigError> {
        let pattern = |(index, text): (usize, &String)| {
            ImagePattern::parse(text).ok_or_else(|| {
                let message = format!("{text:?} is not an image name, nor the beginning of one");
                check.invalid(&format!("{field}[{index}]"), message)
            })
        };
        written.iter().enumerate().map(pattern).collect::<Result<_, _>>().map(Self)
    }

    /// Reports whether a pattern matches. True for a text that is no image name, which validation refuses.
    pub(crate) fn match_image(&self, image: &str) -> bool {
        image.parse::<Reference>().map_or(true, |reference| self.0.iter().any(|pattern| pattern.matches(&reference)))
    }
}

impl ImagePattern {
    fn parse(text: &str) -> Option<Self> {
        let Some(beginning) = text.strip_suffix('/') else {
            let reference: Reference = text.parse().ok()?;
            let last = text.rsplit('/').next().unwrap_or(text);
            let selector = last.contains([':', '@']).then(|| reference.selector());
            return Some(Self::Repository { name: name_of(&reference), selector });
        };
        // The shortest name that begins so tells what host is meant.
        let name = name_of(&format!("{beginning}/x/x").parse().ok()?);
        Some(Self::Beginning(name.strip_suffix("x/x")?.to_owned()))
    }

    fn matches(&self, reference: &Reference) -> bool {
        match self {
            Self::Beginning(beginning) => name_of(reference).starts_with(beginning),
            Self::Repository { name, selector } => {
                *name == name_of(reference) && selector.as_ref().is_none_or(|selector| *selector == reference.selector())
            }
        }
    }
}

fn name_of(reference: &Reference) -> String {
    format!("{}/{}", reference.host(), reference.repository())
}
