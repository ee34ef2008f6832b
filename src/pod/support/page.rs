//! The page of the documentation, made from the table.

use super::{SECTIONS, Support};

const HEAD: &str = "\
# Which fields of a Pod podstead honours

Every field of a v1 Pod is in one of these states. None is passed over in silence: `podstead validate` and the daemon report what is set and not
honoured, with file, line and field.

| state | meaning |
|---|---|
| yes | it has the effect that it has in Kubernetes |
| partly | for the values that the note names; others are reported |
| ignored | it has no effect here and does no harm: a warning |
| refused | the pod would not be what its author wants: an error, and the last good version of the pod stays |

An entry that is ignored or refused stands for all fields below it. This page is made from the table in `src/pod/support/table.rs` by
`UPDATE=1 cargo test pod_support_page`.
";

/// The table of all fields as a page in Markdown: `docs/reference/pod-support.md`.
pub fn support_page() -> String {
    let mut page = HEAD.to_owned();
    for section in SECTIONS {
        let places: Vec<_> = section.places.iter().filter(|place| !place.is_empty()).map(|place| format!("`{place}`")).collect();
        page.extend(["\n## ", section.title, "\n\n"]);
        if !places.is_empty() {
            page.extend(["Fields of ", &places.join(" and "), ".\n\n"]);
        }
        page.push_str("| field | state | note |\n|---|---|---|\n");
        for (field, support) in section.fields {
            let (state, note) = state(support);
            page.extend(["| `", field, "` | ", state, " | ", &note, " |\n"]);
        }
    }
    page
}

fn state(support: &Support) -> (&'static str, String) {
    match support {
        Support::Honoured(note) => ("yes", (*note).to_owned()),
        Support::Partly { note, .. } => ("partly", (*note).to_owned()),
        Support::Ignored { reason, .. } => ("ignored", (*reason).to_owned()),
        Support::Refused { reason, instead: "" } => ("refused", (*reason).to_owned()),
        Support::Refused { reason, instead } => ("refused", format!("{reason}; {instead}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/reference/pod-support.md");

    #[test]
    fn the_pod_support_page_is_made_from_the_table() {
        let expected = support_page();
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(PATH, &expected).unwrap();
        }
        let written = std::fs::read_to_string(PATH).unwrap();
        assert!(written == expected, "{PATH} is not what the table says: run UPDATE=1 cargo test pod_support_page");
    }
}
