//! Types that hold much, or whose methods are in many files: each says why in its documentation.

use crate::source_tree::{SourceFile, source_files};
use std::collections::{BTreeMap, BTreeSet};

/// Fields that a type may have.
const MAX_FIELDS: usize = 12;

/// Files that methods and traits of one type may be in.
const MAX_FILES: usize = 2;

/// Begins the sentence that gives the reason for a type that is larger.
const REASON: &str = "One type because ";

/// Definition of a type.
#[derive(Debug, PartialEq, Eq)]
struct Type<'a> {
    name: &'a str,
    line: usize,
    /// Fields with names.
    fields: usize,
    has_reason: bool,
}

/// The types that a file defines, outside of its tests. The code is formatted, so that a type ends with a brace below its beginning.
fn types<'a>(lines: &[(usize, &'a str)], text: &str) -> Vec<Type<'a>> {
    let mut found = Vec::new();
    for (index, (number, line)) in lines.iter().enumerate() {
        let Some((kind, name)) = definition(line) else { continue };
        let indent = line.len() - line.trim_start().len();
        let body = lines[index + 1..].iter().map(|(_, line)| *line).take_while(|line| line.trim_end() != " ".repeat(indent) + "}");
        let is_open = kind == "struct" && line.trim_end().ends_with('{');
        let fields = if is_open { body.filter(|line| is_field(line, indent + 4)).count() } else { 0 };
        let above: Vec<&str> = text.lines().take(number - 1).collect();
        let comments = above.iter().rev().map(|line| line.trim_start()).take_while(|line| is_above(line));
        let has_reason = comments.into_iter().any(|line| line.trim_start_matches('/').trim_start().starts_with(REASON));
        found.push(Type { name, line: *number, fields, has_reason });
    }
    found
}

/// Kind and name of the type whose definition begins on this line.
fn definition(line: &str) -> Option<(&str, &str)> {
    let line = without_visibility(line.trim_start());
    let (kind, rest) = line.split_once(' ').filter(|(kind, _)| matches!(*kind, "struct" | "enum" | "union"))?;
    Some((kind, word(rest)))
}

fn without_visibility(line: &str) -> &str {
    let Some(rest) = line.strip_prefix("pub") else { return line };
    match rest.strip_prefix('(').and_then(|inner| inner.split_once(") ")) {
        Some((_, rest)) => rest,
        None => rest.strip_prefix(' ').unwrap_or(line),
    }
}

fn word(text: &str) -> &str {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap_or_default()
}

/// A line `name: Type`.
fn is_field(line: &str, indent: usize) -> bool {
    let is_at_level = line.len() - line.trim_start().len() == indent;
    let line = without_visibility(line.trim_start());
    let line = line.strip_prefix("r#").unwrap_or(line);
    let name = word(line);
    is_at_level && !name.is_empty() && line[name.len()..].starts_with(": ")
}

/// A line of what stands before a definition: documentation, comments, attributes.
fn is_above(line: &str) -> bool {
    line.starts_with("//") || line.starts_with("#[") || line.starts_with(")]")
}

/// The name of the type that an `impl` on this line is for, without its path.
fn implemented(line: &str) -> Option<&str> {
    let rest = line.strip_prefix("unsafe ").unwrap_or(line).strip_prefix("impl")?;
    let rest = match rest.strip_prefix('<') {
        Some(inner) => &inner[end_of_generics(inner)..],
        None => rest,
    };
    let rest = rest.trim_start();
    let target = rest.split_once(" for ").map_or(rest, |(_, target)| target);
    let target = target.trim_start_matches(['&', '(']);
    let target = if target.starts_with('\'') { target.split_once(' ')?.1 } else { target };
    let path = target.split(['<', ' ', '{']).next().unwrap_or_default();
    path.rsplit("::").next().filter(|name| !name.is_empty())
}

/// Returns the index behind the `>` that closes generics.
fn end_of_generics(text: &str) -> usize {
    let mut depth = 1_usize;
    for (index, letter) in text.char_indices() {
        match letter {
            '<' => depth += 1,
            // Not the arrow of a function.
            '>' if !text[..index].ends_with('-') => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    text.len()
}

/// Types of one crate that say no reason and have too many fields, or methods in too many files.
fn problems(files: &[&SourceFile]) -> Vec<String> {
    let product: Vec<(&SourceFile, Vec<(usize, &str)>)> =
        files.iter().map(|file| (*file, file.product_lines().collect())).collect();
    let defined: Vec<(&SourceFile, Type<'_>)> =
        product.iter().flat_map(|(file, lines)| types(lines, &file.text).into_iter().map(|found| (*file, found))).collect();
    let mut places: BTreeMap<(&str, usize), BTreeSet<&str>> = BTreeMap::new();
    for (file, lines) in &product {
        for name in lines.iter().filter_map(|(_, line)| implemented(line)) {
            // Of several types of one name, the one that is nearest.
            let nearest =
                defined.iter().filter(|(_, found)| found.name == name).max_by_key(|(other, _)| common(&file.path, &other.path));
            if let Some((other, found)) = nearest {
                places.entry((&other.path, found.line)).or_default().insert(&file.path);
            }
        }
    }
    let mut problems = Vec::new();
    for (file, found) in defined.iter().filter(|(_, found)| !found.has_reason) {
        let place = format!("src/{}:{}: {}", file.path, found.line, found.name);
        if found.fields > MAX_FIELDS {
            problems.push(format!("{place} has {} fields: split it, or document \"{REASON}...\"", found.fields));
        }
        let files = places.get(&(file.path.as_str(), found.line)).filter(|files| files.len() > MAX_FILES);
        if let Some(files) = files {
            let files: Vec<&str> = files.iter().copied().collect();
            problems.push(format!("{place} is implemented in {}: join them, or document \"{REASON}...\"", files.join(", ")));
        }
    }
    problems
}

/// Length of the common beginning of two paths; the longest for the same.
fn common(one: &str, other: &str) -> usize {
    if one == other { usize::MAX } else { one.split('/').zip(other.split('/')).take_while(|(one, other)| one == other).count() }
}

#[test]
fn large_types_say_why_they_are_one() {
    let files = source_files();
    let mut crates: BTreeMap<&str, Vec<&SourceFile>> = BTreeMap::new();
    for file in &files {
        crates.entry(file.path.split('/').next().unwrap_or_default()).or_default().push(file);
    }
    crate::report(crates.values().flat_map(|files| problems(files)).collect());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<SourceFile> =
            files.iter().map(|(path, text)| SourceFile { path: (*path).to_owned(), text: (*text).to_owned() }).collect();
        problems(&files.iter().collect::<Vec<_>>())
    }

    fn with_fields(above: &str, fields: usize) -> String {
        let fields: String =
            (0..fields).map(|number| format!("    /// A field.\n    pub(in super::super) field_{number}: u8,\n")).collect();
        format!("{above}#[derive(Debug)]\npub(super) struct Large<'a> {{\n{fields}}}\n")
    }

    #[test]
    fn type_with_many_fields_needs_a_reason() {
        assert_eq!(found(&[("c/a.rs", &with_fields("/// Large.\n", 12))]), Vec::<String>::new());
        let problems = found(&[("c/a.rs", &with_fields("/// Large.\n", 13))]);
        assert_eq!(problems, ["src/c/a.rs:3: Large has 13 fields: split it, or document \"One type because ...\""]);
        for reason in
            ["/// Large.\n///\n/// One type because it is read at once.\n", "/// Large.\n// One type because it mirrors a file.\n"]
        {
            assert_eq!(found(&[("c/a.rs", &with_fields(reason, 13))]), Vec::<String>::new());
        }
    }

    #[test]
    fn type_implemented_in_many_files_needs_a_reason() {
        let uses = [
            "impl super::Large {\n}\n",
            "impl<T: Fn() -> u8> From<Large<T>> for u8 {\n}\nimpl<'a> fmt::Debug for &'a Large<u8> {\n}\n",
        ];
        let files = |above: &str| {
            let text = format!("{}impl Large<'_> {{\n}}\n", with_fields(above, 1));
            found(&[("c/a.rs", &text), ("c/b.rs", uses[0]), ("c/d.rs", uses[1]), ("c/tests.rs", "impl Large {\n}\n")])
        };
        assert_eq!(files("").len(), 1, "{:?}", files(""));
        assert_eq!(files("/// One type because it is.\n"), Vec::<String>::new());
    }

    #[test]
    fn types_of_one_name_are_told_apart() {
        let text = "struct Same;\nimpl Same {\n}\n";
        let files =
            [("c/a/mod.rs", text), ("c/a/one.rs", "impl Same {\n}\n"), ("c/b/mod.rs", text), ("c/b/one.rs", "impl Same {\n}\n")];
        assert_eq!(found(&files), Vec::<String>::new());
    }
}
