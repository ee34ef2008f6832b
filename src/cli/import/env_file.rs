//! Files with variables, as docker and podman read them.

use super::docker_run::add_variable;
use super::model::Service;
use super::text::read_text;
use std::path::Path;

/// Adds the variables of a file, which is called `name` in notes. One that is not required may be missing.
pub(super) fn add(service: &mut Service, name: &str, path: &Path, is_required: bool) {
    if !is_required && path.try_exists().is_ok_and(|exists| !exists) {
        return;
    }
    match read_text(path) {
        Ok(content) => variables(&content).iter().for_each(|(name, value)| add_variable(service, name, value)),
        Err(error) => service.note(format!("the file {name} with variables was not read: {}", error.root_cause())),
    }
}

/// The variables of a file. **Pure**.
pub(super) fn variables(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let pair = |line: &str| {
        let (name, value) = line.strip_prefix("export ").unwrap_or(line).split_once('=')?;
        Some((name.trim().to_owned(), value_of(value.trim())))
    };
    lines.filter_map(pair).collect()
}

/// A value without its quotes, or without the comment behind it.
fn value_of(text: &str) -> String {
    for quote in ['"', '\''] {
        if let Some((value, _)) = text.strip_prefix(quote).and_then(|rest| rest.split_once(quote)) {
            return value.to_owned();
        }
    }
    text.split_once(" #").map_or(text, |(value, _)| value.trim_end()).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_lose_quotes_and_comments() {
        let text = "# no\nA=1 # one\nexport B=\"two # words\" # x\nC='it''s'\nD=a#b\n\nE=\nF\n";
        let expected = [("A", "1"), ("B", "two # words"), ("C", "it"), ("D", "a#b"), ("E", "")];
        assert_eq!(variables(text), expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn missing_file_is_noted_if_required() {
        let mut service = Service::default();
        add(&mut service, "a.env", Path::new("/nonexistent/a.env"), false);
        assert_eq!(service.notes, [""; 0]);
        add(&mut service, "a.env", Path::new("/nonexistent/a.env"), true);
        assert!(service.notes[0].contains("a.env") && service.notes[0].contains("No such file"), "{:?}", service.notes);
    }
}
