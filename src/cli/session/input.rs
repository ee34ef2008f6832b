//! Reading stdin without holding up the end of the session.

use bytes::Bytes;
use std::io::Read;
use tokio::sync::mpsc;

/// Bytes read at once.
const PIECE: usize = 32 << 10;
/// Pieces read ahead; more wait in the pipe or the terminal.
const QUEUE: usize = 2;

/// Reads stdin in a thread of its own, which may be blocked in a read when the process ends.
pub(super) fn read_stdin() -> mpsc::Receiver<Bytes> {
    let (sender, receiver) = mpsc::channel(QUEUE);
    std::thread::spawn(move || {
        let mut buffer = vec![0; PIECE];
        let mut stdin = std::io::stdin().lock();
        while let Ok(length) = stdin.read(&mut buffer) {
            if length == 0 || sender.blocking_send(Bytes::copy_from_slice(&buffer[..length])).is_err() {
                break;
            }
        }
    });
    receiver
}

/// The next piece; `None` at the end of stdin. Without an input, or after its end, it never returns. Cancel-safe.
pub(super) async fn next(input: &mut Option<mpsc::Receiver<Bytes>>) -> Option<Bytes> {
    match input {
        Some(input) => input.recv().await,
        None => std::future::pending().await,
    }
}
