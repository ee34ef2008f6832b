//! Problems as text with the line they are in, as JSON, as annotations of GitHub Actions.

use super::Findings;
use crate::printable::printable;
use podstead_manifest::Problem;
use podstead_pod::{Position, Severity};
use serde::Serialize;
use std::io::{self, Write};

/// A file without this word holds no Secret.
const SECRET: &[u8] = b"Secret";

/// The longest part of a line that is shown, in characters.
const SNIPPET: usize = 100;

/// Problems for people. `contents` gives the bytes of a file.
pub(super) fn text(
    out: &mut impl Write,
    problems: &[Problem],
    contents: &impl Fn(&str) -> Option<Vec<u8>>,
    color: bool,
) -> io::Result<()> {
    let (red, yellow, blue, plain) = if color { ("\x1b[1;31m", "\x1b[1;33m", "\x1b[1;34m", "\x1b[0m") } else { ("", "", "", "") };
    for problem in problems {
        let line = problem.to_string();
        let (word, paint) = match problem.severity {
            Severity::Error => (format!("error[{}]", problem.code), red),
            Severity::Warning => (format!("warning[{}]", problem.code), yellow),
        };
        // File names may hold the word too; the first one behind the place is ours.
        let place = line.find(&format!(": {word}: ")).map_or(0, |at| at + 2);
        let (before, after) = line.split_at(place);
        writeln!(out, "{before}{paint}{}{plain}{}", &after[..word.len()], &after[word.len()..])?;
        // Lines of a Secret are not shown, nor lines that may belong to one.
        let may_be_secret = |bytes: &[u8]| match &problem.object {
            Some(object) => object.kind == "Secret",
            None => bytes.windows(SECRET.len()).any(|word| word == SECRET),
        };
        let content = contents(&problem.file).filter(|bytes| !may_be_secret(bytes));
        let shown = problem.position.and_then(|position| Some((position, snippet(content.as_ref()?, position)?)));
        if let Some((position, (text, column))) = shown {
            let number = position.line.to_string();
            writeln!(out, "{blue}{number} |{plain} {text}")?;
            writeln!(out, "{blue}{:width$} |{plain} {:column$}{paint}^{plain}", "", "", width = number.len())?;
        }
    }
    Ok(())
}

/// The part of the line around a position, and the column of the position in it, from 0.
fn snippet(bytes: &[u8], position: Position) -> Option<(String, usize)> {
    let (line, column) = (position.line as usize - 1, position.column as usize - 1);
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let line = bytes.split(|byte| *byte == b'\n').nth(line)?;
    let begin = column.saturating_sub(SNIPPET * 3 / 4);
    let line = String::from_utf8_lossy(line);
    let text = printable(&line.trim_end().chars().skip(begin).take(SNIPPET).collect::<String>());
    (!text.trim().is_empty()).then_some((text, column - begin))
}

#[derive(Serialize)]
struct Document<'a> {
    problems: &'a [Problem],
    summary: Summary,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    files: usize,
    pods: usize,
    config_maps: usize,
    secrets: usize,
    claims: usize,
    workloads: usize,
    network_objects: usize,
    errors: usize,
    warnings: usize,
}

/// One document: `problems` and `summary`.
pub(super) fn json(out: &mut impl Write, findings: &Findings) -> io::Result<()> {
    let summary = Summary {
        files: findings.files,
        pods: findings.pods,
        config_maps: findings.config_maps,
        secrets: findings.secrets,
        claims: findings.claims,
        workloads: findings.workloads,
        network_objects: findings.network,
        errors: findings.count(Severity::Error),
        warnings: findings.count(Severity::Warning),
    };
    serde_json::to_writer_pretty(&mut *out, &Document { problems: &findings.problems, summary })?;
    writeln!(out)
}

/// Workflow commands of GitHub Actions.
pub(crate) fn github(out: &mut impl Write, problems: &[Problem]) -> io::Result<()> {
    for problem in problems {
        let command = match problem.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        write!(out, "::{command} file={}", property(&problem.file))?;
        if let Some(Position { line, column }) = problem.position {
            write!(out, ",line={line},col={column}")?;
        }
        let field = if problem.field.is_empty() { String::new() } else { format!("{}: ", problem.field) };
        let hint = problem.hint.as_ref().map(|hint| format!(" ({hint})")).unwrap_or_default();
        let message = escaped(&format!("{field}{}{hint}", problem.message));
        writeln!(out, ",title={}::{message}", property(&problem.code))?;
    }
    Ok(())
}

fn escaped(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

fn property(text: &str) -> String {
    escaped(text).replace(':', "%3A").replace(',', "%2C")
}

/// `3 files: 5 valid pods, 1 config map; 2 errors, 1 warning`
pub(super) fn summary(findings: &Findings) -> String {
    let count = |number: usize, word: &str| match number {
        1 => format!("1 {word}"),
        _ => format!("{number} {word}s"),
    };
    let found = [
        (findings.pods, "pod"),
        (findings.workloads, "workload"),
        (findings.network, "network object"),
        (findings.config_maps, "config map"),
        (findings.secrets, "secret"),
        (findings.claims, "claim"),
    ];
    let mut found = found.into_iter().filter(|(number, _)| *number > 0);
    let (number, word) = found.next().unwrap_or((0, "pod"));
    let mut objects = vec![count(number, &format!("valid {word}"))];
    objects.extend(found.map(|(number, word)| count(number, word)));
    let (errors, warnings) = (findings.count(Severity::Error), findings.count(Severity::Warning));
    let mut verdict = vec![count(errors, "error")];
    if warnings > 0 {
        verdict.push(count(warnings, "warning"));
    }
    format!("{}: {}; {}", count(findings.files, "file"), objects.join(", "), verdict.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(line: u32, column: u32) -> Problem {
        Problem {
            severity: Severity::Error,
            code: "unknown-field".to_owned(),
            file: "web.yaml".to_owned(),
            position: Some(Position { line, column }),
            field: "spec.hostNetwrok".to_owned(),
            message: "100% unknown\nfield".to_owned(),
            hint: None,
            object: None,
        }
    }

    fn rendered(file: &[u8], problem: Problem, color: bool) -> String {
        let mut out = Vec::new();
        text(&mut out, &[problem], &|_| Some(file.to_vec()), color).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_problem_is_shown_with_its_line_and_a_mark() {
        let mut found = problem(2, 3);
        found.message = "unknown field".to_owned();
        let text = rendered(b"spec:\n  hostNetwrok: true\r\n", found.clone(), false);
        let expected = "web.yaml:2:3: error[unknown-field]: spec.hostNetwrok: unknown field\n2 |   hostNetwrok: true\n  |   ^\n";
        assert_eq!(text, expected);
        assert!(rendered(b"", found, true).starts_with("web.yaml:2:3: \x1b[1;31merror[unknown-field]\x1b[0m: spec"));
    }

    #[test]
    fn a_long_line_is_cut_around_its_mark_and_control_characters_do_not_reach_the_terminal() {
        let line = format!("{}\x1bX{}", "a".repeat(500), "b".repeat(500));
        let text = rendered(line.as_bytes(), problem(1, 502), false);
        let (shown, mark) = text
            .lines()
            .skip(2)
            .collect::<Vec<_>>()
            .join("\n")
            .split_once('\n')
            .map_or((String::new(), String::new()), |(a, b)| (a.to_owned(), b.to_owned()));
        assert!(shown.chars().count() <= SNIPPET + 4, "{shown}");
        assert!(!text.contains('\x1b'));
        assert_eq!(shown.chars().nth(mark.find('^').unwrap()), Some('X'));
    }

    #[test]
    fn summary_counts_what_was_found() {
        let of =
            |pods, workloads, config_maps| summary(&Findings { files: 1, pods, workloads, config_maps, ..Findings::default() });
        assert_eq!(of(0, 0, 0), "1 file: 0 valid pods; 0 errors");
        assert_eq!(of(1, 2, 1), "1 file: 1 valid pod, 2 workloads, 1 config map; 0 errors");
        assert_eq!(of(0, 1, 2), "1 file: 1 valid workload, 2 config maps; 0 errors");
    }

    #[test]
    fn annotations_are_escaped() {
        let mut out = Vec::new();
        let mut found = problem(2, 3);
        found.file = "a,b:c.yaml".to_owned();
        github(&mut out, &[found]).unwrap();
        let expected = "::error file=a%2Cb%3Ac.yaml,line=2,col=3,title=unknown-field::spec.hostNetwrok: 100%25 unknown%0Afield\n";
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
