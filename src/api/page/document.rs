//! The page as HTML, within its size. **Pure**.

use super::escape::escape;
use crate::own::{SourceObject, UNREAD, refused_objects, since};
use crate::show::{PodRow, age_since};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use podstead_store::history::HistoryEntry;
use std::sync::LazyLock;

/// Bytes of the page, at most.
#[cfg(test)]
const MAX_BYTES: usize = 50_000;
/// Bytes of the rows of each part.
const POD_BYTES: usize = 18_000;
const EVENT_BYTES: usize = 10_000;
const SOURCE_BYTES: usize = 8_000;
const REVISION_BYTES: usize = 8_000;

const STYLE: &str = include_str!("style.css");

/// Content-Security-Policy: this style sheet and nothing else, in no frame, and no form.
pub(super) static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = STANDARD.encode(ring::digest::digest(&ring::digest::SHA256, STYLE.as_bytes()));
    format!("default-src 'none'; style-src 'sha256-{hash}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'")
});

/// Content of the page.
#[derive(Debug)]
pub(super) struct Facts {
    /// Name of this host.
    pub(super) node: String,
    /// The time for ages.
    pub(super) now: Timestamp,
    /// Error of the configuration file, if it is not in force.
    pub(super) config_error: Option<String>,
    /// Sources, with their revisions.
    pub(super) sources: Vec<SourceLine>,
    /// Pods, those that are not well first.
    pub(super) pods: Vec<PodLine>,
    /// Events, the newest first.
    pub(super) events: Vec<EventLine>,
}

/// A source.
#[derive(Debug)]
pub(super) struct SourceLine {
    pub(super) source: SourceObject,
    /// The newest revisions.
    pub(super) revisions: Vec<Revision>,
}

/// An accepted revision.
#[derive(Debug)]
pub(super) struct Revision {
    number: u64,
    revision: String,
    accepted_at: Timestamp,
    in_force: bool,
    refused: usize,
    subject: String,
}

impl Revision {
    /// From the history.
    pub(super) fn of(entry: &HistoryEntry) -> Self {
        Self {
            number: entry.number,
            revision: entry.revision.0.clone(),
            accepted_at: entry.accepted_at,
            in_force: entry.in_force,
            refused: entry.refused.len(),
            subject: entry.commit.as_ref().map(|commit| commit.subject.clone()).unwrap_or_default(),
        }
    }
}

/// A pod.
#[derive(Debug)]
pub(super) struct PodLine {
    pub(super) namespace: String,
    pub(super) name: String,
    pub(super) source: String,
    pub(super) created_at: Timestamp,
    pub(super) row: PodRow,
    /// Reason why it is not well.
    pub(super) reason: String,
}

/// An event.
#[derive(Debug)]
pub(super) struct EventLine {
    pub(super) seen_at: Option<Timestamp>,
    pub(super) is_warning: bool,
    pub(super) reason: String,
    pub(super) object: String,
    pub(super) message: String,
}

/// Colour of a cell.
#[derive(Clone, Copy, Debug)]
enum Tone {
    Plain,
    Good,
    Wait,
    Bad,
}

impl Tone {
    const fn class(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Good => " class=good",
            Self::Wait => " class=wait",
            Self::Bad => " class=bad",
        }
    }
}

/// Text of a cell, which is escaped when it is written.
type Cell = (String, Tone);

/// The page.
pub(super) fn render(facts: &Facts) -> String {
    let node = escape(&facts.node);
    let mut page = format!(
        "<!doctype html>\n<html lang=en><head><meta charset=utf-8><meta name=viewport content=\"width=device-width,initial-scale=1\">\
         <meta http-equiv=refresh content=10><title>{node}: podstead</title><style>{STYLE}</style></head><body>\n<h1>{node}</h1>\n"
    );
    let ill = facts.pods.iter().filter(|pod| !pod.row.is_well()).count();
    let failed = facts.sources.iter().filter(|line| has_failed(line)).count();
    page += &match (ill, failed) {
        (0, 0) => format!("<p class=good>All {} pods are well.</p>\n", facts.pods.len()),
        _ => format!(
            "<p class=bad>{ill} of {} pods are not well, {failed} of {} sources failed.</p>\n",
            facts.pods.len(),
            facts.sources.len()
        ),
    };
    if let Some(error) = &facts.config_error {
        page += &format!("<p class=bad>The configuration is not in force: {}</p>\n", escape(error));
    }
    part(&mut page, "Pods", &["Pod", "Ready", "Status", "Restarts", "Age", "Source"], pod_rows(facts), POD_BYTES);
    let headings = ["Source", "Revision", "Pods", "Rejected", "Contact", "Status"];
    part(&mut page, "Sources", &headings, facts.sources.iter().map(|line| source_row(line, facts.now)).collect(), SOURCE_BYTES);
    part(
        &mut page,
        "History",
        &["Source", "Number", "Revision", "Accepted", "State", "Subject"],
        revision_rows(facts),
        REVISION_BYTES,
    );
    let events = facts.events.iter().map(|event| event_row(event, facts.now)).collect();
    part(&mut page, "Events", &["Seen", "Reason", "Object", "Message"], events, EVENT_BYTES);
    page +=
        &format!("<p class=note>As of {}. The page only shows, and is renewed every 10 seconds.</p>\n</body></html>\n", facts.now);
    page
}

/// A table. Rows that do not fit are counted.
fn part(page: &mut String, title: &str, headings: &[&str], rows: Vec<Vec<Cell>>, limit: usize) {
    *page += &format!("<h2>{title}</h2>\n");
    if rows.is_empty() {
        *page += "<p class=note>None.</p>\n";
        return;
    }
    let headings_row: String = headings.iter().map(|heading| format!("<th>{heading}</th>")).collect();
    *page += &format!("<table><thead><tr>{headings_row}</tr></thead><tbody>\n");
    let (count, mut shown, mut bytes) = (rows.len(), 0, 0);
    for row in rows {
        let cells = row.iter().zip(headings).map(|((text, tone), heading)| {
            let text = escape(text);
            // An empty cell is not shown on a phone.
            format!("<td data-name={heading}{}>{text}</td>", tone.class())
        });
        let row = format!("<tr>{}</tr>\n", cells.collect::<String>());
        bytes += row.len();
        if bytes > limit {
            break;
        }
        *page += &row;
        shown += 1;
    }
    *page += "</tbody></table>\n";
    if shown < count {
        *page += &format!("<p class=note>And {} more.</p>\n", count - shown);
    }
}

fn plain(text: impl Into<String>) -> Cell {
    (text.into(), Tone::Plain)
}

fn pod_rows(facts: &Facts) -> Vec<Vec<Cell>> {
    let row = |line: &PodLine| {
        let PodLine { namespace, name, source, created_at, row, reason } = line;
        let tone = if row.is_well() { Tone::Good } else { Tone::Bad };
        let status = if reason.is_empty() { row.status.clone() } else { format!("{}: {reason}", row.status) };
        vec![
            plain(format!("{namespace}/{name}")),
            plain(row.ready_column()),
            (status, tone),
            plain(row.restarts_column(facts.now)),
            plain(age_since(Some(*created_at), facts.now)),
            plain(source.clone()),
        ]
    };
    facts.pods.iter().map(row).collect()
}

/// True if a fetch failed or objects were refused.
fn has_failed(line: &SourceLine) -> bool {
    let status = &line.source.status;
    status.last_error.is_some() || refused_objects(&status.problems) > 0
}

fn source_row(line: &SourceLine, now: Timestamp) -> Vec<Cell> {
    let SourceObject { metadata, spec, status, .. } = &line.source;
    let refused = refused_objects(&status.problems);
    let problem = status.problems.first().map(ToString::to_string).unwrap_or_default();
    let state = match (&status.last_error, &status.hold) {
        (Some(error), _) => (error.clone(), Tone::Bad),
        (None, Some(hold)) => (hold.kind.word().to_owned(), Tone::Wait),
        (None, None) if refused > 0 => (problem, Tone::Bad),
        (None, None) if status.is_unread() => (UNREAD.to_owned(), Tone::Wait),
        (None, None) => ("ok".to_owned(), Tone::Good),
    };
    vec![
        plain(format!("{} ({} {})", metadata.name, spec.kind, spec.location)),
        plain(short(status.accepted_revision.as_deref().unwrap_or("none"))),
        plain(status.pods.to_string()),
        (refused.to_string(), if refused > 0 { Tone::Bad } else { Tone::Plain }),
        plain(since(status.last_contact_at, now)),
        state,
    ]
}

fn revision_rows(facts: &Facts) -> Vec<Vec<Cell>> {
    let row = |source: &str, revision: &Revision| {
        let state = match (revision.in_force, revision.refused) {
            (true, 0) => ("in force".to_owned(), Tone::Good),
            (true, refused) => (format!("in force, {refused} rejected"), Tone::Bad),
            (false, 0) => plain("accepted"),
            (false, refused) => (format!("{refused} rejected"), Tone::Bad),
        };
        vec![
            plain(source),
            plain(revision.number.to_string()),
            plain(short(&revision.revision)),
            plain(age_since(Some(revision.accepted_at), facts.now)),
            state,
            plain(revision.subject.clone()),
        ]
    };
    let rows =
        |line: &SourceLine| line.revisions.iter().map(|revision| row(&line.source.metadata.name, revision)).collect::<Vec<_>>();
    facts.sources.iter().flat_map(rows).collect()
}

fn event_row(event: &EventLine, now: Timestamp) -> Vec<Cell> {
    vec![
        plain(age_since(event.seen_at, now)),
        (event.reason.clone(), if event.is_warning { Tone::Bad } else { Tone::Plain }),
        plain(event.object.clone()),
        plain(event.message.clone()),
    ]
}

/// A revision, long enough to tell it from others.
fn short(revision: &str) -> String {
    let digits = revision.split_once(':').map_or(revision, |(_, digits)| digits);
    digits.chars().take(12).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const HOSTILE: &str = "<img src=x onerror=alert(1)>\"'&</td></table><script>";

    fn facts(text: &str, count: usize) -> Facts {
        let status = json!({"pods": 1, "lastError": text, "problems": []});
        let source = || {
            let source = json!({
                "apiVersion": "v", "kind": "Source", "metadata": {"name": text}, "spec": {"kind": "git", "location": text}, "status": status,
            });
            serde_json::from_value(source).unwrap()
        };
        let revision = || Revision {
            number: 7,
            revision: text.to_owned(),
            accepted_at: Timestamp::UNIX_EPOCH,
            in_force: true,
            refused: 1,
            subject: text.to_owned(),
        };
        let pod = || PodLine {
            namespace: text.to_owned(),
            name: text.to_owned(),
            source: text.to_owned(),
            created_at: Timestamp::UNIX_EPOCH,
            row: PodRow { status: text.to_owned(), total: 1, ..PodRow::default() },
            reason: text.to_owned(),
        };
        let event = || EventLine {
            seen_at: None,
            is_warning: true,
            reason: text.to_owned(),
            object: text.to_owned(),
            message: text.to_owned(),
        };
        Facts {
            node: text.to_owned(),
            now: Timestamp::UNIX_EPOCH,
            config_error: Some(text.to_owned()),
            sources: (0..count).map(|_| SourceLine { source: source(), revisions: vec![revision()] }).collect(),
            pods: (0..count).map(|_| pod()).collect(),
            events: (0..count).map(|_| event()).collect(),
        }
    }

    #[test]
    fn hostile_text_is_only_text() {
        let page = render(&facts(HOSTILE, 2));
        assert!(!page.contains("<img") && !page.contains("<script") && page.contains("&lt;img src=x onerror=alert(1)&gt;"));
        let without = |page: &str, tag: &str| page.matches(tag).count();
        let harmless = render(&facts("a", 2));
        for tag in ["<td", "<table", "<tr", "<p", "<", "\"", "'"] {
            assert_eq!(without(&page, tag), without(&harmless, tag), "{tag}");
        }
    }

    #[test]
    fn page_stays_small_whatever_it_shows() {
        for text in ["a", &"'".repeat(5000), &"\u{10ffff}".repeat(5000)] {
            let page = render(&facts(text, 1000));
            assert!(page.len() < MAX_BYTES, "{} bytes", page.len());
            assert!(page.contains(" more.</p>") && page.ends_with("</html>\n"));
        }
    }

    #[test]
    fn page_asks_for_nothing() {
        let page = render(&facts("a", 1));
        for word in ["<script", "<link", "<form", "<a ", "<iframe", "src=", "href=", "url(", "@import", "style="] {
            assert!(!page.contains(word), "{word}");
        }
        let hash = POLICY.split("sha256-").nth(1).unwrap().split('\'').next().unwrap();
        let style = page.split("<style>").nth(1).unwrap().split("</style>").next().unwrap();
        let expected = STANDARD.encode(ring::digest::digest(&ring::digest::SHA256, style.as_bytes()));
        assert_eq!(hash, expected);
        let rest = POLICY.replace(hash, "");
        let expected = "default-src 'none'; style-src 'sha256-'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
        assert_eq!(rest, expected);
    }
}
