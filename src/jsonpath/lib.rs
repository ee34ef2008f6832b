//! JSONPath templates (`{range .items[*]}{.metadata.name}{"\n"}{end}`) and custom columns (`NAME:.metadata.name`) in the dialect of kubectl,
//! which is that of `k8s.io/client-go/util/jsonpath`: tests compare both on the same objects.
//!
//! **Pure**: no files, no clock, no environment, no tokio. The flow: [`Template::parse`] reads a template within limits, [`Template::render`]
//! makes text of a value; [`Columns`] does the same for a row of cells. Neither a template nor a value can make it panic, recurse deeply
//! or use much memory.

mod columns;
mod evaluate;
mod parse;
mod quote;
mod text;

pub use columns::{Columns, ColumnsError};
pub use evaluate::EvaluateError;
pub use parse::{MAX_TEMPLATE_BYTES, ParseError};

use evaluate::Evaluation;
use parse::Step;
use serde_json::Value;

/// A JSONPath template: text, and paths in braces.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    blocks: Vec<Vec<Step>>,
}

impl Template {
    /// Reads a template. A path alone may stand without braces, such as `.metadata.name`: **differs** from kubectl, which prints it as text.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let is_path = text.starts_with(['.', '$']) && !text.contains(['{', '}']);
        let blocks = if is_path { parse::blocks(&format!("{{{text}}}"))? } else { parse::blocks(text)? };
        Ok(Self { blocks })
    }

    /// Renders the template for `value`. Fields that are missing are empty.
    pub fn render(&self, value: &Value) -> Result<String, EvaluateError> {
        let mut out = text::Text::default();
        for results in Evaluation::default().run(&self.blocks, value)? {
            for (index, result) in results.iter().enumerate() {
                if index > 0 {
                    out.push(" ")?;
                }
                out.push_result(result)?;
            }
        }
        Ok(out.into_string())
    }
}
