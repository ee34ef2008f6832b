//! Circles of files: files of one crate that need each other, so that none of them can be read without the others.
//!
//! A file needs another one when a path in its code leads there: in a `use`, or anywhere else. Re-exports are looked through: a path that
//! leads to a name that `mod.rs` only passes on leads to the file that has it, and `mod.rs` needs that file only if its own code has the
//! name. So `mod.rs` may call its children, and its children may import from `super` what another child declares; what they may not is
//! import what `mod.rs` itself declares: types, errors and constants that several files share stand in a file of their own.

use crate::source_tree::{SourceFile, source_files};
use std::collections::{BTreeMap, BTreeSet};

/// Files that may form a circle: a type and its two halves.
const MAX_FILES: usize = 3;

/// Path of a module from the root of its crate.
type Module = Vec<String>;

/// The paths that a name can stand for, by the names of one file.
type Names = BTreeMap<String, Vec<String>>;

/// Needed files, with the names that lead there.
type Edges = BTreeMap<Module, BTreeMap<Module, BTreeSet<String>>>;

/// The text without comments, without the content of literals, and without what is compiled for tests only.
fn bare(text: &str) -> Vec<String> {
    let letters: Vec<char> = text.chars().collect();
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(letter) = letters.get(at).copied() {
        let next = letters.get(at + 1).copied();
        let is_word = |letter: &char| letter.is_alphanumeric() || *letter == '_';
        if letter == '/' && next == Some('/') {
            at += letters[at..].iter().take_while(|letter| **letter != '\n').count();
        } else if letter == '"' {
            at = end_of_text(&letters, at + 1);
        } else if letter == '\'' {
            // A character, or else a lifetime.
            let length =
                if next == Some('\\') { 3 + letters[at + 3..].iter().take_while(|letter| **letter != '\'').count() } else { 2 };
            at += if letters.get(at + length) == Some(&'\'') { length + 1 } else { 1 };
        } else if is_word(&letter) {
            let word: String = letters[at..].iter().take_while(|letter| is_word(letter)).collect();
            at += word.chars().count();
            let hashes = letters[at..].iter().take_while(|letter| **letter == '#').count();
            if matches!(word.as_str(), "r" | "br") && letters.get(at + hashes) == Some(&'"') {
                at = end_of_raw_text(&letters, at + hashes + 1, hashes);
            } else {
                tokens.push(word);
            }
        } else if letter == ':' && next == Some(':') {
            tokens.push("::".to_owned());
            at += 2;
        } else {
            if !letter.is_whitespace() {
                tokens.push(letter.to_string());
            }
            at += 1;
        }
    }
    without_tests(tokens)
}

fn end_of_text(letters: &[char], mut at: usize) -> usize {
    while let Some(letter) = letters.get(at) {
        match letter {
            '\\' => at += 2,
            '"' => return at + 1,
            _ => at += 1,
        }
    }
    at
}

fn end_of_raw_text(letters: &[char], mut at: usize, hashes: usize) -> usize {
    while at < letters.len() {
        if letters[at] == '"' && letters[at + 1..].iter().take_while(|letter| **letter == '#').count() >= hashes {
            return at + 1 + hashes;
        }
        at += 1;
    }
    at
}

/// Leaves out each item that `#[cfg(test)]` or `#[cfg(any(test, ...))]` stands before.
fn without_tests(tokens: Vec<String>) -> Vec<String> {
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let is_at = |words: &[&str]| {
            words.iter().enumerate().all(|(index, word)| tokens.get(at + index).is_some_and(|token| token == word))
        };
        if is_at(&["#", "[", "cfg", "(", "test", ")"]) || is_at(&["#", "[", "cfg", "(", "any", "(", "test", ","]) {
            at = end_of_item(&tokens, end_of_group(&tokens, at + 1));
        } else {
            kept.push(tokens[at].clone());
            at += 1;
        }
    }
    kept
}

/// Returns the index behind the group that the bracket at `at` begins.
fn end_of_group(tokens: &[String], at: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        match token.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => {
                depth -= 1;
                if depth == 0 {
                    return index + 1;
                }
            }
            _ => {}
        }
    }
    tokens.len()
}

/// Returns the index behind an item: behind its block, or its semicolon or comma.
fn end_of_item(tokens: &[String], mut at: usize) -> usize {
    while let Some(token) = tokens.get(at) {
        match token.as_str() {
            ";" | "," => return at + 1,
            "}" => return at,
            "{" if tokens[..at].last().is_some_and(|before| before == "::") => at = end_of_group(tokens, at),
            "{" => return end_of_group(tokens, at),
            "(" | "[" => at = end_of_group(tokens, at),
            _ => at += 1,
        }
    }
    at
}

/// One file as far as paths go.
#[derive(Default)]
struct Code {
    /// Names that `use` brings into the file, private ones too: children may use them.
    names: Names,
    /// Modules of which all names are brought in.
    globs: Vec<Vec<String>>,
    /// Names that are passed on, by `pub use`.
    passed_on: BTreeSet<String>,
    /// Paths in the code, without those of `pub use`.
    paths: Vec<Vec<String>>,
    /// All words of the code beside `use`.
    words: BTreeSet<String>,
    /// Modules whose files are below this one.
    children: BTreeSet<String>,
}

impl Code {
    fn of(text: &str) -> Self {
        let tokens = bare(text);
        let mut code = Self::default();
        let (mut at, mut is_public) = (0, false);
        while let Some(token) = tokens.get(at) {
            let next = |distance: usize| tokens.get(at + distance).map(String::as_str);
            match token.as_str() {
                "pub" => {
                    is_public = true;
                    at += 1;
                    if tokens.get(at).is_some_and(|token| token == "(") {
                        at = end_of_group(&tokens, at);
                    }
                    continue;
                }
                "use" if next(1) != Some("<") => {
                    let end = at + tokens[at..].iter().take_while(|token| *token != ";").count();
                    code.add_use(&tokens[at + 1..end], &[], is_public);
                    at = end;
                }
                "mod" if next(2) == Some(";") => {
                    code.children.extend(next(1).map(str::to_owned));
                    at += 2;
                }
                word if is_name(word) => {
                    let mut path = vec![word.to_owned()];
                    code.words.insert(word.to_owned());
                    while next(2 * path.len() - 1) == Some("::") && next(2 * path.len()).is_some_and(is_name) {
                        path.extend(next(2 * path.len()).map(str::to_owned));
                    }
                    code.words.extend(path.iter().skip(1).cloned());
                    at += 2 * path.len() - 1;
                    if path.len() > 1 {
                        code.paths.push(path);
                    }
                    is_public = false;
                    continue;
                }
                _ => {}
            }
            is_public = false;
            at += 1;
        }
        code
    }

    /// Adds one tree of a `use`, such as `a::{b, c as d}`.
    fn add_use(&mut self, tokens: &[String], before: &[String], is_public: bool) {
        let mut path = before.to_vec();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            match token.as_str() {
                "{" => {
                    let inner = &tokens[at + 1..end_of_group(tokens, at) - 1];
                    let mut from = 0;
                    while from < inner.len() {
                        let end = end_of_tree(inner, from);
                        self.add_use(&inner[from..end], &path, is_public);
                        from = end + 1;
                    }
                    return;
                }
                "*" => {
                    self.globs.push(path);
                    return;
                }
                "as" => break,
                "::" => {}
                word => path.push(word.to_owned()),
            }
            at += 1;
        }
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let Some(last) = path.last().cloned() else { return };
        let name = tokens.get(at + 1).filter(|_| tokens.get(at).is_some_and(|token| token == "as")).cloned().unwrap_or(last);
        if is_public {
            self.passed_on.insert(name.clone());
        } else {
            self.paths.push(path.clone());
        }
        self.names.insert(name, path);
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|letter: char| letter.is_alphabetic() || letter == '_')
}

/// Returns the index of the comma behind a tree of a `use`, or the end.
fn end_of_tree(tokens: &[String], from: usize) -> usize {
    let mut at = from;
    while let Some(token) = tokens.get(at) {
        match token.as_str() {
            "," => return at,
            "{" => at = end_of_group(tokens, at),
            _ => at += 1,
        }
    }
    at
}

/// The files of one crate, by the paths of their modules.
struct Crate(BTreeMap<Module, Code>);

impl Crate {
    /// Reads a crate from its files, with paths from its folder.
    fn of<'a>(files: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let module = |path: &str| -> Module {
            let path = path.trim_end_matches(".rs").trim_end_matches("mod").trim_end_matches('/');
            let path = if matches!(path, "lib" | "main") { "" } else { path };
            path.split('/').filter(|part| !part.is_empty()).map(str::to_owned).collect()
        };
        let all: BTreeMap<Module, Code> = files.map(|(path, text)| (module(path), Code::of(text))).collect();
        // Files that are declared for tests only do not count.
        let is_product = |module: &Module| {
            (0..module.len()).all(|depth| all.get(&module[..depth]).is_some_and(|code| code.children.contains(&module[depth])))
        };
        let product: BTreeSet<Module> = all.keys().filter(|module| is_product(module)).cloned().collect();
        Self(all.into_iter().filter(|(module, _)| product.contains(module)).collect())
    }

    /// Returns the file that a path in `from` leads to; `None` for what is outside of the crate, or declared by `from` itself.
    fn resolve(&self, from: &[String], path: &[String], depth: usize) -> Option<Module> {
        const DEPTH: usize = 16;
        let (first, rest) = path.split_first()?;
        if depth > DEPTH {
            return None;
        }
        match first.as_str() {
            "crate" => self.descend(&[], rest, depth),
            "self" => self.descend(from, rest, depth),
            "super" => {
                let ups = path.iter().take_while(|part| *part == "super").count();
                self.descend(&from[..from.len().checked_sub(ups)?], &path[ups..], depth)
            }
            name => {
                let child = [from, &[name.to_owned()]].concat();
                let known = self.0.get(from)?.names.get(name);
                match known.filter(|known| known.as_slice() != path && !self.0.contains_key(&child)) {
                    Some(known) => self.resolve(from, &[known, rest].concat(), depth + 1),
                    None if self.0.contains_key(&child) => self.descend(&child, rest, depth),
                    None => None,
                }
            }
        }
    }

    fn descend(&self, module: &[String], path: &[String], depth: usize) -> Option<Module> {
        let Some((first, rest)) = path.split_first() else { return Some(module.to_vec()) };
        let child = [module, std::slice::from_ref(first)].concat();
        if self.0.contains_key(&child) {
            return self.descend(&child, rest, depth);
        }
        let code = self.0.get(module)?;
        match code.names.get(first) {
            Some(known) => self.resolve(module, &[known, rest].concat(), depth + 1),
            None => Some(module.to_vec()),
        }
    }

    fn edges(&self) -> Edges {
        let mut edges = Edges::new();
        for (module, code) in &self.0 {
            let own = code.names.iter().filter(|(name, _)| code.passed_on.contains(*name) && code.words.contains(*name));
            let globs = code.globs.iter();
            for path in code.paths.iter().chain(own.map(|(_, path)| path)).chain(globs) {
                let Some(other) = self.resolve(module, path, 0).filter(|other| other != module) else { continue };
                edges.entry(module.clone()).or_default().entry(other).or_default().extend(path.last().cloned());
            }
        }
        edges
    }

    /// The circles of more files than allowed, each with its edges.
    fn circles(&self) -> Vec<String> {
        let edges = self.edges();
        let reached: BTreeMap<&Module, BTreeSet<&Module>> =
            self.0.keys().map(|module| (module, reachable(&edges, module))).collect();
        let mut seen = BTreeSet::new();
        let mut circles = Vec::new();
        for (module, others) in &reached {
            let circle: BTreeSet<&Module> = others.iter().copied().filter(|other| reached[other].contains(module)).collect();
            if circle.len() > MAX_FILES && seen.insert(circle.clone()) {
                circles.push(shown(&circle, &edges));
            }
        }
        circles
    }
}

/// The files that are needed by the one of `from`, directly or not.
fn reachable<'a>(edges: &'a Edges, from: &Module) -> BTreeSet<&'a Module> {
    let mut reached = BTreeSet::new();
    let mut pending: Vec<&Module> = edges.get(from).into_iter().flat_map(BTreeMap::keys).collect();
    while let Some(module) = pending.pop() {
        if reached.insert(module) {
            pending.extend(edges.get(module).into_iter().flat_map(BTreeMap::keys));
        }
    }
    reached
}

fn shown(circle: &BTreeSet<&Module>, edges: &Edges) -> String {
    let name = |module: &Module| if module.is_empty() { "lib".to_owned() } else { module.join("/") };
    let mut lines = vec![format!("{} files form a circle:", circle.len())];
    for module in circle {
        for (other, names) in edges.get(*module).into_iter().flatten().filter(|(other, _)| circle.contains(other)) {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            lines.push(format!("    {} -> {}: {}", name(module), name(other), names.join(", ")));
        }
    }
    lines.join("\n")
}

#[test]
fn files_form_no_circle_of_more_than_three() {
    let mut crates: BTreeMap<&str, Vec<(&str, &str)>> = BTreeMap::new();
    let files = source_files();
    for SourceFile { path, text } in &files {
        if let Some((name, path)) = path.split_once('/').filter(|(name, _)| !matches!(*name, "bin")) {
            crates.entry(name).or_default().push((path, text));
        }
    }
    let circles = crates.into_iter().flat_map(|(name, files)| {
        let circles = Crate::of(files.into_iter()).circles();
        circles.into_iter().map(move |circle| format!("src/{name}: {circle}"))
    });
    crate::report(circles.collect());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn circles(files: &[(&str, &str)]) -> Vec<String> {
        Crate::of(files.iter().copied()).circles()
    }

    #[test]
    fn circle_through_what_mod_declares_is_found() {
        let found = circles(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\nuse a::f;\npub struct Error;\nfn g() { f(); b::f(); self::c::f() }"),
            ("a.rs", "use super::Error;\npub fn f() {}"),
            ("b.rs", "pub fn f() -> Result<(), crate::Error> { Ok(()) }"),
            ("c.rs", "use super::{Error as E, a};\npub fn f() {}"),
        ]);
        assert_eq!(found.len(), 1, "{found:?}");
        for edge in
            ["lib -> a: f", "lib -> b: f", "lib -> c: f", "a -> lib: Error", "b -> lib: Error", "c -> lib: Error", "c -> a: a"]
        {
            assert!(found[0].contains(edge), "{edge} is not in {}", found[0]);
        }
    }

    #[test]
    fn shared_types_in_a_leaf_form_no_circle() {
        let found = circles(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\nmod error;\npub use error::Error;\nuse a::f;\nfn g() { f(); b::f(); c::f() }"),
            ("a.rs", "use super::Error;"),
            ("b.rs", "use crate::Error;"),
            ("c.rs", "use super::{Error as E, a};"),
            ("error.rs", "pub struct Error;"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }

    #[test]
    fn name_passed_on_counts_where_it_is_used() {
        let files = |body: &str| {
            let root =
                format!("mod a;\nmod b;\nmod c;\npub use a::A;\npub use b::{{self, B}};\npub const LIMIT: usize = 1;\n{body}");
            let uses = "use super::LIMIT;";
            circles(&[("lib.rs", &root), ("a.rs", uses), ("b.rs", "use super::c;"), ("c.rs", "use super::{A, LIMIT};")])
        };
        assert_eq!(files(""), Vec::<String>::new());
        assert_eq!(files("fn f() -> A { B::new() }").len(), 1);
    }

    #[test]
    fn tests_comments_and_texts_are_no_edges() {
        let found = circles(&[
            ("lib.rs", "mod a;\nmod b;\nmod c;\n#[cfg(test)]\nmod tests;\npub struct S;\nfn f() { a::f(); b::f(); c::f() }"),
            (
                "a.rs",
                "// use super::S;\nfn f<'a>() -> &'a str { \"\\\"super::S\" }\n#[cfg(test)]\nmod tests { use super::super::S; fn g() {} }",
            ),
            ("b.rs", "fn f() { r#\"\"super::S\"#; '\"'; '\\''; }\n#[cfg(any(test, feature = \"testing\"))]\nuse super::{S};"),
            ("c.rs", "pub(in super::super) fn f() {}"),
            ("tests.rs", "use super::S;"),
        ]);
        assert_eq!(found, Vec::<String>::new());
    }
}
