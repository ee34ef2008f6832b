//! The files below `src/`, as text.

use std::path::Path;

/// One file.
pub(crate) struct SourceFile {
    /// Path below `src/`.
    pub(crate) path: String,
    /// Its content.
    pub(crate) text: String,
}

/// All Rust files of the crates.
pub(crate) fn source_files() -> Vec<SourceFile> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&root).unwrap().to_str().unwrap().to_owned();
                files.push(SourceFile { path: name, text: std::fs::read_to_string(path).unwrap() });
            }
        }
    }
    assert!(files.len() > 20, "the walk found only {} files", files.len());
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

impl SourceFile {
    /// File name without ending.
    pub(crate) fn stem(&self) -> &str {
        self.path.rsplit('/').next().unwrap().trim_end_matches(".rs")
    }

    /// True if the file is one of `places` (folder, or file without ending) or lies in one.
    pub(crate) fn is_below(&self, places: &[&str]) -> bool {
        let path = self.path.trim_end_matches(".rs");
        places.iter().any(|place| path == *place || path.strip_prefix(place).is_some_and(|rest| rest.starts_with('/')))
    }

    /// Numbered lines without comments.
    pub(crate) fn code_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line))
            .filter(|(_, line)| !line.trim_start().starts_with("//"))
    }

    /// Functions of the product: line, name, and number of lines. The code is formatted, so that a function ends with a brace
    /// below its beginning.
    pub(crate) fn product_functions(&self) -> impl Iterator<Item = (usize, &str, usize)> {
        let lines: Vec<(usize, &str)> = self.product_lines().collect();
        let mut found = Vec::new();
        for (index, (number, line)) in lines.iter().enumerate() {
            let indent = line.len() - line.trim_start().len();
            let words = line.trim_start().split_once("fn ").filter(|(before, _)| {
                before.split_whitespace().all(|word| {
                    matches!(word, "pub" | "const" | "async" | "unsafe" | "extern" | "\"C\"")
                        || word.starts_with("pub(")
                        || matches!(word, "super)" | "super::super)" | "super::super::super)" | "in")
                })
            });
            let Some((_, rest)) = words else { continue };
            let name = rest.split(|letter: char| !letter.is_alphanumeric() && letter != '_').next().unwrap_or_default();
            let end = lines[index..].iter().find(|(_, line)| {
                let is_at_level = line.len() - line.trim_start().len() == indent;
                is_at_level && (line.trim_end().ends_with(['}', ';']))
            });
            if let Some((end, _)) = end {
                found.push((*number, name, end - number + 1));
            }
        }
        found.into_iter()
    }

    /// Code lines without items that are compiled for tests only; files that are tests as a whole have none.
    pub(crate) fn product_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let is_test = matches!(self.stem(), "tests" | "testing" | "properties" | "proptests")
            || self.stem().ends_with("_test")
            || self.path.contains("/tests/");
        let lines: Vec<(usize, &str)> = self.code_lines().filter(|_| !is_test).collect();
        let mut product = Vec::new();
        let mut at = 0;
        while let Some((number, line)) = lines.get(at) {
            if line.trim_start().starts_with("#[cfg(test)]") || line.trim_start().starts_with("#[cfg(any(test") {
                at = end_of_item(&lines, at);
            } else {
                product.push((*number, *line));
                at += 1;
            }
        }
        product.into_iter()
    }
}

/// Index behind the item whose attributes begin at `at`. The code is formatted: an item ends in the line in which it begins, or with a bracket below
/// its beginning.
fn end_of_item(lines: &[(usize, &str)], at: usize) -> usize {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let level = indent(lines[at].1);
    let attributes =
        lines[at..].iter().take_while(|(_, line)| indent(line) > level || line.trim_start().starts_with(['#', ')', ']']));
    let begin = at + attributes.count();
    // The module of tests is the last item, and its texts may have anything at the beginning of a line.
    if level == 0 && lines.get(begin).is_some_and(|(_, line)| line.starts_with("mod ") && line.trim_end().ends_with('{')) {
        return lines.len();
    }
    let ends = |line: &str| indent(line) == level && line.trim_end().ends_with([';', ',', '}']);
    let inside = lines[begin..].iter().take_while(|(_, line)| line.is_empty() || !ends(line));
    begin + inside.count() + 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_items_for_tests_are_left_out() {
        let text = "mod a;\n#[cfg(test)]\nmod tests;\nmod b;\n#[cfg(any(test, feature = \"testing\"))]\n#[derive(Debug)]\npub struct S {\n    \
                    a: u8,\n}\nfn f() {\n    #[cfg(test)]\n    g();\n    h();\n}\n#[cfg(test)]\nfn long(\n    a: u8,\n) {\n    x();\n}\nfn i() {}\n\
                    #[cfg(test)]\nmod more {\n    mod c;\n\n    fn d() {}\n}\n";
        let file = SourceFile { path: "x/y.rs".into(), text: text.into() };
        let lines: Vec<&str> = file.product_lines().map(|(_, line)| line.trim()).collect();
        assert_eq!(lines, ["mod a;", "mod b;", "fn f() {", "h();", "}", "fn i() {}"]);
        let file = SourceFile { path: "x/tests.rs".into(), ..file };
        assert_eq!(file.product_lines().count(), 0);
    }
}
