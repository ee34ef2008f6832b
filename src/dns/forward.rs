//! Asks the host's name servers.
//!
//! One after the other, without giving up on those asked before: the next one is asked when the former ones have been silent for a while or
//! have said that they cannot. Each question goes out from a socket of its own, so that the kernel picks another port each time, and under a
//! random identifier.
//!
//! Nothing is cached. The host's name servers do that (systemd-resolved, dnsmasq, the router), their caches are one hop away, and a cache
//! here would be a thing to poison and to bound; pods' own names cost nothing.

use super::exchange::{self, Verdict};
use super::message::Transport;
use super::upstreams::Standing;
use ring::rand::{SecureRandom, SystemRandom};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Silence after which the next name server is asked as well.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time limit of a query: the C libraries ask again after five seconds.
const DEADLINE: Duration = Duration::from_millis(4500);
/// Number of queries to each name server: datagrams get lost.
const ROUNDS: usize = 2;
/// No answer by UDP is longer than what the question allows, which is rarely more than this.
const DATAGRAM: usize = 4096;

/// A name server's response, and its classification.
type Judged = (Verdict, Vec<u8>);

/// Name servers of the host.
#[derive(Debug)]
pub(super) struct Forwarder {
    servers: watch::Receiver<Vec<SocketAddr>>,
    standing: Mutex<Standing>,
    random: SystemRandom,
    started: Instant,
}

impl Forwarder {
    /// Asks the servers of the moment.
    pub(super) fn new(servers: watch::Receiver<Vec<SocketAddr>>) -> Self {
        Self { servers, standing: Mutex::default(), random: SystemRandom::new(), started: Instant::now() }
    }

    /// The answer to a query that was parsed before; `None` if no server answers.
    pub(super) async fn ask(&self, question: &[u8], transport: Transport) -> Option<Vec<u8>> {
        let servers = self.servers.borrow().clone();
        let order = self.standing().order(&servers, self.started.elapsed());
        let mut waiting = order.iter().copied().cycle().take(order.len() * ROUNDS);
        let deadline = Instant::now() + DEADLINE;
        let mut asked: JoinSet<(SocketAddr, io::Result<Judged>)> = JoinSet::new();
        let mut unable = None;
        loop {
            if let Some(server) = waiting.next() {
                let sent = exchange::renumbered(question, self.identifier()?);
                asked.spawn(async move { (server, ask_one(server, &sent, transport).await) });
            }
            let patience = (Instant::now() + PATIENCE).min(deadline);
            // Cancel-safe: what is asked goes on.
            match tokio::time::timeout_at(patience, asked.join_next()).await {
                Ok(Some(Ok((server, Ok((Verdict::Answer, answer)))))) => {
                    self.standing().answered(server);
                    return Some(restored(&answer, question));
                }
                Ok(Some(Ok((_, Ok((Verdict::Unable | Verdict::Unrelated, answer)))))) => unable = Some(restored(&answer, question)),
                Ok(Some(Ok((server, Err(error))))) => {
                    tracing::debug!(%server, %error, "cannot query a name server");
                    self.standing().failed(server, self.started.elapsed());
                }
                Ok(Some(Err(_))) => {}
                // No server is left.
                Ok(None) => return unable,
                Err(_) => {
                    if let Some(first) = order.first() {
                        self.standing().failed(*first, self.started.elapsed());
                    }
                    if Instant::now() >= deadline {
                        return unable;
                    }
                }
            }
        }
    }

    fn standing(&self) -> std::sync::MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn identifier(&self) -> Option<u16> {
        let mut bytes = [0; 2];
        self.random.fill(&mut bytes).ok()?;
        Some(u16::from_be_bytes(bytes))
    }
}

/// The answer under the asker's identifier.
fn restored(answer: &[u8], question: &[u8]) -> Vec<u8> {
    let id = question.first_chunk::<2>().map_or(0, |id| u16::from_be_bytes(*id));
    exchange::renumbered(answer, id)
}

async fn ask_one(server: SocketAddr, question: &[u8], transport: Transport) -> io::Result<Judged> {
    match transport {
        Transport::Udp => by_datagram(server, question).await,
        Transport::Tcp => by_stream(server, question).await,
    }
}

async fn by_datagram(server: SocketAddr, question: &[u8]) -> io::Result<Judged> {
    let any = match server {
        SocketAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        SocketAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0)).await?;
    socket.connect(server).await?;
    socket.send(question).await?;
    let mut buffer = vec![0; DATAGRAM];
    loop {
        let length = socket.recv(&mut buffer).await?;
        match exchange::judge(question, &buffer[..length]) {
            Verdict::Unrelated => {}
            verdict @ (Verdict::Unable | Verdict::Answer) => {
                buffer.truncate(length);
                // Longer than the buffer: the rest is available by TCP.
                if length == DATAGRAM && !exchange::is_truncated(&buffer) {
                    buffer = super::message::truncated(question);
                }
                return Ok((verdict, buffer));
            }
        }
    }
}

async fn by_stream(server: SocketAddr, question: &[u8]) -> io::Result<Judged> {
    let mut stream = TcpStream::connect(server).await?;
    write_message(&mut stream, question).await?;
    let mut answer = vec![0; stream.read_u16().await?.into()];
    stream.read_exact(&mut answer).await?;
    let verdict = exchange::judge(question, &answer);
    match verdict {
        Verdict::Unrelated => Err(io::Error::new(io::ErrorKind::InvalidData, "the response does not match the query")),
        Verdict::Unable | Verdict::Answer => Ok((verdict, answer)),
    }
}

/// Writes a message behind its length, in one piece.
pub(super) async fn write_message(stream: &mut TcpStream, message: &[u8]) -> io::Result<()> {
    let length = u16::try_from(message.len()).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))?;
    stream.write_all(&[&length.to_be_bytes(), message].concat()).await
}

#[cfg(test)]
mod tests {
    use super::super::exchange::question;
    use super::*;
    use hickory_proto::op::ResponseCode;
    use hickory_proto::rr::RecordType;
    use tokio::net::TcpListener;

    fn asked() -> Vec<u8> {
        question("example.org.", RecordType::A, 7).to_vec().unwrap()
    }

    fn answer(question: &[u8], code: ResponseCode) -> Vec<u8> {
        let mut answer = question.to_vec();
        answer[2] |= 0x80;
        answer[3] = code.low();
        answer
    }

    fn forwarder(servers: &[SocketAddr]) -> Forwarder {
        let (sender, receiver) = watch::channel(servers.to_vec());
        drop(sender);
        Forwarder::new(receiver)
    }

    /// A name server that says this, after something else that is no answer; `None` for one that is silent.
    async fn server(code: Option<ResponseCode>) -> SocketAddr {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        tokio::spawn(async move {
            let mut buffer = [0; 512];
            let mut ids = std::collections::BTreeSet::new();
            while let Ok((length, from)) = socket.recv_from(&mut buffer).await {
                let question = &buffer[..length];
                ids.insert((question[0], question[1], from.port()));
                let Some(code) = code else { continue };
                let guessed = exchange::renumbered(&answer(question, code), u16::from_be_bytes([question[0], question[1]]) ^ 1);
                socket.send_to(&guessed, from).await.unwrap();
                socket.send_to(&answer(question, code), from).await.unwrap();
            }
        });
        address
    }

    #[tokio::test]
    async fn the_answer_comes_back_under_the_askers_number() {
        let server = server(Some(ResponseCode::NXDomain)).await;
        let reply = forwarder(&[server]).ask(&asked(), Transport::Udp).await.unwrap();
        assert_eq!(reply, answer(&asked(), ResponseCode::NXDomain));
    }

    #[tokio::test]
    async fn without_name_servers_there_is_no_answer_at_once() {
        assert_eq!(forwarder(&[]).ask(&asked(), Transport::Udp).await, None);
        let free = UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
        let begun = Instant::now();
        assert_eq!(forwarder(&[free]).ask(&asked(), Transport::Udp).await, None);
        assert!(begun.elapsed() < DEADLINE, "nobody listens there, and the kernel says so");
    }

    #[tokio::test]
    async fn a_silent_name_server_is_passed_by_and_asked_last_from_then_on() {
        let (silent, good) = (server(None).await, server(Some(ResponseCode::NoError)).await);
        let forwarder = forwarder(&[silent, good]);
        let begun = Instant::now();
        assert_eq!(forwarder.ask(&asked(), Transport::Udp).await, Some(answer(&asked(), ResponseCode::NoError)));
        assert!(begun.elapsed() >= PATIENCE);
        assert_eq!(forwarder.standing().order(&[silent, good], forwarder.started.elapsed()), [good, silent]);
    }

    #[tokio::test]
    async fn one_that_cannot_say_is_passed_by_and_believed_only_when_all_cannot() {
        let (unable, good) = (server(Some(ResponseCode::ServFail)).await, server(Some(ResponseCode::NoError)).await);
        let reply = forwarder(&[unable, good]).ask(&asked(), Transport::Udp).await;
        assert_eq!(reply, Some(answer(&asked(), ResponseCode::NoError)));
        let reply = forwarder(&[unable]).ask(&asked(), Transport::Udp).await;
        assert_eq!(reply, Some(answer(&asked(), ResponseCode::ServFail)));
    }

    #[tokio::test]
    async fn a_stream_brings_answers_of_any_length() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut question = vec![0; stream.read_u16().await.unwrap().into()];
            stream.read_exact(&mut question).await.unwrap();
            let long = [answer(&question, ResponseCode::NoError), vec![0; 60_000]].concat();
            write_message(&mut stream, &long).await.unwrap();
        });
        let reply = forwarder(&[address]).ask(&asked(), Transport::Tcp).await.unwrap();
        assert_eq!(reply.len(), asked().len() + 60_000);
    }
}
