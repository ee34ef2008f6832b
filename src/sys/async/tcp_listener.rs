//! Listening on addresses as soon as they are available: of an interface that is not up yet, a port that is still in use.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;
use tokio::net::TcpListener;

/// Listens on `address`. A failure is retried after each `pause`; `tell` is called for the first failure only.
pub async fn listen(address: SocketAddr, pause: Duration, tell: impl FnOnce(&io::Error) + Send) -> TcpListener {
    let mut tell = Some(tell);
    loop {
        match TcpListener::bind(address).await {
            Ok(listener) => return listener,
            Err(error) => {
                if let Some(tell) = tell.take() {
                    tell(&error);
                }
                tokio::time::sleep(pause).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::tcp_listener::*;

    #[tokio::test]
    async fn an_address_that_somebody_else_has_is_listened_at_when_it_is_free() {
        let other = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = other.local_addr().unwrap();
        let (told, failure) = tokio::sync::oneshot::channel();
        let listening = tokio::spawn(listen(address, Duration::from_millis(5), move |error| told.send(error.kind()).unwrap()));
        assert_eq!(failure.await.unwrap(), io::ErrorKind::AddrInUse);
        assert!(!listening.is_finished());
        drop(other);
        let listener = tokio::time::timeout(Duration::from_secs(60), listening).await.unwrap().unwrap();
        assert_eq!(listener.local_addr().unwrap(), address);
    }
}
