//! Patterns of image names. Pure.

use crate::ConfigError;
use crate::check::Check;
use podstead_container::reference::Reference;

/// Images by the beginning of their names, or by repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ImagePatterns(Vec<ImagePattern>);

/// Order of patterns that match one image, the most exact one last.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exactness {
    /// The longer one of two beginnings of a name is greater, since both are beginnings of the same name.
    Beginning(String),
    /// A repository.
    Repository(String),
}

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

    /// The most exact pattern that matches; `None` if none does.
    pub(crate) fn exactness(&self, image: &Reference) -> Option<Exactness> {
        self.0.iter().filter(|pattern| pattern.matches(image)).map(ImagePattern::exactness).max()
    }

    /// All patterns by what they match, selectors aside.
    pub(crate) fn names(&self) -> impl Iterator<Item = Exactness> {
        self.0.iter().map(ImagePattern::exactness)
    }

    /// Index of the first pattern with a tag or a digest.
    pub(crate) fn with_selector(&self) -> Option<usize> {
        self.0.iter().position(|pattern| matches!(pattern, ImagePattern::Repository { selector: Some(_), .. }))
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

    fn exactness(&self) -> Exactness {
        match self {
            Self::Beginning(beginning) => Exactness::Beginning(beginning.clone()),
            Self::Repository { name, .. } => Exactness::Repository(name.clone()),
        }
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
