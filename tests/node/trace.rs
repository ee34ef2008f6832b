//! `podstead trace`: steps of real pods. No durations are compared: only what is there, in which order, and that it adds up.

use crate::support::{TestHost, eventually};
use serde_json::Value;

fn pod(value: &str, script: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: timed}}\nspec:\n  terminationGracePeriodSeconds: 1\n  containers:\n    - name: main\n      \
         image: localhost/busybox:1\n      command: [sh, -c, '{script}']\n      env: [{{name: VALUE, value: \"{value}\"}}]\n"
    )
}

/// Its newest trace, once that is complete, of this cause, and has these steps.
fn trace(host: &TestHost, cause: &str, steps: &[&str]) -> Value {
    eventually(&format!("a complete trace of a {cause}"), || {
        let out = host.cli(&["trace", "timed", "-o", "json"]);
        let object: Value = serde_json::from_slice(&out.stdout).unwrap_or_default();
        let newest = object["traces"][0].clone();
        let has_steps = steps.iter().all(|step| position(&newest, step).is_some());
        if newest["cause"] == cause && newest["isComplete"] == true && has_steps { Ok(newest) } else { Err(format!("{object:#}")) }
    })
}

fn spans(trace: &Value) -> &[Value] {
    trace["spans"].as_array().map(Vec::as_slice).unwrap_or_default()
}

fn position(trace: &Value, step: &str) -> Option<usize> {
    spans(trace).iter().position(|span| span["step"] == step)
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Each step begins when the one before it in this list is over.
fn assert_one_after_the_other(trace: &Value, steps: &[&str]) {
    let ends = |step: &str| {
        let span = &spans(trace)[position(trace, step).unwrap_or_else(|| panic!("no {step} in {trace:#}"))];
        (number(&span["startMicros"]), number(&span["startMicros"]) + number(&span["micros"]))
    };
    for pair in steps.windows(2) {
        let ((_, end), (start, _)) = (ends(pair[0]), ends(pair[1]));
        assert!(end <= start, "{} ends at {end}, {} begins at {start}: {trace:#}", pair[0], pair[1]);
    }
}

fn assert_adds_up(trace: &Value) {
    let shares = trace["shares"].as_array().unwrap();
    assert_eq!(shares.iter().map(|share| number(&share["micros"])).sum::<u64>(), number(&trace["micros"]), "{trace:#}");
    let last = spans(trace).iter().map(|span| number(&span["startMicros"]) + number(&span["micros"])).max();
    assert_eq!(last, Some(number(&trace["micros"])));
    assert_eq!(trace["omittedSpans"], 0);
}

#[test]
fn start_change_and_restart_are_traced() {
    let mut host = TestHost::start();
    eventually("the image to be listed", || {
        let list = host.cli_ok(&["image", "ls"]);
        if list.contains("localhost/busybox") { Ok(()) } else { Err(list) }
    });
    host.write_manifest("timed.yaml", &pod("1", "echo up; exec sleep 1000000"));
    let start = trace(&host, "Start", &["FirstOutput"]);
    assert_one_after_the_other(
        &start,
        &["Notice", "Read", "AwaitIntake", "Check", "Accept", "Merge", "AwaitTurn", "Plan", "Record", "Container"],
    );
    assert_one_after_the_other(&start, &["SandboxPrepare", "ShimStart", "ShimConnect", "Network", "Assemble", "HelperStart"]);
    assert_one_after_the_other(
        &start,
        &["HelperStart", "ContainerPrepare", "ContainerCreate", "AwaitStartRecord", "ContainerExecute"],
    );
    // It may be read before the helper sees that the program was executed.
    assert!(position(&start, "FirstOutput") > position(&start, "ContainerExecute"), "{start:#}");
    // The program is not executed before the record of its start is durable.
    assert_one_after_the_other(&start, &["Record", "StartRecord", "ContainerExecute"]);
    for step in ["ImageCheck", "Volumes", "Sandbox", "SandboxRecord", "NetworkRecord"] {
        assert!(position(&start, step).is_some(), "no {step} in {start:#}");
    }
    assert_adds_up(&start);

    host.write_manifest("timed.yaml", &pod("2", "trap \"exit 3\" TERM; echo up; sleep 1000000 & wait"));
    let change = trace(&host, "Change", &["FirstOutput"]);
    assert_one_after_the_other(&change, &["Notice", "Read", "Accept", "Record", "Stop", "Wait", "HelperStart", "ContainerExecute"]);
    assert!(spans(&change).iter().any(|span| span["step"] == "Wait" && span["about"] == "main stops"), "{change:#}");
    assert_eq!(position(&change, "Sandbox"), None, "{change:#}");
    assert_adds_up(&change);

    let pid = host.container_pid(&host.wait_running("timed"), "main");
    nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), nix::sys::signal::Signal::SIGTERM).unwrap();
    let restart = trace(&host, "Restart", &["FirstOutput"]);
    assert_one_after_the_other(&restart, &["Wait", "Container"]);
    assert_eq!(position(&restart, "Accept"), None, "{restart:#}");
    assert_adds_up(&restart);

    let titles = |arguments: &[&str]| -> Vec<String> {
        let text = host.cli_ok(arguments);
        let titles = text.lines().filter_map(|line| line.split_once(" of pod timed-edge-1 at "));
        titles.map(|(cause, _)| cause.to_owned()).collect()
    };
    assert_eq!(titles(&["trace", "timed", "--all"]), ["restart", "change", "start"]);
    assert_eq!(titles(&["trace", "timed"]), ["restart"]);

    host.kill_daemon();
    host.start_daemon();
    let adopted = eventually("the pod to be adopted", || {
        let out = host.cli(&["trace", "timed"]);
        if out.status.success() { Ok(String::from_utf8(out.stdout).unwrap()) } else { Err(format!("{out:?}")) }
    });
    assert!(adopted.contains("the pod was started before this daemon"), "{adopted}");
    host.write_manifest("timed.yaml", &pod("3", "echo up; exec sleep 1000000"));
    trace(&host, "Change", &["FirstOutput"]);
    host.remove_manifest("timed.yaml");
    host.wait_gone("timed");
}

#[test]
fn trace_of_failing_image_goes_on() {
    let host = TestHost::start();
    let manifest = pod("1", "exec sleep 1000000").replace("busybox:1", "busybox:none\n      imagePullPolicy: Never");
    host.write_manifest("timed.yaml", &manifest);
    let waiting = eventually("the pod to wait for its image", || {
        let out = host.cli(&["trace", "timed", "-o", "jsonpath={.traces[0].isComplete} {.traces[0].spans[*].about}"]);
        let text = String::from_utf8_lossy(&out.stdout).into_owned();
        if text.contains("false") && text.contains("main: ErrImageNeverPull") { Ok(text) } else { Err(text) }
    });
    assert!(!waiting.contains("FirstOutput"));
    host.write_manifest("timed.yaml", &pod("1", "exec sleep 1000000"));
    let change = trace(&host, "Change", &["ContainerExecute"]);
    assert_adds_up(&change);
}
