//! A relay of TCP connections that can be slowed, stopped and cut; also a proxy that takes CONNECT.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// Faults of bytes from the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Passed on.
    Free,
    /// Passed on in small pieces, with pauses.
    Slow,
    /// Neither passed on nor refused: the peer's kernel goes on answering.
    Stuck,
    /// The connection is cut after so many bytes.
    CutAfter(usize),
    /// No connection lives.
    Cut,
}

/// A relay to one server; dropping it ends all connections.
pub(crate) struct Relay {
    pub(crate) port: u16,
    line: watch::Sender<Line>,
    tunnels: Arc<AtomicUsize>,
    _background: Background,
}

/// A thread for a server, also of tests that are asynchronous themselves; it ends with this.
pub(crate) struct Background(Option<tokio::runtime::Runtime>);

impl Background {
    /// Runs a server on a port of loopback; gives the port.
    pub(crate) fn serve<F: Future<Output = ()> + Send + 'static>(
        serve: impl FnOnce(TcpListener) -> F + Send + 'static,
    ) -> (u16, Self) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        runtime.spawn(async move { serve(TcpListener::from_std(listener).unwrap()).await });
        (port, Self(Some(runtime)))
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        // Waiting for its end is not allowed where a test is asynchronous.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Relay {
    /// To a port of loopback. A proxy waits for CONNECT first, and leads there wherever it is asked to lead.
    pub(crate) fn start(server: u16, is_proxy: bool) -> Self {
        let line = watch::Sender::new(Line::Free);
        let tunnels = Arc::new(AtomicUsize::new(0));
        let (subscribe, count) = (line.clone(), tunnels.clone());
        let (port, background) = Background::serve(move |listener| async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(connection(client, server, is_proxy, subscribe.subscribe(), count.clone()));
            }
        });
        Self { port, line, tunnels, _background: background }
    }

    /// From now on, for connections that are there, too.
    pub(crate) fn set(&self, line: Line) {
        self.line.send_replace(line);
    }

    /// Tunnels that were asked for by CONNECT.
    pub(crate) fn tunnels(&self) -> usize {
        self.tunnels.load(Ordering::SeqCst)
    }
}

async fn connection(mut client: TcpStream, server: u16, is_proxy: bool, line: watch::Receiver<Line>, tunnels: Arc<AtomicUsize>) {
    if *line.borrow() == Line::Cut {
        return;
    }
    if is_proxy {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let Ok(byte) = client.read_u8().await else { return };
            head.push(byte);
        }
        if !head.starts_with(b"CONNECT ") {
            return;
        }
        tunnels.fetch_add(1, Ordering::SeqCst);
        if client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.is_err() {
            return;
        }
    }
    let Ok(server) = TcpStream::connect(("127.0.0.1", server)).await else { return };
    let (from_client, to_client) = client.into_split();
    let (mut from_server, mut to_server) = server.into_split();
    let up = async move {
        let mut from_client = from_client;
        tokio::io::copy(&mut from_client, &mut to_server).await.ok();
    };
    // Whichever ends takes the other one along.
    tokio::select! {
        () = up => {}
        () = down(&mut from_server, to_client, line) => {}
    }
}

async fn down(server: &mut OwnedReadHalf, mut client: OwnedWriteHalf, mut line: watch::Receiver<Line>) {
    let mut buffer = [0; 4096];
    let mut passed = 0;
    loop {
        let now = *line.borrow_and_update();
        match now {
            Line::Cut => return,
            Line::CutAfter(bytes) if passed >= bytes => return,
            Line::Stuck => {
                if line.changed().await.is_err() {
                    return;
                }
                continue;
            }
            Line::Free | Line::Slow | Line::CutAfter(_) => {}
        }
        let most = match now {
            Line::Slow => 16,
            Line::CutAfter(bytes) => (bytes - passed).min(buffer.len()),
            Line::Free | Line::Stuck | Line::Cut => buffer.len(),
        };
        // A read that loses has taken nothing.
        let read = tokio::select! {
            read = server.read(&mut buffer[..most]) => read,
            _ = line.changed() => continue,
        };
        let Ok(count @ 1..) = read else { return };
        if now == Line::Slow {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        if client.write_all(&buffer[..count]).await.is_err() {
            return;
        }
        passed += count;
    }
}
