//! The cluster in `podstead status`. **Pure**.

use crate::table::Style;
use jiff::Timestamp;
use podstead_api::show::age_since;
use podstead_status::{NodeStanding, UpstreamStatus};
use std::fmt::Write;

/// A few lines; only the first one when all is well.
pub(super) fn write(text: &mut String, upstream: &UpstreamStatus, now: Timestamp, color: bool) -> std::fmt::Result {
    let UpstreamStatus { server, connected, since, node, node_error, watch_error, pods, mirrors, problems } = upstream;
    writeln!(text, "{}", Style::Bold.paint(&format!("cluster {server}"), color))?;
    let since = since.map(|since| format!(" for {}", age_since(Some(since), now))).unwrap_or_default();
    let connection = if *connected { format!("connected{since}") } else { format!("not connected{since}") };
    let standing = match node {
        NodeStanding::Unknown => "node not registered yet",
        NodeStanding::Registered => "node registered",
        NodeStanding::StandBy => "another agent renews the Lease of this node",
    };
    let style = if upstream.is_well() { Style::Good } else { Style::Pending };
    writeln!(text, "  {}, {standing}, mirrors {mirrors}/{pods}", style.paint(&connection, color))?;
    for error in [node_error, watch_error].into_iter().flatten() {
        writeln!(text, "  {}", Style::Bad.paint(error, color))?;
    }
    if !*connected {
        writeln!(text, "      pods keep running; mirror pods are updated when the cluster responds")?;
    }
    for problem in problems {
        writeln!(text, "  {}", Style::Bad.paint(problem, color))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(upstream: &UpstreamStatus) -> String {
        let mut text = String::new();
        write(&mut text, upstream, Timestamp::from_second(60).unwrap(), false).unwrap();
        text
    }

    #[test]
    fn a_cluster_that_answers_takes_two_lines_and_one_that_does_not_says_why() {
        let well = UpstreamStatus {
            server: "https://api.lan/".into(),
            connected: true,
            since: Some(Timestamp::UNIX_EPOCH),
            node: NodeStanding::Registered,
            pods: 3,
            mirrors: 3,
            ..UpstreamStatus::default()
        };
        assert_eq!(text(&well), "cluster https://api.lan/\n  connected for 60s, node registered, mirrors 3/3\n");
        let away = UpstreamStatus {
            connected: false,
            mirrors: 1,
            watch_error: Some("cannot connect to api.lan: refused".into()),
            problems: vec!["shop/web-edge: cannot create mirror pod: the API server returned 404: no namespace".into()],
            ..well
        };
        assert_eq!(
            text(&away),
            "cluster https://api.lan/\n  not connected for 60s, node registered, mirrors 1/3\n  cannot connect to api.lan: refused\n      \
             pods keep running; mirror pods are updated when the cluster responds\n  \
             shop/web-edge: cannot create mirror pod: the API server returned 404: no namespace\n"
        );
    }
}
