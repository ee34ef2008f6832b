//! Templates and custom columns of any text are read or refused, and give text or an error for any JSON: without a panic and within limits.
//! The template ends at the first NUL; what follows is the JSON.
#![no_main]

use libfuzzer_sys::fuzz_target;
use podstead_jsonpath::{Columns, Template};

fuzz_target!(|bytes: &[u8]| {
    let at = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    let (template, json) = (String::from_utf8_lossy(&bytes[..at]), bytes.get(at + 1..).unwrap_or_default());
    let value = serde_json::from_slice(json).unwrap_or_else(|_| serde_json::json!({"items": [{"a": {"b": "c"}, "n": [1, 2.5, null]}]}));
    if let Ok(template) = Template::parse(&template) {
        // Either is an answer.
        template.render(&value).ok();
    }
    for columns in [Columns::parse(&template), Columns::parse_file(&template)].into_iter().flatten() {
        if let Ok(row) = columns.row(&value) {
            assert_eq!(row.len(), columns.headings().count());
        }
    }
});
