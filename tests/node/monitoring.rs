//! Metrics and their consumers: promtool, a Prometheus, curl.

use crate::support::{TestHost, eventually};
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

const POD: &str = "apiVersion: v1
kind: Pod
metadata: {name: busy}
spec:
  terminationGracePeriodSeconds: 1
  containers:
    - name: main
      image: localhost/busybox:1
      command: [sh, -c, 'while true; do i=$((i+1)); [ $((i % 1000)) -gt 0 ] || usleep 1000; done']
      env: [{name: PASSWORD, value: hunter2}]
      resources: {limits: {cpu: 1, memory: 64Mi}}
";

/// A port that was free a moment ago.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A host with one pod that runs, and where its pages are.
fn host() -> (TestHost, String) {
    let port = free_port();
    let host = TestHost::start_with(&format!("monitoring: {{port: {port}}}\n"));
    host.write_manifest("busy.yaml", POD);
    host.wait_running("busy");
    (host, format!("127.0.0.1:{port}"))
}

fn get(url: &str) -> Result<String, String> {
    let out = Command::new("curl").args(["-sS", "--fail-with-body", "--max-time", "20", url]).output().unwrap();
    let body = String::from_utf8_lossy(&out.stdout).into_owned();
    if out.status.success() { Ok(body) } else { Err(format!("{body}{}", String::from_utf8_lossy(&out.stderr))) }
}

/// Waits for it: who has the port at the moment may have to leave it first.
fn page(address: &str, path: &str) -> String {
    eventually(path, || get(&format!("http://{address}{path}")))
}

/// The value of the sample that begins with these words.
fn sample(text: &str, begins: &str) -> f64 {
    let line = text.lines().find(|line| line.starts_with(begins)).unwrap_or_else(|| panic!("no {begins} in {text}"));
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

#[test]
fn promtool_accepts_the_metrics_pages() {
    let (_host, address) = host();
    for path in ["/metrics", "/metrics/resource", "/metrics/cadvisor"] {
        let text = page(&address, path);
        let mut promtool = Command::new("promtool")
            .args(["check", "metrics"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        promtool.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        let out = promtool.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&out.stderr).into_owned();
        // Names that others chose long ago are what dashboards ask for.
        let complaints: Vec<_> = said.lines().filter(|line| line.starts_with("podstead_")).collect();
        assert!(out.status.code() != Some(1) && complaints.is_empty(), "{path}: {said}");
    }
    let own = page(&address, "/metrics");
    assert_eq!(sample(&own, "kubelet_running_pods "), 1.0);
    assert_eq!(sample(&own, "kube_pod_status_phase{namespace=\"default\",pod=\"busy-edge-1\",phase=\"Running\"}"), 1.0);
    assert_eq!(sample(&own, "podstead_source_failing{source=\"manifests\"}"), 0.0);
    assert!(sample(&own, "process_resident_memory_bytes ") > 1e6);
    eventually("the container's processor time to grow", || {
        let text = page(&address, "/metrics/resource");
        let used = sample(&text, "container_cpu_usage_seconds_total{container=\"main\",namespace=\"default\",pod=\"busy-edge-1\"}");
        if used > 0.05 { Ok(()) } else { Err(text) }
    });
    let text = page(&address, "/metrics/resource");
    assert!(sample(&text, "pod_memory_working_set_bytes{namespace=\"default\",pod=\"busy-edge-1\"}") > 10_000.0, "{text}");
    assert!(sample(&text, "node_memory_working_set_bytes ") > 1e7, "{text}");
    let text = page(&address, "/metrics/cadvisor");
    assert!(sample(&text, "container_memory_working_set_bytes{container=\"main\"") > 10_000.0);
    assert_eq!(sample(&text, "container_spec_memory_limit_bytes{container=\"main\""), f64::from(64 << 20));
    assert_eq!(
        sample(&text, "container_spec_cpu_quota{container=\"main\""),
        sample(&text, "container_spec_cpu_period{container=\"main\"")
    );
    let cpu = |kind: &str| sample(&text, &format!("container_cpu_{kind}_seconds_total{{container=\"main\""));
    let (all, parts) = (cpu("usage"), cpu("user") + cpu("system"));
    assert!(parts > 0.03 && (all - parts).abs() < 0.5, "{all} {parts}");
}

#[test]
fn kubelet_endpoints_are_equal_and_nothing_more() {
    let (host, address) = host();
    let summary: Value = serde_json::from_str(&page(&address, "/stats/summary")).unwrap();
    assert_eq!(summary["node"]["nodeName"], "edge-1");
    let pod = &summary["pods"][0];
    assert_eq!(pod["podRef"]["name"], "busy-edge-1");
    assert!(pod["containers"][0]["memory"]["workingSetBytes"].as_u64().unwrap() > 0, "{pod}");
    let pods: Value = serde_json::from_str(&page(&address, "/pods")).unwrap();
    assert_eq!(pods["items"][0]["metadata"]["uid"], pod["podRef"]["uid"]);
    assert_eq!(page(&address, "/healthz"), "ok");
    assert_eq!(page(&address, "/readyz"), "ok");
    for path in
        ["/api/v1/pods", "/api/v1/secrets", "/api/v1/namespaces/default/pods/busy-edge-1/log", "/apis/podstead.dev/v1alpha1/daemon"]
    {
        let refused = get(&format!("http://{address}{path}")).unwrap_err();
        assert!(refused.contains("404"), "{path}: {refused}");
    }
    let shown = host.cli_ok(&["top", "pods"]);
    let cells: Vec<&str> = shown.lines().nth(1).unwrap_or_default().split_whitespace().collect();
    let ["busy-edge-1", cpu, of_cpu, memory, of_memory] = cells[..] else { panic!("{shown}") };
    assert!(cpu.ends_with('m') && memory.ends_with("Mi"), "{shown}");
    assert!(of_cpu.ends_with('%') && of_memory.ends_with('%'), "the pod has limits: {shown}");
    assert!(host.cli_ok(&["top", "pods", "--containers", "--no-headers"]).contains("main"));
    assert!(host.cli_ok(&["top", "node"]).contains("edge-1"));
}

/// Ends the server with the test.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _gone = self.0.kill();
        let _status = self.0.wait();
    }
}

#[test]
fn a_prometheus_scrapes_the_pages() {
    let (host, address) = host();
    let jobs = ["/metrics", "/metrics/resource", "/metrics/cadvisor"].map(|path| {
        format!(
            "  - {{job_name: '{path}', scrape_interval: 1s, metrics_path: {path}, static_configs: [{{targets: ['{address}']}}]}}\n"
        )
    });
    let config = host.path("prometheus.yml");
    fs::write(&config, format!("scrape_configs:\n{}", jobs.concat())).unwrap();
    let listen = format!("127.0.0.1:{}", free_port());
    let log = fs::File::create(host.path("prometheus.log")).unwrap();
    let _server = Server(
        Command::new("prometheus")
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", host.path("tsdb").display()))
            .arg(format!("--web.listen-address={listen}"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap(),
    );
    for (query, at_least) in [
        ("kubelet_running_pods", 1.0),
        ("count(up==1)", 3.0),
        ("rate(container_cpu_usage_seconds_total%7Bjob%3D%22%2Fmetrics%2Fresource%22%7D%5B1m%5D)", 0.000_001),
    ] {
        eventually(&format!("Prometheus to know {query}"), || {
            let answer = get(&format!("http://{listen}/api/v1/query?query={query}"))?;
            let parsed: Value = serde_json::from_str(&answer).map_err(|error| error.to_string())?;
            let value = parsed["data"]["result"][0]["value"][1].as_str().and_then(|value| value.parse::<f64>().ok());
            if value.is_some_and(|value| value >= at_least) { Ok(()) } else { Err(answer) }
        });
    }
}
