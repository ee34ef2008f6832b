//! Pages of the documentation that are made from the code. `UPDATE=1 cargo test --test cli reference` writes them anew.

mod commands;
mod fields;
mod reasons;
mod rust_source;

use std::path::Path;

/// Holds `page`, a path below `docs`, against what was made, or writes it.
fn compare(page: &str, made: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs").join(page);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, made).unwrap();
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(written == made, "docs/{page} is not what the code says: run UPDATE=1 cargo test --test cli reference");
}

/// Text of the code as a cell of a table: no word of it is taken for markup.
fn cell(text: &str) -> String {
    let mut cell = String::new();
    let mut in_code = false;
    for letter in text.split_whitespace().collect::<Vec<_>>().join(" ").chars() {
        in_code ^= letter == '`';
        match letter {
            '|' => cell.push_str("\\|"),
            '<' | '>' | '*' | '[' | ']' if !in_code => cell.extend(['\\', letter]),
            _ => cell.push(letter),
        }
    }
    cell
}

#[test]
fn cell_is_one_line_without_markup() {
    assert_eq!(cell("a <b>\n * c | `d|<e>` [f]"), "a \\<b\\> \\* c \\| `d\\|<e>` \\[f\\]");
}
