//! Display of objects by the rules of kubectl. **Pure**: `now` is an argument. Used by the API's tables and by the CLI.

mod age;
mod label_text;
mod pod_row;
mod size;

pub use age::{age_since, human_duration};
pub use label_text::{labels_text, selector_text};
pub use pod_row::{OWN_CONDITIONS, PodRow};
pub use size::{human_size, short_digest};
