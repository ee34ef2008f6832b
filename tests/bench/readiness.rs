//! The time until connections follow the readiness of a pod: from the answer of its probe to the first connection that its Service leads there, and from the
//! answer that it is not ready to the first connection that is refused; beside 1,000 other Services.
//!
//! The times hold the reading of the answer, the pod's status and the change of packet rules. The client connects without pause.

use crate::figures::{Series, row};
use crate::network::{Shipped, Site};
use crate::services::{within, write};
use crate::support::eventually_within;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Times that the pod becomes ready, and not ready again.
const CHANGES: usize = 50;
/// Address of the Service.
const ADDRESS: SocketAddrV4 = SocketAddrV4::new(Ipv4Addr::new(10, 202, 0, 10), 80);
/// Port of the pod that connections are led to.
const PORT: u16 = 7000;
/// Port of the pod that the probe asks.
const PROBED: u16 = 7001;
/// Pause between two connections.
const PAUSE: Duration = Duration::from_micros(100);
/// Probes come once a second.
const PATIENCE: Duration = Duration::from_secs(20);

/// Answers of the pod to its probe.
#[derive(Debug, Default)]
struct Answers {
    is_ready: AtomicBool,
    /// Time of the first answer since that was set.
    first: Mutex<Option<Instant>>,
}

impl Answers {
    /// Sets what is answered from now on.
    fn set(&self, is_ready: bool) {
        *self.first.lock().unwrap() = None;
        self.is_ready.store(is_ready, Ordering::SeqCst);
    }

    /// Answers one probe.
    fn answer(&self, mut stream: &TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        // A request is small: one read has it.
        if stream.read(&mut [0; 4096])? == 0 {
            return Ok(());
        }
        let is_ready = self.is_ready.load(Ordering::SeqCst);
        let status = if is_ready { "200 OK" } else { "503 Service Unavailable" };
        let mut first = self.first.lock().unwrap();
        if is_ready == self.is_ready.load(Ordering::SeqCst) {
            first.get_or_insert_with(Instant::now);
        }
        stream.write_all(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").as_bytes())
    }
}

/// Accepts connections to both ports of the pod; ends with the process.
fn serve(netns: &Path, answers: &Arc<Answers>) {
    let bind = |port: u16| within(netns, || TcpListener::bind(SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port)).unwrap());
    let (led, probed, answers) = (bind(PORT), bind(PROBED), Arc::clone(answers));
    std::thread::spawn(move || led.incoming().for_each(drop));
    std::thread::spawn(move || {
        for stream in probed.incoming().flatten() {
            // Who goes away without an answer asks again.
            answers.answer(&stream).ok();
        }
    });
}

/// Connects until that succeeds, or is refused; returns when it was.
fn until(client: &Path, is_answered: bool) -> Instant {
    within(client, || {
        let begin = Instant::now();
        while TcpStream::connect(ADDRESS).is_ok() != is_answered {
            assert!(begin.elapsed() < PATIENCE, "connections that are answered: {is_answered}");
            std::thread::park_timeout(PAUSE);
        }
        Instant::now()
    })
}

/// Times of a pod that becomes ready, and unready.
pub(crate) fn of_endpoints() {
    let site = Site::new("rdy");
    let podstead = Shipped::start(&site);
    podstead.run(0);
    let manifest = format!(
        "apiVersion: v1\nkind: Pod\nmetadata: {{name: behind, labels: {{app: behind}}}}\nspec:\n  terminationGracePeriodSeconds: 0\n  containers:\n\
         \x20 - {{name: main, image: 'localhost/busybox:1', command: [/bin/sleep, '1000000'],\n\
         \x20    readinessProbe: {{httpGet: {{port: {PROBED}}}, periodSeconds: 1, failureThreshold: 1}}}}\n---\n\
         apiVersion: v1\nkind: Service\nmetadata: {{name: behind}}\n\
         spec: {{clusterIP: {}, selector: {{app: behind}}, ports: [{{port: {}, targetPort: {PORT}}}]}}\n",
        ADDRESS.ip(),
        ADDRESS.port()
    );
    podstead.0.write_manifest("behind.yaml", &manifest);
    podstead.0.wait_running("behind");
    let netns = |pod: &str| -> PathBuf {
        let pid = podstead.0.container_pid(&podstead.0.pod(pod).unwrap(), "main");
        format!("/proc/{pid}/ns/net").into()
    };
    let (client, answers) = (netns("p0"), Arc::<Answers>::default());
    serve(&netns("behind"), &answers);
    write(&podstead, true);
    let (mut ready, mut unready) = (Series::default(), Series::default());
    until(&client, false);
    for _ in 0..CHANGES {
        for (is_ready, series) in [(true, &mut ready), (false, &mut unready)] {
            answers.set(is_ready);
            let at = until(&client, is_ready);
            let answered = eventually_within(PATIENCE, "an answer to the probe", || {
                answers.first.lock().unwrap().ok_or_else(|| "none".to_owned())
            });
            series.push(at.saturating_duration_since(answered));
        }
    }
    row("ready: from the answer of the probe to the first connection through the Service", &ready.text(), "-", "-");
    row("not ready: from the answer of the probe to the first connection that is refused", &unready.text(), "-", "-");
}
