//! Steps of a page.

/// One thing to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Commands.
    Run(String),
    /// A file with this content.
    Write { path: String, text: String },
    /// Lines at the end of a file.
    Append { path: String, text: String },
    /// Look until this command succeeds.
    Until(String),
}

/// The steps of a page, in order.
pub(crate) fn steps(page: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        if let Some(condition) = line.trim().strip_prefix("<!-- until: ").and_then(|rest| rest.strip_suffix(" -->")) {
            steps.push(Step::Until(condition.to_owned()));
        }
        let Some(fence) = line.trim_start().strip_prefix("```") else { continue };
        let indent = line.len() - line.trim_start().len();
        let text: String = lines
            .by_ref()
            .take_while(|line| line.trim() != "```")
            .map(|line| format!("{}\n", line.get(indent..).unwrap_or_default()))
            .collect();
        match fence.split_once(',').unwrap_or((fence, "")) {
            ("sh", "") => steps.push(Step::Run(text)),
            ("sh", "not-run") | ("text" | "yaml" | "ini" | "", "") => {}
            (_, more) => match more.split_once('=') {
                Some(("file", path)) => steps.push(Step::Write { path: path.to_owned(), text }),
                Some(("add", path)) => steps.push(Step::Append { path: path.to_owned(), text }),
                _ => panic!("a block fenced as {fence:?} is neither run nor left alone"),
            },
        }
    }
    steps
}

#[test]
fn blocks_files_and_conditions_are_found_in_order() {
    let page = "# Page\n\n```sh\na\nb\n```\n\n```sh,not-run\nreboot\n```\n<!-- until: true -->\n* x\n\n  ```yaml,file=/etc/x\n  k: v\n    w\n  ```\n";
    let expected =
        [Step::Run("a\nb\n".into()), Step::Until("true".into()), Step::Write { path: "/etc/x".into(), text: "k: v\n  w\n".into() }];
    assert_eq!(steps(page), expected);
}
