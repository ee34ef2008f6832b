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

    /// Functions before the file's test module: line, name, and number of lines. The code is formatted, so that a function ends with a brace
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

    /// Code lines before the file's test module; files that are tests as a whole have none.
    pub(crate) fn product_lines(&self) -> impl Iterator<Item = (usize, &str)> {
        let is_test = matches!(self.stem(), "tests" | "testing" | "properties" | "proptests")
            || self.stem().ends_with("_test")
            || self.path.contains("/tests/");
        self.code_lines()
            .take_while(move |(_, line)| !is_test && !line.contains("#[cfg(test)]") && !line.contains("#[cfg(any(test"))
    }
}
