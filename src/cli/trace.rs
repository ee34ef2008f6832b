//! `podstead trace`: the steps of the last start or change of a pod, and the time that each took.

use super::Context;
use super::client::{Client, OWN, Target};
use super::output::Form;
use super::pods::{PodNamespaceArgs, find, name_of, namespace_of};
use super::table::{Cell, Style, Table};
use clap::Args;
use podstead_api::PodTraceObject;
use podstead_telemetry::trace::{Cause, Share, Span, Trace};
use std::io::{self, Write};
use std::process::ExitCode;
use std::time::Duration;

/// Pause between two looks of `--watch`.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Shares below this many thousandths are summed up.
const SMALL: u64 = 10;

/// Arguments.
#[derive(Debug, Args)]
pub(super) struct TraceArgs {
    /// Name of the pod, of which the "-<node>" suffix may be omitted
    #[arg(value_name = "POD")]
    pod: String,
    #[command(flatten)]
    namespace: PodNamespaceArgs,
    /// Show the last start, the last change and the last restart, not only the newest of them
    #[arg(long)]
    all: bool,
    /// Show further traces of the pod when they are complete, until interrupted
    #[arg(short, long, conflicts_with = "all")]
    watch: bool,
    /// Output format
    #[arg(short, long, default_value = "text")]
    output: Form,
}

pub(super) fn run(args: &TraceArgs, context: &Context) -> anyhow::Result<ExitCode> {
    let (client, color) = (context.client()?, context.color());
    context.block_on(async {
        let pod = find(&client, &args.pod, args.namespace.namespace.as_deref()).await?;
        let target = Target::new(OWN, &["namespaces", namespace_of(&pod), "pods", name_of(&pod), "trace"]);
        let mut object: PodTraceObject = client.get(target.clone()).await?;
        let mut is_first = true;
        loop {
            let mut out = io::stdout().lock();
            match &args.output {
                Form::Structured(form) => form.write(&mut out, &serde_json::to_value(&object)?, "traces")?,
                Form::Text => {
                    if !std::mem::take(&mut is_first) {
                        writeln!(out)?;
                    }
                    write(&mut out, &object, args.all, color)?;
                }
            }
            out.flush()?;
            drop(out);
            if !args.watch {
                return Ok(ExitCode::SUCCESS);
            }
            object = next(&client, &target, object.traces.first()).await?;
        }
    })
}

/// Waits for another trace that is complete.
async fn next(client: &Client, target: &Target, last: Option<&Trace>) -> anyhow::Result<PodTraceObject> {
    let identity = |trace: &Trace| (trace.began_at, trace.is_complete);
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let object: PodTraceObject = client.get(target.clone()).await?;
        if object.traces.first().is_some_and(|trace| trace.is_complete && Some(identity(trace)) != last.map(identity)) {
            return Ok(object);
        }
    }
}

fn write(out: &mut impl Write, object: &PodTraceObject, all: bool, color: bool) -> io::Result<()> {
    let PodTraceObject { metadata, reason, traces, .. } = object;
    if let Some(reason) = reason {
        return writeln!(out, "No trace of pod {}: {reason}.", metadata.name);
    }
    for (index, trace) in traces.iter().take(if all { usize::MAX } else { 1 }).enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        write_trace(out, &metadata.name, trace, color)?;
    }
    Ok(())
}

fn write_trace(out: &mut impl Write, pod: &str, trace: &Trace, color: bool) -> io::Result<()> {
    let cause = match trace.cause {
        Cause::Start => "start",
        Cause::Change => "change",
        Cause::Restart => "restart",
    };
    let end = if trace.is_complete { "" } else { " so far" };
    let title = format!("{cause} of pod {pod} at {:.3}: {}{end}", trace.began_at, duration(trace.micros));
    writeln!(out, "{}\n", Style::Bold.paint(&title, color))?;
    let rows: Vec<Vec<Cell>> = trace.spans.iter().map(row).collect();
    Table::new(vec!["AT", "TOOK", "STEP", "OF"], color).write(out, &rows)?;
    if trace.omitted_spans > 0 {
        writeln!(out, "{} more steps", trace.omitted_spans)?;
    }
    writeln!(out, "\nShares of the time, each moment counted once:")?;
    for (share, micros) in shares(&trace.shares, trace.micros) {
        let percent = (micros * 1000).checked_div(trace.micros).unwrap_or(0);
        writeln!(out, "{:>3}.{} %  {:>10}  {share}", percent / 10, percent % 10, duration(micros))?;
    }
    Ok(())
}

fn row(span: &Span) -> Vec<Cell> {
    let indent = if span.step.part_of().is_some() { "- " } else { "" };
    let style = if span.step.is_wait() { Style::Pending } else { Style::Plain };
    vec![
        duration(span.start_micros).into(),
        duration(span.micros).into(),
        Cell::styled(format!("{indent}{}", span.step.words()), style),
        span.about.as_deref().unwrap_or_default().into(),
    ]
}

/// The shares in words, the small ones as one.
fn shares(shares: &[Share], total: u64) -> Vec<(&'static str, u64)> {
    let is_small = |share: &&Share| share.micros * 1000 < total * SMALL;
    let mut shown: Vec<_> = shares
        .iter()
        .filter(|share| !is_small(share))
        .map(|share| (share.step.map_or("between steps", |step| step.words()), share.micros))
        .collect();
    let rest: u64 = shares.iter().filter(is_small).map(|share| share.micros).sum();
    shown.extend((rest > 0).then_some(("other steps", rest)));
    shown
}

/// `0.1 ms`, `26.4 ms`, `2.31 s`.
fn duration(micros: u64) -> String {
    match micros {
        0..10_000_000 => format!("{}.{} ms", micros / 1000, micros % 1000 / 100),
        _ => format!("{}.{:02} s", micros / 1_000_000, micros % 1_000_000 / 10_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use podstead_api::PodTraceMetadata;
    use podstead_telemetry::trace::Step;

    fn object(traces: Vec<Trace>) -> PodTraceObject {
        let metadata = PodTraceMetadata { name: "web-edge".into(), namespace: "default".into(), uid: "u".into() };
        let reason = traces.is_empty().then(|| "the pod was started before".to_owned());
        PodTraceObject { api_version: String::new(), kind: String::new(), metadata, reason, traces }
    }

    fn text(object: &PodTraceObject) -> String {
        let mut out = Vec::new();
        write(&mut out, object, false, false).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn steps_and_shares_are_shown() {
        let span =
            |step, about: Option<&str>, start_micros, micros| Span { step, about: about.map(Into::into), start_micros, micros };
        let spans = vec![
            span(Step::Notice, None, 0, 5_200),
            span(Step::Container, Some("web"), 5_200, 14_800),
            span(Step::ContainerCreate, Some("web"), 8_000, 9_960),
        ];
        let trace = Trace {
            cause: Cause::Start,
            began_at: "2026-01-02T03:04:05.678901Z".parse().unwrap(),
            is_complete: true,
            micros: 20_000,
            shares: podstead_telemetry::trace::shares(&spans, 20_000),
            spans,
            omitted_spans: 0,
        };
        let expected = "\
start of pod web-edge at 2026-01-02T03:04:05.678Z: 20.0 ms

AT       TOOK      STEP                                 OF
0.0 ms   5.2 ms    notice the change                    
5.2 ms   14.8 ms   start the container                  web
8.0 ms   9.9 ms    - create the container (libcontainer)   web

Shares of the time, each moment counted once:
 49.8 %      9.9 ms  create the container (libcontainer)
 26.0 %      5.2 ms  notice the change
 24.2 %      4.8 ms  start the container
";
        let squeezed =
            |text: &str| text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect::<Vec<_>>();
        assert_eq!(squeezed(&text(&object(vec![trace]))), squeezed(expected));
    }

    #[test]
    fn pod_without_trace_says_why() {
        assert_eq!(text(&object(Vec::new())), "No trace of pod web-edge: the pod was started before.\n");
    }

    #[test]
    fn durations_are_short() {
        assert_eq!([0, 99, 26_450, 9_999_999, 62_310_000].map(duration), ["0.0 ms", "0.0 ms", "26.4 ms", "9999.9 ms", "62.31 s"]);
    }
}
