//! Headers of answers: the range that a registry sends, the time that it asks to wait, and the next page of a list. **Pure**.

use jiff::Timestamp;
use jiff::fmt::rfc2822;
use std::time::Duration;

/// Longest query of a next page.
const QUERY_MAX: usize = 2048;
/// Longest wait that a registry can ask for.
const LONGEST_WAIT: Duration = Duration::from_secs(6 * 3600);

/// `Content-Range` of a partial answer (RFC 9110, 14.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentRange {
    /// Offset of the first byte; `None` in an answer that no byte of the range is there (`bytes */200`).
    pub start: Option<u64>,
    /// Length of the whole; `None` if it is unknown.
    pub total: Option<u64>,
}

/// Reads `bytes 100-199/200`, `bytes 100-199/*` and `bytes */200`.
pub fn content_range(text: &str) -> Option<ContentRange> {
    let (unit, rest) = text.trim().split_once(' ')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let (range, total) = rest.trim().split_once('/')?;
    let total = if total == "*" { None } else { Some(number(total)?) };
    if range == "*" {
        return total.map(|total| ContentRange { start: None, total: Some(total) });
    }
    let (start, end) = range.split_once('-')?;
    let (start, end) = (number(start)?, number(end)?);
    let is_inside = start <= end && total.is_none_or(|total| end < total);
    is_inside.then_some(ContentRange { start: Some(start), total })
}

/// Digits and nothing else: `parse` takes a sign, too.
fn number(text: &str) -> Option<u64> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

/// Reads `Retry-After` (RFC 9110, 10.2.3): seconds, or a date, which counts from the answer's own `Date`, for this host's clock may be wrong.
pub fn retry_after(text: &str, date: Option<&str>, now: Timestamp) -> Option<Duration> {
    let text = text.trim();
    let wait = match number(text) {
        Some(seconds) => Duration::from_secs(seconds),
        None => {
            let from = date.and_then(http_date).unwrap_or(now);
            // A date in the past means now.
            http_date(text)?.duration_since(from).try_into().unwrap_or(Duration::ZERO)
        }
    };
    Some(wait.min(LONGEST_WAIT))
}

/// Query of the next page of a list, from a `Link` header: `</v2/a/tags/list?n=100&last=b>; rel="next"`. Only the query counts: the page is
/// asked of the same host at the same path, whatever the link says.
pub fn next_page(link: &str) -> Option<&str> {
    let (target, parameters) = link.trim().strip_prefix('<')?.split_once('>')?;
    let is_next = |parameter: &str| matches!(parameter.trim(), "rel=\"next\"" | "rel=next");
    if !parameters.split(';').any(is_next) {
        return None;
    }
    let (_, query) = target.split_once('?')?;
    let is_good = |byte: u8| byte.is_ascii_graphic() && !b"#<>\"\\".contains(&byte);
    (!query.is_empty() && query.len() <= QUERY_MAX && query.bytes().all(is_good)).then_some(query)
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date(text: &str) -> Option<Timestamp> {
    // The day of the week may be wrong, as clocks of such servers are.
    let parser = rfc2822::DateTimeParser::new().relaxed_weekday(true);
    parser.parse_timestamp(text.trim()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ranges_are_read_strictly() {
        let range = |start, total| Some(ContentRange { start, total });
        for (text, wanted) in [
            ("bytes 100-199/200", range(Some(100), Some(200))),
            ("bytes 100-199/*", range(Some(100), None)),
            ("Bytes 0-0/1", range(Some(0), Some(1))),
            ("bytes */312055365", range(None, Some(312_055_365))),
            ("bytes */*", None),
            ("bytes 200-199/200", None),
            ("bytes 100-200/200", None),
            ("bytes +1-2/3", None),
            ("bytes 1-/3", None),
            ("items 1-2/3", None),
            ("bytes=1-2", None),
            ("", None),
        ] {
            assert_eq!(content_range(text), wanted, "{text}");
        }
    }

    #[test]
    fn date_counts_from_the_date_of_the_answer() {
        let now = "2026-11-28T12:00:00Z".parse().unwrap();
        let wait = |text: &str, date| retry_after(text, date, now).map(|wait| wait.as_secs());
        assert_eq!(wait("120", None), Some(120));
        assert_eq!(wait("Sun, 06 Nov 1994 08:50:37 GMT", Some("Sun, 06 Nov 1994 08:49:37 GMT")), Some(60));
        assert_eq!(wait("Sat, 28 Nov 2026 12:01:30 GMT", None), Some(90));
        assert_eq!(wait("Sat, 28 Nov 2026 11:00:00 GMT", None), Some(0), "in the past");
        assert_eq!(wait("Mon, 28 Nov 2050 11:00:00 GMT", None), Some(6 * 3600));
        assert_eq!(wait("99999999999999999999", None), None);
        assert_eq!(wait("4000000000", None), Some(6 * 3600));
        assert_eq!(wait("soon", None), None);
        assert_eq!(wait("-5", None), None);
    }

    #[test]
    fn only_the_query_of_a_next_page_counts() {
        for (link, query) in [
            (r#"</v2/a/tags/list?n=100&last=b>; rel="next""#, Some("n=100&last=b")),
            (r#" <https://other.lan/x?last=%2B>; title=a; rel=next"#, Some("last=%2B")),
            (r#"</v2/a/tags/list?n=1>; rel="prev""#, None),
            (r#"</v2/a/tags/list>; rel="next""#, None),
            (r#"</v2/a/tags/list?>; rel="next""#, None),
            (r#"</x?a b>; rel="next""#, None),
            (r#"</x?a#b>; rel="next""#, None),
            ("x", None),
        ] {
            assert_eq!(next_page(link), query, "{link}");
        }
        assert_eq!(next_page(&format!("</x?{}>; rel=next", "a".repeat(QUERY_MAX + 1))), None);
    }

    proptest! {
        #[test]
        fn no_header_makes_it_panic(text in "\\PC{0,40}|bytes [-0-9/*]{0,30}|[A-Z][a-z]{2}, [0-9]{1,2} [A-Z][a-z]{2} [0-9]{4} [0-9:]{8} GMT") {
            content_range(&text);
            retry_after(&text, Some(&text), Timestamp::UNIX_EPOCH);
            next_page(&text);
        }
    }
}
