//! The values of `-o`.

use anyhow::{Context as _, bail};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser, ValueParserFactory};
use clap::{Arg, Command, Error};
use podstead_jsonpath::{Columns, MAX_TEMPLATE_BYTES, Template};
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::marker::PhantomData;

/// Forms with an argument, which follows the word.
const TEMPLATES: [&str; 4] = ["jsonpath=", "jsonpath-file=", "custom-columns=", "custom-columns-file="];

/// Form for programs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Structured {
    /// Indented.
    Json,
    /// As in manifests.
    Yaml,
    /// Text that a JSONPath template makes of the value.
    Template(Template),
    /// A table with the columns that the user named.
    Columns(Columns),
}

/// `-o` of commands that list objects.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum OutputFormat {
    /// Columns.
    #[default]
    Table,
    /// More columns.
    Wide,
    /// `pod/web`, a line each.
    Name,
    /// For programs.
    Structured(Structured),
}

/// `-o` of commands that write sentences.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Form {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Structured(Structured),
}

impl OutputFormat {
    /// True for formats that people read.
    pub(crate) fn is_table(&self) -> bool {
        match self {
            Self::Table | Self::Wide => true,
            Self::Name | Self::Structured(_) => false,
        }
    }

    /// True with additional columns.
    pub(crate) fn is_wide(&self) -> bool {
        *self == Self::Wide
    }
}

/// A set of forms.
pub(crate) trait Format: Clone + Send + Sync + From<Structured> + 'static {
    /// The words that need no argument.
    const WORDS: &'static [&'static str];

    /// The form that one of [`Self::WORDS`] means.
    fn named(word: &str) -> Self;
}

impl From<Structured> for OutputFormat {
    fn from(structured: Structured) -> Self {
        Self::Structured(structured)
    }
}

impl Format for OutputFormat {
    const WORDS: &'static [&'static str] = &["table", "wide", "json", "yaml", "name"];

    fn named(word: &str) -> Self {
        match word {
            "wide" => Self::Wide,
            "json" => Self::Structured(Structured::Json),
            "yaml" => Self::Structured(Structured::Yaml),
            "name" => Self::Name,
            _ => Self::Table,
        }
    }
}

impl From<Structured> for Form {
    fn from(structured: Structured) -> Self {
        Self::Structured(structured)
    }
}

impl Format for Form {
    const WORDS: &'static [&'static str] = &["text", "json", "yaml"];

    fn named(word: &str) -> Self {
        match word {
            "json" => Self::Structured(Structured::Json),
            "yaml" => Self::Structured(Structured::Yaml),
            _ => Self::Text,
        }
    }
}

/// Reads a value of `-o`.
#[derive(Clone, Debug)]
pub(crate) struct FormatParser<T>(PhantomData<T>);

impl<T: Format> TypedValueParser for FormatParser<T> {
    type Value = T;

    fn parse_ref(&self, command: &Command, argument: Option<&Arg>, value: &OsStr) -> Result<T, Error> {
        if value.to_str().is_some_and(|text| text.contains('=')) {
            // Errors are sentences for people.
            let parse = |text: &str| structured(text).map(T::from).map_err(|error| format!("{error:#}"));
            return parse.parse_ref(command, argument, value);
        }
        let words = PossibleValuesParser::new(T::WORDS.iter().chain(&TEMPLATES));
        let word = words.parse_ref(command, argument, value)?;
        Ok(T::named(&word))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(T::WORDS.iter().chain(&TEMPLATES).map(PossibleValue::new)))
    }
}

macro_rules! parsed_by_format_parser {
    ($($format:ty),*) => {$(
        impl ValueParserFactory for $format {
            type Parser = FormatParser<Self>;

            fn value_parser() -> Self::Parser {
                FormatParser(PhantomData)
            }
        }
    )*};
}
parsed_by_format_parser!(OutputFormat, Form);

/// Reads `jsonpath={.items}` and so on.
fn structured(text: &str) -> anyhow::Result<Structured> {
    let (word, argument) = text.split_once('=').unwrap_or((text, ""));
    Ok(match word {
        "jsonpath" => Structured::Template(Template::parse(argument)?),
        "jsonpath-file" => Structured::Template(Template::parse(&read(argument)?)?),
        "custom-columns" => Structured::Columns(Columns::parse(argument)?),
        "custom-columns-file" => Structured::Columns(Columns::parse_file(&read(argument)?)?),
        _ => bail!("expected one of {} before the equals sign", TEMPLATES.map(|word| word.trim_end_matches('=')).join(", ")),
    })
}

/// Reads a template; one byte more than it may have is enough to refuse it.
fn read(path: &str) -> anyhow::Result<String> {
    let mut text = String::new();
    let limit = u64::try_from(MAX_TEMPLATE_BYTES)? + 1;
    let file = File::open(path).with_context(|| format!("open {path:?}"))?;
    file.take(limit).read_to_string(&mut text).with_context(|| format!("read {path:?}"))?;
    Ok(text)
}
