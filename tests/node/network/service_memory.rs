//! Memory of the daemon with as many Services as a host may have.

use super::lan::Site;
use crate::support::{TestHost, eventually_within};
use std::time::{Duration, Instant};

const SERVICES: usize = 1000;
/// Endpoints of each.
const ENDPOINTS: usize = 5;
/// Edits of one Service without `PODSTEAD_EDITS`.
const EDITS: usize = 60;
/// KiB that all Services may take; about 3 MiB is what they do take.
const MOST: u64 = 4 << 10;
/// KiB that edits may leave: the history for watchers of the API, which has an end.
const NOISE: u64 = 1 << 10;
/// The daemon gives memory back 10 s after its last work.
const SETTLING: Duration = Duration::from_secs(14);
const PATIENCE: Duration = Duration::from_secs(180);

/// A Service without selector, and its endpoints outside of the host.
fn service(number: usize, edit: usize) -> String {
    let address = |endpoint: usize| format!("198.18.{}.{}", number % 250, if endpoint == 0 { 100 + edit % 100 } else { endpoint });
    let endpoints: Vec<String> = (0..ENDPOINTS).map(|endpoint| format!("{{addresses: [{}]}}", address(endpoint))).collect();
    format!(
        "apiVersion: v1\nkind: Service\nmetadata: {{name: s{number}}}\nspec: {{ports: [{{port: 80}}]}}\n---\n\
         apiVersion: discovery.k8s.io/v1\nkind: EndpointSlice\nmetadata: {{name: s{number}, labels: {{kubernetes.io/service-name: s{number}}}}}\n\
         addressType: IPv4\nports: [{{port: 8080}}]\nendpoints: [{}]\n",
        endpoints.join(", ")
    )
}

/// KiB of anonymous memory of the daemon.
fn anonymous(host: &TestHost) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{}/smaps_rollup", host.daemon_pid())).unwrap();
    let line = text.lines().find(|line| line.starts_with("Anonymous:")).unwrap_or_default();
    line.split_ascii_whitespace().nth(1).and_then(|number| number.parse().ok()).unwrap()
}

/// Waits until the daemon, which gives back what work has left, has at most so many KiB. Returns how many it has.
fn at_most(host: &TestHost, most: u64) -> u64 {
    let mut last = u64::MAX;
    eventually_within(Duration::from_secs(60), &format!("at most {most} KiB"), || {
        last = anonymous(host);
        if last <= most { Ok(()) } else { Err(format!("{last} KiB")) }
    });
    last
}

/// The least that the daemon has in a while, in which it gives back what work has left.
fn lowest(host: &TestHost) -> u64 {
    let begin = Instant::now();
    let mut least = u64::MAX;
    while begin.elapsed() < SETTLING {
        least = least.min(anonymous(host));
        std::thread::park_timeout(Duration::from_millis(500));
    }
    least
}

fn wait_served(host: &TestHost, wanted: usize) {
    eventually_within(PATIENCE, "all Services to be served", || {
        let out = host.cli_ok(&["get", "services", "-o", "name"]);
        let count = out.lines().count();
        if count == wanted { Ok(()) } else { Err(format!("{count} of {wanted}")) }
    });
}

/// Edits the first Service, again and again, and waits for each.
fn make(host: &TestHost, edits: std::ops::RangeInclusive<usize>) {
    for edit in edits {
        host.write_manifest("s0.yaml", &service(0, edit));
        let address = format!("198.18.0.{}", 100 + edit % 100);
        eventually_within(PATIENCE, "the edit to be served", || {
            let shown = host.cli_ok(&["get", "endpointslices", "s0-0", "-o", "json"]);
            if shown.contains(&address) { Ok(()) } else { Err(shown) }
        });
    }
}

#[test]
fn thousand_services_take_little_memory_and_edits_none() {
    let site = Site::start();
    let host = &site.host;
    host.write_manifest("s0.yaml", &service(0, 0));
    wait_served(host, 1);
    let one = lowest(host);
    let others: Vec<String> = (1..SERVICES).map(|number| service(number, 0)).collect();
    host.write_manifest("others.yaml", &others.join("---\n"));
    wait_served(host, SERVICES);
    at_most(host, one + MOST);
    let full = lowest(host);
    println!("{} KiB for {} Services", full - one, SERVICES - 1);
    let edits = std::env::var("PODSTEAD_EDITS").map_or(EDITS, |text| text.parse().unwrap());
    make(host, 1..=edits / 2);
    let half = at_most(host, full + NOISE);
    make(host, edits / 2 + 1..=edits);
    let end = at_most(host, full + NOISE);
    println!("{one} KiB with 1 Service, {full} with {SERVICES}, {half} after {} edits of one, {end} after {edits}", edits / 2);
}
