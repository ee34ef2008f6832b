//! A link that breaks.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that came to the client, and connections that broke.
#[derive(Debug, Default)]
struct Counters {
    sent: AtomicU64,
    cuts: AtomicU64,
}

/// A port of this machine that leads to a registry, by connections that end after so many bytes.
pub(super) struct Link {
    port: u16,
    counters: Arc<Counters>,
}

impl Link {
    /// Serves until the end of the process.
    pub(super) fn to(registry: &str, cut: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (port, registry, counters) = (listener.local_addr().unwrap().port(), registry.to_owned(), Arc::<Counters>::default());
        let counting = Arc::clone(&counters);
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let Ok(upstream) = TcpStream::connect(&registry) else { continue };
                let counters = Arc::clone(&counting);
                std::thread::spawn(move || connection(client, upstream, cut, &counters));
            }
        });
        Self { port, counters }
    }

    pub(super) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Bytes that were sent to clients so far, and connections that were cut.
    pub(super) fn sent(&self) -> (u64, u64) {
        (self.counters.sent.load(Ordering::Relaxed), self.counters.cuts.load(Ordering::Relaxed))
    }
}

fn connection(mut client: TcpStream, mut upstream: TcpStream, cut: u64, counters: &Counters) {
    let (Ok(mut asking), Ok(mut asked)) = (client.try_clone(), upstream.try_clone()) else { return };
    std::thread::spawn(move || {
        drop(std::io::copy(&mut asking, &mut asked));
        drop(asked.shutdown(std::net::Shutdown::Write));
    });
    let (mut left, mut buffer) = (cut, vec![0; 64 << 10]);
    while left > 0 {
        let most = usize::try_from(left).unwrap().min(buffer.len());
        let Ok(count @ 1..) = upstream.read(&mut buffer[..most]) else { break };
        if client.write_all(&buffer[..count]).is_err() {
            break;
        }
        left -= count as u64;
        counters.sent.fetch_add(count as u64, Ordering::Relaxed);
    }
    counters.cuts.fetch_add(u64::from(left == 0), Ordering::Relaxed);
    for stream in [&client, &upstream] {
        drop(stream.shutdown(std::net::Shutdown::Both));
    }
}
